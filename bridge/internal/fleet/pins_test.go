package fleet_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/fleet"
	"github.com/wasmgate/wasmgate/bridge/internal/local"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
)

// Pins see everything that a server declares, before it can be looked up, and again
// when the server says that it has changed.
func TestPinsObserve(t *testing.T) {
	s := rig.NewScript(map[string]string{"initialize": strings.Replace(rig.Initialized, `"capabilities"`, `"instructions":"be kind","capabilities"`, 1)})
	s.List(rig.EchoTool + `,{"name":"more","inputSchema":{"type":"object"},"later":{"x":1}}`)
	p := &rig.Pins{}
	functions, err := local.New("go", rig.Options(), options.LocalTool{Definition: gate.MustDoc(rig.EchoTool), Call: func(context.Context, *gate.Call, gate.Permit) (gate.Result, error) { return gate.Result{}, nil }})
	if err != nil {
		t.Fatal(err)
	}
	f, err := fleet.New(fleet.Config{Locals: []*local.Server{functions}, Servers: []options.Endpoint{s.Config("s")}, Pins: p})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if d := p.Last(); d.Server != "go" || d.Config != nil || len(d.Tools) != 1 || !d.Own[0] {
		t.Errorf("of a local server: %+v", d)
	}
	if err := f.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	d := p.Last()
	if d.Server != "s" || d.Config == nil || d.Config.Server != "s" || d.Instructions.Text() != "be kind" || !d.Announced.IsZero() {
		t.Errorf("declaration = %+v", d)
	}
	if len(d.Tools) != 2 || d.Own[0] || d.Own[1] || d.Tools[1].Get("later").IsZero() {
		t.Errorf("tools = %v", d.Tools)
	}
	if tool, err := f.Lookup(t.Context(), gate.CallTool, "s__more"); err != nil || tool.Digest != d.Tools[1].Digest() {
		t.Errorf("the tool is known by %v, not by the digest of its declaration: %v", tool, err)
	}

	s.List(rig.EchoTool)
	s.Tell(&jsonrpc.Request{Method: "notifications/tools/list_changed"})
	for giveUp := time.Now().Add(time.Minute); p.Last().Announced.IsZero(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(giveUp) {
			t.Fatal("the announcement is not observed")
		}
	}
	if d := p.Last(); len(d.Tools) != 1 {
		t.Errorf("tools = %v", d.Tools)
	}
}

// A call that comes after an announcement is not made of the definition from before
// it, however soon it comes and however often the server announces.
func TestCallsWaitForWhatIsAnnounced(t *testing.T) {
	s := rig.NewScript(nil)
	f, err := fleet.New(fleet.Config{Servers: []options.Endpoint{s.Config("s")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := f.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		def := fmt.Sprintf(`{"name":"echo","inputSchema":{"type":"object"},"description":"version %d"}`, i)
		s.List(def)
		s.Tell(&jsonrpc.Request{Method: "notifications/tools/list_changed"})
		if _, err := rig.Do(t.Context(), t, f, "s__echo", "{}"); err != nil { // its answer comes after the announcement
			t.Fatal(err)
		}
		tool, err := f.Lookup(t.Context(), gate.CallTool, "s__echo")
		if err != nil || tool.Digest != gate.MustDoc(def).Digest() {
			t.Errorf("version %d: found %s, %v", i, tool.Definition, err)
		}
	}
}

func TestPinnedToolsSaySo(t *testing.T) {
	s := rig.NewScript(nil)
	s.List(rig.EchoTool + `,{"name":"reads","inputSchema":{"type":"object"}},{"name":"unknown","inputSchema":{"type":"object"}}`)
	p := &rig.Pins{Approved: []string{"echo", "reads"}, Persons: []string{"reads", "unknown"}}
	f, err := fleet.New(fleet.Config{Servers: []options.Endpoint{s.Config("s")}, Pins: p})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := f.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, tool := range f.Tools(t.Context()) {
		if tool.Pinned {
			got = append(got, tool.Local)
		}
	}
	if !slices.Equal(got, []string{"reads"}) {
		t.Errorf("pinned: %v", got)
	}
	told := 0
	defer f.Watch(func(status.Lists) { told++ })()
	p.Persons = nil
	f.Refresh()
	if told != 1 || f.KnownFeatures(gate.FeatureTool)[1].Pinned {
		t.Errorf("after a refresh: told %d times, %+v", told, f.KnownFeatures(gate.FeatureTool)[1])
	}
}
