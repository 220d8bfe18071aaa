package fleet_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/bridge/internal/fleet"
	"github.com/wasmgate/wasmgate/bridge/internal/local"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
)

func TestToolsAreInTheGroupsOfTheirNames(t *testing.T) {
	o := rig.Options()
	o.Groups = options.Groups{"docs": {"files__read_*", "files__stat"}, "all": {"*"}, "other": {"mail__*"}, "none": nil}
	stat := rig.Echo(`"name":"stat"`)
	stat.Groups = []string{"zoo", "docs"}
	l, err := local.New("files", o, rig.Echo(`"name":"read_text"`), stat, rig.Echo(`"name":"status"`))
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string][]string)
	for _, tool := range l.Tools(t.Context()) {
		got[tool.Local] = tool.Groups
	}
	want := map[string][]string{"read_text": {"all", "docs"}, "stat": {"all", "docs", "zoo"}, "status": {"all"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestRegroup: groups of the fleet are added to those of a server, and can be replaced without a
// new connection.
func TestRegroup(t *testing.T) {
	script := rig.NewScript(nil)
	own := script.Config("files")
	own.Tools.Groups = options.Groups{"own": {"files__*"}}
	f := rig.NewFleet(t, fleet.Config{Servers: []options.Endpoint{own}, Groups: options.Groups{"docs": {"files__e*"}, "far": {"mail__*"}}})
	if err := f.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	groups := func() []string {
		one, err := f.Lookup(t.Context(), gate.CallTool, "files__echo")
		if err != nil {
			t.Fatal(err)
		}
		return one.Groups
	}
	if diff := cmp.Diff([]string{"docs", "own"}, groups()); diff != "" {
		t.Error(diff)
	}
	f.Regroup(options.Groups{"all": {"*"}, "own": {"files__echo"}})
	if diff := cmp.Diff([]string{"all", "own"}, groups()); diff != "" {
		t.Error(diff)
	}
	f.Regroup(nil)
	if diff := cmp.Diff([]string{"own"}, groups()); diff != "" || script.Dials != 1 {
		t.Errorf("dialled %d times: %s", script.Dials, diff)
	}
}

// TestOnlyTheProgramsOwnToolsRelay: a module or a server never makes calls as a client.
func TestOnlyTheProgramsOwnToolsRelay(t *testing.T) {
	for name, change := range map[string]func(*options.LocalTool){
		"a sandboxed tool": func(t *options.LocalTool) { t.Sandboxed = true },
		"a foreign tool":   func(t *options.LocalTool) { t.Foreign = true },
	} {
		one := rig.Echo(`"name":"call"`)
		one.Relay = true
		change(&one)
		if _, err := local.New("files", rig.Options(), one); err == nil || !strings.Contains(err.Error(), "makes no calls") {
			t.Errorf("%s: %v", name, err)
		}
	}
	l, err := local.New("files", rig.Options(), rig.Echo(`"name":"call"`))
	if err != nil || l.Tools(t.Context())[0].Relay {
		t.Errorf("a tool that does not ask for it relays, %v", err)
	}
	claims := rig.NewScript(nil)
	claims.List(`{"name":"call","Relay":true,"relay":true,"Groups":["docs"],"groups":["docs"],"inputSchema":{"type":"object"}}`)
	e := rig.NewFleet(t, fleet.Config{Servers: []options.Endpoint{claims.Config("claims")}})
	if err := e.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	tools := e.Tools(t.Context())
	if len(tools) != 1 || tools[0].Relay || tools[0].Groups != nil {
		t.Errorf("tools = %+v", tools)
	}
}
