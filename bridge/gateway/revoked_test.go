package gateway_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/policy"
)

// A call of a credential that is revoked once the gateway has found out whose it is, and before the call begins, is refused; so is one after which
// more credentials were revoked than are remembered. One of another credential passes.
func TestRevokedOnTheWay(t *testing.T) {
	for name, c := range map[string]struct {
		revoked []string
		passes  bool
	}{
		"its own":     {[]string{"alice"}, false},
		"another's":   {[]string{"bob"}, true},
		"both":        {[]string{"bob", "alice", "bob"}, false},
		"very many":   {make([]string, 65), false},
		"rather many": {make([]string, 64), true},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Bool
			var gw *gateway.Gateway
			config := gateway.Config{
				Functions: map[string][]options.LocalTool{"f": {function(t, "do", func(context.Context, struct{}) (string, error) { return "done", nil })}}, Recorder: new(records),
				Policy: gateway.Policy{Options: policy.Options{Timeout: patience, Grants: []policy.Grant{{To: []string{"*"}, Tools: []string{"f__*"}}}}},
				Principal: func(*http.Request) (*gate.Principal, error) {
					if calls.Load() {
						for _, id := range c.revoked {
							gw.Operator().Revoked(func(who *gate.Principal) bool { return who.ID == id })
						}
					}
					return tokens["Bearer a"], nil
				},
			}
			gw = start(t, config)
			srv := httptest.NewServer(gw)
			defer srv.Close()
			client, err := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: srv.URL + "/mcp"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			calls.Store(true)
			res, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: "f__do"})
			if passed := err == nil && !res.IsError; passed != c.passes {
				t.Errorf("passed: %t (%+v, %v)", passed, res, err)
			}
		})
	}
}
