package session

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/provenance"
)

// table has the sessions that are kept, and what is known of those that are not. Callers of the
// methods in this file hold mu.
type table struct {
	o       Options
	started time.Time

	mu       sync.RWMutex // held alone to change anything but when a session was used
	kept     map[key]*entry
	values   int // kept of all sessions
	dropped  filter
	lost     time.Time // until then a session that is not kept may have been; see load
	forgot   time.Time // when one was dropped that outlives the process, or that others know
	raised   uint64    // how often a session got labels
	rises    uint64    // the same of those that the file has
	admitted admitted
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

// entry is a session that is kept: one with labels, with values, or Top; or one that
// was reset, while others of its kind count as Top.
type entry struct {
	key   key
	state gate.Session
	began time.Time
	used  atomic.Int64 // time.Duration after table.started
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

// entryOf returns an entry for a state, without a known call.
func (t *table) entryOf(k key, state gate.Session, now time.Time) *entry {
	e := &entry{key: k, state: state, began: now}
	t.use(e, now)
	return e
}

func (t *table) use(e *entry, now time.Time) {
	e.used.Store(int64(now.Sub(t.started)))
	if e.record != nil {
		e.record.used.Store(e.used.Load())
	}
}

func (t *table) lastUsed(e *entry) time.Time {
	return t.started.Add(time.Duration(e.used.Load()))
}

// fresh reports whether the session is still the one that it was.
func (t *table) fresh(e *entry, now time.Time) bool { return now.Sub(t.lastUsed(e)) < t.o.TTL }

// glance is view where that changes nothing but when the session was used, which is not
// known else. Callers hold mu, for reading at least, and so do not wait for each other.
func (t *table) glance(k gate.SessionKey) (state gate.Session, known bool) {
	e, kept := t.kept[key{SessionKey: k}]
	if !kept {
		return gate.Session{Key: k}, t.dropped.unused() && t.lost.IsZero()
	}
	now := time.Now()
	if !t.fresh(e, now) {
		return gate.Session{}, false
	}
	t.use(e, now)
	return e.state, true
}

// view returns the state of now and marks it as used.
func (t *table) view(k key) gate.Session {
	now := time.Now()
	if e, ok := t.kept[k]; ok {
		if t.fresh(e, now) {
			t.use(e, now)
			return e.state
		}
		t.remove(e)
	}
	if t.dropped.has(k, now) || now.Before(t.lost) {
		return t.keep(k, gate.Session{Key: k.SessionKey, Version: 1, Top: true, Values: provenance.Provenance{}.Lost()}, lesson{}, now)
	}
	return gate.Session{Key: k.SessionKey}
}

// raise adds to what is kept under a key.
func (t *table) raise(k key, l lesson) gate.Session {
	state := t.view(k)
	before := state
	state.Labels = state.Labels.Join(l.labels)
	if provenance.TooMany(state.Labels) {
		state.Labels, state.Top = before.Labels, true
	}
	var all bool
	if state.Values, all = state.Values.Join(l.met, max(t.o.Values, 0)); l.top || !all {
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
	return t.keep(k, state, l, time.Now())
}

// keep keeps a state that a lesson has brought, and drops sessions if there are too many, or
// too many values.
func (t *table) keep(k key, state gate.Session, l lesson, now time.Time) gate.Session {
	e, ok := t.kept[k]
	if !ok {
		e = t.entryOf(k, gate.Session{Key: k.SessionKey}, now)
		e.connection = l.connection && k.ID != ""
		t.kept[k] = e
	}
	if e.raise(state, l.call) {
		t.raised++
		if !e.connection {
			t.rises++
		}
	}
	t.values += state.Values.Len() - e.state.Values.Len()
	e.state = state
	for {
		oldest := t.oldestBut(e)
		if oldest == nil {
			return state
		}
		expired := !t.fresh(oldest, now)
		if !expired && len(t.kept) <= t.o.Max && t.values <= t.o.AllValues {
			return state
		}
		t.remove(oldest)
		if !expired && (oldest.state.Top || len(oldest.state.Labels) > 0) { // a clean one loses only trust
			if t.o.Shared == nil {
				t.dropped.add(oldest.key, now)
			}
			if !oldest.connection || t.o.Shared != nil {
				t.forgot = now
			}
		}
	}
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

// sampled is how many sessions are looked at to find one that was not used for long: to
// keep them in order would have each call wait for all others.
const sampled = 32

// oldestBut returns, from a sample of the other sessions that are kept, the one that was used
// longest ago; nil if there is no other.
func (t *table) oldestBut(one *entry) (oldest *entry) {
	n := 0
	for _, e := range t.kept { // which begins anywhere
		if e != one && (oldest == nil || e.used.Load() < oldest.used.Load()) {
			oldest = e
		}
		if n++; n == sampled {
			break
		}
	}
	return oldest
}

func (t *table) remove(e *entry) {
	delete(t.kept, e.key)
	t.values -= e.state.Values.Len()
}

// clear takes from an entry all that it has read.
func (t *table) clear(e *entry, now time.Time) {
	t.remove(e)
	if t.dropped.has(e.key, now) || now.Before(t.lost) { // forgotten altogether it would count as Top
		t.kept[e.key] = t.entryOf(e.key, gate.Session{Key: e.key.SessionKey, Version: e.state.Version + 1}, now)
		t.kept[e.key].reset = true
	}
}
