package postgres_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/bridge/postgres"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/approval"
	"github.com/wasmgate/wasmgate/internal/files/state"
	"github.com/wasmgate/wasmgate/internal/session"
	"github.com/wasmgate/wasmgate/internal/testing/database"
	"github.com/wasmgate/wasmgate/internal/testing/storetest"
)

func TestMain(m *testing.M) { os.Exit(database.Main(m, (*testing.M).Run)) }

// secret is that of all gateways of these tests.
var secret = func() []byte {
	b := make([]byte, 32)
	rand.Read(b) // never fails
	return b
}()

// open returns three stores of one empty database.
func open(t *testing.T) (all []*postgres.Store) {
	t.Helper()
	url := database.Shared(t).New(t)
	for i := range 3 {
		s, err := postgres.Open(t.Context(), postgres.Options{URL: url, Secret: bytes.Clone(secret), Node: fmt.Sprintf("n%d", i), Version: "test"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(t.Context()); err != nil && t.Context().Err() == nil {
				t.Error(err)
			}
		})
		all = append(all, s)
	}
	return all
}

func TestSessions(t *testing.T) {
	storetest.Sessions(t, func(t *testing.T) (all []session.Shared) {
		for _, s := range open(t) {
			all = append(all, s.Sessions())
		}
		return all
	})
}

func TestDocuments(t *testing.T) {
	storetest.Documents(t, func(t *testing.T) (all []state.Document) {
		for _, s := range open(t) {
			all = append(all, s.Document("keys"))
		}
		return all
	})
}

// approvals returns those of each store.
func approvals(t *testing.T, all []*postgres.Store) (of []approval.Store) {
	t.Helper()
	for _, s := range all {
		a, err := s.Approvals()
		if err != nil {
			t.Fatal(err)
		}
		of = append(of, a)
	}
	return of
}

func TestApprovals(t *testing.T) {
	storetest.Approvals(t, func(t *testing.T) []approval.Store { return approvals(t, open(t)) })
}

// What a gateway has begun when it died is free again after some time; a row that another has
// written, or that was changed by hand, is believed by none.
func TestApprovalsOfTheDead(t *testing.T) {
	server := database.Shared(t)
	url := server.New(t)
	s, err := postgres.Open(t.Context(), postgres.Options{URL: url, Secret: secret, Node: "n"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	a := approvals(t, []*postgres.Store{s})[0]
	q := gate.Question{
		Query: gate.Query{Call: &gate.Call{ID: "c", Who: gate.Local(), Args: gate.MustDoc(`{}`)}, Tool: &gate.Tool{Name: gate.ToolName{Server: "s", Tool: "t"}}},
	}
	r, fresh, err := a.Ask(t.Context(), q, "n-1", time.Hour)
	if !fresh || err != nil {
		t.Fatal(fresh, err)
	}
	server.Do(t, url, "update approvals set asked = asked - interval '11 seconds'")
	if r, fresh, err = a.Ask(t.Context(), q, "n-2", time.Hour); !fresh || err != nil || r.ID != "n-2" {
		t.Fatalf("a question that its gateway did not record: %s, fresh %t, %v", r.ID, fresh, err)
	}
	if err := a.Asked(t.Context(), r.ID, true); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Answer(t.Context(), r.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Answer(t.Context(), r.ID); err == nil {
		t.Error("two answer at once")
	}
	server.Do(t, url, "update approvals set busy = busy - interval '11 seconds'")
	if r, err = a.Answer(t.Context(), r.ID); err != nil {
		t.Fatalf("after the gateway of the first answer has died: %v", err)
	}
	r.State = approval.StateApproved
	if err := a.Answered(t.Context(), r, true); err != nil {
		t.Fatal(err)
	}
	server.Do(t, url, "update approvals set body = (select body from approvals where id = 'n-2') where id = 'n-1'")
	if _, _, err := a.Redeem(t.Context(), "n-1", "c"); gate.Code(err) != "refused_store" || !strings.Contains(err.Error(), "its row was changed") {
		t.Errorf("a row with the state of another: %v", err)
	}
	if _, _, err := a.Redeem(t.Context(), "n-2", "c"); err != nil {
		t.Error(err)
	}
}

// Each change of a document raises the generation that an admission reads.
func TestGeneration(t *testing.T) {
	all := open(t)
	for i := range uint64(5) {
		if err := all[i%2].Document(fmt.Sprint("d", i%3)).Change(t.Context(), func([]byte) ([]byte, error) { return []byte("x"), nil }); err != nil {
			t.Fatal(err)
		}
		n, err := all[2].Sessions().Read(t.Context(), session.Known{}.Key, 1)
		if err != nil || n.Generation != i+1 {
			t.Errorf("generation %d after %d changes, %v", n.Generation, i+1, err)
		}
		if at, err := all[1].Generation(t.Context()); err != nil || at != i+1 {
			t.Errorf("generation %d after %d changes, %v", at, i+1, err)
		}
	}
}

// A gateway whose name another one has taken admits nothing.
func TestTaken(t *testing.T) {
	s := database.Shared(t)
	url := s.New(t)
	o := postgres.Options{URL: url, Secret: secret, Node: "n"}
	first, err := postgres.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close(t.Context())
	s.Do(t, url, "update nodes set lease_until = clock_timestamp() - interval '1 second'")
	if _, err := first.Sessions().Read(t.Context(), session.Known{}.Key, time.Hour); err != nil {
		t.Errorf("the lease has ended, and no one has taken the name: %v", err)
	}
	second, err := postgres.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close(t.Context())
	if _, err := first.Sessions().Read(t.Context(), session.Known{}.Key, time.Hour); err == nil || !strings.Contains(err.Error(), "another gateway runs as node n") {
		t.Errorf("error %v", err)
	}
}

// While the database is away each question ends in time with an error, and afterwards all is as
// it was.
func TestAway(t *testing.T) {
	server := database.Start(t)
	s, err := postgres.Open(t.Context(), postgres.Options{URL: server.New(t), Secret: secret, Node: "n", Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(context.WithoutCancel(t.Context()))
	k := gate.SessionKey{Owner: gate.Owner{ID: "alice"}}
	if _, err := s.Sessions().Raise(t.Context(), k, time.Hour, session.Rise{Labels: gate.NewLabels("private"), Reader: "n"}); err != nil {
		t.Fatal(err)
	}
	server.Stop()
	for name, ask := range map[string]func() error{
		"read":  func() error { _, err := s.Sessions().Read(t.Context(), k, time.Hour); return err },
		"raise": func() error { _, err := s.Sessions().Raise(t.Context(), k, time.Hour, session.Rise{}); return err },
		"reset": func() error { return s.Sessions().Reset(t.Context(), k) },
		"load":  func() error { _, _, err := s.Document("keys").Load(t.Context(), 0); return err },
		"change": func() error {
			return s.Document("keys").Change(t.Context(), func(b []byte) ([]byte, error) { return b, nil })
		},
	} {
		if err := ask(); err == nil || !strings.HasPrefix(err.Error(), "store: the database at 127.0.0.1:") || gate.Code(err) != "refused_store" || !gate.Retryable(err) {
			t.Errorf("%s: %s, error %v", name, gate.Code(err), err)
		}
	}
	if err := server.Run(); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Sessions().Read(t.Context(), k, time.Hour); err != nil || !n.Labels.Cover(gate.NewLabels("private")) {
		t.Errorf("afterwards: %v, %v", n.Labels, err)
	}
}
