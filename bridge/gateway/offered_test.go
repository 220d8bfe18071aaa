package gateway_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
)

// grouped starts a gateway with tools in groups, all of them granted, and serves it.
func grouped(t *testing.T, change func(*gateway.Config)) (*gateway.Gateway, *httptest.Server) {
	t.Helper()
	cfg := gateway.Config{
		Recorder: new(records), Policy: granting("*"),
		Groups:    options.Groups{"docs": {"files__read"}, "talk": {"chat__*"}, "empty": nil},
		Functions: map[string][]options.LocalTool{"files": {tool("read", nil), tool("write", nil)}, "chat": {tool("say", nil)}},
	}
	if change != nil {
		change(&cfg)
	}
	g := start(t, cfg)
	srv := httptest.NewServer(g)
	t.Cleanup(srv.Close)
	return g, srv
}

// connect returns a client at a path.
func connect(t *testing.T, url, revision string) *mcp.ClientSession {
	t.Helper()
	c, err := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil).Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: url}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// sees returns the tools that a client lists.
func sees(t *testing.T, c *mcp.ClientSession) (names []string) {
	t.Helper()
	list, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range list.Tools {
		names = append(names, one.Name)
	}
	slices.Sort(names)
	return names
}

// TestAClientOfAGroup sees and calls what is in the group alone. What is not is as
// unknown as what does not exist.
func TestAClientOfAGroup(t *testing.T) {
	for name, tt := range map[string]struct {
		offer []string // serve --group
		who   gate.Groups
		path  string
		want  []string
	}{
		"all":                           {nil, nil, "/mcp", []string{"chat__say", "files__read", "files__write"}},
		"one group":                     {nil, nil, "/mcp/docs", []string{"files__read"}},
		"a group that holds nothing":    {nil, nil, "/mcp/empty", nil},
		"what the gateway offers":       {[]string{"docs", "talk"}, nil, "/mcp", []string{"chat__say", "files__read"}},
		"a group of what it offers":     {[]string{"docs", "talk"}, nil, "/mcp/talk", []string{"chat__say"}},
		"a group that it does not":      {[]string{"docs"}, nil, "/mcp/talk", nil},
		"what the principal is offered": {nil, gate.Groups{{"talk"}}, "/mcp", []string{"chat__say"}},
		"a path widens nothing":         {nil, gate.Groups{{"talk"}}, "/mcp/docs", nil},
	} {
		t.Run(name, func(t *testing.T) {
			g, srv := grouped(t, func(c *gateway.Config) {
				c.Who = gate.Local()
				c.Who.Groups = tt.who
			})
			g.Operator().Offer(tt.offer)
			for _, revision := range []string{"2025-11-25", "2026-07-28"} {
				c := connect(t, srv.URL+tt.path, revision)
				if diff := cmp.Diff(tt.want, sees(t, c)); diff != "" {
					t.Errorf("%s: %s", revision, diff)
				}
				unknown := func(name string) string {
					_, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: map[string]any{}})
					if err == nil {
						return ""
					}
					return strings.ReplaceAll(err.Error(), name, "NAME")
				}
				nothing := unknown("no__such")
				for _, name := range []string{"chat__say", "files__read", "files__write"} {
					want := ""
					if !slices.Contains(tt.want, name) {
						want = nothing
					}
					if got := unknown(name); got != want || nothing == "" {
						t.Errorf("%s: %s: error %q, want %q", revision, name, got, want)
					}
				}
			}
		})
	}
}

// TestAGroupThatIsNotThere is not found, and neither is a session where it was not
// opened.
func TestAGroupThatIsNotThere(t *testing.T) {
	_, srv := grouped(t, nil)
	send := func(method, path, session, body string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, srv.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
			r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		return resp
	}
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
	const list = `{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}`
	const use = `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"files__read","arguments":{}}}`
	for _, path := range []string{"/mcp/nothing", "/mcp/docs,talk", "/mcp/docs/talk", "/mcp/Docs", "/mcp/..%2Fmcp"} {
		if resp := send(http.MethodPost, path, "", hello); resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s", path, resp.Status)
		}
	}
	paths := []string{"/mcp", "/mcp/docs", "/mcp/talk"}
	for _, opened := range paths {
		session := send(http.MethodPost, opened, "", hello).Header.Get("Mcp-Session-Id")
		if session == "" {
			t.Fatalf("%s: no session", opened)
		}
		send(http.MethodPost, opened, session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		for _, used := range paths {
			for _, body := range []string{list, use} {
				want := http.StatusNotFound
				if used == opened {
					want = http.StatusOK
				}
				if resp := send(http.MethodPost, used, session, body); resp.StatusCode != want {
					t.Errorf("opened at %s, used at %s: %s", opened, used, resp.Status)
				}
			}
			if used != opened {
				if resp := send(http.MethodDelete, used, session, ""); resp.StatusCode != http.StatusNotFound {
					t.Errorf("opened at %s, ended at %s: %s", opened, used, resp.Status)
				}
			}
		}
		if resp := send(http.MethodPost, opened, session, list); resp.StatusCode != http.StatusOK {
			t.Errorf("%s: the session has ended: %s", opened, resp.Status)
		}
		for _, forged := range []string{"docs." + session, strings.TrimPrefix(session, "docs.") + ".", "talk." + strings.TrimPrefix(session, "talk.") + "x"} {
			if resp := send(http.MethodPost, opened, forged, list); resp.StatusCode == http.StatusOK {
				t.Errorf("%s: session %q is taken for %q", opened, forged, session)
			}
		}
	}
}

// TestCatalog serves a client that holds three definitions, and finds and calls the
// others by them: what it is offered, and no more.
func TestCatalog(t *testing.T) {
	hidden := fstest.MapFS{"a.rego": {Data: []byte("package wasmgate\ndeny contains \"no\" if input.tool.name == \"files__write\"\n")}}
	kept := new(records)
	g, srv := grouped(t, func(c *gateway.Config) {
		c.Catalog, c.Policy.Files, c.Recorder = gateway.CatalogOnly, hidden, kept
	})
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		c := connect(t, srv.URL+"/mcp", revision)
		if diff := cmp.Diff([]string{"catalog__call", "catalog__describe", "catalog__search"}, sees(t, c)); diff != "" {
			t.Fatal(diff)
		}
		ask := func(c *mcp.ClientSession, name, args string) string {
			t.Helper()
			res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: json.RawMessage(args)})
			if err != nil {
				return err.Error()
			}
			if res.IsError {
				return "isError: " + res.Content[0].(*mcp.TextContent).Text
			}
			return res.Content[0].(*mcp.TextContent).Text
		}
		for _, tt := range []struct{ tool, args, want string }{
			{"catalog__search", `{"query":""}`, `{"tools":[{"name":"chat__say","description":"","groups":["talk"]},{"name":"files__read","description":"","groups":["docs"]}],"found":2}`},
			{"catalog__search", `{"query":"","limit":1}`, `{"tools":[{"name":"chat__say","description":"","groups":["talk"]}],"found":2}`},
			{"catalog__search", `{"query":"","group":"docs"}`, `{"tools":[{"name":"files__read","description":"","groups":["docs"]}],"found":1}`},
			{"catalog__search", `{"query":"write"}`, `{"tools":[],"found":0}`},
			{"catalog__search", `{"query":"catalog"}`, `{"tools":[],"found":0}`},
			{"catalog__describe", `{"tool":"files__read"}`, `{"tool":{"name":"files__read","inputSchema":{"type":"object"}}}`},
			{"catalog__describe", `{"tool":"files__write"}`, `isError: unknown tool "files__write"`},
			{"catalog__describe", `{"tool":"no__such"}`, `isError: unknown tool "no__such"`},
			{"catalog__call", `{"tool":"files__read","arguments":{"text":"hi"}}`, `hi`},
			{"files__read", `{"text":"direct"}`, `direct`},
		} {
			if got := ask(c, tt.tool, tt.args); got != tt.want {
				t.Errorf("%s: %s %s: %s, want %s", revision, tt.tool, tt.args, got, tt.want)
			}
		}
		// What cannot be called is refused in the same words as if it were called itself.
		for _, name := range []string{"files__write", "no__such"} {
			if got, want := ask(c, "catalog__call", `{"tool":"`+name+`"}`), ask(c, name, `{}`); got != want || !strings.Contains(want, "unknown tool") {
				t.Errorf("%s: %s: %s, want %s", revision, name, got, want)
			}
		}
		docs := connect(t, srv.URL+"/mcp/docs", revision)
		if got, want := ask(docs, "catalog__search", `{"query":""}`), `{"tools":[{"name":"files__read","description":"","groups":["docs"]}],"found":1}`; got != want {
			t.Errorf("%s: in a group: %s", revision, got)
		}
		if got := ask(docs, "catalog__call", `{"tool":"chat__say"}`); !strings.Contains(got, `unknown tool "chat__say"`) {
			t.Errorf("%s: outside of a group: %s", revision, got)
		}
	}
	before := len(kept.list())
	if _, err := call(g, "catalog__call", `{"tool":"files__read","arguments":{"text":"hi"}}`); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"granted ", "granted ", "done ok", "done ok"}, kept.list()[before:]); diff != "" {
		t.Error(diff)
	}
}

// TestCatalogRefusesItsName: nothing else can be served under the catalog's name.
func TestCatalogRefusesItsName(t *testing.T) {
	for name, cfg := range map[string]gateway.Config{
		"functions": {Catalog: gateway.CatalogBeside, Functions: map[string][]options.LocalTool{"catalog": {tool("search", nil)}}},
		"a server":  {Catalog: gateway.CatalogOnly, Servers: []options.Endpoint{{Server: "catalog", Broken: "x"}}},
		"no mode":   {Catalog: "off"},
	} {
		cfg.Recorder = new(records)
		if g, err := gateway.New(t.Context(), cfg); err == nil {
			t.Errorf("%s: no error", name)
			g.Close(context.Background())
		}
	}
}

// TestResolve is of a principal: what is hidden from it is no candidate.
func TestResolve(t *testing.T) {
	g, _ := grouped(t, func(c *gateway.Config) {
		c.Functions["notes"] = []options.LocalTool{tool("read", nil)}
		c.Groups["notes"] = []string{"notes__*"}
	})
	who := gate.Local()
	if name, err := g.Operator().Resolve(t.Context(), who, "read"); err == nil || !strings.Contains(err.Error(), "files__read, notes__read") {
		t.Errorf("%q, %v", name, err)
	}
	who.Groups = gate.Groups{{"notes"}}
	if name, err := g.Operator().Resolve(t.Context(), who, "read"); err != nil || name != "notes__read" {
		t.Errorf("%q, %v", name, err)
	}
	if name, err := g.Operator().Resolve(t.Context(), who, "files__read"); err != nil || name != "files__read" {
		t.Errorf("%q, %v", name, err)
	}
}
