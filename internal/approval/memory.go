package approval

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/escaped"
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

// Bounds of what is kept. People answer a few questions a minute: whoever has a
// hundred open is not being answered, and reading more would not help.
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
}

// entry is a request as it is kept.
type entry struct {
	Request
	binding  string
	deadline time.Duration // by the monotonic clock
	known    bool          // the question is recorded: people see it, and may answer
	busy     bool          // a record is being written that must hold before the next state does
	user     string        // ID of the call that has redeemed it
	answered chan struct{} // closed once there is nothing to wait for
	shown    time.Duration // when its client was last asked, by the monotonic clock
	set      bool          // its call was approved in a set
}

// open reports whether the entry may still let a call pass.
func (e *entry) open() bool {
	return e.State == StateRequested || e.State == StateApproved
}

func (e *entry) size() int64 { return int64(len(e.Question.Call.Args.Raw())) }

// clock tells the time twice: on the wall, which people set, and since some
// moment, which they do not. What either calls expired has expired.
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

// memory keeps entries. Each method is one step that nobody else comes into; none
// does anything that takes its time.
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
	work      sync.WaitGroup // that goes on beside calls; none begins once it has ended
}

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

// ask returns the entry of a question for the given call: one that is there, or a
// new one, in which case the caller keeps its record and then tells [memory.asked].
func (m *memory) ask(q gate.Question, newID func() string, expire time.Duration) (e *entry, fresh bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	binding := q.Binding()
	e = m.find(m.byBinding, binding)
	if e != nil && (e.State != StateRedeemed || e.user == q.Call.ID) {
		return e, false, nil
	}
	caller, size := q.Call.Caller(), int64(len(q.Call.Args.Raw()))
	m.bytes.Visit(caller, time.Now())
	switch {
	case m.ended:
		return nil, false, refuse("the gateway is shutting down")
	case m.open.Has(caller)+int64(len(q.Set)) >= maxOpenOfOne:
		return nil, false, refuse(fmt.Sprintf("%d calls of yours wait for approval already; call again once they are answered", maxOpenOfOne))
	case !m.open.May(caller, 1) || !m.bytes.May(caller, size):
		return nil, false, refuse("too many calls wait for approval already; call again once they are answered")
	}
	now := m.clock.wall()
	e = &entry{
		Request:  Request{ID: newID(), Question: q, State: StateRequested, Asked: now, Expires: now.Add(expire)},
		binding:  binding,
		deadline: m.clock.elapsed() + expire,
		busy:     true,
		answered: make(chan struct{}),
	}
	m.byID[e.ID], m.byBinding[binding] = e, e
	m.open.Take(caller, 1)
	m.bytes.Take(caller, size)
	return e, true, nil
}

// announced returns the approval that a call has in a set; nil if it has none that it may use.
func (m *memory) announced(q gate.Question) *entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.sets) == 0 || len(q.Set) > 0 {
		return nil
	}
	for _, e := range m.sets[setBinding(q)] {
		if !m.clock.expired(e) && (e.State == StateApproved || e.State == StateRedeemed && e.user == q.Call.ID) {
			return e
		}
	}
	return nil
}

// announce keeps the approvals of the calls of a set.
func (m *memory) announce(all []*entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range all {
		m.byID[e.ID], m.sets[e.binding] = e, append(m.sets[e.binding], e)
		caller := e.Question.Call.Caller()
		m.open.Take(caller, 1)
		m.bytes.Take(caller, e.size())
	}
}

// asked ends what ask began: the question stands, unless it could not be recorded.
func (m *memory) asked(e *entry, recorded bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e.busy, e.known = false, recorded
	if !recorded {
		m.close(e, StateExpired)
		m.forget(e)
	}
}

// get returns the entry with an id, and nil if there is none that has not expired.
func (m *memory) get(id string) *entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.find(m.byID, id)
}

// show notes that the client is asked now.
func (m *memory) show(e *entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e.shown = m.clock.elapsed()
}

// closedItself notes that the client closes the question by itself, if it does, and reports so.
func (m *memory) closedItself(e *entry, a gate.Answer, by *gate.Call) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	word := closed(a, m.clock.elapsed()-e.shown, by)
	if word != "" {
		e.Closed = word
	}
	return word != ""
}

// answer takes the right to answer a question. The caller keeps the record of the
// state to and then tells [memory.answered].
func (m *memory) answer(id string) (Request, *entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.find(m.byID, id)
	switch {
	case e == nil || !e.known:
		return Request{}, nil, refuse(fmt.Sprintf("there is no approval %s, or it has expired", escaped.Text(cut(id))))
	case e.State != StateRequested:
		return Request{}, nil, refuse(fmt.Sprintf("approval %s is %s already", e.ID, e.State))
	case e.busy:
		return Request{}, nil, refuse(fmt.Sprintf("approval %s is being answered at this moment", e.ID))
	}
	e.busy = true
	return e.Request, e, nil
}

// answered ends what answer began: r holds the new state, unless it could not be
// recorded. It is an error if the question has ended meanwhile.
func (m *memory) answered(e *entry, r Request, recorded bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	e.busy = false
	if !recorded {
		return nil
	}
	if e.State != StateRequested || m.clock.expired(e) {
		return refuse(fmt.Sprintf("approval %s has expired", e.ID))
	}
	e.By, e.Auth, e.Note, e.Closed, e.Destinations = r.By, r.Auth, r.Note, r.Closed, r.Destinations
	if r.State == StateDenied {
		m.close(e, StateDenied)
		return nil
	}
	e.State = StateApproved
	close(e.answered)
	return nil
}

// redeem uses up an approval for a call. Of several calls one gets it; that one
// gets it again.
func (m *memory) redeem(e *entry, call string) (r Request, again bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.clock.expired(e) || e.State == StateExpired:
		return e.Request, false, refuse("the approval has expired")
	case e.State == StateRedeemed && e.user == call && call != "":
		return e.Request, true, nil
	case e.State == StateRedeemed:
		return e.Request, false, refuse("the approval was for one call, and another call has used it")
	case e.State == StateDenied && e.Closed != "":
		return e.Request, false, refuse("the client declined this call")
	case e.State == StateDenied:
		return e.Request, false, refuse("a person has denied this call")
	case e.State != StateApproved:
		return e.Request, false, refuse("nobody has approved this call")
	}
	e.user = call
	m.close(e, StateRedeemed)
	return e.Request, false, nil
}

// spoil makes a redeemed approval one that no call can redeem again.
func (m *memory) spoil(e *entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e.user = ""
}

// request returns an entry's request, as it is now.
func (m *memory) request(e *entry) Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return e.Request
}

// list returns the questions that nobody has answered, the oldest first.
func (m *memory) list() []Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []Request
	for _, e := range m.byID {
		if e.known && e.State == StateRequested && !m.clock.expired(e) {
			all = append(all, e.Request)
		}
	}
	slices.SortFunc(all, func(a, b Request) int { return cmp.Or(a.Asked.Compare(b.Asked), cmp.Compare(a.ID, b.ID)) })
	return all
}

// expire removes what has expired, or everything for good, and returns what was
// open until now.
func (m *memory) expire(everything bool) []Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = m.ended || everything
	var ended []Request
	for _, e := range m.byID {
		if !everything && !m.clock.expired(e) {
			continue
		}
		if e.open() {
			m.close(e, StateExpired)
			ended = append(ended, e.Request)
		}
		m.forget(e)
	}
	return ended
}

// begin begins work beside a call, and reports whether it may.
func (m *memory) begin() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.ended {
		m.work.Add(1)
	}
	return !m.ended
}

// close ends an open entry in a state. Callers hold mu, here and below.
func (m *memory) close(e *entry, state string) {
	if e.State == StateRequested {
		close(e.answered)
	}
	caller := e.Question.Call.Caller()
	m.open.Give(caller, 1)
	m.bytes.Give(caller, e.size())
	e.State = state
	m.closed = append(m.closed, e)
	if len(m.closed) > maxClosed {
		m.forget(m.closed[0])
	}
}

// forget removes a closed entry.
func (m *memory) forget(e *entry) {
	delete(m.byID, e.ID)
	if e.set {
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

// newID returns a handle that nobody can guess, which begins with the node.
func newID(node string) string { return node + "-" + strings.ToLower(rand.Text()[:16]) }

func refuse(reason string) error { return &gate.NotApproved{Reason: reason} }
