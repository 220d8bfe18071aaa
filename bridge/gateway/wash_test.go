package gateway_test

import (
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/gate/session"
	"github.com/wasmgate/wasmgate/policy"
)

// bank has a page with an amount in it that somebody outside wrote, and pays amounts.
func bank(sessions string) gateway.Config {
	return gateway.Config{
		Sessions: session.Options{File: sessions}, Recorder: new(records),
		Policy: gateway.Policy{Options: policy.Options{
			Timeout: patience, Packs: []string{"grants", "flow"}, Grants: []policy.Grant{{To: []string{"*"}, Tools: []string{"bank__*"}}},
			Labels: []policy.Label{
				{Pattern: "bank__read", ToolLabels: provenance.ToolLabels{Private: true, Effects: []provenance.ToolEffect{provenance.EffectRead}}},
				{Pattern: "bank__pay", ToolLabels: provenance.ToolLabels{
					Result: provenance.ResultEcho, Effects: []provenance.ToolEffect{provenance.EffectInternal}, To: []string{}, Commits: []string{"/amount"}, Content: []string{"/note"},
				}},
			},
		}},
		Functions: map[string][]options.LocalTool{"bank": {
			tool("read", func(context.Context, *gate.Call, gate.Permit) (gate.Result, error) {
				return text("amount: 98765.43"), nil
			}),
			tool("pay", nil),
		}},
	}
}

// TestGoingOnIsNoCleanSlate has a client read an amount, end its connection or not, and pay it
// over another one, in each transport and revision, with and without a restart between. A client
// that has read nothing may pay another one.
func TestGoingOnIsNoCleanSlate(t *testing.T) {
	type way struct {
		stdio    bool
		revision string
	}
	var ways []way
	for _, stdio := range []bool{false, true} {
		for _, revision := range []string{"2025-11-25", "2026-07-28"} {
			ways = append(ways, way{stdio, revision})
		}
	}
	connect := func(t *testing.T, g *gateway.Gateway, by way, name string) *mcp.ClientSession {
		t.Helper()
		var to mcp.Transport
		if by.stdio {
			inR, inW := io.Pipe()
			outR, outW := io.Pipe()
			go func() {
				_ = g.Serve(context.Background(), gate.Local(), inR, outW)
				_ = outW.Close()
			}()
			to = &mcp.IOTransport{Reader: outR, Writer: inW}
		} else {
			srv := httptest.NewServer(g)
			t.Cleanup(srv.Close)
			to = &mcp.StreamableClientTransport{Endpoint: srv.URL + "/mcp"}
		}
		c := mcp.NewClient(&mcp.Implementation{Name: name, Version: "1"}, nil)
		s, err := c.Connect(t.Context(), to, &mcp.ClientSessionOptions{ProtocolVersion: by.revision})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	calls := func(t *testing.T, s *mcp.ClientSession, tool string, args map[string]any) bool {
		t.Helper()
		res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
		if err != nil {
			t.Fatal(err)
		}
		return !res.IsError
	}
	amount, other := map[string]any{"amount": "98765.43"}, map[string]any{"amount": "45678.90"}
	for _, first := range ways {
		for _, then := range ways {
			for _, restart := range []bool{false, true} {
				for _, closed := range []bool{false, true} {
					t.Run(fmt.Sprint(first, then, restart, closed), func(t *testing.T) {
						file := filepath.Join(t.TempDir(), "sessions.json")
						g := start(t, bank(file))
						s := connect(t, g, first, "agent")
						if !calls(t, s, "bank__read", map[string]any{}) {
							t.Fatal("the page cannot be read")
						}
						if closed {
							_ = s.Close()
						}
						if restart {
							g = start(t, bank(file))
						}
						shared := first == then && !then.stdio && then.revision > "2026" // by all clients of a principal
						if !shared && !calls(t, connect(t, g, then, "editor"), "bank__pay", other) {
							t.Error("a client that has read nothing may not pay")
						}
						if calls(t, connect(t, g, then, "agent"), "bank__pay", amount) {
							t.Error("an amount of an untrusted page was paid")
						}
					})
				}
			}
		}
	}
}
