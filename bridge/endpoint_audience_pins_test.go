package bridge_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge"
	"github.com/wasmgate/wasmgate/gate"
)

// shifting pins approve of everything until they have seen a server once more than they
// expect.
type shifting struct {
	pins
	most int
}

func (s *shifting) Check(*gate.Tool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.observed) > s.most {
		return errors.New("it is another server")
	}
	return nil
}

// silent is a client that could be asked, and never is.
type silent struct{}

func (silent) Capabilities() gate.Doc { return gate.MustDoc(`{"elicitation":{}}`) }

func (silent) Request(context.Context, gate.Action, gate.Doc) (gate.Doc, error) {
	return gate.Doc{}, errors.New("asked")
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
			cfg.Server, cfg.Tools = "up", options()
			f := newFleet(t, bridge.FleetConfig{Servers: []bridge.EndpointConfig{cfg}, Pins: p})
			g, err := gate.New(gate.Parts{
				Upstream: f, Sessions: sessions{}, Recorder: new(records), Pins: p,
				Authorizer: authorizerFunc(func(gate.Query) gate.Decision { return gate.Decision{Effect: gate.Allow} }),
				Sanitizer:  sanitizerFunc(func(s string) (string, []gate.Finding) { return s, nil }),
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Connect(t.Context()); err != nil {
				t.Fatal(err)
			}
			listed := p.last()
			c := gate.Call{Action: gate.CallTool, Name: "up__count", Who: gate.Local(), Session: gate.SessionKey{ID: "s"}}
			if _, err := g.Do(t.Context(), c); err != nil {
				t.Fatalf("over the shared connection: %v", err)
			}
			c.Peer = silent{}
			_, err = g.Do(t.Context(), c)
			if gate.Code(err) != tt.code || err != nil && !strings.Contains(err.Error(), "another") {
				t.Errorf("got %v, want %s", err, tt.code)
			}
			if want := map[string]int32{"ok": 2}[tt.code]; calls.Load() != max(1, want) {
				t.Errorf("the server was called %d times", calls.Load())
			}
			if again := p.last(); len(p.observed) != 2 || !slices.EqualFunc(again.Tools, listed.Tools, func(a, b gate.Doc) bool { return a.Digest() == b.Digest() }) {
				t.Errorf("%d declarations, the last with %d tools of %d", len(p.observed), len(again.Tools), len(listed.Tools))
			}
		})
	}
}
