//go:build unix

package gateway

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/testing/e2e"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
)

// testPrimary runs gateways on a database that one of them loses sight of, and whose primary then dies.
func testPrimary(t *testing.T, p *e2e.Program) {
	c := newCluster(t, true, more{}, p, p, p)
	t.Run("a gateway without the database", func(t *testing.T) { c.blind(t) })
	t.Run("a standby promoted", func(t *testing.T) { c.promoted(t) })
}

// caller returns the token of a new caller, who has found and read something at a node, its home.
func (c *cluster) caller(t *testing.T, at int) string {
	t.Helper()
	token := c.token(t, rand.Text(), rand.Text())
	for _, tool := range []string{"own__find", "own__read_web"} {
		if ok, code := passes(t, c.client(c.urls[at], token), tool, `{}`); !ok {
			t.Fatalf("%s at node %d: %s", tool, at, code)
		}
	}
	return token
}

// rows returns what a query finds in the database of the gateways.
func (c *cluster) rows(t *testing.T, query string) string {
	t.Helper()
	return c.db.Do(t, c.db.URL("test1"), query)
}

// invoked is how many calls the server has got.
func (c *cluster) invoked() int {
	c.server.Mu.Lock()
	defer c.server.Mu.Unlock()
	return len(c.server.Seen)
}

// blind: nothing that passes between a gateway and the database arrives. It admits no call, others take its callers over
// once its lease has ended, and what it writes late changes nothing of what they do.
func (c *cluster) blind(t *testing.T) {
	token := c.caller(t, 1)
	invoked := c.invoked()
	late := make(chan e2e.Answered, 1)
	go func() { late <- c.client(c.urls[1], token).MustCall(t, "own__read_web", waits) }()
	timelimit.Wait(t, "a call is under way", func() bool { return c.invoked() > invoked })
	invoked = c.invoked()
	c.toDB[1].swallows.Store(true)
	for range 3 {
		if ok, code := passesOnce(t, c.client(c.urls[1], token), "own__find", `{}`); ok || code != "refused_store" {
			t.Errorf("a call at a gateway without the database: %t %s", ok, code)
		}
	}
	there := c.client(c.urls[0], token)
	timelimit.Wait(t, "another gateway takes the caller over", func() bool {
		ok, _ := passes(t, there, "own__read_web", `{}`)
		return ok
	})
	if n := c.invoked() - invoked; n != 1 {
		t.Errorf("the server has got %d calls, want 1", n)
	}
	for _, to := range []string{toBob, toEvil} {
		if ok, code := passes(t, there, "own__send", to); ok || code != "refused_authorize" {
			t.Errorf("a value of before: %t %s", ok, code)
		}
	}
	const homes = "select tenant, owner, node, boot, epoch from homes where node = 'n0' order by owner"
	before := c.rows(t, homes)
	if before == "" {
		t.Fatal("no home is at n0")
	}
	c.toDB[1].swallows.Store(false)
	select {
	case c.release <- struct{}{}:
		<-late
	case <-late: // it took too long for its gateway
	}
	timelimit.Wait(t, "the gateway sees the database", func() bool {
		ok, _ := passes(t, c.client(c.urls[1], token), "own__read_web", `{}`)
		return ok
	})
	c.restart(t, 1) // it hands its homes over
	if after := c.rows(t, homes); after != before {
		t.Errorf("homes were %s, and are %s", before, after)
	}
	if n := c.rows(t, "select count(*) from session_values"); n != "0" {
		t.Errorf("the gateway has written values of %s sessions that are not its own", n)
	}
	for _, to := range []string{toBob, toEvil} {
		if ok, code := passes(t, c.client(c.any, token), "own__send", to); ok || code != "refused_authorize" {
			t.Errorf("a value of before: %t %s", ok, code)
		}
	}
	c.checked(t)
}

// promoted: the primary dies with a gateway, and the standby lacks what was written last. What the other gateways know holds; of what
// only the dead one knew, the worst is taken to be true.
func (c *cluster) promoted(t *testing.T) {
	lives, dies := c.caller(t, 0), c.caller(t, 2)
	clean := c.token(t, rand.Text(), rand.Text())
	if ok, code := passes(t, c.client(c.urls[2], clean), "own__find", `{}`); !ok {
		t.Fatal(code)
	}
	if ok, _ := passes(t, c.client(c.urls[0], lives), "own__publish", `{}`); ok {
		t.Fatal("a call that needs approval passes")
	}
	var list []struct{ ID string }
	if err := json.Unmarshal([]byte(c.nodes[0].Must("approvals", "list", "--json")), &list); err != nil || len(list) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	c.nodes[0].Must("approvals", "approve", list[0].ID, "--yes")
	c.standby.CatchUp(t, c.db)
	c.standby.Part(t)

	if ok, code := passes(t, c.client(c.any, lives), "own__publish", `{}`); !ok {
		t.Fatalf("a call that was approved: %s", code)
	}
	if ok, code := passes(t, c.client(c.urls[2], clean), "own__read_web", `{}`); !ok {
		t.Fatal(code)
	}
	lost := c.caller(t, 2) // of whom the standby knows nothing
	home := c.caller(t, 1)
	c.processes[2].Signal(syscall.SIGKILL)
	c.processes[2].Wait()
	c.db.Kill()
	sent := len(c.server.Calls("send"))
	if ok, code := passesOnce(t, c.client(c.urls[0], lives), "own__send", toBob); ok || code != "refused_store" {
		t.Errorf("without a primary: %t %s", ok, code)
	}
	c.standby.Promote(t)
	c.db, c.standby = c.standby, nil
	if n := c.rows(t, "select count(*) from sessions where labels <> '{}'"); n != "3" { // of the test before, too
		t.Fatalf("the standby knows labels of %s sessions, want 3", n)
	}

	for _, url := range c.urls[:2] {
		timelimit.Wait(t, "calls pass again", func() bool {
			ok, _ := passes(t, c.client(url, lives), "own__send", toBob)
			return ok
		})
		if ok, code := passes(t, c.client(url, lives), "own__send", toEvil); ok || code != "refused_authorize" {
			t.Errorf("a caller whose home lives: %t %s", ok, code)
		}
	}
	if ok, code := passes(t, c.client(c.urls[0], lives), "own__publish", `{}`); ok || code != "refused_approve" {
		t.Errorf("an approval that was used: %t %s", ok, code)
	}
	for name, token := range map[string]string{"labels that are kept": dies, "lost labels": clean, "a lost session": lost, "a lost home": home} {
		for _, url := range c.urls[:2] {
			timelimit.Wait(t, "another gateway takes a caller over", func() bool {
				ok, code := passes(t, c.client(url, token), "own__send", toEvil)
				if ok {
					t.Fatalf("%s: a call passes", name)
				}
				return code == "refused_authorize"
			})
			if token == home { // this gateway has met the value, and knows where
				continue
			}
			if ok, code := passes(t, c.client(url, token), "own__send", toBob); ok || code != "refused_authorize" {
				t.Errorf("%s: %t %s", name, ok, code)
			}
		}
	}
	if n := len(c.server.Calls("send")) - sent; n != 2 {
		t.Errorf("the server has got %d calls, want 2", n)
	}
	c.processes[2] = c.nodes[2].Serve("--listen", strings.TrimSuffix(strings.TrimPrefix(c.urls[2], "http://"), "/mcp"))
	if ok, code := passes(t, c.client(c.urls[2], lost), "own__send", toBob); ok || code != "refused_authorize" {
		t.Errorf("at the gateway that starts again: %t %s", ok, code)
	}
	c.checked(t)
}

// checked reads the logs of all gateways, of callers that make one call after the other: no approval lets two calls pass, and each call was decided on
// all that its session had read before.
func (c *cluster) checked(t *testing.T) {
	t.Helper()
	var all []audit.Entry
	for _, pl := range c.nodes {
		pl.Verify()
		for e, err := range audit.Read(t.Context(), pl.File("state/audit.jsonl"), audit.Filter{}) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b audit.Entry) int { return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Seq, b.Seq)) })
	redeemed, read, granted := map[string]string{}, map[string]map[string]string{}, 0
	for _, e := range all {
		session := fmt.Sprintf("%s %s %s", e.Tenant, e.Principal, e.Session)
		switch e.Event {
		case "granted":
			granted++
			if id := e.Approval.ID; id != "" && redeemed[id] != "" && redeemed[id] != e.ID {
				t.Errorf("approval %s let calls %s and %s pass", id, redeemed[id], e.ID)
			}
			redeemed[e.Approval.ID] = e.ID
			for label, call := range read[session] {
				if !e.SessionTop && !slices.Contains(e.LabelsBefore, label) {
					t.Errorf("call %s at %s is granted without the label %s, which call %s has brought", e.ID, e.Log, label, call)
				}
			}
		case "done":
			if read[session] == nil {
				read[session] = map[string]string{}
			}
			for _, label := range e.LabelsAfter {
				read[session][label] = e.ID
			}
		}
	}
	if granted == 0 {
		t.Error("no call was granted")
	}
	t.Logf("%d calls were granted", granted)
}
