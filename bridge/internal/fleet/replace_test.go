package fleet_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/internal/fleet"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
)

// A held server answers calls, with its name, when it is let.
type heldServer struct {
	name  string
	tool  string // its definition
	begun chan struct{}
	let   chan struct{}
	ended chan struct{} // closed with its connection
}

func newHeldServer(name string) *heldServer {
	return &heldServer{name: name, tool: rig.EchoTool, begun: make(chan struct{}, 100), let: make(chan struct{}), ended: make(chan struct{})}
}

func (h *heldServer) config(server string) options.Endpoint {
	return options.Endpoint{Server: server, Tools: rig.Options(), CallTimeout: 3 * time.Minute, Dial: func() (mcp.Transport, error) {
		a, b := mcp.NewInMemoryTransports()
		c, err := a.Connect(context.Background())
		if err == nil {
			go h.serve(c)
		}
		return b, err
	}}
}

func (h *heldServer) serve(c mcp.Connection) {
	defer close(h.ended)
	for {
		m, err := c.Read(context.Background())
		if err != nil {
			return
		}
		req, ok := m.(*jsonrpc.Request)
		if !ok || !req.IsCall() {
			continue
		}
		result := rig.Initialized
		switch req.Method {
		case "tools/list":
			result = `{"tools":[` + h.tool + `]}`
		case "tools/call":
			h.begun <- struct{}{}
			go func() {
				select {
				case <-h.let:
					_ = c.Write(context.Background(), &jsonrpc.Response{ID: req.ID, Result: json.RawMessage(fmt.Sprintf(`{"content":[],"by":%q}`, h.name))})
				case <-h.ended:
				}
			}()
			continue
		}
		if c.Write(context.Background(), &jsonrpc.Response{ID: req.ID, Result: json.RawMessage(result)}) != nil {
			return
		}
	}
}

func ended(h *heldServer) bool {
	synctest.Wait()
	select {
	case <-h.ended:
		return true
	default:
		return false
	}
}

// TestFleetReplaces: a call under way ends at the server that it was made at, the
// next goes to the new one, and the old connection ends with the last call.
func TestFleetReplaces(t *testing.T) {
	changes := map[string]struct {
		change func(t *testing.T, f *fleet.Fleet, now *heldServer) error
		next   string // who answers the next call, or its code
	}{
		"added in its place": {func(t *testing.T, f *fleet.Fleet, now *heldServer) error { return f.Add(t.Context(), now.config("s")) }, "new"},
		"removed":            {func(_ *testing.T, f *fleet.Fleet, _ *heldServer) error { return f.Remove("s") }, "refused_lookup"},
		"added broken": {func(t *testing.T, f *fleet.Fleet, _ *heldServer) error {
			if err := f.Add(t.Context(), options.Endpoint{Server: "s", Broken: "so", Tools: rig.Options()}); err == nil {
				t.Error("a broken server is ready")
			}
			return nil
		}, "not_connected"},
	}
	for name, tt := range changes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				old, now := newHeldServer("old"), newHeldServer("new")
				close(now.let)
				f := rig.NewFleet(t, fleet.Config{Servers: []options.Endpoint{old.config("s")}})
				if err := f.Connect(t.Context()); err != nil {
					t.Fatal(err)
				}
				answered := make(chan string)
				go func() {
					res, err := rig.Do(t.Context(), t, f, "s__echo", "{}")
					answered <- res.Doc.Get("by").Text() + errText(err)
				}()
				<-old.begun
				if err := tt.change(t, f, now); err != nil {
					t.Fatal(err)
				}
				if ended(old) {
					t.Fatal("the old connection was cut with a call under way")
				}
				res, err := rig.Do(t.Context(), t, f, "s__echo", "{}")
				if got := res.Doc.Get("by").Text(); got != tt.next && gate.Code(err) != tt.next {
					t.Errorf("the next call: %q, %v, want %s", got, err, tt.next)
				}
				close(old.let)
				if got := <-answered; got != "old" {
					t.Errorf("the call under way: %s", got)
				}
				if !ended(old) {
					t.Error("the old connection is left open")
				}
				f.Close()
			})
		})
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestFleetReplacesInTime: the old server is closed when its calls could take no
// longer, or the gateway has closed its servers.
func TestFleetReplacesInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newHeldServer("a"), newHeldServer("b")
		f := rig.NewFleet(t, fleet.Config{Servers: []options.Endpoint{a.config("a"), b.config("b")}})
		_ = f.Connect(t.Context())
		for _, h := range []*heldServer{a, b} {
			go rig.Do(context.WithoutCancel(t.Context()), t, f, h.name+"__echo", "{}")
			<-h.begun
		}
		if err := f.Remove("a"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3*time.Minute - time.Second)
		if ended(a) {
			t.Error("cut off before its time")
		}
		time.Sleep(2 * time.Second)
		if !ended(a) {
			t.Error("open beyond the time of a call")
		}
		_ = f.Remove("b")
		f.Close()
		if !ended(b) {
			t.Error("the gateway has closed its servers, and a server that it had is not")
		}
	})
}

// TestFleetReplacesWhatDiffers: while another server connects the old one serves; a
// configuration that is the same changes nothing; and the newest of two counts.
func TestFleetReplacesWhatDiffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old, now := newHeldServer("old"), newHeldServer("new")
		close(old.let)
		close(now.let)
		f := rig.NewFleet(t, fleet.Config{Servers: []options.Endpoint{old.config("s")}})
		_ = f.Connect(t.Context())
		slowly := now.config("s")
		dial := slowly.Dial
		slowly.Dial = func() (mcp.Transport, error) { time.Sleep(5 * time.Second); return dial() }
		first := make(chan error, 1)
		go func() { first <- f.Add(t.Context(), slowly) }()
		synctest.Wait()
		if res, err := rig.Do(t.Context(), t, f, "s__echo", "{}"); err != nil || res.Doc.Get("by").Text() != "old" {
			t.Errorf("while the new one connects: %s %v", res.Doc, err)
		}
		last := newHeldServer("last")
		close(last.let)
		if err := f.Add(t.Context(), last.config("s")); err != nil {
			t.Fatal(err)
		}
		if err := <-first; err == nil || !strings.Contains(err.Error(), "changed again during this change") {
			t.Errorf("the change that was overtaken: %v", err)
		}
		if res, err := rig.Do(t.Context(), t, f, "s__echo", "{}"); err != nil || res.Doc.Get("by").Text() != "last" {
			t.Errorf("after both: %s %v", res.Doc, err)
		}
		f.Close()
	})
}

// TestFleetKeepsTheSame: a configuration that the server has already changes nothing.
func TestFleetKeepsTheSame(t *testing.T) {
	f := rig.NewFleet(t, fleet.Config{})
	same := rig.Child("echoes")
	same.Tools.Sanitizer = noSanitizer{}
	for range 2 {
		if err := f.Add(t.Context(), same); err != nil {
			t.Fatal(err)
		}
	}
	since := f.Status()[0].Since
	if err := f.Add(t.Context(), same); err != nil {
		t.Fatal(err)
	}
	if now := f.Status()[0].Since; now != since {
		t.Error("the same configuration was connected anew")
	}
	same.CallTimeout = time.Minute
	if err := f.Add(t.Context(), same); err != nil {
		t.Fatal(err)
	}
	if now := f.Status()[0].Since; now == since {
		t.Error("another configuration was not connected")
	}
}

// noSanitizer can be compared, as a function cannot.
type noSanitizer struct{}

func (noSanitizer) Sanitize(t gate.Text) (string, []gate.Finding) { return t.Text, nil }

// TestFleetCallsWhatWasPermitted: a call that was permitted for one definition of a
// tool is not made with another.
func TestFleetCallsWhatWasPermitted(t *testing.T) {
	old, now := newHeldServer("old"), newHeldServer("new")
	close(now.let)
	now.tool = `{"name":"echo","description":"sends mail","inputSchema":{"type":"object"}}`
	f := rig.NewFleet(t, fleet.Config{Servers: []options.Endpoint{old.config("s")}})
	_ = f.Connect(t.Context())
	late := upstreamFunc{f, func() {
		if err := f.Add(t.Context(), now.config("s")); err != nil {
			t.Error(err)
		}
	}}
	if res, err := rig.Do(t.Context(), t, late, "s__echo", "{}"); rig.Kind(err) != "not_connected" {
		t.Errorf("called the other tool: %s %v", res.Doc, err)
	}
	if res, err := rig.Do(t.Context(), t, f, "s__echo", "{}"); err != nil || res.Doc.Get("by").Text() != "new" {
		t.Errorf("the tool as it is now: %s %v", res.Doc, err)
	}
}

// upstreamFunc is a fleet to which something happens between decision and call.
type upstreamFunc struct {
	*fleet.Fleet
	happens func()
}

func (u upstreamFunc) Invoke(ctx context.Context, p gate.Permit) (gate.Result, error) {
	u.happens()
	return u.Fleet.Invoke(ctx, p)
}
