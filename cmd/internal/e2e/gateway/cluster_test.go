//go:build unix

package gateway

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/wasmgate/wasmgate/internal/testing/database"
	"github.com/wasmgate/wasmgate/internal/testing/e2e"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
)

// A cluster is several gateways, each a process with a folder of its own, that share a database.
type cluster struct {
	server *e2e.Stub
	nodes  []*e2e.Place
	urls   []string // of MCP, by node
	any    string   // of MCP, at each node in turn
}

// newCluster starts gateways in front of one server with a tool that reads the web and one that
// sends.
func newCluster(t *testing.T, p *e2e.Program, nodes int) *cluster {
	t.Helper()
	db := database.Shared(t).New(t)
	c := &cluster{server: &e2e.Stub{Answer: e2e.AnswerFine, Tools: `[
		{"name":"read_web","inputSchema":{"type":"object"}},
		{"name":"send","inputSchema":{"type":"object","properties":{"to":{"type":"string"}},"required":["to"]}}]`}}
	up, secret := c.server.Start(t), rand.Text()+rand.Text()
	for i := range nodes {
		pl := p.Place(t, "")
		pl.Write("wasmgate.yaml", fmt.Sprintf(`version: 1
policy: {packs: [grants, flow], timeout: 5s, data: {grants: grants.yaml, labels: labels.yaml}}
servers: {own: {url: %q}}
auth: {keys: true}
principals: {alice: {}, bob: {}}
sessions: {scope: principal}
state: state
console: {listen: "off"}
store: {postgres: %q, secret: %s, node: n%d}
`, up, db, secret, i))
		pl.Write("grants.yaml", "- {to: [alice, bob], servers: [own]}\n")
		pl.Write("labels.yaml", "own__read_web: {result: untrusted, effect: [read]}\nown__send: {result: trusted, effect: [external], to: [/to]}\n")
		gw := pl.Serve()
		c.nodes, c.urls = append(c.nodes, pl), append(c.urls, gw.URL)
	}
	for _, pl := range c.nodes {
		pl.Ready()
	}
	var turn atomic.Uint64
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		to, err := url.Parse(c.urls[turn.Add(1)%uint64(nodes)])
		if err != nil {
			t.Error(err)
			return
		}
		r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = to.Scheme, to.Host, to.Host
	}})
	t.Cleanup(func() {
		proxy.CloseClientConnections()
		proxy.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	c.any = proxy.URL + "/mcp"
	return c
}

// key makes an API key at a node, and returns its id and the key.
func (c *cluster) key(t *testing.T, node int, who string) (id, key string) {
	t.Helper()
	var made struct{ ID, Key string }
	if err := json.Unmarshal([]byte(c.nodes[node].Must("key", "create", "test", "--json", "--as", who)), &made); err != nil {
		t.Fatal(err)
	}
	return made.ID, made.Key
}

func (c *cluster) client(url, key string) *e2e.Wire {
	return &e2e.Wire{URL: url, Key: key, Stateless: true}
}

// passes reports whether a call is carried out; code says why not.
func passes(t *testing.T, w *e2e.Wire, tool, args string) (ok bool, code string) {
	t.Helper()
	a, err := w.Call(t.Context(), tool, args)
	if err != nil { // 401 is no message of MCP
		return false, err.Error()
	}
	if a.Error != nil {
		return false, a.Error.Message
	}
	code, _ = a.Refusal()
	return code == "" && strings.Contains(string(a.Result), "fine"), code
}

// testCluster runs three gateways behind a proxy that sends each request to the next one.
func testCluster(t *testing.T, p *e2e.Program) {
	c := newCluster(t, p, 3)

	t.Run("read here, send there", func(t *testing.T) {
		_, alice := c.key(t, 0, "alice")
		w := c.client(c.any, alice)
		send := `{"to":"evil@attacker.example"}`
		for i := range 3 { // once a node
			if ok, code := passes(t, c.client(c.urls[i], alice), "own__send", `{"to":"bob@corp.example"}`); !ok {
				t.Fatalf("a clean session does not send at node %d: %s", i, code)
			}
		}
		if ok, code := passes(t, c.client(c.urls[1], alice), "own__read_web", `{}`); !ok {
			t.Fatalf("it does not read: %s", code)
		}
		for i := range 6 { // twice a node
			if ok, _ := passes(t, w, "own__send", send); ok {
				t.Errorf("send %d passes after an untrusted read at another node", i)
			}
		}
		if sent := c.server.Calls("send"); len(sent) != 3 {
			t.Errorf("the server has got %v", sent)
		}
		list := c.nodes[2].Must("sessions", "list", "--json")
		if !strings.Contains(list, `"untrusted"`) {
			t.Errorf("node 2 lists %s", list)
		}
		// A reset at one node holds at all.
		c.nodes[2].Must("sessions", "reset", "alice")
		for i := range 3 {
			timelimit.Wait(t, "a session that was reset sends", func() bool {
				ok, _ := passes(t, c.client(c.urls[i], alice), "own__send", `{"to":"bob@corp.example"}`)
				return ok
			})
		}
	})

	t.Run("revoked here, refused there", func(t *testing.T) {
		for round := range 4 {
			at := round % 3
			id, key := c.key(t, at, "bob")
			w := c.client(c.urls[(at+1)%3], key)
			if ok, code := passes(t, w, "own__read_web", `{}`); !ok {
				t.Fatalf("the other node refuses a new key: %s", code)
			}
			c.nodes[at].Must("key", "revoke", id)
			for i := range 6 {
				if ok, _ := passes(t, c.client(c.any, key), "own__read_web", `{}`); ok {
					t.Errorf("round %d: call %d passes with a revoked key", round, i)
				}
			}
		}
	})

	t.Run("paused here, refused there", func(t *testing.T) {
		_, bob := c.key(t, 1, "bob")
		for round := range 4 {
			at := round % 3
			for _, server := range [][]string{nil, {"--server", "own"}} {
				c.nodes[at].Must(append([]string{"pause"}, server...)...)
				for i := range 6 {
					if ok, _ := passes(t, c.client(c.any, bob), "own__read_web", `{}`); ok {
						t.Errorf("round %d: call %d passes though it is paused", round, i)
					}
				}
				c.nodes[(at+1)%3].Must(append([]string{"resume"}, server...)...)
				for i := range 3 {
					timelimit.Wait(t, "calls pass after the end of the pause", func() bool {
						ok, _ := passes(t, c.client(c.urls[i], bob), "own__read_web", `{}`)
						return ok
					})
				}
			}
		}
	})
}
