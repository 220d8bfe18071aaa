package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/app"
	"github.com/wasmgate/wasmgate/internal/app/calls"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

const noModule = "no module at all"

// TestOneBrokenModule is left out, and the others are served; status says why.
func TestOneBrokenModule(t *testing.T) {
	cfg := load(t, "version: 1\n")
	write(t, filepath.Join(filepath.Dir(cfg.File), "broken.wasm"), noModule)
	cfg = reload(t, cfg.File, "version: 1\ntools: {broken: {module: broken.wasm}, other: {module: broken.wasm, sha256: '"+strings.Repeat("0", 64)+"'}}\n")
	a := start(t, cfg)
	if _, err := a.Calls.Call(t.Context(), calls.Request{Tool: "local__hash", Args: hello}); err != nil {
		t.Error(err)
	}
	s := a.Overview.Status()
	if got := strings.Join(s.Faulted(), " "); got != "broken other" {
		t.Errorf("faulted: %q", got)
	}
	problems := strings.Join(s.Problems, "\n")
	for _, want := range []string{"module broken: ", "module other: ", "not the configured one", "its tools are not offered"} {
		if !strings.Contains(problems, want) {
			t.Errorf("problems %q, want %q", problems, want)
		}
	}
}

// TestReloadSays what it has put in place, and what waits for a restart.
func TestReloadSays(t *testing.T) {
	unraced.Long(t)
	cfg := load(t, "version: 1\n")
	a := start(t, cfg)
	_, _, _ = run(t, a, app.Front{Listen: []string{"127.0.0.1:0"}})
	module := filepath.Join(filepath.Dir(cfg.File), "m.wasm")
	write(t, module, noModule)
	problems := func() string { return strings.Join(a.Overview.Status().Problems, "\n") }
	offered := func(name string) bool {
		tools, err := a.Inventory.Tools(t.Context(), "", false)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range tools {
			if one.Name == name {
				return len(one.Groups) == 1
			}
		}
		return false
	}
	write(t, cfg.File, "version: 1\ntools: {m: {module: m.wasm}}\ngroups: {g: [\"local__*\", \"catalog__*\", \"jobs__*\"]}\ncatalog: {mode: beside}\nlimits: {body: 1MiB, session: 3}\nlog: {level: warn}\nsanitize: {profile: strict}\napprovals: {channels: []}\njobs: {max: 7, offer: true}\nsessions: {ttl: 2h, scope: principal}\naudit: {record: full, path: other.jsonl}\n")
	timelimit.Wait(t, "the module", func() bool { return strings.Contains(problems(), "module m: ") })
	if !offered("local__hash") || !offered("catalog__search") || !offered("jobs__start") {
		t.Error("groups, catalog or jobs are as before")
	}
	p := problems()
	for _, want := range []string{"sessions.scope changed: restart to apply it", "audit.path changed: restart to apply it"} {
		if !strings.Contains(p, want) {
			t.Errorf("problems %q, want %q", p, want)
		}
	}
	if n := strings.Count(p, "restart"); n != 2 {
		t.Errorf("%d keys wait for a restart: %q", n, p)
	}

	if err := os.WriteFile(module, []byte(noModule+" again"), 0o600); err != nil {
		t.Fatal(err)
	}
	read := a.Overview.Status().Read
	timelimit.Wait(t, "another reading, as the module's file has changed", func() bool { return a.Overview.Status().Read.After(read) })
	write(t, cfg.File, "version: 1\n")
	timelimit.Wait(t, "nothing to be wrong", func() bool { return problems() == "" })
	if offered("catalog__search") || offered("jobs__start") {
		t.Error("the catalog, or the tools of jobs, are still there")
	}
}

// TestReloadsShadowAndBundles: both come, change and go with the file.
func TestReloadsShadowAndBundles(t *testing.T) {
	unraced.Long(t)
	cfg := load(t, "version: 1\n")
	a := start(t, cfg)
	_, _, _ = run(t, a, app.Front{Listen: []string{"127.0.0.1:0"}})
	folder := filepath.Join(filepath.Dir(cfg.File), "bundle")
	if err := os.MkdirAll(filepath.Join(folder, "own"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, ".manifest"), `{"roots": ["own"], "revision": "one"}`)
	write(t, filepath.Join(folder, "own", "own.rego"), "package own\n\nx := 2\n")
	write(t, cfg.File, "version: 1\npolicy: {bundles: [{name: b, path: bundle}], shadow: {packs: []}}\n")
	timelimit.Wait(t, "the bundle", func() bool {
		return len(a.Overview.Status().Bundles) == 1 && a.Overview.Status().Bundles[0].Revision == "one"
	})
	timelimit.Wait(t, "the shadow", func() bool { s := a.Overview.Status().Shadow; return s != nil && s.Revision != "" })
	first := a.Overview.Status().Shadow.Revision
	write(t, cfg.File, "version: 1\npolicy: {bundles: [{name: b, path: bundle}], shadow: {packs: [flow]}}\n")
	timelimit.Wait(t, "another shadow", func() bool { s := a.Overview.Status().Shadow; return s != nil && s.Revision != first })
	write(t, filepath.Join(folder, ".manifest"), `{"roots": ["own"], "revision": "two"}`)
	timelimit.Wait(t, "the bundle to be read again", func() bool { return a.Overview.Status().Bundles[0].Revision == "two" })

	write(t, cfg.File, "version: 1\npolicy: {bundles: [{name: b, path: nowhere}]}\n")
	timelimit.Wait(t, "what is wrong to be said", func() bool { return strings.Contains(strings.Join(a.Overview.Status().Problems, "\n"), "nowhere") })
	if b := a.Overview.Status().Bundles; len(b) != 1 || b[0].Revision != "two" {
		t.Errorf("after a bundle that is not there: %+v", b)
	}
	write(t, cfg.File, "version: 1\n")
	timelimit.Wait(t, "neither", func() bool {
		s := a.Overview.Status()
		return len(s.Bundles) == 0 && s.Shadow == nil && len(s.Problems) == 0
	})
}

// TestReloadsPolicy: another policy takes effect in one step with the rest of the file, and from then
// on its files are watched. One that does not load leaves everything as it was, until it is fixed.
func TestReloadsPolicy(t *testing.T) {
	unraced.Long(t)
	cfg := load(t, "version: 1\n")
	a := start(t, cfg)
	_, _, _ = run(t, a, app.Front{Listen: []string{"127.0.0.1:0"}})
	beside := func(name string) string { return filepath.Join(filepath.Dir(cfg.File), name) }
	write(t, beside("own.rego"), "package wasmgate\n\nallow contains \"one\"\n")
	before := a.Overview.Status().Policy
	write(t, cfg.File, "version: 1\npolicy: {packs: [], paths: [own.rego]}\n")
	timelimit.Wait(t, "the other policy", func() bool { // it is in use a moment before its files are said
		p := a.Policies.Files()
		return a.Overview.Status().Policy != before && len(p.Packs) == 0 && len(p.Paths) == 1
	})
	if p := strings.Join(a.Overview.Status().Problems, "\n"); strings.Contains(p, "restart") {
		t.Errorf("problems: %s", p)
	}
	before = a.Overview.Status().Policy
	write(t, beside("own.rego"), "package wasmgate\n\nallow contains \"two\"\n")
	timelimit.Wait(t, "its file to be read again", func() bool { return a.Overview.Status().Policy != before })

	before = a.Overview.Status().Policy
	write(t, beside("bad.rego"), "package wasmgate\n\nallow contains\n")
	write(t, cfg.File, "version: 1\npolicy: {packs: [], paths: [bad.rego]}\ngroups: {g: [\"local__*\"]}\n")
	timelimit.Wait(t, "what is wrong to be said", func() bool { return strings.Contains(strings.Join(a.Overview.Status().Problems, "\n"), "bad.rego") })
	if a.Overview.Status().Policy != before || len(a.Policies.Files().Paths) != 1 || strings.Contains(a.Policies.Files().Paths[0], "bad") {
		t.Errorf("the policy is %s of %+v, after one that does not load", a.Overview.Status().Policy, a.Policies.Files())
	}
	write(t, beside("bad.rego"), "package wasmgate\n\nallow contains \"three\"\n")
	timelimit.Wait(t, "the corrected policy", func() bool {
		return a.Overview.Status().Policy != before && strings.Contains(a.Policies.Files().Paths[0], "bad")
	})
	write(t, cfg.File, "version: 1\n")
	timelimit.Wait(t, "the first policy", func() bool { return len(a.Policies.Files().Packs) == 1 && len(a.Overview.Status().Problems) == 0 })
}

// TestReloadOrders the servers as the file does, also those that come with it: of two with
// one resource or method the first has it.
func TestReloadOrders(t *testing.T) {
	unraced.Long(t)
	servers := func(order string) string {
		text := ""
		for id := range strings.FieldsSeq(order) {
			text += id + ": {command: no-such-program-here}, "
		}
		return "version: 1\nservers: {" + text + "}\n"
	}
	cfg := load(t, servers("a b c d"))
	a := start(t, cfg)
	_, _, _ = run(t, a, app.Front{Listen: []string{"127.0.0.1:0"}})
	const order = "e d a g c f"
	write(t, cfg.File, servers(order))
	timelimit.Wait(t, "the order of the file", func() bool {
		var ids []string
		for _, s := range a.Overview.Status().Servers {
			if !s.Local {
				ids = append(ids, s.Server)
			}
		}
		return strings.Join(ids, " ") == order
	})
}
