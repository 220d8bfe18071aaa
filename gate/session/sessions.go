package session

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/provenance"
)

// maxAdmitted is how many admissions are remembered, over all sessions, to know
// a call that is admitted again. It is what a busy gateway admits in a second. A
// call that comes back later is admitted like a new one: it is held against the
// labels of then.
const maxAdmitted = 4096

// sampled is how many sessions are looked at to find one that was not used for long: to
// keep them in order would have each call wait for all others.
const sampled = 32

// Options configure [Sessions].
type Options struct {
	// Max is how many sessions that have labels are kept. Zero or less means
	// 10,000; a session takes about half a kilobyte. Beyond that one is dropped that was
	// used longer ago than most.
	Max int
	// TTL is the time without use after which a session begins anew. Zero or
	// less means 1 h.
	TTL time.Duration
	// Values is how many values are kept of what one session has met. A session
	// that meets more is Top. Zero means 16,384, negative keeps none; a value
	// takes some 20 bytes.
	Values int
	// AllValues is how many are kept of all sessions together. Beyond that sessions are
	// dropped likewise. Zero or less means 1,048,576.
	AllValues int
	// File keeps labels over the end of the process, readable only for its owner; see
	// [Sessions.Problem]. Empty keeps none.
	File string
	// Inherit lets sessions begin with what their program has read: see [Sessions.Begin].
	// Without it a principal has one session, which every program uses.
	Inherit bool
	// Shared keeps labels for several gateways; nil if this is the only one. It takes the place
	// of File, and sessions of it do not inherit.
	Shared Shared
	// Reader names this gateway, as long as it runs, among those that use Shared.
	Reader string
	// Follow brings the gateway up to a generation of Shared. It is called for each call.
	Follow func(ctx context.Context, generation uint64) error
	// Followed is the generation that the gateway was last brought up to. A call that was decided on
	// before a change of another gateway was made here is decided on again.
	Followed func() uint64
}

// ErrUnknown says that a session is not kept: there is none of that name, or it has read
// nothing.
var ErrUnknown = errors.New("the gateway has no such session")

// Sessions keeps what sessions have read. Use it from several goroutines.
type Sessions struct {
	o       Options
	file    *keptFile // nil without Options.File
	started time.Time

	moving sync.RWMutex // held alone to give sessions away, or take them; over learning if several gateways share them

	mu       sync.RWMutex // held alone to change anything but when a session was used
	kept     map[key]*entry
	values   int // kept of all sessions
	dropped  filter
	lost     time.Time      // until then a session that is not kept may have been; see load
	forgot   time.Time      // when one was dropped that outlives the process, or that others know
	raised   uint64         // how often a session got labels
	rises    uint64         // the same of those that the file has
	admitted [16]admissions // by the last character of the call, so that few wait for each other
}

// A key names what is kept: a session, or the record of a program of a principal.
type key struct {
	gate.SessionKey
	program bool // ID names a program: see [Sessions.Begin]
}

// entryOf returns an entry for a state, without a known call.
func (s *Sessions) entryOf(k key, state gate.Session, now time.Time) *entry {
	e := &entry{key: k, state: state, began: now}
	e.use(s, now)
	return e
}

// entry is a session that is kept: one with labels, with values, or Top; or one that
// was reset, while others of its kind count as Top.
type entry struct {
	key   key
	state gate.Session
	began time.Time
	used  atomic.Int64 // time.Duration after Sessions.started
	// raised is the call with which each label came, and with "" that with which the session became
	// Top. "" means that nothing is known of the call any more.
	raised map[string]string
	reset  bool
	// synced says that resets is how often all gateways had reset the session, as of [Known].
	synced bool
	resets uint64
	home   uint64 // as of [Known], too
	// programs have used the session. The record of the last one lasts as long as the session.
	programs []string
	record   *entry
	// connection says that the session ends with its connection: only its programs' records
	// outlive the process.
	connection bool
}

func (e *entry) use(s *Sessions, now time.Time) {
	e.used.Store(int64(now.Sub(s.started)))
	if e.record != nil {
		e.record.used.Store(e.used.Load())
	}
}

func (e *entry) lastUsed(s *Sessions) time.Time {
	return s.started.Add(time.Duration(e.used.Load()))
}

// fresh reports whether the session is still the one that it was.
func (e *entry) fresh(s *Sessions, now time.Time) bool { return now.Sub(e.lastUsed(s)) < s.o.TTL }

var _ gate.Sessions = (*Sessions)(nil)

// New returns a Sessions with the sessions that Options.File has kept.
func New(o Options) *Sessions {
	if o.Max <= 0 {
		o.Max = 10_000
	}
	if o.TTL <= 0 {
		o.TTL = usualTTL
	}
	if o.Values == 0 {
		o.Values = 16_384
	}
	if o.AllValues <= 0 {
		o.AllValues = 1 << 20
	}
	if o.Shared != nil {
		o.File, o.Inherit = "", false
	}
	s := &Sessions{o: o, started: time.Now(), kept: map[key]*entry{}, dropped: newFilter(o.TTL)}
	if o.File != "" {
		s.file = &keptFile{path: o.File}
		s.load()
	}
	return s
}

// View returns the state of a session. It counts as use. The error says that
// Options.File cannot be written.
func (s *Sessions) View(_ context.Context, k gate.SessionKey) (gate.Session, error) {
	s.mu.RLock()
	state, known := s.glance(k)
	rises := s.rises
	s.mu.RUnlock()
	if !known {
		s.mu.Lock()
		state, rises = s.view(key{SessionKey: k}), s.rises
		s.mu.Unlock()
	}
	if s.o.Shared != nil {
		state.Generation = s.o.Followed()
	}
	return state, s.save(rises)
}

// glance is view where that changes nothing but when the session was used, which is not
// known else. Callers hold mu, for reading at least, and so do not wait for each other.
func (s *Sessions) glance(k gate.SessionKey) (state gate.Session, known bool) {
	e, kept := s.kept[key{SessionKey: k}]
	if !kept {
		return gate.Session{Key: k}, s.dropped.unused() && s.lost.IsZero()
	}
	now := time.Now()
	if !e.fresh(s, now) {
		return gate.Session{}, false
	}
	e.use(s, now)
	return e.state, true
}

// Admit brings c into the order of the session that v is a view of. It is stale
// if the session has a label that v does not have, or has met one of the call's
// arguments in untrusted content since; versions do not matter. The error is
// [gate.ErrStale], or says that Options.File cannot be written.
func (s *Sessions) Admit(ctx context.Context, v gate.Session, c *gate.Call, labels gate.Labels) (gate.Session, error) {
	if s.o.Shared != nil {
		return s.admitShared(ctx, v, c, labels)
	}
	now, rises, err := s.admit(v, c, labels)
	if err != nil {
		return now, err
	}
	return now, s.save(rises)
}

// admit also returns which rise of labels has to be in the file.
func (s *Sessions) admit(v gate.Session, c *gate.Call, labels gate.Labels) (gate.Session, uint64, error) {
	a := admission{v.Key, c.ID}
	l := lesson{call: c.ID, program: c.Program(), connection: c.Connected(), labels: v.Labels.Join(labels), top: v.Top}
	if now, rises, ok := s.admitKnown(v, a, l, c.Args); ok {
		return now, rises, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.view(key{SessionKey: v.Key})
	if !s.admissions(a).has(a) {
		if stale(v, now, c.Args) {
			return now, 0, gate.ErrStale
		}
		s.admissions(a).add(a)
	}
	// The session may have ended since it was viewed. The call was decided on
	// what it had read, and goes on with that.
	now = s.learn(v.Key, l)
	return now, s.rises, nil
}

// admitKnown admits a call that teaches its session nothing; it is false if that is not so,
// or not known.
func (s *Sessions) admitKnown(v gate.Session, a admission, l lesson, args gate.Doc) (gate.Session, uint64, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	now, known := s.glance(v.Key)
	if !known || stale(v, now, args) || l.top && !now.Top || !now.Labels.Cover(l.labels) {
		return gate.Session{}, 0, false
	}
	s.admissions(a).add(a)
	return now, s.rises, true
}

// stale reports whether a session has read more than what was viewed, of what counts for a
// call with such arguments.
func stale(v, now gate.Session, args gate.Doc) bool {
	return now.Top && !v.Top || !v.Labels.Cover(now.Labels) || risen(v.Values, now.Values, args)
}

// risen reports whether an argument has been met in untrusted content between
// two states of a session.
func risen(before, now provenance.Provenance, args gate.Doc) bool {
	if before == now {
		return false
	}
	var old []provenance.Source
	for a := range before.Arguments(gate.Doc{}, args) {
		old = append(old, a.Source)
	}
	i := 0
	for a := range now.Arguments(gate.Doc{}, args) {
		if a.Source&^old[i]&provenance.FromUntrusted != 0 {
			return true
		}
		i++
	}
	return false
}

// Learn adds labels and values to a session. The error says that Options.File cannot
// be written.
func (s *Sessions) Learn(ctx context.Context, k gate.SessionKey, l gate.Lesson) error {
	if s.o.Shared != nil {
		s.moving.RLock()
		defer s.moving.RUnlock()
		if err := s.learnShared(ctx, k, l); err != nil {
			return err
		}
	}
	state, err := s.View(ctx, k)
	if err != nil {
		return err
	}
	if l.From.IsZero() && l.Shown == nil && (state.Top || !l.Top) && state.Labels.Cover(l.Labels) { // it knows all that
		return nil
	}
	met := meet(state.Values, l, s.o.Values) // takes its time with a large result, and holds up no one
	s.mu.Lock()
	s.learn(k, lesson{call: l.Call, program: l.Program, connection: l.Connection, labels: l.Labels, met: met, shown: l.Shown, top: l.Top})
	rises := s.rises
	s.mu.Unlock()
	return s.save(rises)
}

// meet returns the values of a lesson that are not known; at most most, and none if it is negative.
func meet(known provenance.Provenance, l gate.Lesson, most int) provenance.Met {
	if most < 0 || l.From.IsZero() {
		return provenance.Met{}
	}
	return l.Meet(known, most)
}

// lesson is what is added to a session.
type lesson struct {
	call       string
	program    string // that reads
	connection bool   // the session is the program's connection
	labels     gate.Labels
	met        provenance.Met
	shown      *provenance.Shown
	top        bool
	lost       bool // values were met that are not known
}

// view returns the state of now and marks it as used. Callers hold mu, here and
// below.
func (s *Sessions) view(k key) gate.Session {
	now := time.Now()
	if e, ok := s.kept[k]; ok {
		if e.fresh(s, now) {
			e.use(s, now)
			return e.state
		}
		s.remove(e)
	}
	if s.dropped.has(k, now) || now.Before(s.lost) {
		return s.keep(k, gate.Session{Key: k.SessionKey, Version: 1, Top: true, Values: provenance.Provenance{}.Lost()}, lesson{}, now)
	}
	return gate.Session{Key: k.SessionKey}
}

// learn adds to the state of a session, and to the records of its programs.
func (s *Sessions) learn(k gate.SessionKey, l lesson) gate.Session {
	before := s.raised
	state := s.raise(key{SessionKey: k}, l)
	s.bequeath(k, l, s.raised != before)
	return state
}

// raise adds to what is kept under a key.
func (s *Sessions) raise(k key, l lesson) gate.Session {
	state := s.view(k)
	before := state
	state.Labels = state.Labels.Join(l.labels)
	if provenance.TooMany(state.Labels) {
		state.Labels, state.Top = before.Labels, true
	}
	var all bool
	if state.Values, all = state.Values.Join(l.met, max(s.o.Values, 0)); l.top || !all {
		state.Top = true
	}
	state.Values = state.Values.Show(l.shown)
	if state.Top || l.lost {
		state.Values = state.Values.Lost()
	}
	if len(state.Labels) == len(before.Labels) && state.Values == before.Values && state.Top == before.Top {
		return before
	}
	state.Version++
	return s.keep(k, state, l, time.Now())
}

// keep keeps a state that a lesson has brought, and drops sessions if there are too many, or
// too many values.
func (s *Sessions) keep(k key, state gate.Session, l lesson, now time.Time) gate.Session {
	e, ok := s.kept[k]
	if !ok {
		e = s.entryOf(k, gate.Session{Key: k.SessionKey}, now)
		e.connection = l.connection && k.ID != ""
		s.kept[k] = e
	}
	if e.raise(state, l.call) {
		s.raised++
		if !e.connection {
			s.rises++
		}
	}
	s.values += state.Values.Len() - e.state.Values.Len()
	e.state = state
	for {
		oldest := s.oldestBut(e)
		if oldest == nil {
			return state
		}
		expired := !oldest.fresh(s, now)
		if !expired && len(s.kept) <= s.o.Max && s.values <= s.o.AllValues {
			return state
		}
		s.remove(oldest)
		if !expired && (oldest.state.Top || len(oldest.state.Labels) > 0) { // a clean one loses only trust
			if s.o.Shared == nil {
				s.dropped.add(oldest.key, now)
			}
			if !oldest.connection || s.o.Shared != nil {
				s.forgot = now
			}
		}
	}
}

// oldestBut returns, from a sample of the other sessions that are kept, the one that was used
// longest ago; nil if there is no other.
func (s *Sessions) oldestBut(one *entry) (oldest *entry) {
	n := 0
	for _, e := range s.kept { // which begins anywhere
		if e != one && (oldest == nil || e.used.Load() < oldest.used.Load()) {
			oldest = e
		}
		if n++; n == sampled {
			break
		}
	}
	return oldest
}

// raise notes by which call the entry gets to state, and reports whether it has
// another label by that.
func (e *entry) raise(state gate.Session, call string) (risen bool) {
	note := func(name string) {
		if e.raised == nil {
			e.raised = make(map[string]string)
		}
		e.raised[name], risen = call, true
	}
	for _, name := range state.Labels {
		if !e.state.Labels.Cover(gate.Labels{name}) {
			note(name)
		}
	}
	if state.Top && !e.state.Top {
		note("")
	}
	return risen
}

func (s *Sessions) remove(e *entry) {
	delete(s.kept, e.key)
	s.values -= e.state.Values.Len()
}

// admission is one call in one session.
type admission struct {
	session gate.SessionKey
	call    string
}

// admissions returns those among which one is remembered.
func (s *Sessions) admissions(a admission) *admissions {
	if a.call == "" {
		return &s.admitted[0]
	}
	return &s.admitted[int(a.call[len(a.call)-1])%len(s.admitted)]
}

// admissions are the last ones of their share of maxAdmitted.
type admissions struct {
	mu   sync.Mutex // held for a moment
	at   map[admission]struct{}
	ring []admission
	next int // in ring, the oldest once it is full
}

func (as *admissions) has(a admission) bool {
	as.mu.Lock()
	defer as.mu.Unlock()
	_, ok := as.at[a]
	return ok
}

// add adds an admission that may be there.
func (as *admissions) add(a admission) {
	as.mu.Lock()
	defer as.mu.Unlock()
	if _, ok := as.at[a]; ok {
		return
	}
	if as.at == nil {
		as.at = make(map[admission]struct{})
	}
	as.at[a] = struct{}{}
	if len(as.ring) < maxAdmitted/len(Sessions{}.admitted) {
		as.ring = append(as.ring, a)
		return
	}
	delete(as.at, as.ring[as.next])
	as.ring[as.next] = a
	as.next = (as.next + 1) % len(as.ring)
}
