package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/wasmgate/wasmgate/bridge/postgres"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/gate/session"
	"github.com/wasmgate/wasmgate/internal/testing/database"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
)

// cluster returns the stores of three gateways, and does something with their database.
func cluster(t *testing.T) (all []*postgres.Store, url string, do func(query string)) {
	t.Helper()
	server := database.Shared(t)
	url = server.New(t)
	for i := range 3 {
		s, err := postgres.Open(t.Context(), postgres.Options{URL: url, Secret: secret, Node: fmt.Sprint("n", i), Listens: fmt.Sprintf("https://n%d", i), Timeout: patient})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close(t.Context()) })
		all = append(all, s)
	}
	return all, url, func(query string) { t.Helper(); server.Do(t, url, query) }
}

// end ends the lease of a gateway; renew is what the gateway does itself.
const (
	end   = "update nodes set lease_until = clock_timestamp() - interval '1 second' where node = '%s'"
	renew = "update nodes set lease_until = clock_timestamp() + interval '15 seconds' where node = '%s'"
)

func home(t *testing.T, s *postgres.Store, o gate.Owner, want string) {
	t.Helper()
	got, err := s.Home(t.Context(), o, time.Hour, true)
	if err != nil || want != "" && got != want {
		t.Errorf("the home of %v is %q, %v, want %q", o, got, err, want)
	}
}

func TestHomes(t *testing.T) {
	all, _, do := cluster(t)
	alice, bob := gate.Owner{ID: "alice"}, gate.Owner{Tenant: "corp", ID: "alice"}
	elsewhere := func(at int, want bool, epoch uint64) {
		t.Helper()
		n, err := all[at].Sessions().Read(t.Context(), gate.SessionKey{Owner: alice}, time.Hour)
		if err != nil || n.Elsewhere != want || n.Home != epoch {
			t.Errorf("gateway %d reads %+v, %v", at, n, err)
		}
	}
	elsewhere(0, false, 0)
	home(t, all[1], alice, "n1")
	home(t, all[0], alice, "n1")
	home(t, all[0], bob, "n0")
	elsewhere(1, false, 1)
	elsewhere(0, true, 1)
	// What was found a moment ago is believed, unless it is asked for now.
	do(fmt.Sprintf(end, "n1"))
	if got, err := all[0].Home(t.Context(), alice, time.Hour, false); err != nil || got != "n1" {
		t.Errorf("believed to be at %q, %v", got, err)
	}
	home(t, all[2], alice, "n2")
	home(t, all[0], alice, "n2")
	elsewhere(2, false, 2)
	// The one that seemed to have ended goes on: it is the home no more.
	do(fmt.Sprintf(renew, "n1"))
	elsewhere(1, true, 2)
	home(t, all[1], alice, "n2")
	// A home that is not used moves to where it is wanted.
	do("update homes set used = clock_timestamp() - interval '30 minutes'")
	elsewhere(2, false, 2) // a use
	do("update homes set used = used - interval '45 minutes'")
	home(t, all[0], alice, "n2")
	do("update homes set used = used - interval '2 hours'")
	home(t, all[2], alice, "n2")
	home(t, all[0], alice, "n0")
	elsewhere(2, true, 3)
	// Another run under the name is another gateway.
	do("update nodes set boot = 'another' where node = 'n0'")
	home(t, all[1], alice, "n1")
	elsewhere(1, false, 4)
	do("delete from nodes where node = 'n1'")
	home(t, all[2], alice, "n2")
}

// Of gateways that want a home at once, one has it, and all see which.
func TestHomesAtOnce(t *testing.T) {
	all, _, do := cluster(t)
	for round := range 30 {
		o := gate.Owner{ID: fmt.Sprint("o", round)}
		if round%2 == 1 { // of one that has ended
			do(fmt.Sprintf("insert into homes (tenant, owner, node, boot) values ('', '%s', 'gone', 'gone')", o.ID))
		}
		found := make([]string, len(all))
		var asking sync.WaitGroup
		for i, s := range all {
			asking.Go(func() {
				var err error
				if found[i], err = s.Home(t.Context(), o, time.Hour, true); err != nil {
					t.Error(err)
				}
			})
		}
		asking.Wait()
		if found[0] != found[1] || found[1] != found[2] {
			t.Errorf("round %d: %v", round, found)
		}
	}
}

// A gateway that renews its lease at the last moment keeps its homes: a takeover waits for it.
func TestRenewedOrTaken(t *testing.T) {
	all, url, do := cluster(t)
	alice := gate.Owner{ID: "alice"}
	home(t, all[0], alice, "n0")
	do(fmt.Sprintf(end, "n0"))
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	renewing, err := c.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := renewing.Exec(t.Context(), fmt.Sprintf(renew, "n0")); err != nil {
		t.Fatal(err)
	}
	found := make(chan string, 1)
	go func() {
		node, err := all[1].Home(t.Context(), alice, time.Hour, true)
		if err != nil {
			t.Error(err)
		}
		found <- node
	}()
	timelimit.Wait(t, "the takeover waits", func() bool {
		var waits bool
		if err := renewing.QueryRow(t.Context(), "select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')").Scan(&waits); err != nil {
			t.Fatal(err)
		}
		return waits || len(found) > 0
	})
	if err := renewing.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if node := <-found; node != "n0" {
		t.Errorf("the home is %q", node)
	}
}

// A gateway to which a home comes back does not go by the values that it had met before.
func TestHomeComesBack(t *testing.T) {
	all, _, do := cluster(t)
	alice := gate.Principal{Owner: gate.Owner{ID: "alice"}}
	s := session.New(session.Options{Shared: all[0].Sessions(), Reader: all[0].Reader(), TTL: time.Hour, Follow: func(context.Context, uint64) error { return nil }, Followed: func() uint64 { return 0 }})
	admit := func() gate.Session {
		t.Helper()
		c := &gate.Call{ID: gate.NewID(), Who: &alice, Session: gate.SessionKey{Owner: alice.Owner}}
		v, err := s.View(t.Context(), c.Session)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			now, err := s.Admit(t.Context(), v, c, gate.NewLabels("untrusted"))
			if err == nil {
				return now
			}
			v = now
		}
		t.Fatal("not admitted")
		return gate.Session{}
	}
	home(t, all[0], alice.Owner, "n0")
	for range 2 {
		if v := admit(); v.Values == v.Values.Lost() {
			t.Fatal("the values of the home are lost")
		}
	}
	do(fmt.Sprintf(end, "n0"))
	home(t, all[1], alice.Owner, "n1")
	do(fmt.Sprintf(renew, "n0"))
	do(fmt.Sprintf(end, "n1"))
	home(t, all[0], alice.Owner, "n0")
	if v := admit(); v.Values != v.Values.Lost() {
		t.Error("the values of before count")
	}
}

// A gateway that gives its homes away hands over what its sessions have met, once. What it meets after that,
// and what another gateway can not read, is lost.
func TestHandOver(t *testing.T) {
	provenance.ShareKey([]byte("0123456789abcdef"))
	all, _, do := cluster(t)
	var sessions []*session.Sessions
	for _, s := range all {
		sessions = append(sessions, session.New(session.Options{Shared: s.Sessions(), Reader: s.Reader(), TTL: time.Hour, Follow: func(context.Context, uint64) error { return nil }, Followed: func() uint64 { return 0 }}))
	}
	admit := func(at int, k gate.SessionKey) gate.Session {
		t.Helper()
		c := &gate.Call{ID: gate.NewID(), Who: &gate.Principal{Owner: k.Owner}, Session: k}
		v, err := sessions[at].View(t.Context(), k)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if v, err = sessions[at].Admit(t.Context(), v, c, nil); err == nil {
				return v
			}
		}
		t.Fatal(err)
		return gate.Session{}
	}
	learn := func(at int, k gate.SessionKey, text string, from provenance.Source, labels ...string) {
		t.Helper()
		err := sessions[at].Learn(t.Context(), k, gate.Lesson{Call: gate.NewID(), Labels: gate.NewLabels(labels...), From: doc.Must(text), Source: from})
		if err != nil {
			t.Fatal(err)
		}
	}
	handOver := func(at int, of gate.Owner) {
		t.Helper()
		err := session.HandOver(t.Context(), sessions[at], of, func(ctx context.Context, values map[string][]byte) error { return all[at].Release(ctx, of, 0, values) })
		if err != nil {
			t.Fatal(err)
		}
	}
	const known = "bob@corp.example"
	for name, tt := range map[string]struct {
		before, after func(k gate.SessionKey)
		lost          bool
	}{
		"handed over": {},
		"by a home that had no call": {after: func(k gate.SessionKey) {
			handOver(1, k.Owner)
			home(t, all[2], k.Owner, "n2")
			handOver(2, k.Owner)
			home(t, all[1], k.Owner, "n1")
		}},
		"a late lesson":   {after: func(k gate.SessionKey) { learn(0, k, `"eve@evil.example"`, provenance.FromUntrusted, "untrusted") }, lost: true},
		"met elsewhere":   {before: func(k gate.SessionKey) { learn(2, k, `"eve@evil.example"`, provenance.FromUntrusted, "untrusted") }, lost: true},
		"cannot be read":  {after: func(gate.SessionKey) { do("update session_values set sealed = '\\x00'") }, lost: true},
		"of another home": {after: func(gate.SessionKey) { do("update session_values set epoch = epoch - 1") }, lost: true},
	} {
		t.Run(name, func(t *testing.T) {
			k := gate.SessionKey{Owner: gate.Owner{ID: name}}
			home(t, all[0], k.Owner, "n0")
			admit(0, k)
			learn(0, k, `"`+known+`"`, provenance.FromTrusted)
			learn(0, k, `"web"`, provenance.FromUntrusted, "untrusted")
			if v := admit(0, k); v.Values == v.Values.Lost() || !v.Values.OfText(known).Trusted() {
				t.Fatalf("at its home: %v", v.Values.OfText(known).Names())
			}
			if tt.before != nil {
				tt.before(k)
			}
			handOver(0, k.Owner)
			home(t, all[1], k.Owner, "n1")
			home(t, all[0], k.Owner, "n1")
			if tt.after != nil {
				tt.after(k)
			}
			v := admit(1, k)
			if lost := v.Values == v.Values.Lost(); lost != tt.lost || !lost && (!v.Values.OfText(known).Trusted() || v.Values.OfText("web") != provenance.FromUntrusted) {
				t.Errorf("lost: %t; %v", lost, v.Values.OfText(known).Names())
			}
			if !v.Labels.Cover(gate.NewLabels("untrusted")) {
				t.Errorf("labels %v", v.Labels)
			}
			if again := admit(1, k); again.Values != v.Values {
				t.Error("the next call has other values")
			}
			if old := admit(0, k); old.Values != old.Values.Lost() {
				t.Error("the gateway of before goes by its values")
			}
		})
	}
}

// What a gateway has met while it was not the home is lost, also when it becomes the home again.
func TestHandOverAndBack(t *testing.T) {
	all, _, _ := cluster(t)
	k := gate.SessionKey{Owner: gate.Owner{ID: "alice"}}
	s := session.New(session.Options{Shared: all[0].Sessions(), Reader: all[0].Reader(), TTL: time.Hour, Follow: func(context.Context, uint64) error { return nil }, Followed: func() uint64 { return 0 }})
	read := gate.Lesson{Call: gate.NewID(), Labels: gate.NewLabels("untrusted"), From: doc.Must(`"web"`), Source: provenance.FromUntrusted}
	home(t, all[0], k.Owner, "n0")
	for _, step := range []func() error{
		func() error { return s.Learn(t.Context(), k, read) },
		func() error {
			return session.HandOver(t.Context(), s, k.Owner, func(ctx context.Context, values map[string][]byte) error {
				return all[0].Release(ctx, k.Owner, 0, values)
			})
		},
		func() error { return s.Learn(t.Context(), k, read) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	home(t, all[0], k.Owner, "n0")
	v := gate.Session{Key: k}
	for err := gate.ErrStale; err != nil; {
		if v, err = s.Admit(t.Context(), v, &gate.Call{ID: gate.NewID(), Who: &gate.Principal{Owner: k.Owner}, Session: k}, nil); err != nil && !errors.Is(err, gate.ErrStale) {
			t.Fatal(err)
		}
	}
	if v.Values != v.Values.Lost() {
		t.Error("what it has met in between is not known, and nothing is lost")
	}
}

// While a gateway drains, others become the home of those that come to it.
func TestDrain(t *testing.T) {
	all, _, do := cluster(t)
	alice, bob := gate.Owner{ID: "alice"}, gate.Owner{ID: "bob"}
	home(t, all[0], alice, "n0")
	if ok, err := all[1].Drain(t.Context(), "n9"); ok || err != nil {
		t.Errorf("a gateway that is not there drains: %v", err)
	}
	if ok, err := all[0].Drain(t.Context(), "n0"); !ok || err != nil || !all[0].Drains() {
		t.Fatal(ok, err)
	}
	do(fmt.Sprintf(end, "n2"))
	home(t, all[0], bob, "n1")
	home(t, all[0], alice, "n0") // until it is given up
	if err := all[0].Release(t.Context(), alice, 0, nil); err != nil {
		t.Fatal(err)
	}
	home(t, all[0], alice, "n1")
	if left, err := all[0].Homes(t.Context(), 0); err != nil || len(left) > 0 {
		t.Errorf("homes %v, %v", left, err)
	}
	do(fmt.Sprintf(end, "n1"))
	home(t, all[0], alice, "n0") // since no other runs
}
