//go:build unix

package gateway

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/internal/auth/authtest"
	"github.com/wasmgate/wasmgate/internal/testing/e2e"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
	"github.com/wasmgate/wasmgate/internal/testing/toolchain"
)

// tallyServer is a stdio MCP server in sh that counts the calls of its process.
const tallyServer = `
n=0
while read -r line; do
  id=${line#*'"id":'}; id=${id%%[,\}]*}
  case $line in
  *'"initialize"'*) r='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"tally","version":"1"}}' ;;
  *'"tools/list"'*) r='{"tools":[{"name":"count","inputSchema":{"type":"object"}}]}' ;;
  *'"tools/call"'*) n=$((n+1)); r='{"content":[{"type":"text","text":"call '$n'"}]}' ;;
  *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$r"
done`

const newsURI = "bulletin://today"

// newNews is a server with a resource that changes when the test says so.
func newNews() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "news", Version: "1"}, &mcp.ServerOptions{
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	s.AddResource(&mcp.Resource{Name: "today", URI: newsURI}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: newsURI, Text: "fine"}}}, nil
	})
	return s
}

// lists is the credential by which a protected server is listed.
const lists = "of-lists"

// protectedBy returns the URL of a server with one tool that says who calls it, for those with a token of as, and of
// all for lists.
func protectedBy(t *testing.T, as *authtest.OAuth) string {
	stub := &e2e.Stub{Tools: `[{"name":"whoami","inputSchema":{"type":"object"}}]`, Answer: func(w http.ResponseWriter, r *http.Request, call e2e.StubCall) {
		e2e.Result(w, call.ID, fmt.Sprintf(`{"content":[{"type":"text","text":"user %s"}]}`, r.Header.Get("X-User")))
	}}
	var server *httptest.Server
	guarded := as.Protect(func() string { return server.URL }, "/mcp", "", func(w http.ResponseWriter, r *http.Request, user string) {
		r.Header.Set("X-User", user)
		stub.ServeHTTP(w, r)
	})
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer "+lists {
			stub.ServeHTTP(w, r)
			return
		}
		guarded.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	return server.URL + "/mcp"
}

// testRows shows through a proxy, which sends each request to the next one of three gateways, what testCluster does not
// of the table in docs/internals/cluster.md.
func testRows(t *testing.T, p *e2e.Program) {
	toolchain.Need(t, "sh")
	script := filepath.Join(t.TempDir(), "tally.sh") // one file for all, as pins know it
	if err := os.WriteFile(script, []byte(tallyServer), 0o600); err != nil {
		t.Fatal(err)
	}
	news := newNews()
	feed := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return news }, nil))
	t.Cleanup(feed.Close)
	t.Cleanup(feed.CloseClientConnections)
	as := authtest.NewOAuth(t)
	as.Client("gw", "s3cret")
	c := newCluster(t, false, more{
		servers: fmt.Sprintf(`, tally: {command: sh, args: [%q]}, news: {url: %q}, jira: {url: %q, private: true, auth: {mode: oauth, discovery: "Bearer %s"}}, `+
			`swap: {url: %q, private: true, auth: {mode: token_exchange, issuer: %q, client_id: gw, client_secret: s3cret, discovery: "Bearer %[4]s"}}`,
			script, feed.URL, protectedBy(t, as), lists, protectedBy(t, as), as.URL),
		keys:   "tools: {ask: {module: asker.wasm, grant: {http: [{origin: \"https://example.com\"}], kv: true}}}\n",
		grants: "- {to: [\"*\"], servers: [tally, jira, swap, local, news]}\n",
		labels: "tally__*: {result: trusted, effect: [read]}\njira__*: {result: trusted, effect: [read]}\nswap__*: {result: trusted, effect: [read]}\nlocal__*: {result: trusted, effect: [read]}\n",
		build: func(pl *e2e.Place) {
			e2e.Asker.Build(pl)
			pl.Write("policies/dora.rego", "package wasmgate\n\nask contains \"no one has named her\" if input.arguments.to == \"dora@corp.example\"\n")
		},
	}, p, p, p)
	t.Run("values of modules", func(t *testing.T) { c.kept(t) })
	t.Run("a process for each principal", func(t *testing.T) { c.tally(t) })
	t.Run("lists that change", func(t *testing.T) { c.lists(t) })
	t.Run("subscriptions", func(t *testing.T) { c.subscriptions(t, news) })
	t.Run("tokens that are exchanged", func(t *testing.T) { c.exchanged(t) })
	t.Run("a login in a browser", func(t *testing.T) { c.loginAt(t, as) })
	t.Run("a person signs in to the console", func(t *testing.T) { c.personAt(t) })
	t.Run("destinations", func(t *testing.T) { c.destinations(t) })
	t.Run("files that differ", func(t *testing.T) { c.differ(t) })
	t.Run("servers that are upgraded", func(t *testing.T) { c.upgraded(t) })
}

// text calls a tool until the answer is no refusal that says to try again, and returns what the answer says.
func (c *cluster) text(t *testing.T, w *e2e.Wire, tool, args string) (text string) {
	t.Helper()
	timelimit.Wait(t, tool+" is answered", func() bool {
		text = w.MustCall(t, tool, args).Text()
		return !strings.Contains(text, "refused_store") && !strings.Contains(text, "does not answer; try again later")
	})
	return text
}

// kept: what a module keeps at one gateway, it has and takes away at any other.
func (c *cluster) kept(t *testing.T) {
	do := func(node int, op, more string) string {
		t.Helper()
		return c.text(t, c.client(c.urls[node], c.token(t, fmt.Sprint("kim", node), rand.Text())), "local__ask", fmt.Sprintf(`{"do":"kv","request":{"op":%q,"key":"k"%s}}`, op, more))
	}
	for at := range c.urls {
		second, third := (at+1)%3, (at+2)%3
		value := fmt.Sprintf(`"value":"of %d"`, at)
		do(at, "set", ","+value)
		for node := range c.urls {
			if got := do(node, "get", ""); !strings.Contains(got, value) {
				t.Errorf("node %d has %s of node %d", node, got, at)
			}
		}
		do(second, "delete", "")
		if got := do(third, "get", ""); !strings.Contains(got, `"found":false`) {
			t.Errorf("after it was deleted node %d has %s", third, got)
		}
	}
}

// tally: a principal has one process of a server, whichever gateway is asked.
func (c *cluster) tally(t *testing.T) {
	for _, who := range []string{"tim", "tom"} {
		w := c.client(c.any, c.token(t, who, rand.Text()))
		for i := range 6 {
			if got, want := c.text(t, w, "tally__count", `{}`), fmt.Sprint("call ", i+1); got != want {
				t.Errorf("%s: %q, want %q", who, got, want)
			}
		}
	}
}

// A listener is a client that hears of changes.
type listener struct {
	*mcp.ClientSession
	lists, resources chan bool
}

// hears waits until a change is heard of.
func (l listener) hears(t *testing.T, what string, changes chan bool) {
	t.Helper()
	timelimit.Wait(t, l.InitializeResult().ProtocolVersion+": "+what, func() bool {
		select {
		case <-changes:
			return true
		default:
			return false
		}
	})
}

// listeners returns clients of both revisions at each gateway, and through the proxy.
func (c *cluster) listeners(t *testing.T) (all []listener) {
	t.Helper()
	for _, at := range append([]string{c.any, c.any, c.any}, c.urls...) {
		for _, revision := range []string{legacyRevision, "2026-07-28"} {
			l := listener{lists: make(chan bool, 99), resources: make(chan bool, 99)}
			client := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, &mcp.ClientOptions{
				ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { l.lists <- true },
				ResourceUpdatedHandler: func(context.Context, *mcp.ResourceUpdatedNotificationRequest) { l.resources <- true },
			})
			over := &mcp.StreamableClientTransport{Endpoint: at, HTTPClient: &http.Client{Transport: bearer(c.token(t, rand.Text(), rand.Text()))}}
			var err error
			if l.ClientSession, err = client.Connect(t.Context(), over, &mcp.ClientSessionOptions{ProtocolVersion: revision}); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { l.Close() })
			all = append(all, l)
		}
	}
	return all
}

// lists: what a server changes, and what is approved at one gateway, is in the lists of all, and clients hear of it.
func (c *cluster) lists(t *testing.T) {
	all := c.listeners(t)
	everywhere := func(what string, want bool) {
		t.Helper()
		for _, l := range all {
			l.hears(t, what, l.lists)
			timelimit.Wait(t, what, func() bool {
				list, err := l.ListTools(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				return slices.ContainsFunc(list.Tools, func(tool *mcp.Tool) bool { return tool.Name == "shifty__read" }) == want
			})
			for len(l.lists) > 0 {
				<-l.lists
			}
		}
	}
	timelimit.Wait(t, "the first trust has ended", func() bool {
		var list struct{ Pins []struct{ State string } }
		if err := json.Unmarshal([]byte(c.nodes[0].Must("pin", "list", "shifty__read", "--json")), &list); err != nil {
			t.Fatal(err)
		}
		return len(list.Pins) == 1 && list.Pins[0].State == "trusted"
	})
	for at, pl := range c.nodes {
		c.changing.declare("read", fmt.Sprint("reads, and more: ", at))
		everywhere("what has changed is offered no more", false)
		pl.Must("pin", "approve", "shifty", "--yes")
		everywhere("what was approved at one gateway is offered", true)
	}
}

// subscriptions: a client hears of a resource, whichever gateway its requests reach, until it has unsubscribed.
func (c *cluster) subscriptions(t *testing.T, news *mcp.Server) {
	all := c.listeners(t)
	for _, l := range all {
		if err := l.Subscribe(t.Context(), &mcp.SubscribeParams{URI: newsURI}); err != nil {
			t.Fatalf("%s: %v", l.InitializeResult().ProtocolVersion, err)
		}
	}
	for _, l := range all {
		timelimit.Wait(t, l.InitializeResult().ProtocolVersion+": the resource has changed", func() bool {
			if err := news.ResourceUpdated(t.Context(), &mcp.ResourceUpdatedNotificationParams{URI: newsURI}); err != nil {
				t.Fatal(err)
			}
			return len(l.resources) > 0
		})
	}
	for _, l := range all {
		if err := l.Unsubscribe(t.Context(), &mcp.UnsubscribeParams{URI: newsURI}); err != nil {
			t.Errorf("%s: %v", l.InitializeResult().ProtocolVersion, err)
		}
	}
}

// exchanged: the gateway that a call is forwarded to has the caller's own token, which it exchanges.
func (c *cluster) exchanged(t *testing.T) {
	w := c.client(c.any, c.token(t, "sven", rand.Text()))
	for range 6 {
		if got := c.text(t, w, "swap__whoami", `{}`); got != "user sven" {
			t.Errorf("a call with an exchanged token: %s", got)
		}
	}
}

// loginAt: each request of a browser that logs its person in comes to another gateway, and then all have the login.
func (c *cluster) loginAt(t *testing.T, as *authtest.OAuth) {
	for _, revision := range []string{legacyRevision, "2026-07-28"} {
		who := "lea-" + revision
		c.people.Person(who)
		as.Person(who)
		pages := make(chan string, 1)
		client := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, &mcp.ClientOptions{
			Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}}},
			ElicitationHandler: func(ctx context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				go func() { // the client has answered before
					page, err := e2e.Agree(context.WithoutCancel(ctx), who, r.Params.URL)
					pages <- fmt.Sprint(page, err)
				}()
				return &mcp.ElicitResult{Action: "accept"}, nil
			},
		})
		key := c.token(t, who, rand.Text())
		s, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: c.any, HTTPClient: &http.Client{Transport: bearer(key)}}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "jira__whoami", Arguments: map[string]any{}})
		if err != nil || e2e.FirstText(res) != "user "+who {
			t.Errorf("%s: %+v, %v", revision, res, err)
		}
		select {
		case page := <-pages:
			e2e.Holds(t, page, "You are logged in to jira")
		default:
			t.Errorf("%s: no one was asked", revision)
		}
		for node, at := range c.urls {
			if got := c.text(t, c.client(at, key), "jira__whoami", `{}`); got != "user "+who {
				t.Errorf("node %d: %s", node, got)
			}
		}
	}
}

// personAt: a browser leaves for the issuer from one gateway, comes back to another, and is signed in at all.
func (c *cluster) personAt(t *testing.T) {
	const at = "127.0.0.1:1234" // of what forwards to all
	c.people.Person("pam")
	ask := func(node int, method, path string, cookies ...*http.Cookie) *http.Response {
		t.Helper()
		var in struct{ At string }
		if err := json.Unmarshal([]byte(c.nodes[node].Must("console", "--json")), &in); err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequestWithContext(t.Context(), method, strings.TrimSuffix(in.At, "/ui/")+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = at
		for _, one := range cookies {
			r.AddCookie(one)
		}
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp
	}
	left := ask(0, http.MethodPost, "/ui/signin/corp")
	_, to, ok := strings.Cut(left.Header.Get("Refresh"), "url=")
	if !ok {
		t.Fatalf("the browser is not sent to the issuer: %s", left.Status)
	}
	back := authtest.Browse(t, to, "http://"+at)
	came := ask(1, http.MethodGet, (&url.URL{Path: back.Path, RawQuery: back.RawQuery}).String(), left.Cookies()...)
	i := slices.IndexFunc(came.Cookies(), func(one *http.Cookie) bool { return strings.HasPrefix(one.Name, "wasmgate_console_1") })
	if i < 0 {
		t.Fatalf("%s, cookies %v", came.Status, came.Cookies())
	}
	for node := range c.nodes {
		if got := ask(node, http.MethodGet, "/api/v1/status", came.Cookies()[i]); got.StatusCode == http.StatusUnauthorized {
			t.Errorf("node %d does not know who is signed in", node)
		}
		if got := ask(node, http.MethodGet, "/api/v1/status"); got.StatusCode != http.StatusUnauthorized {
			t.Errorf("node %d answers %s without a sign-in", node, got.Status)
		}
	}
}

// destinations: what is approved for a session at its home, any gateway lists and takes back.
func (c *cluster) destinations(t *testing.T) {
	run := func(node int, args ...string) (o e2e.Outcome) { // until all answer in time
		t.Helper()
		timelimit.Wait(t, "all gateways answer", func() bool {
			o = c.nodes[node].Run(append([]string{"approvals"}, args...)...)
			return !strings.Contains(o.Stderr, "are not known: ")
		})
		return o
	}
	listed := func(node int) (all []struct{ ID, Value string }) {
		t.Helper()
		if err := json.Unmarshal([]byte(run(node, "destinations", "--json").Stdout), &all); err != nil {
			t.Fatal(err)
		}
		return all
	}
	for at := range c.urls {
		w := c.client(c.urls[at], c.token(t, fmt.Sprint("dan", at), rand.Text())) // which is the home
		const args = `{"to":"dora@corp.example"}`
		if ok, code := passes(t, w, "own__send", args); ok || code != "refused_approve" {
			t.Fatalf("node %d: %t %s", at, ok, code)
		}
		var asked []struct{ ID string }
		if err := json.Unmarshal([]byte(c.nodes[at].Must("approvals", "list", "--json")), &asked); err != nil || len(asked) != 1 {
			t.Fatalf("node %d: %d questions, %v", at, len(asked), err)
		}
		c.nodes[(at+1)%3].Must("approvals", "approve", asked[0].ID, "--destination", "--yes")
		if ok, code := passes(t, w, "own__send", args); !ok {
			t.Fatalf("node %d: a call that was approved: %s", at, code)
		}
		for node := range c.nodes {
			if all := listed(node); len(all) != 1 || all[0].ID != asked[0].ID {
				t.Errorf("node %d lists %v of node %d", node, all, at)
			}
		}
		revoked := run((at+2)%3, "revoke", asked[0].ID) // or a try before has done it, whose answer came too late
		if !strings.Contains(revoked.Stdout, "dora@corp.example") && !strings.Contains(revoked.Stderr, "has no destinations to revoke") {
			t.Errorf("revoked at another gateway: %+v", revoked)
		}
		for node := range c.nodes {
			if all := listed(node); len(all) > 0 {
				t.Errorf("node %d lists %v after it was revoked", node, all)
			}
			if o := run(node, "revoke", asked[0].ID); o.Code == 0 || !strings.Contains(o.Stderr, "has no destinations to revoke") {
				t.Errorf("node %d revokes what was revoked: %+v", node, o)
			}
		}
	}
}

// differ: what differs between the files of gateways, any gateway shows.
func (c *cluster) differ(t *testing.T) {
	type looked struct {
		Nodes    []struct{ Name, Config, Policy string }
		Problems []string
	}
	look := func() (all looked) {
		t.Helper()
		if err := json.Unmarshal([]byte(c.nodes[0].Must("cluster", "--json")), &all); err != nil {
			t.Fatal(err)
		}
		return all
	}
	before := look()
	labels, err := os.ReadFile(c.nodes[1].File("labels.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	c.nodes[1].Write("labels.yaml", string(labels)+"news__*: {result: untrusted, effect: [read]}\n")
	timelimit.Wait(t, "the policy differs", func() bool {
		return slices.ContainsFunc(look().Problems, func(p string) bool { return strings.HasPrefix(p, "the policy differs: ") })
	})
	c.nodes[1].Write("labels.yaml", string(labels))
	c.nodes[2].Write("wasmgate.lock", "wasmgate-lock 1\n")
	timelimit.Wait(t, "the lockfile differs, and the policy does not", func() bool {
		now := look()
		return now.Nodes[1] == before.Nodes[1] && now.Nodes[2].Config != before.Nodes[2].Config
	})
	if err := os.Remove(c.nodes[2].File("wasmgate.lock")); err != nil {
		t.Fatal(err)
	}
	timelimit.Wait(t, "all is as before", func() bool { return look().Nodes[2] == before.Nodes[2] })
}

// weatherServer is a stdio MCP server in sh, which has the version of its package.
const weatherServer = `#!/bin/sh
version=${2##*@}
while read -r line; do
  id=${line#*'"id":'}; id=${id%%[,\}]*}
  case $line in
  *'"initialize"'*) r='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"weather","version":"'$version'"}}' ;;
  *'"tools/list"'*) r='{"tools":[{"name":"look","description":"of '$version'","inputSchema":{"type":"object"}}]}' ;;
  *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$r"
done`

// upgraded: a command that changes the file of one gateway says that the others do not have it, and what it pins is pinned at all.
func (c *cluster) upgraded(t *testing.T) {
	bin := t.TempDir()
	for name, text := range map[string]string{"npx": weatherServer, "npm": "#!/bin/sh\nexit 1\n"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	entry := func(version string) string {
		return strings.ReplaceAll(`{"server": {"name": "io.github.acme/weather", "version": "V", "packages": [{"registryType": "npm", "identifier": "@acme/weather", "version": "V", "transport": {"type": "stdio"}}]}}`, "V", version)
	}
	const advice = "the other gateways of the database do not have this change"
	for at, pl := range c.nodes[:2] {
		whole, err := os.ReadFile(pl.File("wasmgate.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for line := range strings.Lines(string(whole)) {
			if !strings.HasPrefix(line, "servers:") && !strings.HasPrefix(line, "tools:") {
				lines = append(lines, line)
			}
		}
		pl.Write("block.yaml", strings.Join(lines, "")) // in which commands can write, of the same gateway
		pl.Write("entries/1.json", entry("1.2.3"))
		run := func(args ...string) e2e.Outcome {
			t.Helper()
			command := pl.Command(t.Context(), pl.Program.Plain, append([]string{"--config", pl.File("block.yaml")}, args...)...)
			command.Env = append(command.Env, "PATH="+bin+":"+os.Getenv("PATH"), "WASMGATE_REGISTRY="+pl.File("entries"))
			var said, errs strings.Builder
			command.Stdout, command.Stderr = &said, &errs
			if err := command.Run(); err != nil {
				t.Fatalf("node %d: %q: %v\n%s%s", at, args, err, said.String(), errs.String())
			}
			return e2e.Outcome{Stdout: said.String(), Stderr: errs.String()}
		}
		if o := run("add", "io.github.acme/weather", "--yes", "--unconfined", "--no-check"); !strings.Contains(o.Stderr, advice) {
			t.Errorf("node %d: add says %s%s", at, o.Stdout, o.Stderr)
		}
		next := fmt.Sprintf("%d.0.0", at+2)
		pl.Write("entries/2.json", entry(next))
		o := run("upgrade", "weather", "--yes")
		if !strings.Contains(o.Stdout, "weather is at "+next+" now\n"+advice) {
			t.Errorf("node %d: upgrade says %s", at, o.Stdout)
		}
		if known := at > 0; strings.Contains(o.Stderr, "weather__look has changed since it was approved") != known { // at the first
			t.Errorf("node %d: upgrade shows %s", at, o.Stderr)
		}
		if o := run("remove", "weather"); !strings.Contains(o.Stdout, advice) {
			t.Errorf("node %d: remove says %s", at, o.Stdout)
		}
	}
}
