package session

import (
	"slices"
	"time"

	"github.com/wasmgate/wasmgate/gate"
)

const (
	// anyProgram names the record with which every program of a principal begins: what
	// its one session had read before each connection got one of its own.
	anyProgram = ""
	// maxPrograms bounds the programs that are known of one session.
	maxPrograms = 64
)

// begin is [Sessions.Begin].
func (t *table) begin(k gate.SessionKey, program string) {
	if !t.o.Inherit || program == anyProgram {
		return
	}
	t.mu.RLock()
	nothing := t.nothingNew(k, program)
	t.mu.RUnlock()
	if nothing {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, of := range [...]string{anyProgram, program} {
		r, now := t.view(recordOf(k.Owner, of)), t.view(key{SessionKey: k})
		if now.Labels.Cover(r.Labels) && (now.Top || !r.Top) {
			continue
		}
		t.raise(key{SessionKey: k}, lesson{connection: true, labels: r.Labels, top: r.Top, lost: true})
		if e, from := t.kept[key{SessionKey: k}], t.kept[recordOf(k.Owner, of)]; e != nil && from != nil {
			for name, call := range from.raised {
				if e.raised[name] == "" {
					e.raised[name] = call
				}
			}
		}
	}
	t.bequeath(k, lesson{program: program}, true)
}

// nothingNew reports whether neither a session nor the record of its program has what the
// other has not. Both count as used. Callers hold mu, for reading at least.
func (t *table) nothingNew(k gate.SessionKey, program string) bool {
	if !t.dropped.unused() || !t.lost.IsZero() {
		return false
	}
	e, r, all := t.kept[key{SessionKey: k}], t.kept[recordOf(k.Owner, program)], t.kept[recordOf(k.Owner, anyProgram)]
	if e == nil || r == nil || all != nil {
		return e == nil && r == nil && all == nil
	}
	now := time.Now()
	if !t.fresh(e, now) || !t.fresh(r, now) || e.state.Top != r.state.Top || !slices.Equal(e.state.Labels, r.state.Labels) {
		return false
	}
	t.use(e, now)
	t.use(r, now)
	return true
}

// bequeath has the programs of a session, and that of a lesson, begin their next ones with
// what this one has read. Risen says that it has more labels by the lesson. Callers hold mu, here and
// below.
func (t *table) bequeath(k gate.SessionKey, l lesson, risen bool) {
	e := t.kept[key{SessionKey: k}]
	if !t.o.Inherit || e == nil || len(e.state.Labels) == 0 && !e.state.Top {
		return
	}
	programs := e.programs
	if l.program != anyProgram && !slices.Contains(programs, l.program) {
		programs, risen = append(slices.Clip(programs), l.program), true
		if len(programs) <= maxPrograms {
			e.programs = programs
		}
	}
	if !risen {
		return
	}
	for _, program := range programs {
		t.raise(recordOf(k.Owner, program), lesson{call: l.call, labels: e.state.Labels, top: e.state.Top})
		e.record = t.kept[recordOf(k.Owner, program)]
	}
}

// disown takes what a session had read from the records of its programs, which keep what
// others have read.
func (t *table) disown(e *entry, now time.Time) {
	for _, program := range append([]string{anyProgram}, e.programs...) {
		if r, ok := t.kept[recordOf(e.key.Owner, program)]; ok {
			t.clear(r, now)
		}
	}
	for _, other := range t.kept {
		if !other.key.program && other.key.Owner == e.key.Owner && t.fresh(other, now) {
			t.bequeath(other.key.SessionKey, lesson{}, true)
		}
	}
}

// learn adds to the state of a session, and to the records of its programs.
func (t *table) learn(k gate.SessionKey, l lesson) gate.Session {
	before := t.raised
	state := t.raise(key{SessionKey: k}, l)
	t.bequeath(k, l, t.raised != before)
	return state
}
