package gateway_test

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/lock"
	"github.com/wasmgate/wasmgate/internal/testing/compiled"
	"github.com/wasmgate/wasmgate/sandbox"
)

// manifestChanges are changes of a module whose manifest is next to it, by the member that
// they change. Those of a reactor have true.
var manifestChanges = map[string]struct {
	reactor bool
	change  func(m *sandbox.Manifest)
}{
	"wants":     {false, func(m *sandbox.Manifest) { m.Wants = &sandbox.Wants{KV: true} }},
	"limits":    {false, func(m *sandbox.Manifest) { m.Limits = &sandbox.WantedLimits{Timeout: "1s"} }},
	"isolation": {false, func(m *sandbox.Manifest) { m.Isolation = sandbox.IsolationInstance }},
	"snapshot":  {false, func(m *sandbox.Manifest) { m.Snapshot = sandbox.SnapshotInput }},
	"args":      {false, func(m *sandbox.Manifest) { m.Args = []string{"-c", "send(everything)"} }},
	"stdin":     {false, func(m *sandbox.Manifest) { m.Stdin = "{{x}}" }},
	"stdout":    {false, func(m *sandbox.Manifest) { m.Stdout = "text" }},
	"imports":   {false, func(m *sandbox.Manifest) { m.Imports.Stub = []string{"env.*"} }},
	"warm": {true, func(m *sandbox.Manifest) {
		m.Snapshot, m.Warm = sandbox.SnapshotWarm, &sandbox.Sample{Tool: "a", Arguments: json.RawMessage(`{"x":1}`)}
	}},
}

// Whatever of a module decides what runs is pinned: its file, each member of its manifest,
// and what the operator has in their place. A gateway that runs and one that starts refuse
// the tool when it changes, and allow it when it is as it was. Its limits and its folders,
// which the operator sets, are none of it.
func TestPinsOfModules(t *testing.T) {
	for field := range reflect.TypeFor[sandbox.Manifest]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if _, ok := manifestChanges[name]; !ok && name != "tools" {
			t.Errorf("no change of a manifest's %s is tried", name)
		}
	}
	command, reactor := saying(t, "words", "a", "first"), counting(t)
	command.Server, reactor.Server = "commands", "reactors"
	reactor.Config.Isolation = ""
	dir, cache := t.TempDir(), compiled.Folder(t)
	open := func(modules ...gateway.Module) *gateway.Gateway {
		return start(t, gateway.Config{
			Recorder: new(records), Policy: granting("*"), Modules: modules, CacheDir: cache,
			Pins: &options.Pins{Mode: options.PinTrustFirst, File: filepath.Join(dir, lock.FileName), Dir: filepath.Join(dir, "pins")},
		})
	}
	g := open(command, reactor)
	expect := func(g *gateway.Gateway, what string, m gateway.Module, want string) {
		t.Helper()
		if _, err := call(g, m.Server+"__a", "{}"); gate.Code(err) != want {
			t.Errorf("%s: %v, want %s", what, err, want)
		}
	}
	try := func(what string, now gateway.Module, want, part string) {
		t.Helper()
		before, other := command, reactor
		if now.Server == reactor.Server {
			before, other = reactor, command
		}
		if err := g.SetModules(t.Context(), []gateway.Module{now, other}, nil); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		expect(g, what, now, want)
		expect(g, what+", the other server", other, "ok")
		pins, err := g.Operator().Pins()
		if err != nil {
			t.Fatal(err)
		}
		review, err := pins.(*lock.Pins).Review("", nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(review.Differences); got != 0 && part == "" || got != 1 && part != "" || part != "" && !slices.ContainsFunc(review.Differences[0].Changes, func(c lock.Reviewed) bool {
			return strings.HasPrefix(c.Pointer+"/", "/"+part+"/")
		}) {
			t.Errorf("%s: differences %+v, want one of %q", what, review.Differences, part)
		}
		again := open(now, other)
		expect(again, what+", started anew", now, want)
		stop(t, again)
		if err := g.SetModules(t.Context(), []gateway.Module{before, other}, nil); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		expect(g, what+", as before", before, "ok")
	}
	expect(g, "first seen", command, "ok")
	expect(g, "first seen", reactor, "ok")
	for name, tt := range manifestChanges {
		now := command
		if tt.reactor {
			now = reactor
		}
		manifest := *now.Config.Manifest
		tt.change(&manifest)
		now.Config.Manifest = &manifest
		try(name, now, "refused_pin", name)
	}
	file := command
	file.WASM = append(slices.Clone(command.WASM), 0, 2, 1, 'a') // a custom section named a
	try("the file", file, "refused_pin", "code")
	configured := command
	configured.Config.Args = []string{"other"}
	try("configured arguments", configured, "refused_pin", "args")
	configured = command
	configured.Config.Isolation = sandbox.IsolationInstance
	try("a configured isolation", configured, "refused_pin", "isolation")
	described := command
	manifest := *command.Config.Manifest
	manifest.Tools = slices.Clone(manifest.Tools)
	manifest.Tools[0].Description = "It does something else."
	described.Config.Manifest = &manifest
	try("a definition", described, "refused_pin", "description")

	limited := command
	limited.Config.Limits.Concurrent = 3
	try("configured limits", limited, "ok", "")
	granted := command
	granted.Grant.Dirs = []sandbox.Dir{{Path: t.TempDir()}}
	try("a granted folder", granted, "ok", "")
}
