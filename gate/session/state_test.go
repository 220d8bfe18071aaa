package session_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/session"
)

func keyOf(id string) gate.SessionKey { return gate.SessionKey{Owner: gate.Owner{ID: id}} }

func read(t *testing.T, s *session.Sessions, id, call string, labels ...string) {
	t.Helper()
	if err := s.Learn(t.Context(), keyOf(id), gate.Lesson{Call: call, Labels: gate.NewLabels(labels...)}); err != nil {
		t.Fatal(err)
	}
}

func viewOf(t *testing.T, s *session.Sessions, id string) gate.Session {
	t.Helper()
	return view(t, s, keyOf(id))
}

// one returns the state of the only session.
func one(t *testing.T, s *session.Sessions) session.State {
	t.Helper()
	list := s.List()
	if len(list) != 1 {
		t.Fatalf("sessions %+v, want one", list)
	}
	return list[0]
}

func TestListTellsWhereLabelsCameFrom(t *testing.T) {
	s := session.New(session.Options{})
	viewOf(t, s, "clean")
	read(t, s, "alice", "c1", "untrusted")
	read(t, s, "alice", "c2", "untrusted", "private")
	if _, err := s.Admit(t.Context(), viewOf(t, s, "alice"), &gate.Call{ID: "c3"}, gate.NewLabels("seen")); err != nil {
		t.Fatal(err)
	}
	got := one(t, s)
	want := map[string]string{"untrusted": "c1", "private": "c2", "seen": "c3"}
	if diff := cmp.Diff(want, got.Raised); diff != "" || got.Key != keyOf("alice") || len(got.Labels) != 3 || got.Top {
		t.Errorf("%+v\n%s", got, diff)
	}
}

func TestListIsNoUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := session.New(session.Options{TTL: time.Hour})
		read(t, s, "alice", "c1", "untrusted")
		time.Sleep(40 * time.Minute)
		one(t, s)
		time.Sleep(40 * time.Minute)
		if list := s.List(); len(list) != 0 {
			t.Errorf("sessions %+v after their time", list)
		}
	})
}

func TestReset(t *testing.T) {
	s := session.New(session.Options{})
	read(t, s, "alice", "c1", "untrusted")
	read(t, s, "bob", "c2", "untrusted")
	before := viewOf(t, s, "alice")
	if err := s.Reset(t.Context(), keyOf("alice"), before.Version+1, nil); !errors.Is(err, gate.ErrStale) {
		t.Errorf("reset of what has changed since: %v", err)
	}
	if err := s.Reset(t.Context(), keyOf("alice"), before.Version, nil); err != nil {
		t.Fatal(err)
	}
	if v := viewOf(t, s, "alice"); len(v.Labels) != 0 || v.Top || v.Values.Len() != 0 {
		t.Errorf("after the reset: %+v", v)
	}
	if v := viewOf(t, s, "bob"); len(v.Labels) == 0 {
		t.Error("bob has lost what he has read")
	}
	if err := s.Reset(t.Context(), keyOf("alice"), 0, nil); !errors.Is(err, gate.ErrStale) {
		t.Errorf("reset of a clean session: %v", err)
	}
	// The session has read what a call that was under way reads after it.
	read(t, s, "alice", "c3", "private")
	if v := viewOf(t, s, "alice"); !cmp.Equal(v.Labels, gate.NewLabels("private")) {
		t.Errorf("labels %v", v.Labels)
	}
}

// What is recorded of a reset holds: nothing is if the session has read more, or while it does, and
// what cannot be recorded is not done.
func TestResetIsRecordedIfItHolds(t *testing.T) {
	s := session.New(session.Options{})
	read(t, s, "alice", "c0", "untrusted")
	seen := viewOf(t, s, "alice").Version
	failed := errors.New("the disk is full")
	if err := s.Reset(t.Context(), keyOf("alice"), seen, func() error { return failed }); !errors.Is(err, failed) || viewOf(t, s, "alice").Version != seen {
		t.Errorf("not recorded: %v, %+v", err, viewOf(t, s, "alice"))
	}
	var reading sync.WaitGroup
	for i := range 4 {
		reading.Go(func() {
			for n := range 100 {
				read(t, s, "alice", fmt.Sprint("c", i, "-", n), fmt.Sprint("l", i, "-", n))
			}
		})
	}
	recorded, held := 0, 0
	for range 400 {
		err := s.Reset(t.Context(), keyOf("alice"), viewOf(t, s, "alice").Version, func() error { recorded++; return nil })
		if err == nil {
			held++
		} else if !errors.Is(err, gate.ErrStale) {
			t.Error(err)
		}
	}
	reading.Wait()
	if recorded != held {
		t.Errorf("%d resets were recorded, and %d held", recorded, held)
	}
}

// One that counts as having read everything, since it was dropped, can be reset too.
func TestResetBeyondTheBound(t *testing.T) {
	s := session.New(session.Options{Max: 2})
	for i := range 5 {
		read(t, s, fmt.Sprint(i), "c", "untrusted")
	}
	v := viewOf(t, s, "0")
	if !v.Top {
		t.Fatal("a session that was dropped is not Top")
	}
	if err := s.Reset(t.Context(), keyOf("0"), v.Version, nil); err != nil {
		t.Fatal(err)
	}
	if v := viewOf(t, s, "0"); v.Top || len(v.Labels) > 0 {
		t.Errorf("after the reset: %+v", v)
	}
}

func TestLabelsOutliveTheProcess(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sessions.json")
	o := session.Options{File: file, TTL: time.Hour}
	s := session.New(o)
	read(t, s, "alice", "c1", "untrusted")
	read(t, s, "alice", "c2", "private")
	if _, err := s.Admit(t.Context(), viewOf(t, s, "bob"), &gate.Call{ID: "c3"}, gate.NewLabels("untrusted")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, error %v", info, err)
	}
	// A clock that is set meanwhile changes nothing, forwards or backwards.
	for _, when := range []time.Time{time.Unix(0, 0), time.Now().AddDate(10, 0, 0), time.Now()} {
		if err := os.Chtimes(file, when, when); err != nil {
			t.Fatal(err)
		}
		s = session.New(o)
		if v := viewOf(t, s, "alice"); !cmp.Equal(v.Labels, gate.NewLabels("untrusted", "private")) || v.Top {
			t.Errorf("alice: %+v", v)
		}
		if v := viewOf(t, s, "bob"); !cmp.Equal(v.Labels, gate.NewLabels("untrusted")) {
			t.Errorf("bob: %+v", v)
		}
		if v := viewOf(t, s, "carol"); len(v.Labels) > 0 || v.Top {
			t.Errorf("carol: %+v", v)
		}
		if err := s.Problem(); err != nil {
			t.Error(err)
		}
	}
	for _, state := range s.List() {
		if state.Key == keyOf("alice") && state.Raised["private"] != "c2" {
			t.Errorf("%+v", state)
		}
	}
	// A reset outlives it too, and leaves no trace of a half-written file.
	if err := s.Reset(t.Context(), keyOf("alice"), viewOf(t, s, "alice").Version, nil); err != nil {
		t.Fatal(err)
	}
	if v := viewOf(t, session.New(o), "alice"); len(v.Labels) > 0 || v.Top {
		t.Errorf("alice after the reset: %+v", v)
	}
	if files, err := os.ReadDir(filepath.Dir(file)); err != nil || len(files) != 1 {
		t.Errorf("files %v, error %v", files, err)
	}
}

func TestLabelsOfAFileLastAsLongAsOthers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sessions.json")
	synctest.Test(t, func(t *testing.T) {
		read(t, session.New(session.Options{File: file, TTL: time.Hour}), "alice", "c1", "untrusted")
		s := session.New(session.Options{File: file, TTL: time.Hour})
		time.Sleep(59 * time.Minute)
		if v := viewOf(t, s, "alice"); len(v.Labels) == 0 {
			t.Error("gone too early")
		}
		time.Sleep(time.Hour)
		if v := viewOf(t, s, "alice"); len(v.Labels) > 0 {
			t.Error("still there")
		}
	})
}

// With a file that cannot be read no one knows what a session has read, so it counts as having read
// everything; and Problem says so.
func TestFileThatCannotBeRead(t *testing.T) {
	for name, content := range map[string]string{
		"no JSON":           "{",
		"nothing":           "",
		"another format":    `{"format":2,"sessions":[]}`,
		"another shape":     `{"format":1,"sessions":{"alice":[]}}`,
		"half of a file":    `{"format":1,"sessions":[{"principal":"bob","labels":["untr`,
		"two files":         `{"format":1,"sessions":[]}{"format":1,"sessions":[]}`,
		"more than bounded": strings.Repeat(" ", 33<<20) + `{"format":1,"sessions":[]}`,
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "sessions.json")
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				s := session.New(session.Options{File: file, TTL: time.Hour})
				v := viewOf(t, s, "alice")
				if !v.Top || s.Problem() == nil || !strings.Contains(s.Problem().Error(), file) {
					t.Fatalf("%+v, problem %v", v, s.Problem())
				}
				// So it stays after the next start, also for a session that has not been seen yet.
				read(t, s, "bob", "c1", "untrusted")
				again := session.New(session.Options{File: file, TTL: time.Hour})
				if a, c := viewOf(t, again, "alice"), viewOf(t, again, "carol"); !a.Top || !c.Top {
					t.Errorf("after another start: %v, %v", a, c)
				}
				// A reset cleans one of them.
				if err := again.Reset(t.Context(), keyOf("alice"), viewOf(t, again, "alice").Version, nil); err != nil {
					t.Fatal(err)
				}
				for _, s := range []*session.Sessions{again, session.New(session.Options{File: file, TTL: time.Hour})} {
					if a, c := viewOf(t, s, "alice"), viewOf(t, s, "carol"); a.Top || !c.Top {
						t.Errorf("after the reset: %v, %v", a, c)
					}
				}
				time.Sleep(time.Hour)
				if d := viewOf(t, s, "dave"); d.Top || s.Problem() != nil {
					t.Errorf("after its time: %v, problem %v", d, s.Problem())
				}
			})
		})
	}
}

// A label that cannot be written is not admitted: after the next start it would be forgotten.
func TestFileThatCannotBeWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gone")
	s := session.New(session.Options{File: filepath.Join(dir, "sessions.json")})
	if _, err := s.Admit(t.Context(), viewOf(t, s, "alice"), &gate.Call{ID: "c1"}, gate.NewLabels("untrusted")); err == nil {
		t.Fatal("admitted")
	}
	if err := s.Learn(t.Context(), keyOf("bob"), gate.Lesson{Labels: gate.NewLabels("untrusted")}); err == nil {
		t.Error("learnt")
	}
	if s.Problem() == nil {
		t.Error("no problem")
	}
	if _, err := s.View(t.Context(), keyOf("alice")); err == nil {
		t.Error("viewed")
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := s.View(t.Context(), keyOf("alice")); err != nil || s.Problem() != nil {
		t.Errorf("error %v, problem %v, when it can be written again", err, s.Problem())
	}
	if v := viewOf(t, session.New(session.Options{File: filepath.Join(dir, "sessions.json")}), "alice"); len(v.Labels) == 0 {
		t.Error("what was not written then is not written now")
	}
}

// Sessions beyond the bound were dropped before the end of the process: after it they
// count as having read everything, with all others that are not known.
func TestFileOfSessionsBeyondTheBound(t *testing.T) {
	o := session.Options{File: filepath.Join(t.TempDir(), "sessions.json"), Max: 3}
	s := session.New(o)
	for i := range 6 {
		read(t, s, fmt.Sprint(i), "c", "untrusted")
	}
	s = session.New(o)
	for i := range 6 {
		if v := viewOf(t, s, fmt.Sprint(i)); !v.Tainted() {
			t.Errorf("session %d: %+v", i, v)
		}
	}
}

func TestHammerFile(t *testing.T) {
	o := session.Options{File: filepath.Join(t.TempDir(), "sessions.json")}
	s := session.New(o)
	var wg sync.WaitGroup
	for p := range 8 {
		wg.Go(func() {
			for i := range 20 {
				id := fmt.Sprintf("%d-%d", p, i)
				if err := s.Learn(context.Background(), keyOf(id), gate.Lesson{Call: id, Labels: gate.NewLabels("untrusted")}); err != nil {
					t.Error(err)
					return
				}
				if v, _ := session.New(o).View(context.Background(), keyOf(id)); len(v.Labels) == 0 {
					t.Errorf("%s was learnt, and is not in the file", id)
				}
			}
		})
	}
	wg.Wait()
	if n := len(session.New(o).List()); n != 160 {
		t.Errorf("%d sessions, want 160", n)
	}
}
