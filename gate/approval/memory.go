package approval

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/fair"
)

// The states of an approval, in the order in which they can follow each other. A
// record of each is kept before it holds.
const (
	StateRequested = "requested"
	StateApproved  = "approved"
	StateDenied    = "denied"
	StateExpired   = "expired"
	StateRedeemed  = "redeemed" // by the call of the record
)

// Bounds of what is kept. People answer a few questions a minute: a principal with a hundred open
// questions is not being answered, and reading more would not help.
const (
	maxOpen      = 1000     // questions that are not closed, of all principals
	maxOpenOfOne = 100      // of one caller
	maxBytes     = 64 << 20 // arguments of them all
	maxClosed    = 1000     // kept until they expire, to know what is used again
)

// A Request is a question that was asked, and what has become of it.
type Request struct {
	ID       string
	Question gate.Question // the call without its client
	State    string        // gate.StateRequested, and so on
	Asked    time.Time
	Expires  time.Time
	By       string // who answered, through which channel
	Auth     string // how they were verified, as of gate.Principal.Auth
	Note     string // what they said of a denial
	Closed   string // how the client closed the question without a decision filled in, such as "declined"
	// Destinations are those that the answer is for, too, until the session of the call ends.
	Destinations []string
	InSet        bool // its call was approved in a set
}

// entry is a request as it is kept in memory.
type entry struct {
	Kept
	binding  string
	deadline time.Duration // by the monotonic clock
	busy     bool          // a record is being written that must hold before the next state does
	answered chan struct{} // closed once there is nothing to wait for
	shown    time.Duration // when its client was last asked, by the monotonic clock
}

func (e *entry) size() int64 { return int64(len(e.Question.Call.Args.Raw())) }

// clock tells the time twice: on the wall, which people set, and since some moment, which they do
// not. If either says that something has expired, it has.
type clock struct {
	wall    func() time.Time
	elapsed func() time.Duration
}

func systemClock() clock {
	start := time.Now()
	return clock{func() time.Time { return time.Now().Round(0) }, func() time.Duration { return time.Since(start) }}
}

func (c clock) expired(e *entry) bool {
	return c.elapsed() >= e.deadline || !c.wall().Before(e.Expires)
}

// memory is the [Store] of one gateway. None of its methods but Wait takes time.
type memory struct {
	clock clock

	mu        sync.Mutex
	byID      map[string]*entry
	byBinding map[string]*entry           // the newest
	sets      map[string][]*entry         // calls that were approved in sets, by setBinding
	open      fair.Bound[gate.SessionKey] // entries, by caller
	bytes     fair.Bound[gate.SessionKey] // of their arguments
	closed    []*entry
	ended     bool
}

var _ Store = (*memory)(nil)

// NewMemory returns the [Store] of one gateway, for tests of what all stores do.
func NewMemory() Store { return newMemory(systemClock()) }

func newMemory(c clock) *memory {
	m := &memory{clock: c, byID: map[string]*entry{}, byBinding: map[string]*entry{}, sets: map[string][]*entry{}}
	m.open.Most, m.bytes.Most = maxOpen, maxBytes
	return m
}

// find returns the entry of an id or of a binding, and nil if there is none that
// has not expired.
func (m *memory) find(entries map[string]*entry, key string) *entry {
	e := entries[key]
	if e == nil || m.clock.expired(e) {
		return nil
	}
	return e
}

func (m *memory) Ask(_ context.Context, q gate.Question, id string, expire time.Duration) (r Request, fresh bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	binding := q.Binding()
	if e := m.find(m.byBinding, binding); e != nil && e.Serves(q.Call.ID) {
		return e.Request, false, nil
	}
	if m.ended {
		return Request{}, false, errEnding
	}
	caller, size := q.Call.Caller(), int64(len(q.Call.Args.Raw()))
	m.bytes.Visit(caller, time.Now())
	all := int64(0)
	if !m.open.May(caller, 1) || !m.bytes.May(caller, size) { // a caller that has few of them may go beyond
		all = maxOpen
	}
	if err := TooMany(m.open.Has(caller)+int64(len(q.Set)), all, 0); err != nil {
		return Request{}, false, err
	}
	e := &entry{
		Kept: NewKept(id, q, m.clock.wall(), expire), binding: binding, deadline: m.clock.elapsed() + expire, busy: true, answered: make(chan struct{}),
	}
	m.byID[e.ID], m.byBinding[binding] = e, e
	m.open.Take(caller, 1)
	m.bytes.Take(caller, size)
	return e.Request, true, nil
}

func (m *memory) Asked(_ context.Context, id string, recorded bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.byID[id]
	if e == nil {
		return nil
	}
	e.busy, e.Known = false, recorded
	if !recorded {
		m.close(e, StateExpired)
		m.forget(e)
	}
	return nil
}

func (m *memory) Announced(_ context.Context, q gate.Question) (Request, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.sets) == 0 || len(q.Set) > 0 {
		return Request{}, false, nil
	}
	for _, e := range m.sets[SetBinding(q)] {
		if !m.clock.expired(e) && e.Usable(q.Call.ID) {
			return e.Request, true, nil
		}
	}
	return Request{}, false, nil
}

func (m *memory) Announce(_ context.Context, set string, all []Request) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	of := m.byID[set]
	if of == nil {
		return errExpired
	}
	for _, r := range all {
		e := &entry{Kept: Kept{Request: r, Known: true}, binding: SetBinding(r.Question), deadline: of.deadline, answered: make(chan struct{})}
		close(e.answered)
		m.byID[e.ID], m.sets[e.binding] = e, append(m.sets[e.binding], e)
		caller := e.Question.Call.Caller()
		m.open.Take(caller, 1)
		m.bytes.Take(caller, e.size())
	}
	return nil
}

func (m *memory) Get(_ context.Context, id string) (Request, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.find(m.byID, id)
	if e == nil {
		return Request{}, false, nil
	}
	return e.Request, true, nil
}

func (m *memory) Show(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.byID[id]; e != nil {
		e.shown = m.clock.elapsed()
	}
	return nil
}

func (m *memory) Shown(_ context.Context, id string) (time.Duration, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.byID[id]; e != nil {
		return m.clock.elapsed() - e.shown, nil
	}
	return 0, nil
}

func (m *memory) Closed(_ context.Context, id, word string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.byID[id]; e != nil {
		e.Request.Closed = word
	}
	return nil
}

func (m *memory) Answer(_ context.Context, id string) (Request, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.find(m.byID, id)
	if e == nil {
		return Request{}, Unknown(id)
	}
	if err := e.Answerable(e.busy); err != nil {
		return Request{}, err
	}
	e.busy = true
	return e.Request, nil
}

func (m *memory) Answered(_ context.Context, r Request, recorded bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.byID[r.ID]
	if e == nil {
		return refuse(fmt.Sprintf("approval %s has expired", r.ID))
	}
	e.busy = false
	if !recorded {
		return nil
	}
	if err := e.Settle(r, m.clock.expired(e)); err != nil {
		return err
	}
	close(e.answered)
	if e.State == StateDenied {
		m.finish(e)
	}
	return nil
}

func (m *memory) Wait(ctx context.Context, id string) {
	m.mu.Lock()
	e := m.byID[id]
	m.mu.Unlock()
	if e == nil {
		return
	}
	select {
	case <-e.answered:
	case <-ctx.Done():
	}
}

func (m *memory) Redeem(_ context.Context, id, call string) (r Request, again bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.byID[id]
	if e == nil {
		return Request{}, false, errExpired
	}
	again, err = e.Redeem(call, m.clock.expired(e))
	if err == nil && !again {
		m.finish(e)
	}
	return e.Request, again, err
}

func (m *memory) Spoil(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.byID[id]; e != nil {
		e.User = ""
	}
	return nil
}

func (m *memory) List(context.Context) ([]Request, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []Request
	for _, e := range m.byID {
		if e.Waits() && !m.clock.expired(e) {
			all = append(all, e.Request)
		}
	}
	slices.SortFunc(all, func(a, b Request) int { return cmp.Or(a.Asked.Compare(b.Asked), cmp.Compare(a.ID, b.ID)) })
	return all, nil
}

func (m *memory) Expire(context.Context) ([]Request, error) { return m.expire(false), nil }

func (m *memory) End(context.Context) ([]Request, error) { return m.expire(true), nil }

// expire removes what has expired, or everything for good.
func (m *memory) expire(everything bool) []Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = m.ended || everything
	var ended []Request
	for _, e := range m.byID {
		if !everything && !m.clock.expired(e) {
			continue
		}
		if e.Open() {
			m.close(e, StateExpired)
			ended = append(ended, e.Request)
		}
		m.forget(e)
	}
	return ended
}

// close ends an open entry in a state. Callers hold mu, here and below.
func (m *memory) close(e *entry, state string) {
	if e.State == StateRequested {
		close(e.answered)
	}
	e.State = state
	m.finish(e)
}

// finish bounds the entries that are not open any more by one that just ended.
func (m *memory) finish(e *entry) {
	caller := e.Question.Call.Caller()
	m.open.Give(caller, 1)
	m.bytes.Give(caller, e.size())
	m.closed = append(m.closed, e)
	if len(m.closed) > maxClosed {
		m.forget(m.closed[0])
	}
}

// forget removes a closed entry.
func (m *memory) forget(e *entry) {
	delete(m.byID, e.ID)
	if e.InSet {
		left := slices.DeleteFunc(m.sets[e.binding], func(o *entry) bool { return o == e })
		if m.sets[e.binding] = left; len(left) == 0 {
			delete(m.sets, e.binding)
		}
	}
	if m.byBinding[e.binding] == e {
		delete(m.byBinding, e.binding)
	}
	for i, one := range m.closed {
		if one == e {
			m.closed = append(m.closed[:i], m.closed[i+1:]...)
			return
		}
	}
}

// maxID is how long an id can be, in bytes.
const maxID = 128

func cut(id string) string { return id[:min(len(id), maxID)] }

// newID returns a handle that no one can guess, which begins with the node.
func newID(node string) string { return node + "-" + strings.ToLower(rand.Text()[:16]) }

func refuse(reason string) error { return &gate.NotApproved{Reason: reason} }

var errEnding = refuse("the gateway is shutting down")
