package postgres_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/bridge/jobs"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/bridge/postgres"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/approval"
	"github.com/wasmgate/wasmgate/gate/limits"
	"github.com/wasmgate/wasmgate/gate/session"
	"github.com/wasmgate/wasmgate/internal/config/policydata"
	"github.com/wasmgate/wasmgate/internal/files/state"
	"github.com/wasmgate/wasmgate/internal/lock"
	"github.com/wasmgate/wasmgate/internal/login"
	"github.com/wasmgate/wasmgate/internal/modules/kv"
	"github.com/wasmgate/wasmgate/internal/testing/database"
	"github.com/wasmgate/wasmgate/internal/testing/storetest"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
	"github.com/wasmgate/wasmgate/internal/vault"
)

func TestMain(m *testing.M) { os.Exit(database.Main(m, (*testing.M).Run)) }

// patient is longer than a query takes on a slow machine.
const patient = time.Minute

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
		s, err := postgres.Open(t.Context(), postgres.Options{URL: url, Secret: bytes.Clone(secret), Node: fmt.Sprintf("n%d", i), Version: "test", Timeout: patient})
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

// limitsOf returns those of gateways that share their rates.
func limitsOf(all []*postgres.Store) (of []*limits.Limits) {
	for _, s := range all {
		of = append(of, limits.New(limits.Options{Rates: s.Rates()}))
	}
	return of
}

func TestRates(t *testing.T) {
	storetest.Rates(t, func(t *testing.T) []*limits.Limits { return limitsOf(open(t)) })
}

// valuesOf returns what modules keep at each of several gateways.
func valuesOf(t *testing.T, all []*postgres.Store, o kv.Options) (of []*kv.Store) {
	t.Helper()
	for _, s := range all {
		var err error
		if o.Shared, err = s.ModuleValues(); err != nil {
			t.Fatal(err)
		}
		one, err := kv.Open("", o)
		if err != nil {
			t.Fatal(err)
		}
		of = append(of, one)
	}
	return of
}

func TestValues(t *testing.T) {
	storetest.Values(t, func(t *testing.T, o kv.Options) []*kv.Store { return valuesOf(t, open(t), o) })
}

// A value is believed only in its own row.
func TestValueMoved(t *testing.T) {
	server := database.Shared(t)
	url := server.New(t)
	s, err := postgres.Open(t.Context(), postgres.Options{URL: url, Secret: secret, Node: "n", Timeout: patient})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	all := valuesOf(t, []*postgres.Store{s}, kv.Options{})
	if err := all[0].Set(t.Context(), options.ModuleNamespace{Tool: "a"}, "k", []byte("v"), 0); err != nil {
		t.Fatal(err)
	}
	server.Do(t, url, "update kv set key = 'other'")
	if v, _, err := all[0].Get(t.Context(), options.ModuleNamespace{Tool: "a"}, "other"); err == nil {
		t.Errorf("the value of another key: %q", v)
	}
}

// A name is given to one gateway at a time.
func TestLease(t *testing.T) {
	all := open(t)
	var mine atomic.Int64
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			got, err := all[i%len(all)].Lease(t.Context(), "notice x", time.Hour)
			if err != nil {
				t.Error(err)
			}
			if got {
				mine.Add(1)
			}
		})
	}
	wg.Wait()
	if n := mine.Load(); n != 1 {
		t.Errorf("%d have it", n)
	}
	if got, err := all[1].Lease(t.Context(), "notice y", time.Millisecond); err != nil || !got {
		t.Errorf("another name: %t, %v", got, err)
	}
	timelimit.Wait(t, "the lease of another has ended", func() bool {
		got, err := all[2].Lease(t.Context(), "notice y", time.Hour)
		return got && err == nil
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

func TestJobs(t *testing.T) {
	storetest.Jobs(t, func(t *testing.T) jobs.Store { return jobsOf(t, open(t)[1]) })
}

func jobsOf(t *testing.T, s *postgres.Store) *postgres.Jobs {
	t.Helper()
	j, err := s.Jobs()
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// Jobs of a gateway that is gone fail, and no others. Results are believed only in their own rows.
func TestJobsOfTheDead(t *testing.T) {
	server := database.Shared(t)
	url := server.New(t)
	var all []*postgres.Jobs
	for _, node := range []string{"n0", "n1"} {
		s, err := postgres.Open(t.Context(), postgres.Options{URL: url, Secret: secret, Node: node, Timeout: patient})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close(t.Context())
		all = append(all, jobsOf(t, s))
	}
	who := gate.Owner{ID: "alice"}
	now := time.Now()
	for i, j := range all {
		if err := j.AddJob(t.Context(), jobs.Job{ID: fmt.Sprint("j", i), Owner: who, Node: fmt.Sprint("n", i), State: jobs.Running, Started: now, Keep: time.Hour}); err != nil {
			t.Fatal(err)
		}
	}
	server.Do(t, url, "update nodes set lease_until = clock_timestamp() - interval '1 minute' where node = 'n0'")
	if n, err := all[1].LoseJobs(t.Context(), now, "gone"); n != 0 || err != nil {
		t.Errorf("%d jobs of a gateway that is away for a minute, %v", n, err)
	}
	server.Do(t, url, "update nodes set lease_until = clock_timestamp() - interval '3 minutes' where node = 'n0'")
	if n, err := all[1].LoseJobs(t.Context(), now, "gone"); n != 1 || err != nil {
		t.Errorf("%d jobs of a gateway that is gone, %v", n, err)
	}
	if j, err := all[1].Job(t.Context(), who, "j0"); j.State != jobs.Failed || !j.Lost() || j.Reason != "gone" || err != nil {
		t.Errorf("%+v, %v", j, err)
	}
	j, err := all[0].Job(t.Context(), who, "j1")
	if j.State != jobs.Running || err != nil {
		t.Fatalf("%+v, %v", j, err)
	}
	j.State, j.Ended, j.Labels = jobs.Completed, now, gate.NewLabels("untrusted")
	if err := all[1].EndJob(t.Context(), j, gate.MustDoc(`{"content":[]}`)); err != nil {
		t.Fatal(err)
	}
	if _, doc, err := all[0].JobResult(t.Context(), who, "j1"); doc.String() != `{"content":[]}` || err != nil {
		t.Errorf("%s, %v", doc, err)
	}
	server.Do(t, url, "update jobs set owner = 'mallory' where id = 'j1'")
	if _, _, err := all[0].JobResult(t.Context(), gate.Owner{ID: "mallory"}, "j1"); gate.Code(err) != "refused_store" {
		t.Errorf("the result of another: %v", err)
	}
}

// Through a pooler that lends connections for one transaction all is as it is without, if the
// configuration says that there is one.
func TestPooled(t *testing.T) {
	unraced.Long(t)
	server := database.Shared(t)
	pooled := func(t *testing.T) (all []*postgres.Store) {
		url := server.Pooled(t, server.New(t))
		for i := range 3 {
			s, err := postgres.Open(t.Context(), postgres.Options{URL: url, Secret: secret, Node: fmt.Sprint("n", i), Version: "test", Pooled: true, Timeout: patient})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close(context.Background()) })
			all = append(all, s)
		}
		return all
	}
	t.Run("sessions", func(t *testing.T) {
		storetest.Sessions(t, func(t *testing.T) (all []session.Shared) {
			for _, s := range pooled(t) {
				all = append(all, s.Sessions())
			}
			return all
		})
	})
	t.Run("documents", func(t *testing.T) {
		storetest.Documents(t, func(t *testing.T) (all []state.Document) {
			for _, s := range pooled(t) {
				all = append(all, s.Document("keys"))
			}
			return all
		})
	})
	t.Run("approvals", func(t *testing.T) {
		storetest.Approvals(t, func(t *testing.T) []approval.Store { return approvals(t, pooled(t)) })
	})
	t.Run("jobs", func(t *testing.T) {
		storetest.Jobs(t, func(t *testing.T) jobs.Store { return jobsOf(t, pooled(t)[2]) })
	})
	t.Run("values", func(t *testing.T) {
		storetest.Values(t, func(t *testing.T, o kv.Options) []*kv.Store { return valuesOf(t, pooled(t), o) })
	})
	t.Run("rates", func(t *testing.T) {
		storetest.Rates(t, func(t *testing.T) []*limits.Limits { return limitsOf(pooled(t)) })
	})
	t.Run("not said", func(t *testing.T) {
		url := server.Pooled(t, server.New(t))
		s, err := postgres.Open(t.Context(), postgres.Options{URL: url, Secret: secret, Node: "n", Timeout: patient})
		if err == nil {
			_ = s.Close(context.Background())
		}
		if err == nil || !strings.Contains(err.Error(), "set store.pooled: true") {
			t.Errorf("error %v", err)
		}
	})
}

// A gateway sees the others, and which of them are gone.
func TestNodes(t *testing.T) {
	s := database.Shared(t)
	url := s.New(t)
	seen := func(gone ...bool) {
		t.Helper()
		last, err := postgres.Open(t.Context(), postgres.Options{URL: url, Secret: secret, Node: "z", Version: "2", Timeout: patient})
		if err != nil {
			t.Fatal(err)
		}
		defer last.Close(t.Context())
		all := last.Nodes()
		if len(all) != len(gone)+1 {
			t.Fatalf("%+v", all)
		}
		for i, n := range all[:len(gone)] {
			if n.Name != fmt.Sprint("n", i) || n.Version != "1" || n.Gone != gone[i] || n.Started.IsZero() {
				t.Errorf("%+v, gone %t", n, gone[i])
			}
		}
	}
	var all []*postgres.Store
	for i := range 2 {
		one, err := postgres.Open(t.Context(), postgres.Options{URL: url, Secret: secret, Node: fmt.Sprint("n", i), Version: "1", Timeout: patient})
		if err != nil {
			t.Fatal(err)
		}
		defer one.Close(t.Context())
		all = append(all, one)
	}
	seen(false, false)
	if err := all[0].Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	seen(true, false)
}

// A job whose end could not be kept runs for no gateway any more once its own has swept.
func TestJobWithoutEnd(t *testing.T) {
	all := open(t)
	var runners []*jobs.Runner
	for i, s := range all {
		r, err := jobs.New(t.Context(), jobs.Options{Node: fmt.Sprint("n", i), Store: jobsOf(t, s)})
		if err != nil {
			t.Fatal(err)
		}
		runners = append(runners, r)
	}
	who := &gate.Principal{Owner: gate.Owner{ID: "alice"}}
	end := make(chan struct{})
	running, err := runners[0].Start(t.Context(), func(ctx context.Context, c gate.Call) (gate.Result, error) {
		c.Client.Granted()
		<-end
		return gate.Result{Doc: gate.MustDoc(`{}`)}, nil
	}, gate.Call{Name: "up__slow", Who: who}, 0)
	if err != nil {
		t.Fatal(err)
	}
	lost := jobs.Job{ID: "n0-lost", Owner: who.Owner, Node: "n0", State: jobs.Running, Started: time.Now(), Keep: time.Hour}
	if err := jobsOf(t, all[0]).AddJob(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	for i, r := range runners[1:] {
		if err := r.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if j, err := r.Status(t.Context(), who.Owner, lost.ID); j.State != jobs.Running || err != nil {
			t.Errorf("%d: %+v, %v", i, j, err)
		}
	}
	if err := runners[0].Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if j, err := runners[1].Status(t.Context(), who.Owner, lost.ID); j.State != jobs.Failed || err != nil {
		t.Errorf("%+v, %v", j, err)
	}
	if j, err := runners[1].Status(t.Context(), who.Owner, running.ID); j.State != jobs.Running || err != nil {
		t.Errorf("%+v, %v", j, err)
	}
	close(end)
	if j, err := runners[2].Wait(t.Context(), who.Owner, running.ID); j.State != jobs.Completed || err != nil {
		t.Errorf("%+v, %v", j, err)
	}
}

// What a gateway has begun when it died is free again after some time; a row that another has
// written, or that was changed by hand, is believed by none.
func TestApprovalsOfTheDead(t *testing.T) {
	server := database.Shared(t)
	url := server.New(t)
	s, err := postgres.Open(t.Context(), postgres.Options{URL: url, Secret: secret, Node: "n", Timeout: patient})
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
		if err := all[i%2].Document(fmt.Sprint("d", i%3)).Change(t.Context(), func([]byte) ([]byte, error) { return []byte(fmt.Sprint(i)), nil }); err != nil {
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
	o := postgres.Options{URL: url, Secret: secret, Node: "n", Timeout: patient}
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

func TestPins(t *testing.T) {
	storetest.Pins(t, func(t *testing.T) (all []storetest.Pinner) {
		for _, s := range open(t) {
			dir := t.TempDir()
			p, err := lock.New(lock.Options{Pins: options.Pins{File: filepath.Join(dir, lock.FileName), Dir: dir}})
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Share(func(name string) options.Document { return s.Document(name) }); err != nil {
				t.Fatal(err)
			}
			followed := uint64(0)
			follow := func() error {
				to, err := s.Generation(t.Context())
				if err != nil {
					return err
				}
				changed, err := s.Changed(t.Context(), followed)
				if err == nil {
					_, err = p.Follow("other", changed)
				}
				followed = to
				return err
			}
			approve := func(ctx context.Context, pins []lock.Pin) error {
				_, err := p.Approve(ctx, pins)
				return err
			}
			all = append(all, storetest.Pinner{Pins: p, Approve: approve, Follow: follow})
		}
		return all
	})
}

func TestGrants(t *testing.T) {
	storetest.Grants(t, func(t *testing.T) (all []state.Document) {
		for _, s := range open(t) {
			all = append(all, s.Document(policydata.GrantsName))
		}
		return all
	})
}

func TestLogins(t *testing.T) {
	storetest.Logins(t, func(t *testing.T, o login.Options) (all []storetest.Loginer) {
		for _, s := range open(t) {
			mine := o
			mine.Vault = vault.Shared(func(name string) state.Document { return s.Document(name) }, s.Names, secret)
			mine.Turn = s.Turn
			l, followed := login.New(mine), uint64(0)
			all = append(all, storetest.Loginer{Logins: l, Follow: func() {
				to, err := s.Generation(t.Context())
				if err != nil {
					t.Error(err)
				}
				changed, err := s.Changed(t.Context(), followed)
				if err != nil {
					t.Error(err)
				}
				l.Follow(changed)
				followed = to
			}})
		}
		return all
	})
}
