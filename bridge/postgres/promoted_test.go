package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/bridge/postgres"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/session"
	"github.com/wasmgate/wasmgate/internal/testing/database"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
)

// A promoting is gateways of a primary, and a standby that lacks what was written last.
type promoting struct {
	primary, standby *database.Server
	url              string // of both
	name             string // of the database
}

func newPromoting(t *testing.T) *promoting {
	t.Helper()
	p := &promoting{primary: database.Start(t), name: "test1"}
	url := p.primary.New(t)
	p.standby = p.primary.Standby(t)
	p.url = strings.Replace(url, fmt.Sprintf(":%d/", p.primary.Port()), fmt.Sprintf(":%d,127.0.0.1:%d/", p.primary.Port(), p.standby.Port()), 1)
	return p
}

// promote promotes the standby after a crash of the primary. No lease ends meanwhile.
func (p *promoting) promote(t *testing.T) {
	t.Helper()
	p.primary.Kill()
	p.standby.Promote(t)
	p.standby.Do(t, p.standby.URL(p.name), "update nodes set lease_until = clock_timestamp() + interval '1 hour' where boot <> ''")
}

// A gateway is sessions over a store.
type gateway struct {
	*postgres.Store
	*session.Sessions
}

func (p *promoting) gateway(t *testing.T, node string) *gateway {
	t.Helper()
	s, err := postgres.Open(t.Context(), postgres.Options{URL: p.url, Secret: secret, Node: node, Version: "test", Timeout: patient})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return &gateway{s, session.New(session.Options{
		Shared: s.Sessions(), Reader: s.Reader(), Followed: func() uint64 { return 0 }, Follow: func(context.Context, uint64) error { return nil },
	})}
}

// read has a caller read something that has a label, at its home.
func (g *gateway) read(t *testing.T, who, label string) {
	t.Helper()
	if at, err := g.Store.Home(t.Context(), gate.Owner{ID: who}, time.Hour, true); err != nil || at != g.Node() {
		t.Fatalf("the home of %s is %s, %v", who, at, err)
	}
	if err := g.Learn(t.Context(), gate.SessionKey{Owner: gate.Owner{ID: who}}, gate.Lesson{Labels: gate.NewLabels(label), Call: "c"}); err != nil {
		t.Fatal(err)
	}
}

// state returns what the next call of a caller is decided on: its labels, or "everything".
func (g *gateway) state(t *testing.T, who string) (string, error) {
	t.Helper()
	k := gate.SessionKey{Owner: gate.Owner{ID: who}}
	v := gate.Session{Key: k}
	for i := range 9 {
		now, err := g.Admit(t.Context(), v, &gate.Call{ID: fmt.Sprint(who, i), Who: &gate.Principal{Owner: k.Owner}, Args: gate.MustDoc(`{}`)}, nil)
		if err == nil && now.Top {
			return "everything", nil
		}
		if err == nil {
			return fmt.Sprint([]string(now.Labels)), nil
		}
		if err != gate.ErrStale { //nolint:errorlint // it is returned as it is
			return "", err
		}
		v = now
	}
	t.Fatal("a call is not admitted")
	return "", nil
}

// is waits until a caller's calls are decided on a state.
func (g *gateway) is(t *testing.T, who, want string) {
	t.Helper()
	var got string
	timelimit.Wait(t, "calls of "+who+" are admitted", func() bool {
		var err error
		got, err = g.state(t, who)
		if err != nil && (gate.Code(err) != "refused_store" || !gate.Retryable(err)) {
			t.Fatal(err)
		}
		return err == nil
	})
	if got != want {
		t.Errorf("calls of %s are decided on %s, want %s", who, got, want)
	}
}

// ended has the leases of gateways that are gone end, after a promotion was noted.
func (p *promoting) ended(t *testing.T, node string) {
	t.Helper()
	p.standby.Do(t, p.standby.URL(p.name), "update nodes set lease_until = clock_timestamp() - interval '1 millisecond', seen = seen - interval '1 hour' where node = '"+node+"'")
	p.standby.Do(t, p.standby.URL(p.name), "update meta set kept = lease_until - interval '1 second' from nodes where node = '"+node+"'")
}

// What the standby lacks, gateways that live write again. What only a dead one knew counts as everything.
func TestPromoted(t *testing.T) {
	p := newPromoting(t)
	live, other, dead := p.gateway(t, "live"), p.gateway(t, "other"), p.gateway(t, "dead")
	live.read(t, "alice", "private")
	dead.read(t, "dora", "private")
	p.standby.CatchUp(t, p.primary)
	before, err := live.Generation(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p.standby.Part(t)
	live.read(t, "alice", "untrusted")
	dead.read(t, "dora", "untrusted")
	dead.read(t, "erin", "untrusted") // of whom the standby knows nothing
	p.promote(t)
	if got := p.standby.Do(t, p.standby.URL(p.name), "select owner, labels from sessions order by owner"); got != "alice|{private}\ndora|{private}" {
		t.Fatalf("the standby has %s", got)
	}

	live.is(t, "alice", "[private untrusted]")
	if after, err := live.Generation(t.Context()); err != nil || after <= before+1000 {
		t.Errorf("generation %d after %d, %v", after, before, err)
	}
	for _, who := range []string{"dora", "erin", "new"} {
		if got, err := other.state(t, who); err == nil {
			t.Errorf("while the lease of another gateway runs, calls of %s are decided on %s", who, got)
		}
	}
	other.is(t, "alice", "[private untrusted]")
	p.ended(t, "dead")
	for _, who := range []string{"dora", "erin", "new"} {
		if at, err := other.Store.Home(t.Context(), gate.Owner{ID: who}, time.Hour, true); err != nil || at != "other" {
			t.Errorf("the home of %s is %s, %v", who, at, err)
		}
		other.is(t, who, "everything")
	}
	live.is(t, "dora", "everything") // it is kept
	live.is(t, "alice", "[private untrusted]")

	// A gateway that starts again does not hide that the one of before knew something.
	p.gateway(t, "dead")
	other.is(t, "fred", "everything")
	if err := other.Shared().Reset(t.Context(), gate.SessionKey{Owner: gate.Owner{ID: "fred"}}); err != nil {
		t.Fatal(err)
	}
	live.is(t, "fred", "[]")
	// After the time of sessions nothing of before goes on.
	p.standby.Do(t, p.standby.URL(p.name), "update meta set promoted = promoted - interval '2 hours', lost = lost - interval '2 hours'")
	other.is(t, "gina", "[]")
}

// Shared is what all know of sessions.
func (g *gateway) Shared() session.Shared { return g.Store.Sessions() }

// If all gateways live, or ended in order, nothing is lost.
func TestPromotedInOrder(t *testing.T) {
	p := newPromoting(t)
	one, two, gone := p.gateway(t, "one"), p.gateway(t, "two"), p.gateway(t, "gone")
	one.read(t, "alice", "private")
	gone.read(t, "gus", "private")
	if err := gone.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.standby.CatchUp(t, p.primary)
	p.standby.Part(t)
	late := p.gateway(t, "late") // the standby does not know it
	two.read(t, "bob", "untrusted")
	p.promote(t)
	if got, err := one.state(t, "gus"); err == nil {
		t.Errorf("while another gateway has not written its labels again, calls are decided on %s", got)
	}
	for _, g := range []*gateway{one, two, late} {
		timelimit.Wait(t, "a gateway writes its labels again", func() bool { return g.Refresh(t.Context(), true) == nil })
	}
	for who, want := range map[string]string{"alice": "[private]", "bob": "[untrusted]", "gus": "[private]", "new": "[]"} {
		for _, g := range []*gateway{two, late} {
			g.is(t, who, want)
		}
	}
}
