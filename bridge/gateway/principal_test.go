package gateway_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/policy"
)

// tokens are whose the bearer tokens of the tests are.
var tokens = map[string]*gate.Principal{
	"Bearer a": {Owner: gate.Owner{ID: "alice"}, Auth: "bearer", Roles: []string{"eng"}},
	"Bearer b": {Owner: gate.Owner{ID: "bob"}, Auth: "bearer"},
}

// bearing adds a token to all requests.
type bearing string

func (b bearing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// TestPrincipals: of two clients of one endpoint each sees and calls what is granted to its
// principal, whatever tells them apart; functions know who calls.
func TestPrincipals(t *testing.T) {
	who := function(t, "who", func(ctx context.Context, _ struct{}) (string, error) {
		p, session := gateway.Caller(ctx)
		return p.ID + " in a session of " + session.Owner.ID, nil
	})
	config := func() gateway.Config {
		return gateway.Config{
			Functions: map[string][]options.LocalTool{"f": {who}, "g": {who}}, Recorder: new(records),
			Policy: gateway.Policy{Options: policy.Options{Timeout: patience, Grants: []policy.Grant{
				{To: []string{"*"}, Tools: []string{"f__*"}}, {To: []string{"role:eng"}, Tools: []string{"g__*"}},
			}}},
			Principal: func(*http.Request) (*gate.Principal, error) { return nil, errors.New("past the middleware") },
		}
	}
	byFunc := config()
	byFunc.Principal = func(r *http.Request) (*gate.Principal, error) {
		if p := tokens[r.Header.Get("Authorization")]; p != nil {
			return p, nil
		}
		return nil, errors.New("no such token")
	}
	inner := start(t, config())
	for name, handler := range map[string]http.Handler{
		"Config.Principal": start(t, byFunc),
		"middleware": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if p := tokens[r.Header.Get("Authorization")]; p != nil {
				r = r.WithContext(gateway.WithPrincipal(r.Context(), p))
			}
			inner.ServeHTTP(w, r)
		}),
	} {
		srv := httptest.NewServer(handler)
		defer srv.Close()
		connect := func(token string) (*mcp.ClientSession, error) {
			transport := &mcp.StreamableClientTransport{Endpoint: srv.URL + "/mcp", HTTPClient: &http.Client{Transport: bearing("Bearer " + token)}}
			return mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil).Connect(t.Context(), transport, nil)
		}
		for token, want := range map[string]struct {
			id    string
			tools int
		}{"a": {"alice", 2}, "b": {"bob", 1}} {
			c, err := connect(token)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			list, err := c.ListTools(t.Context(), nil)
			if err != nil || len(list.Tools) != want.tools {
				t.Errorf("%s: %s is offered %d tools, %v", name, want.id, len(list.Tools), err)
			}
			res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "f__who"})
			if err != nil {
				t.Fatal(err)
			}
			if text := res.Content[0].(*mcp.TextContent).Text; text != want.id+" in a session of "+want.id {
				t.Errorf("%s: %s calls as %q", name, want.id, text)
			}
			if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "g__who"}); (err == nil) != (want.id == "alice") {
				t.Errorf("%s: %s calls g__who: %v", name, want.id, err)
			}
		}
		if _, err := connect("none"); err == nil {
			t.Errorf("%s: a client without a token is let in", name)
		}
	}
	if p, _ := gateway.Caller(t.Context()); p != nil {
		t.Error("a caller outside of a call")
	}
}
