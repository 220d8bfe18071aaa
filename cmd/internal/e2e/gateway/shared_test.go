//go:build unix

package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	neturl "net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/internal/testing/duplex"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
)

// pins: what one gateway sees first of a server all trust, and what is approved at one all take over.
func (c *cluster) pins(t *testing.T) {
	token := c.token(t, "pia", "pia")
	everywhere := func(what, tool, code string) {
		t.Helper()
		for node, url := range c.urls {
			w := c.client(url, token)
			timelimit.Wait(t, fmt.Sprint(what, " at node ", node), func() bool {
				ok, got := passes(t, w, tool, `{}`)
				return ok == (code == "") && got == code
			})
		}
	}
	everywhere("what was seen first passes", "shifty__read", "")
	var records []string
	for _, pl := range c.nodes {
		var list struct {
			Pins []struct{ Label, State, Since string }
		}
		if err := json.Unmarshal([]byte(pl.Must("pin", "list", "shifty__read", "--json")), &list); err != nil {
			t.Fatal(err)
		}
		if len(list.Pins) != 1 || list.Pins[0].State != "trusted" {
			t.Fatalf("%+v", list)
		}
		records = append(records, list.Pins[0].Since)
	}
	if records[0] == "" || records[1] != records[0] || records[2] != records[0] {
		t.Errorf("gateways have seen it first at %v", records)
	}
	time.Sleep(firstTrust)
	c.changing.declare("read", "reads, and sends")
	everywhere("what has changed is refused", "shifty__read", "refused_pin")
	for node, pl := range c.nodes {
		if o := pl.Run("pin", "diff", "shifty__read"); !strings.Contains(o.Stdout, `+ "reads, and sends"`) || !strings.Contains(o.Stdout, `- "reads"`) {
			t.Errorf("node %d does not know what has changed: %s%s", node, o.Stdout, o.Stderr)
		}
	}
	if said := c.nodes[1].Must("pin", "approve", "shifty", "--yes"); !strings.Contains(said, "in the database") {
		t.Errorf("it says %s", said)
	}
	everywhere("what was approved at one passes", "shifty__read", "")
	c.changing.declare("late", "comes late")
	everywhere("what is new is refused", "shifty__late", "refused_pin")
	c.changing.declare("read", "reads") // as other gateways may have it for a while
	everywhere("what was trusted passes, too", "shifty__read", "")
	for _, pl := range c.nodes {
		if _, err := os.Stat(filepath.Join(pl.Dir, "wasmgate.lock")); !os.IsNotExist(err) {
			t.Errorf("a lockfile was written: %v", err)
		}
	}
}

// grants: what is granted at one gateway any allows soon, and what is revoked at one no other admits.
func (c *cluster) grants(t *testing.T, n int) {
	token := c.token(t, "greta", "greta")
	calls := 0
	for round := range max(n, 3) {
		at := round % 3
		c.nodes[at].Must("grant", "more__find", "--to", "*")
		for node, url := range c.urls {
			if ok, code := passes(t, c.client(url, token), "more__find", `{}`); !ok {
				t.Errorf("node %d refuses what was granted at node %d: %s", node, at, code)
			}
		}
		calls += c.end(t, (at+1)%3, token, "more__find", "revoke", "more__find")
	}
	t.Logf("other gateways carried out %d calls", calls)
	if o := c.nodes[0].Run("revoke", "own__find"); o.Code == 0 || !strings.Contains(o.Stderr, "grants.yaml grants out of that file, at each gateway") {
		t.Errorf("exit %d: %s", o.Code, o.Stderr)
	}
	for _, pl := range c.nodes {
		if raw, err := os.ReadFile(filepath.Join(pl.Dir, "grants.yaml")); err != nil || strings.Contains(string(raw), "more") {
			t.Errorf("a file has %s, %v", raw, err)
		}
	}
	c.nodes[0].Must("grant", "more__find", "--to", "bob")
	timelimit.Wait(t, "a call is refused by the grants of now", func() bool {
		if ok, code := passes(t, c.client(c.urls[1], token), "more__find", `{}`); ok {
			t.Fatalf("a call that is not granted passes: %s", code)
		}
		for _, pl := range c.nodes { // one is the caller's home, and has the record
			if o := pl.Run("policy", "explain"); o.Code == 0 && !strings.Contains(o.Stdout, "the policy has changed since") {
				return true
			}
		}
		return false
	})

	c.nodes[0].Must("auth", "break-glass", "--for", "5m", "--reason", "a test")
	broken := func(want bool) {
		t.Helper()
		for node, pl := range c.nodes {
			timelimit.Wait(t, fmt.Sprint("break-glass is known at node ", node), func() bool {
				return strings.Contains(pl.Must("status", "--json"), `"break_glass"`) == want
			})
		}
	}
	broken(true)
	c.nodes[2].Must("auth", "break-glass", "--end")
	broken(false)
}

// protected returns the URL of a server that asks for a token, in front of one that does not.
func protected(t *testing.T, url string) string {
	to, err := neturl.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := duplex.Handler(httputil.NewSingleHostReverseProxy(&neturl.URL{Scheme: to.Scheme, Host: to.Host}))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer of-") {
			w.Header().Set("WWW-Authenticate", "Bearer")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	return server.URL + to.Path
}

// give logs somebody in at a node, to the server that asks for a token.
func (c *cluster) give(t *testing.T, node int, who string) {
	t.Helper()
	pl := c.nodes[node]
	login := pl.Command(t.Context(), pl.Program.Path, pl.Args("login", "mine", "--token", "-", "--as", who)...)
	login.Stdin = strings.NewReader("of-" + who + "\n")
	if out, err := login.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// logins: a login at one gateway is one at all, and so is its end.
func (c *cluster) logins(t *testing.T) {
	_, key := c.key(t, 0, "alice")
	for round := range 3 {
		c.give(t, round, "alice")
		for node, url := range c.urls {
			timelimit.Wait(t, fmt.Sprint("a call passes at node ", node), func() bool {
				ok, _ := passes(t, c.client(url, key), "mine__find", `{}`)
				return ok
			})
			if list := c.nodes[node].Must("logins", "--json"); !strings.Contains(list, `"alice"`) {
				t.Errorf("node %d lists %s", node, list)
			}
		}
		c.nodes[(round+1)%3].Must("logout", "mine", "--as", "alice")
		for i := range 6 {
			if ok, _ := passes(t, c.client(c.any, key), "mine__find", `{}`); ok {
				t.Errorf("round %d: call %d passes after the logout", round, i)
			}
		}
	}
}

// notices counts what a webhook receives, by the ID of the approval.
type notices struct {
	mu  sync.Mutex
	all map[string]int
}

func (n *notices) start(t *testing.T) string {
	n.all = map[string]int{}
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var got struct{ ID string }
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Error(err)
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		n.all[got.ID]++
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func (n *notices) of(id string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.all[id]
}

// toldOnce: of the gateways that see a question, one reports it.
func (c *cluster) toldOnce(t *testing.T) {
	nora := c.token(t, "nora", "nora")
	var ids []string
	for i, pl := range c.nodes {
		if ok, code := passes(t, c.client(c.urls[i], nora), "own__publish", fmt.Sprintf(`{"told":%d}`, i)); ok || code != "refused_approve" {
			t.Errorf("%t %s", ok, code)
		}
		var list []struct{ ID, Principal string }
		if err := json.Unmarshal([]byte(pl.Must("approvals", "list", "--json")), &list); err != nil {
			t.Fatal(err)
		}
		for _, one := range list {
			if strings.HasSuffix(one.Principal, "nora") && !slices.Contains(ids, one.ID) {
				ids = append(ids, one.ID)
			}
		}
	}
	if len(ids) != 3 {
		t.Fatalf("three calls ask %q", ids)
	}
	for _, id := range ids {
		timelimit.Wait(t, "the question is reported", func() bool { return c.notices.of(id) > 0 })
	}
	time.Sleep(3 * time.Second) // in which each has looked
	for _, id := range ids {
		if n := c.notices.of(id); n != 1 {
			t.Errorf("%s is reported %d times", id, n)
		}
		c.nodes[0].Must("approvals", "deny", id)
	}
}

// console: with the link or the code of one gateway a browser signs in at any, and is signed in at all, as far as they
// answer by the same host and port, and out at all.
func (c *cluster) console(t *testing.T) {
	offers := make([]struct{ Code, URL, At string }, len(c.nodes))
	for node, pl := range c.nodes {
		if err := json.Unmarshal([]byte(pl.Must("console", "--json")), &offers[node]); err != nil {
			t.Fatal(err)
		}
	}
	ask := func(node int, path, form string, cookie *http.Cookie) *http.Response {
		t.Helper()
		method := http.MethodGet
		if form != "" {
			method = http.MethodPost
		}
		r, err := http.NewRequestWithContext(t.Context(), method, strings.TrimSuffix(offers[node].At, "/ui/")+path, strings.NewReader(form))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = "localhost:1234" // of what forwards to all
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if cookie != nil {
			r.AddCookie(cookie)
		}
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp
	}
	_, token, _ := strings.Cut(offers[2].URL, "#t=")
	var cookie *http.Cookie
	for node, code := range []string{offers[1].Code, token} { // neither of the gateway that is asked
		if refused := ask(node, "/ui/signin", "code="+code[:len(code)-1], nil); refused.StatusCode != http.StatusForbidden || len(refused.Cookies()) > 0 {
			t.Errorf("node %d answers half a code with %d", node, refused.StatusCode)
		}
		in := ask(node, "/ui/signin", "code="+code, nil)
		if len(in.Cookies()) != 1 {
			t.Fatalf("node %d: status %d, cookies %v", node, in.StatusCode, in.Cookies())
		}
		cookie = in.Cookies()[0]
		if again := ask(node, "/ui/signin", "code="+code, nil); again.StatusCode != http.StatusForbidden || len(again.Cookies()) > 0 {
			t.Errorf("node %d answers a code that was used with %d", node, again.StatusCode)
		}
	}
	guessed := &http.Cookie{Name: cookie.Name, Value: cookie.Value[:len(cookie.Value)-1]}
	for node := range offers {
		for _, path := range []string{"/ui/", "/api/v1/status"} {
			if got := ask(node, path, "", cookie).StatusCode; got != http.StatusOK {
				t.Errorf("node %d answers %s with %d", node, path, got)
			}
			for _, bad := range []*http.Cookie{nil, guessed} {
				if got := ask(node, path, "", bad).StatusCode; got == http.StatusOK {
					t.Errorf("node %d answers %s with %d without a sign-in", node, path, got)
				}
			}
		}
	}
	ask(1, "/ui/signout", "x=1", cookie)
	for node := range offers {
		if got := ask(node, "/ui/", "", cookie).StatusCode; got != http.StatusSeeOther {
			t.Errorf("node %d answers with %d after the sign-out", node, got)
		}
	}
}
