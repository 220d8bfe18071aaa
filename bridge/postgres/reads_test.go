package postgres

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/session"
	"github.com/wasmgate/wasmgate/internal/testing/database"
)

// Calls that wait while a query is under way are answered by one, each with what is known of its own session, and one that the database could not
// read fails alone.
func TestReadsTogether(t *testing.T) {
	const waiting = 200
	var queries atomic.Int64
	o := Options{URL: database.Shared(t).New(t), Secret: []byte(rand.Text() + rand.Text()), Node: "n", Timeout: time.Minute, Observe: func(op string, _ time.Duration, _ string) {
		if op == "read" {
			queries.Add(1)
		}
	}}
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(context.WithoutCancel(t.Context()))
	shared := s.Sessions()
	name := func(i int) gate.SessionKey {
		return gate.SessionKey{Owner: gate.Owner{ID: fmt.Sprint("p", i)}, ID: "s"}
	}
	for i := range 10 {
		r := session.Rise{Labels: gate.NewLabels(fmt.Sprint("label", i)), Call: "c", Reader: "r"}
		if _, err := shared.Raise(t.Context(), name(i), time.Hour, r); err != nil {
			t.Fatal(err)
		}
	}
	before := queries.Load()
	var reading sync.WaitGroup
	read := func(i int) {
		reading.Go(func() {
			known, err := shared.Read(t.Context(), name(i), time.Hour)
			switch want := gate.NewLabels(fmt.Sprint("label", i)); {
			case err != nil:
				t.Error(err)
			case known.Key != name(i) || i < 10 && !slices.Equal(known.Labels, want) || i >= 10 && len(known.Labels) > 0:
				t.Errorf("session %d: %+v", i, known)
			}
		})
	}
	err = s.db.Within(t.Context(), func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "lock table meta in access exclusive mode"); err != nil {
			return err
		}
		read(0)
		until(t, func() bool { return s.reads.busy == 1 && s.reads.next == nil }, &s.reads.mu)
		for i := range waiting {
			read(i)
		}
		until(t, func() bool { return s.reads.next != nil && len(s.reads.next.answers) == waiting }, &s.reads.mu)
		if _, err := shared.Read(ctx, gate.SessionKey{Owner: gate.Owner{ID: "zero\x00"}}, time.Hour); err == nil {
			t.Error("a name that cannot be kept was read")
		}
		gone, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := shared.Read(gone, name(0), time.Hour); err == nil {
			t.Error("a call that has ended was answered while the database was not")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	reading.Wait()
	if n := queries.Load() - before; n != 2 {
		t.Errorf("%d queries for one call and the %d that waited for it", n, waiting)
	}
}

// until waits until something is so, with the mutex held when it looks.
func until(t *testing.T, is func() bool, mu *sync.Mutex) {
	t.Helper()
	for range 6000 {
		mu.Lock()
		now := is()
		mu.Unlock()
		if now {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("not within a minute")
}

// BenchmarkRead reads sessions from sixteen goroutines a processor.
func BenchmarkRead(b *testing.B) {
	s, err := Open(b.Context(), Options{URL: database.Shared(b).New(b), Secret: []byte(rand.Text() + rand.Text()), Node: "n", Timeout: time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close(context.WithoutCancel(b.Context()))
	shared := s.Sessions()
	b.SetParallelism(16)
	b.ReportAllocs()
	var n atomic.Int64
	b.RunParallel(func(p *testing.PB) {
		k := gate.SessionKey{Owner: gate.Owner{ID: fmt.Sprint("p", n.Add(1))}, ID: "s"}
		for p.Next() {
			if _, err := shared.Read(b.Context(), k, time.Hour); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
