package session

import (
	"container/list"
	"context"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/gate"
)

// maxAdmitted is how many admissions are remembered, over all sessions, to know
// a call that is admitted again. It is what a busy gateway admits in a second. A
// call that comes back later is admitted like a new one: it is held against the
// labels of then.
const maxAdmitted = 4096

// Options configure [Sessions].
type Options struct {
	// Max is how many sessions that have labels are kept. Zero or less means
	// 10,000; a session takes about half a kilobyte.
	Max int
	// TTL is the time without use after which a session begins anew. Zero or
	// less means 1 h.
	TTL time.Duration
}

// Sessions keeps what sessions have read. Use it from several goroutines.
type Sessions struct {
	o Options

	mu       sync.Mutex
	kept     map[gate.SessionKey]*list.Element
	used     *list.List // of *entry, the last used one in front
	dropped  filter
	admitted admissions
}

// entry is a session that is kept: one with labels, or Top.
type entry struct {
	state gate.Session
	used  time.Time
}

var _ gate.Sessions = (*Sessions)(nil)

// New returns a Sessions without sessions.
func New(o Options) *Sessions {
	if o.Max <= 0 {
		o.Max = 10_000
	}
	if o.TTL <= 0 {
		o.TTL = time.Hour
	}
	return &Sessions{
		o: o, kept: map[gate.SessionKey]*list.Element{}, used: list.New(),
		dropped: newFilter(o.TTL), admitted: admissions{at: map[admission]struct{}{}},
	}
}

// View returns the state of a session. It counts as use. The error is nil.
func (s *Sessions) View(_ context.Context, k gate.SessionKey) (gate.Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view(k), nil
}

// Admit brings c into the order of the session that v is a view of. It is stale
// if the session has a label that v does not have; versions do not matter. The
// error is nil or [gate.ErrStale].
func (s *Sessions) Admit(_ context.Context, v gate.Session, c *gate.Call, labels gate.Labels) (gate.Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.view(v.Key)
	a := admission{v.Key, c.ID}
	if !s.admitted.has(a) {
		if now.Top && !v.Top || !v.Labels.Cover(now.Labels) {
			return now, gate.ErrStale
		}
		s.admitted.add(a)
	}
	// The session may have ended since it was viewed. The call was decided on
	// what it had read, and goes on with that.
	return s.raise(now, v.Labels.Join(labels), v.Top), nil
}

// Learn adds labels to a session. The error is nil.
func (s *Sessions) Learn(_ context.Context, k gate.SessionKey, _ string, labels gate.Labels, _ gate.Doc) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.raise(s.view(k), labels, false)
	return nil
}

// view returns the state of now and marks it as used. Callers hold mu, here and
// below.
func (s *Sessions) view(k gate.SessionKey) gate.Session {
	now := time.Now()
	if at, ok := s.kept[k]; ok {
		e := at.Value.(*entry)
		if now.Sub(e.used) < s.o.TTL {
			e.used = now
			s.used.MoveToFront(at)
			return e.state
		}
		s.remove(at)
	}
	if s.dropped.has(k, now) {
		return s.keep(gate.Session{Key: k, Version: 1, Top: true}, now)
	}
	return gate.Session{Key: k}
}

// raise adds to the state of a session, which was viewed under the same lock.
func (s *Sessions) raise(state gate.Session, labels gate.Labels, top bool) gate.Session {
	joined := state.Labels.Join(labels)
	if joined.TooMany() {
		joined, top = state.Labels, true
	}
	if len(joined) == len(state.Labels) && (state.Top || !top) {
		return state
	}
	state.Labels, state.Top = joined, state.Top || top
	state.Version++
	return s.keep(state, time.Now())
}

// keep keeps a state, and drops the session that was used longest ago if there
// are too many.
func (s *Sessions) keep(state gate.Session, now time.Time) gate.Session {
	if at, ok := s.kept[state.Key]; ok {
		at.Value.(*entry).state = state
		return state
	}
	s.kept[state.Key] = s.used.PushFront(&entry{state, now})
	for oldest := s.used.Back(); ; oldest = s.used.Back() {
		e := oldest.Value.(*entry)
		expired := now.Sub(e.used) >= s.o.TTL
		if !expired && s.used.Len() <= s.o.Max {
			return state
		}
		s.remove(oldest)
		if !expired {
			s.dropped.add(e.state.Key, now)
		}
	}
}

func (s *Sessions) remove(at *list.Element) {
	delete(s.kept, s.used.Remove(at).(*entry).state.Key)
}

// admission is one call in one session.
type admission struct {
	session gate.SessionKey
	call    string
}

// admissions are the last maxAdmitted admissions.
type admissions struct {
	at   map[admission]struct{}
	ring []admission
	next int // in ring, the oldest once it is full
}

func (as *admissions) has(a admission) bool {
	_, ok := as.at[a]
	return ok
}

func (as *admissions) add(a admission) {
	as.at[a] = struct{}{}
	if len(as.ring) < maxAdmitted {
		as.ring = append(as.ring, a)
		return
	}
	delete(as.at, as.ring[as.next])
	as.ring[as.next] = a
	as.next = (as.next + 1) % maxAdmitted
}
