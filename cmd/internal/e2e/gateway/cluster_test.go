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
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/internal/auth/authtest"
	"github.com/wasmgate/wasmgate/internal/testing/database"
	"github.com/wasmgate/wasmgate/internal/testing/duplex"
	"github.com/wasmgate/wasmgate/internal/testing/e2e"
	"github.com/wasmgate/wasmgate/internal/testing/freeport"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
	"github.com/wasmgate/wasmgate/internal/testing/toolchain"
)

// A cluster is several gateways, each a process with a folder of its own, that share a database.
type cluster struct {
	db        *database.Server
	away      atomic.Bool // a call has stopped the database
	server    *e2e.Stub
	issuer    *authtest.Provider
	people    *authtest.OAuth // signs people in, for tokens of the issuer
	release   chan struct{}   // lets one call that waits end
	notices   notices
	asker     *asker
	changing  changing // the server "shifty"
	nodes     []*e2e.Place
	processes []*e2e.Process
	between   []*wire // over which others reach a node
	toDB      []*wire // over which a node reaches the primary; only if there is a standby
	standby   *database.Server
	urls      []string // of MCP, by node
	any       string   // of MCP, at each node in turn
}

// waits are the arguments of a call that ends once the test lets it, or its gateway gives up.
const waits = `{"answer":"waits"}`

// stops are the arguments of a call during which the database stops.
const stops = `{"database":"stops"}`

// more is what the gateways of a cluster have in addition.
type more struct {
	servers, keys, grants, labels string // of the configuration, and of files
	build                         func(pl *e2e.Place)
}

// newCluster starts gateways, each of a program, in front of one server with a tool that reads the web and one that
// sends. The database has a standby or not.
func newCluster(t *testing.T, standby bool, with more, programs ...*e2e.Program) *cluster {
	t.Helper()
	nodes := len(programs)
	c := &cluster{db: database.Start(t), issuer: authtest.New(t), people: authtest.NewOAuth(t), release: make(chan struct{}), asker: newAsker(), changing: newChanging()}
	db := c.db.New(t)
	c.people.Change = func(m map[string]any) { m["jwks_uri"] = c.issuer.URL + "/keys" }
	c.people.Mint = func(user, resource string) string { return c.signed(t, user, resource, rand.Text()) }
	c.server = &e2e.Stub{Answer: c.answer, Tools: `[
		{"name":"read_web","inputSchema":{"type":"object"}},
		{"name":"publish","inputSchema":{"type":"object"}},
		{"name":"find","inputSchema":{"type":"object"}},
		{"name":"send","inputSchema":{"type":"object","properties":{"to":{"type":"string"}},"required":["to"]}}]`}
	var turn atomic.Uint64
	proxy := httptest.NewServer(duplex.Handler(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		to, err := url.Parse(c.urls[turn.Add(1)%uint64(nodes)])
		if err != nil {
			t.Error(err)
			return
		}
		r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = to.Scheme, to.Host, to.Host
	}}))
	t.Cleanup(func() {
		proxy.CloseClientConnections()
		proxy.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	up, asker, shifty, secret := c.server.Start(t), c.asker.start(t), c.changing.start(t), rand.Text()+rand.Text()
	mine, hook := protected(t, up), c.notices.start(t)
	if standby {
		c.standby = c.db.Standby(t)
	}
	for i, p := range programs {
		db := db
		if standby {
			c.toDB = append(c.toDB, new(wire))
			own := strings.TrimPrefix(c.toDB[i].start(t, c.db.Port()), "https://")
			db = strings.Replace(db, fmt.Sprintf("127.0.0.1:%d/", c.db.Port()), fmt.Sprintf("%s,127.0.0.1:%d/", own, c.standby.Port()), 1)
		}
		timeout := ", timeout: 10s"
		if p.Path != programs[nodes-1].Path { // an earlier version does not know the key
			timeout = ""
		}
		pl, port := p.Place(t, ""), freeport.Port(t)
		c.between = append(c.between, new(wire))
		pl.Write("wasmgate.yaml", fmt.Sprintf(`version: 1
policy: {packs: [grants, flow], paths: [policies], timeout: 5s, data: {grants: grants.yaml, labels: labels.yaml}}
servers: {own: {url: %q}, asker: {url: %q}, shifty: {url: %q}, more: {url: %q}, mine: {url: %q, auth: oauth}%s}
public_url: %s
auth: {keys: true, issuers: {corp: {issuer: %q}}}
principals: {alice: {}, bob: {}}
sessions: {scope: principal}
approvals: {channels: [cli], hold: 1s}
jobs: {offer: true}
state: state
console: {listen: "127.0.0.1:0"}
telemetry: {metrics: {listen: "127.0.0.1:0"}}
notify: {hook: {url: %q}}
store: {postgres: %q, secret: %s, node: n%d%s}
cluster: {listen: "127.0.0.1:%d", url: %q, linger: 1s}
%s`, up, asker, shifty, up, mine, with.servers, proxy.URL, c.people.URL, hook, db, secret, i, timeout, port, c.between[i].start(t, port), with.keys))
		if with.build != nil {
			with.build(pl)
		}
		pl.Write("grants.yaml", "- {to: [\"*\"], servers: [own, asker, shifty, mine]}\n"+with.grants)
		pl.Write("policies/ask.rego", "package wasmgate\n\nask contains \"publishing needs approval\" if input.tool.local_name == \"publish\"\n")
		pl.Write("policies/rate.rego", "package wasmgate\n\nobligations contains {\"rate\": {\"key\": [\"principal\"], \"calls\": 5, \"per\": \"10h\"}} if endswith(input.principal.id, \"rita\")\n")
		pl.Write("labels.yaml", "mine__*: {result: trusted, effect: [read]}\nmore__*: {result: trusted, effect: [read]}\nshifty__read: {result: trusted, effect: [read]}\nshifty__late: {result: trusted, effect: [read]}\nasker__ask: {result: trusted, effect: [read]}\nasker__later: {result: trusted, effect: [read]}\nown__publish: {result: trusted, effect: [read]}\nown__find: {result: trusted, effect: [read]}\nown__read_web: {result: untrusted, effect: [read]}\nown__send: {result: trusted, effect: [external], to: [/to]}\n"+with.labels)
		at := fmt.Sprintf("127.0.0.1:%d", freeport.Port(t)) // what the gateway says is the public URL
		c.processes = append(c.processes, pl.Listening("--listen", at))
		c.nodes, c.urls = append(c.nodes, pl), append(c.urls, "http://"+at+"/mcp")
	}
	c.give(t, 0, "local") // by which all list the server
	for _, pl := range c.nodes {
		pl.Ready()
	}
	c.any = proxy.URL + "/mcp"
	return c
}

// answer is that of the server.
func (c *cluster) answer(w http.ResponseWriter, r *http.Request, call e2e.StubCall) {
	if string(call.Params.Arguments) == stops {
		c.db.Stop()
		c.away.Store(true)
	}
	if string(call.Params.Arguments) == waits {
		select {
		case <-c.release:
		case <-r.Context().Done():
			return
		}
	}
	if call.Params.Name == "find" {
		e2e.Result(w, call.ID, `{"content":[{"type":"text","text":"fine: bob@corp.example"}]}`)
		return
	}
	e2e.AnswerFine(w, r, call)
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

// token returns an access token of the issuer.
func (c *cluster) token(t *testing.T, who, id string) string {
	return c.signed(t, who, c.any, id)
}

func (c *cluster) signed(t *testing.T, who, resource, id string) string {
	return c.issuer.Sign(t, c.issuer.Claims(map[string]any{"iss": c.people.URL, "aud": resource, "sub": who, "jti": id}), nil)
}

func (c *cluster) client(url, key string) *e2e.Wire {
	return &e2e.Wire{URL: url, Key: key, Stateless: true}
}

// passes reports whether a call is carried out; code says why not. On a busy machine the database or another
// gateway can answer too late. The refusal says to try again, as passes does for a minute. Tests that want
// such a refusal call passesOnce.
func passes(t *testing.T, w *e2e.Wire, tool, args string) (ok bool, code string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		ok, code = passesOnce(t, w, tool, args)
		late := code == "refused_store" || strings.Contains(code, "does not answer; try again later")
		if !late || time.Now().After(end) {
			return ok, code
		}
	}
}

func passesOnce(t *testing.T, w *e2e.Wire, tool, args string) (ok bool, code string) {
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
	c := newCluster(t, false, more{}, p, p, p)
	for _, pl := range c.nodes {
		timelimit.Wait(t, "status names all gateways", func() bool {
			return strings.Contains(pl.Must("status"), "gateways of the database: n0, n1, n2\n")
		})
	}

	t.Run("looked at", func(t *testing.T) { c.lookedAt(t) })
	t.Run("looked at in a browser", func(t *testing.T) { c.browsed(t) })
	t.Run("signed in here, looked at there", func(t *testing.T) { c.console(t) })
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

	t.Run("read here, send there, soon", func(t *testing.T) { c.pairs(t, 10*rounds(t)) })
	t.Run("ended here, refused there", func(t *testing.T) { c.ends(t, rounds(t)) })
	t.Run("asked here, answered there", func(t *testing.T) { c.approvals(t) })
	t.Run("told once", func(t *testing.T) { c.toldOnce(t) })
	t.Run("begun here, fetched there", func(t *testing.T) { c.jobs(t) })
	t.Run("counted together", func(t *testing.T) { c.rates(t) })
	t.Run("a session at any gateway", func(t *testing.T) { c.sessions(t) })
	t.Run("a task at any gateway", func(t *testing.T) { c.tasks(t) })
	t.Run("found here, used there", func(t *testing.T) { c.values(t, 2*rounds(t)) })
	t.Run("seen here, held against it there", func(t *testing.T) { c.pins(t) })
	t.Run("granted here, revoked there", func(t *testing.T) { c.grants(t, rounds(t)/4) })
	t.Run("logged in here, logged out there", func(t *testing.T) { c.logins(t) })
	t.Run("a gateway dies", func(t *testing.T) {
		for range max(1, rounds(t)/50) {
			c.dies(t)
		}
	})
	t.Run("gateways that do not reach each other", func(t *testing.T) { c.parted(t) })
	t.Run("a copied volume", func(t *testing.T) { c.copied(t) })
	t.Run("a rolling restart", func(t *testing.T) {
		for range max(1, rounds(t)/50) {
			c.rolls(t)
		}
	})
	t.Run("verified", func(t *testing.T) { c.verified(t) })
	t.Run("drained", func(t *testing.T) { c.drains(t) })
	t.Run("without the database", func(t *testing.T) { c.withoutDatabase(t) })
}

// lookedAt: any gateway shows all, and what differs between them.
func (c *cluster) lookedAt(t *testing.T) {
	var all struct {
		Nodes []struct {
			Name, Version, Config, Policy string
			Audit                         string `json:"audit_head"`
		}
		Problems []string
	}
	timelimit.Wait(t, "all have told of their logs", func() bool {
		if err := json.Unmarshal([]byte(c.nodes[1].Must("cluster", "--json")), &all); err != nil {
			t.Fatal(err)
		}
		return len(all.Nodes) == 3 && all.Nodes[0].Audit != "" && all.Nodes[1].Audit != "" && all.Nodes[2].Audit != ""
	})
	if problems := strings.Join(all.Problems, "\n"); len(all.Problems) != 1 || !strings.Contains(problems, "the configuration differs") {
		t.Errorf("problems: %s", problems) // each has a file of its own
	}
	for _, n := range all.Nodes {
		if n.Policy != all.Nodes[0].Policy || n.Version == "" {
			t.Errorf("it shows %+v", n)
		}
	}
	c.metrics(t)
	if text := c.nodes[2].Must("cluster", "status"); !strings.Contains(text, "n0    runs") {
		t.Errorf("it prints %s", text)
	}
	if text := c.nodes[0].Must("store", "check"); strings.Count(text, "ok ") != 6 {
		t.Errorf("store check prints %s", text)
	}
	if text := c.nodes[0].Must("store", "migrate"); !strings.Contains(text, "the tables are up to date") {
		t.Errorf("store migrate prints %s", text)
	}
	if text := c.nodes[0].Run("doctor").Stdout; strings.Count(text, "it answers, and proves the secret and its name") != 3 {
		t.Errorf("doctor prints %s", text)
	}
}

// metrics: a gateway tells of the database and the others, by all names that alerts and the dashboard ask for.
func (c *cluster) metrics(t *testing.T) {
	_, key := c.key(t, 0, "alice")
	for range 3 { // at two gateways it is forwarded to the home
		if ok, code := passes(t, c.client(c.any, key), "own__find", `{}`); !ok {
			t.Fatal(code)
		}
	}
	body, shown := "", 0
	for _, pl := range c.nodes {
		var s struct{ Metrics string }
		if err := json.Unmarshal([]byte(pl.Must("status", "--json")), &s); err != nil {
			t.Fatal(err)
		}
		_, text := e2e.Get(t, s.Metrics)
		body += text
		if strings.Contains(text, "\nwasmgate_peers 2\n") {
			shown++
		}
	}
	if shown != 3 {
		t.Errorf("%d gateways see the others", shown)
	}
	for _, file := range []string{"grafana/wasmgate.json", "prometheus/alerts.yaml"} {
		text, err := os.ReadFile(filepath.Join(toolchain.Root(), "deploy", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`wasmgate_(?:store|homes|forward|lease|peers|skew)[a-z_]*`).FindAllString(string(text), -1) {
			if name != "wasmgate_store_errors_total" && !strings.Contains(body, "\n"+name) { // there was none yet
				t.Errorf("%s: no metric %s", file, name)
			}
		}
	}
	if !strings.Contains(body, `wasmgate_forwarded_total{result="answered"}`) || !strings.Contains(body, `wasmgate_store_duration_seconds_count{op="read"}`) {
		t.Errorf("metrics: %s", body)
	}
}

// rounds is how often keys and tokens are revoked, and servers paused.
func rounds(t *testing.T) int {
	n := 12 // each kind at each node
	if text := os.Getenv("WASMGATE_CLUSTER"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// pairs: after an untrusted read no other gateway sends for the same caller, however soon.
func (c *cluster) pairs(t *testing.T, n int) {
	r := seed.Rand(t)
	for i := range n {
		token := c.token(t, fmt.Sprint("p", i), fmt.Sprint("p", i))
		from, to := r.IntN(3), 1+r.IntN(2)
		to = (from + to) % 3
		if ok, code := passes(t, c.client(c.urls[from], token), "own__read_web", `{}`); !ok {
			t.Fatalf("pair %d: it does not read: %s", i, code)
		}
		time.Sleep(time.Duration(r.Int64N(int64(5 * time.Millisecond))))
		if ok, code := passes(t, c.client(c.urls[to], token), "own__send", `{"to":"evil@attacker.example"}`); ok || code != "refused_authorize" {
			t.Errorf("pair %d: it reads at %d and sends at %d: %t %s", i, from, to, ok, code)
		}
	}
	t.Logf("%d pairs", n)
}

// ends revokes keys and tokens, and pauses one server and all, at each gateway in turn.
func (c *cluster) ends(t *testing.T, n int) {
	_, bob := c.key(t, 1, "bob")
	calls := 0
	for round := range n {
		at := round % 3
		switch round % 4 {
		case 0:
			id, key := c.key(t, at, "bob")
			calls += c.end(t, at, key, "own__read_web", "key", "revoke", id)
		case 1:
			id := fmt.Sprint("t", round)
			calls += c.end(t, at, c.token(t, "carol", id), "own__read_web", "auth", "revoke", "--issuer", "corp", "--jti", id)
		default:
			var server []string
			if round%4 == 3 {
				server = []string{"--server", "own"}
			}
			calls += c.end(t, at, bob, "own__read_web", append([]string{"pause"}, server...)...)
			c.nodes[(at+1)%3].Must(append([]string{"resume"}, server...)...)
			for i := range 3 {
				timelimit.Wait(t, "calls pass after the end of the pause", func() bool {
					ok, _ := passes(t, c.client(c.urls[i], bob), "own__read_web", `{}`)
					return ok
				})
			}
		}
	}
	t.Logf("%d rounds, during which other gateways carried out %d calls", n, calls)
}

// end runs a command at a gateway by which a key or token lets no calls pass, while the others carry
// out calls. None is admitted that began after the command. It returns how many were admitted before.
func (c *cluster) end(t *testing.T, at int, key, tool string, command ...string) int {
	t.Helper()
	var returned atomic.Bool
	var admitted atomic.Int64
	var calling sync.WaitGroup
	defer func() {
		returned.Store(true)
		calling.Wait()
	}()
	for i := range c.urls {
		w := c.client(c.urls[i], key)
		if ok, code := passes(t, w, tool, `{}`); !ok {
			t.Fatalf("node %d refuses a call before %q: %s", i, command, code)
		}
		if i == at {
			continue
		}
		calling.Go(func() {
			for after := false; !after; {
				after = returned.Load()
				ok, _ := passes(t, w, tool, `{}`)
				switch {
				case ok && after:
					t.Errorf("node %d admits a call after %q at node %d", i, command, at)
				case ok:
					admitted.Add(1)
				}
			}
		})
	}
	c.nodes[at].Must(command...)
	returned.Store(true)
	calling.Wait()
	for i := range 6 { // twice a node
		if ok, _ := passes(t, c.client(c.any, key), tool, `{}`); ok {
			t.Errorf("call %d passes after %q at node %d", i, command, at)
		}
	}
	return int(admitted.Load())
}

// approvals: what any gateway asks is answered at any other, and lets one call pass at any.
func (c *cluster) approvals(t *testing.T) {
	dave := c.token(t, "dave", "dave")
	for _, url := range c.urls { // an end of a pause elsewhere is seen within a second
		timelimit.Wait(t, "no pause of before holds", func() bool {
			_, code := passes(t, c.client(url, dave), "own__find", `{}`)
			return code != "refused_busy"
		})
	}
	for round := range 3 {
		args := fmt.Sprintf(`{"n":%d}`, round)
		var passed atomic.Int64
		var calling sync.WaitGroup
		for _, url := range c.urls {
			calling.Go(func() {
				switch ok, code := passes(t, c.client(url, dave), "own__publish", args); {
				case ok:
					passed.Add(1)
				case code != "refused_approve":
					t.Errorf("round %d: a call that needs approval: %s", round, code)
				}
			})
		}
		at := c.nodes[round%3]
		var list []struct{ ID string }
		timelimit.Wait(t, "a gateway lists the question", func() bool {
			if err := json.Unmarshal([]byte(at.Must("approvals", "list", "--json")), &list); err != nil {
				t.Fatal(err)
			}
			return len(list) > 0
		})
		if len(list) != 1 {
			t.Errorf("round %d: there are %d questions", round, len(list))
		}
		if shown := c.nodes[(round+1)%3].Must("approvals", "show", list[0].ID); !strings.Contains(shown, "publish") {
			t.Errorf("another gateway shows %s", shown)
		}
		c.nodes[(round+2)%3].Must("approvals", "approve", list[0].ID, "--yes")
		calling.Wait()
		if passed.Load() == 0 { // all had given up before
			if ok, code := passes(t, c.client(c.any, dave), "own__publish", args); !ok {
				t.Errorf("round %d: no call passes: %s", round, code)
			}
		}
		if ok, code := passes(t, c.client(c.any, dave), "own__publish", args); ok || code != "refused_approve" {
			t.Errorf("round %d: the next call passes, too: %t %s", round, ok, code)
		}
		if err := json.Unmarshal([]byte(c.nodes[0].Must("approvals", "list", "--json")), &list); err != nil || len(list) != 1 {
			t.Fatalf("round %d: %d questions about the next call, %v", round, len(list), err)
		}
		c.nodes[1].Must("approvals", "deny", list[0].ID)
		if ok, code := passes(t, c.client(c.urls[2], dave), "own__publish", args); ok || code != "refused_approve" {
			t.Errorf("round %d: a call that was denied elsewhere: %t %s", round, ok, code)
		}
		if n := len(c.server.Calls("publish")); n != round+1 {
			t.Fatalf("round %d: the server has got %d calls", round, n)
		}
	}
}

// rates: a rate of 5 calls lets 5 pass at all gateways together.
func (c *cluster) rates(t *testing.T) {
	rita, passed := c.token(t, "rita", "rita"), 0
	for i := range 12 { // 4 at each
		switch ok, code := passes(t, c.client(c.any, rita), "own__find", `{}`); {
		case ok:
			passed++
		case code != "refused_limit":
			t.Errorf("call %d: %s", i, code)
		}
	}
	if passed != 5 {
		t.Errorf("%d calls pass, of 5 in 10 hours", passed)
	}
}

// jobs: what one gateway carries out any other knows, waits for, cancels and has the result of.
func (c *cluster) jobs(t *testing.T) {
	token := c.token(t, "jane", "jane")
	type job struct {
		ID     string `json:"job_id"`
		Status string `json:"lifecycle_status"`
	}
	do := func(node int, tool, args string, to any) string {
		t.Helper()
		var r struct {
			Structured json.RawMessage `json:"structuredContent"`
			Content    []struct{ Text string }
		}
		a := c.client(c.urls[node], token).MustCall(t, "jobs__"+tool, args)
		if code, reason := a.Refusal(); code != "" {
			t.Fatalf("%s: %s: %s", tool, code, reason)
		}
		if err := json.Unmarshal(a.Result, &r); err != nil {
			t.Fatal(err)
		}
		if to != nil {
			if err := json.Unmarshal(r.Structured, to); err != nil {
				t.Fatalf("%s: %v: %s", tool, err, a.Result)
			}
		}
		return string(a.Result)
	}
	for node := range c.urls {
		second, third := (node+1)%3, (node+2)%3
		var j, now job
		do(node, "start", `{"tool":"own__read_web","arguments":`+waits+`}`, &j)
		of := fmt.Sprintf(`{"job_id":%q}`, j.ID)
		if do(second, "status", of, &now); now.Status != "running" {
			t.Errorf("another gateway says that it is %q", now.Status)
		}
		waited := make(chan job, 1)
		go func() {
			var ended job
			do(second, "wait", of, &ended)
			waited <- ended
		}()
		c.release <- struct{}{}
		if ended := <-waited; ended.Status != "completed" {
			t.Errorf("another gateway has waited until it is %q", ended.Status)
		}
		if got := do(third, "result", of, nil); !strings.Contains(got, "fine") {
			t.Errorf("another gateway has the result %s", got)
		}
		do(node, "start", `{"tool":"own__read_web","arguments":`+waits+`}`, &j)
		of = fmt.Sprintf(`{"job_id":%q,"reason":"enough"}`, j.ID)
		if do(third, "cancel", of, &now); now.Status != "cancelled" {
			t.Errorf("cancelled at another gateway: %q", now.Status)
		}
		if list := do(second, "list", `{}`, nil); strings.Count(list, `"cancelled"`) < node+1 {
			t.Errorf("another gateway lists %s", list)
		}
	}
}

// withoutDatabase: no gateway lets a call pass, nor shows the result of one that it had let pass,
// and clients learn which of the two it was.
func (c *cluster) withoutDatabase(t *testing.T) {
	_, bob := c.key(t, 0, "bob")
	for _, url := range c.urls {
		if ok, code := passes(t, c.client(url, bob), "own__read_web", `{}`); !ok {
			t.Fatalf("a call does not pass: %s", code)
		}
	}
	seen := len(c.server.Calls("read_web"))
	refused := func(url, args string) string {
		var r struct {
			Meta struct {
				Refusal struct {
					Code       string
					Retryable  bool
					Invoked    bool
					RetryAfter int `json:"retry_after_ms"`
				} `json:"io.github.wasmgate/refusal"`
			} `json:"_meta"`
		}
		if err := json.Unmarshal(c.client(url, bob).MustCall(t, "own__read_web", args).Result, &r); err != nil {
			t.Fatal(err)
		}
		of := r.Meta.Refusal
		return fmt.Sprint(of.Code, " retryable ", of.Retryable, " after ", of.RetryAfter, " invoked ", of.Invoked)
	}
	var got string
	timelimit.Wait(t, "a call gets so far that it stops the database", func() bool { // on a slow machine the database may take too long for a call
		got = refused(c.urls[0], stops)
		return c.away.Load()
	})
	if want := "refused_store retryable false after 0 invoked true"; got != want {
		t.Errorf("a call under way: %s, want %s", got, want)
	}
	outage := 30 * time.Second
	if testing.Short() {
		outage = 0
	}
	for i, until := 0, time.Now().Add(outage); i < 2*len(c.urls) || time.Now().Before(until); i++ {
		began := time.Now()
		if got, want := refused(c.urls[i%len(c.urls)], `{}`), "refused_store retryable true after 1000 invoked false"; got != want {
			t.Errorf("call %d: %s, want %s", i, got, want)
		}
		if took := time.Since(began); took > time.Minute { // 2 s on an idle machine
			t.Errorf("call %d is refused after %v", i, took)
		}
	}
	if n := len(c.server.Calls("read_web")); n != seen+1 {
		t.Errorf("the server has got %d calls, want %d", n, seen+1)
	}
	timelimit.Wait(t, "status says that the database does not answer", func() bool {
		return strings.Contains(c.nodes[1].Run("status").Stdout, "store: the database at 127.0.0.1:")
	})
	if err := c.db.Run(); err != nil {
		t.Fatal(err)
	}
	for _, url := range c.urls {
		timelimit.Wait(t, "calls pass again", func() bool {
			ok, _ := passes(t, c.client(url, bob), "own__read_web", `{}`)
			return ok
		})
	}
}
