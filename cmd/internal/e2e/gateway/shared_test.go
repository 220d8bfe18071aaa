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
	"strings"
	"testing"
	"time"

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
			timelimit.Wait(t, fmt.Sprint("what was granted passes at node ", node), func() bool {
				ok, _ := passes(t, c.client(url, token), "more__find", `{}`)
				return ok
			})
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
	proxy := httputil.NewSingleHostReverseProxy(&neturl.URL{Scheme: to.Scheme, Host: to.Host})
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
