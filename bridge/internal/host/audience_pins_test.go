package host_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/internal/fleet"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
)

// shifting pins approve of everything until they have seen a server once more than they
// expect.
type shifting struct {
	rig.Pins
	most int
}

func (s *shifting) Check(*gate.Tool) error {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if len(s.Observed) > s.most {
		return errors.New("it is another server")
	}
	return nil
}

// silent is a client that could be asked, and never is.
type silent struct{ gate.Nobody }

func (silent) Reach() gate.Reach {
	return gate.Reach{Capabilities: gate.MustDoc(`{"elicitation":{}}`)}
}

// A client's own connection is a server started once more, or reached once more: what is
// at its end is held against the pins with the tools that were listed, before it is called.
func TestOwnConnectionsArePinned(t *testing.T) {
	for name, tt := range map[string]struct {
		most int
		code string
	}{
		"the same server":      {9, "ok"},
		"another in its stead": {1, "refused_pin"},
	} {
		t.Run(name, func(t *testing.T) {
			up := newAsker()
			var calls atomic.Int32
			up.tool("count", func(context.Context, *mcp.ServerSession) string { calls.Add(1); return "counted" })
			p := &shifting{most: tt.most}
			cfg := upstreams["one stream"](t, up)
			cfg.Server, cfg.Tools = "up", rig.Options()
			f := rig.NewFleet(t, fleet.Config{Servers: []options.Endpoint{cfg}, Pins: p})
			g, err := gate.New(gate.Parts{
				Upstream: f, Sessions: rig.Sessions{}, Recorder: new(rig.Records), Pins: p,
				Authorizer: rig.AuthorizerFunc(func(gate.Query) gate.Decision { return gate.Decision{Effect: gate.Allow} }),
				Sanitizer:  rig.SanitizerFunc(func(s string) (string, []gate.Finding) { return s, nil }),
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Connect(t.Context()); err != nil {
				t.Fatal(err)
			}
			listed := p.Last()
			c := gate.Call{Action: gate.CallTool, Name: "up__count", Who: gate.Local(), Session: gate.SessionKey{ID: "s"}}
			if _, err := g.Do(t.Context(), c); err != nil {
				t.Fatalf("over the shared connection: %v", err)
			}
			c.Client = silent{}
			_, err = g.Do(t.Context(), c)
			if gate.Code(err) != tt.code || err != nil && !strings.Contains(err.Error(), "differs from") {
				t.Errorf("got %v, want %s", err, tt.code)
			}
			if want := map[string]int32{"ok": 2}[tt.code]; calls.Load() != max(1, want) {
				t.Errorf("the server was called %d times", calls.Load())
			}
			if again := p.Last(); len(p.Observed) != 2 || !slices.EqualFunc(again.Tools, listed.Tools, func(a, b gate.Doc) bool { return a.Digest() == b.Digest() }) {
				t.Errorf("%d declarations, the last with %d tools of %d", len(p.Observed), len(again.Tools), len(listed.Tools))
			}
		})
	}
}
