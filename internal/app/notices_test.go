package app_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/wasmgate/wasmgate/internal/app"
	"github.com/wasmgate/wasmgate/internal/app/calls"
	"github.com/wasmgate/wasmgate/internal/background/notify"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// TestNotices: a call that waits for a person and a required server that is faulted reach a
// webhook and a program, once each; arguments only where they are asked for, and no word of a
// client's is an argument of the program.
func TestNotices(t *testing.T) {
	unraced.Long(t)
	var mu sync.Mutex
	hooked := make(map[notify.Kind][]notify.Notice)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		var n notify.Notice
		if err := json.Unmarshal(b, &n); err != nil || r.Header.Get("Authorization") != "t0p" {
			t.Errorf("%s: %v", b, err)
		}
		mu.Lock()
		defer mu.Unlock()
		hooked[n.Kind] = append(hooked[n.Kind], n)
	}))
	defer hook.Close()
	dir := t.TempDir()
	cfg := load(t, "version: 1\n")
	write(t, cfg.Policy.Grants, "- {to: [\"*\"], tools: [\"*\"]}\n")
	write(t, filepath.Join(filepath.Dir(cfg.File), "ask.rego"), "package wasmgate\n\nask contains \"it is asked about\" if input.tool.name == \"local__hash\"\n")
	cfg = reload(t, cfg.File, `version: 1
servers: {gone: {command: no-such-program, required: true}, other: {command: no-such-program}}
policy: {packs: [grants], paths: [ask.rego]}
approvals: {channels: [cli], hold: 0s}
notify:
  hook: {url: "`+hook.URL+`", headers: {authorization: t0p}}
  script: {command: [sh, -c, "echo \"$# $*\" >> args; cat >> notices", fixed], about: [approval], arguments: true}
`)
	t.Chdir(dir)
	a := start(t, cfg)
	run(t, a, app.Front{Listen: []string{"127.0.0.1:0"}})
	if _, err := a.Calls.Call(t.Context(), calls.Request{Tool: "local__hash", Args: `{"text":"canary $(touch run)","algorithm":"sha256"}`}); err == nil {
		t.Fatal("nobody was asked")
	}
	of := func(kind notify.Kind) []notify.Notice {
		mu.Lock()
		defer mu.Unlock()
		return hooked[kind]
	}
	timelimit.Wait(t, "notices", func() bool {
		_, err := os.Stat(filepath.Join(dir, "notices"))
		return len(of(notify.Approval)) > 0 && len(of(notify.Server)) > 0 && err == nil && strings.HasSuffix(readText(t, filepath.Join(dir, "notices")), "\n")
	})
	asked := of(notify.Approval)[0]
	if asked.Tool != "local__hash" || asked.Principal != "local" || asked.Arguments != nil || asked.Command != "wasmgate approvals show "+asked.ID || asked.Title != "A call waits for your approval" || asked.Node == "" {
		t.Errorf("notice %+v", asked)
	}
	if s := of(notify.Server)[0]; s.Server != "gone" {
		t.Errorf("notice %+v", s)
	}
	var given notify.Notice
	if err := json.Unmarshal([]byte(readText(t, filepath.Join(dir, "notices"))), &given); err != nil || !strings.Contains(string(given.Arguments), "canary") {
		t.Errorf("the program got %+v, %v", given, err)
	}
	if got := readText(t, filepath.Join(dir, "args")); got != "0 \n" {
		t.Errorf("the program's arguments are %q", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "run")); err == nil {
		t.Error("an argument of a call was run")
	}
	all, err := a.Approvals.List(t.Context())
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	write(t, cfg.File, readText(t, cfg.File)+"groups: {g: [\"x__*\"]}\n") // another configuration repeats no notice
	timelimit.Wait(t, "another reading", func() bool { return a.Overview.Status().Read.After(all[0].Asked) })
	if n := len(of(notify.Approval)) + len(of(notify.Server)); n != 2 {
		t.Errorf("%d notices", n)
	}
}

func readText(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestNoticesFail: a notice that cannot be sent is reported, and does not keep anyone from calling.
func TestNoticesFail(t *testing.T) {
	unraced.Long(t)
	cfg := load(t, "version: 1\nservers: {gone: {command: no-such-program, required: true}}\nnotify: {script: {command: [sh, -c, \"exit 3\"]}}\n")
	a := start(t, cfg)
	run(t, a, app.Front{Listen: []string{"127.0.0.1:0"}})
	timelimit.Wait(t, "a problem", func() bool {
		return strings.Contains(strings.Join(a.Overview.Status().Problems, "\n"), "notify script: a notice of kind server was not sent: sh: exit status 3")
	})
	if _, err := a.Calls.Call(t.Context(), calls.Request{Tool: "local__hash", Args: hello}); err != nil {
		t.Error(err)
	}
}
