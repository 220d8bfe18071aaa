package session_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/gate/session"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
)

// reads has a program read something in a session that is its connection.
func reads(t *testing.T, s *session.Sessions, k gate.SessionKey, program string, labels ...string) {
	t.Helper()
	if err := s.Learn(t.Context(), k, gate.Lesson{Call: "call", Program: program, Connection: true, Labels: gate.NewLabels(labels...)}); err != nil {
		t.Fatal(err)
	}
}

// begins returns the state of a session that a program begins to use.
func begins(t *testing.T, s *session.Sessions, k gate.SessionKey, program string) gate.Session {
	t.Helper()
	s.Begin(k, program)
	return view(t, s, k)
}

// washed returns how a session is laxer than one that has read what is labelled so, "" if it
// is not.
func washed(s gate.Session, labels ...string) string {
	if !s.Top && !s.Labels.Cover(gate.NewLabels(labels...)) {
		return fmt.Sprintf("has the labels %v, want %v", s.Labels, labels)
	}
	for v := range s.Values.Arguments(gate.Doc{}, gate.MustDoc(`{"amount":"98765.43"}`)) {
		if v.Source&provenance.FromUntrusted == 0 {
			return "takes a value for one that was never met"
		}
	}
	return ""
}

// TestNoWash ends a session in each way that there is, and has its program go on.
func TestNoWash(t *testing.T) {
	first, second, stateless := key("first"), key("second"), key("")
	for name, next := range map[string]func(*testing.T, *session.Sessions, session.Options) gate.Session{
		"it initializes again": func(t *testing.T, s *session.Sessions, _ session.Options) gate.Session {
			return begins(t, s, second, "agent")
		},
		"it ends its session first": func(t *testing.T, s *session.Sessions, _ session.Options) gate.Session {
			s.Forget(first)
			return begins(t, s, second, "agent")
		},
		"the gateway restarts": func(t *testing.T, _ *session.Sessions, o session.Options) gate.Session {
			return begins(t, session.New(o), second, "agent")
		},
		"the gateway restarts twice": func(t *testing.T, _ *session.Sessions, o session.Options) gate.Session {
			learn(t, session.New(o), key("of another"), "private")
			return begins(t, session.New(o), second, "agent")
		},
		"it changes to the stateless revision": func(t *testing.T, s *session.Sessions, _ session.Options) gate.Session {
			return begins(t, s, stateless, "agent")
		},
		"it changes revision over a restart": func(t *testing.T, _ *session.Sessions, o session.Options) gate.Session {
			return begins(t, session.New(o), stateless, "agent")
		},
		"it goes there and back": func(t *testing.T, s *session.Sessions, o session.Options) gate.Session {
			begins(t, s, stateless, "agent")
			return begins(t, session.New(o), second, "agent")
		},
		"other sessions are too many": func(t *testing.T, s *session.Sessions, _ session.Options) gate.Session {
			for i := range 40 {
				reads(t, s, key(fmt.Sprint(i)), fmt.Sprint("other ", i), "private")
			}
			return begins(t, s, second, "agent")
		},
		"other sessions are too many, and the gateway restarts": func(t *testing.T, s *session.Sessions, o session.Options) gate.Session {
			for i := range 40 {
				reads(t, s, key(fmt.Sprint(i)), fmt.Sprint("other ", i), "private")
			}
			return begins(t, session.New(o), second, "agent")
		},
		"the scope of sessions changes": func(t *testing.T, _ *session.Sessions, o session.Options) gate.Session {
			o.Inherit = false
			return view(t, session.New(o), stateless)
		},
		"the scope of sessions changes twice": func(t *testing.T, _ *session.Sessions, o session.Options) gate.Session {
			once := o
			once.Inherit = false
			learn(t, session.New(once), stateless, "more")
			return begins(t, session.New(o), second, "agent")
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := session.Options{File: filepath.Join(t.TempDir(), "sessions.json"), Inherit: true, Max: 20}
			s := session.New(o)
			if v := begins(t, s, first, "agent"); len(v.Labels) > 0 || v.Top {
				t.Fatalf("a fresh client begins as %+v", v)
			}
			reads(t, s, first, "agent", "untrusted", "private")
			if why := washed(next(t, s, o), "untrusted", "private"); why != "" {
				t.Error("the session", why)
			}
		})
	}
}

// TestOthersBeginClean: what a program has read is not what others begin with, nor the same
// program of another principal.
func TestOthersBeginClean(t *testing.T) {
	o := session.Options{File: filepath.Join(t.TempDir(), "sessions.json"), Inherit: true}
	s := session.New(o)
	reads(t, s, key("first"), "agent", "untrusted")
	for _, s := range []*session.Sessions{s, session.New(o)} {
		for k, program := range map[gate.SessionKey]string{
			key("second"): "editor", key(""): "editor",
			{Owner: gate.Owner{ID: "bob"}, ID: "third"}:                 "agent",
			{Owner: gate.Owner{Tenant: "x", ID: "alice"}, ID: "fourth"}: "agent",
		} {
			if v := begins(t, s, k, program); len(v.Labels) > 0 || v.Top || washed(v) == "" {
				t.Errorf("%s of %+v begins as %+v", program, k, v)
			}
		}
	}
}

// TestRecordLastsAsLongAsItsSessions: labels end without use, as of the last use of any session.
func TestRecordLastsAsLongAsItsSessions(t *testing.T) {
	for _, k := range []gate.SessionKey{key("first"), key("")} {
		synctest.Test(t, func(t *testing.T) {
			s := session.New(session.Options{Inherit: true, TTL: time.Hour})
			reads(t, s, k, "agent", "untrusted")
			for range 5 {
				time.Sleep(40 * time.Minute)
				s.Begin(key(""), "editor")
				if k.ID == "" {
					s.Begin(k, "agent")
				}
				view(t, s, k)
			}
			if why := washed(begins(t, s, key("second"), "agent"), "untrusted"); why != "" {
				t.Error("the session", why)
			}
			time.Sleep(time.Hour)
			if v := begins(t, s, key("third"), "agent"); len(v.Labels) > 0 || v.Top {
				t.Errorf("after an hour without use it begins as %+v", v)
			}
		})
	}
}

// TestResetReachesTheRecord: a reset of a session takes what it has read also from what the
// next one of its program begins with, but for what other sessions of that have read.
func TestResetReachesTheRecord(t *testing.T) {
	o := session.Options{File: filepath.Join(t.TempDir(), "sessions.json"), Inherit: true}
	s := session.New(o)
	reset := func(k gate.SessionKey) {
		t.Helper()
		if err := s.Reset(t.Context(), k, view(t, s, k).Version, nil); err != nil {
			t.Fatal(err)
		}
	}
	reads(t, s, key("first"), "agent", "untrusted")
	reads(t, s, key("second"), "agent", "private")
	reset(key("first"))
	if v := begins(t, s, key("third"), "agent"); !slices.Equal(v.Labels, gate.NewLabels("private")) {
		t.Errorf("it begins with %v", v.Labels)
	}
	reset(key("second"))
	reset(key("third"))
	for _, s := range []*session.Sessions{s, session.New(o)} {
		if v := begins(t, s, key("fourth"), "agent"); len(v.Labels) > 0 {
			t.Errorf("it begins with %v", v.Labels)
		}
	}
	reads(t, s, key(""), "agent", "untrusted")
	reset(key(""))
	if v := begins(t, s, key(""), "agent"); len(v.Labels) > 0 {
		t.Errorf("a session that was reset has %v", v.Labels)
	}
	if n := len(s.List()); n != 0 {
		t.Errorf("%d sessions are listed", n)
	}
}

// TestHistoriesOfPrograms has programs begin sessions, read and go on over restarts, in random
// order. What a program has read it never begins without; what it has not read, nor a program
// with which it shares a session, it begins without.
func TestHistoriesOfPrograms(t *testing.T) {
	rnd := rand.New(rand.NewPCG(seed.Of(t), 0))
	for range 60 {
		o := session.Options{File: filepath.Join(t.TempDir(), "sessions.json"), Inherit: true}
		s := session.New(o)
		var history []string
		read := make(map[string]gate.Labels) // by program
		open := make(map[string]string)      // session by program; "" for the stateless revision
		next := 0
		for range 60 {
			program := fmt.Sprint("p", rnd.IntN(4))
			shares := program < "p2" // both use the stateless revision at times
			id, has := open[program]
			switch act := rnd.IntN(8); {
			case act == 0:
				s, open = session.New(o), make(map[string]string)
				history = append(history, "restart")
			case act < 3 || !has:
				next++
				id = fmt.Sprint("s", next)
				if shares && rnd.IntN(2) == 0 {
					id = ""
				}
				v := begins(t, s, key(id), program)
				history = append(history, fmt.Sprintf("%s begins %q with %v", program, id, v.Labels))
				own := read[program]
				if id == "" { // which goes on, with the values that it has met
					v.Values = v.Values.Lost()
				}
				if why := washed(v, own...); why != "" && len(own) > 0 || !shares && !slices.Equal(own, v.Labels) {
					t.Fatalf("%s: %q %s; it has read %v:\n%s", program, id, why, own, strings.Join(history, "\n"))
				}
				open[program] = id
			default:
				label := []string{"untrusted", "private", "more"}[rnd.IntN(3)]
				if id == "" {
					s.Begin(key(id), program) // as at each request
				}
				reads(t, s, key(id), program, label)
				read[program] = read[program].Join(gate.NewLabels(label))
				history = append(history, program+" reads what is "+label)
			}
		}
	}
}
