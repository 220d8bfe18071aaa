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

func recordOf(o gate.Owner, program string) key {
	return key{gate.SessionKey{Owner: o, ID: program}, true}
}

// Begin says that a program begins to use a session: see [gate.Call.Program]. A program that
// connects again goes on with what it has in its context, so that the session gets the labels
// of its earlier ones, as long as those last, and counts every value as met in untrusted
// content: which it has met is not known. A program that has read nothing begins clean.
//
// It may be called before each request.
func (s *Sessions) Begin(k gate.SessionKey, program string) {
	if !s.o.Inherit || program == anyProgram {
		return
	}
	s.mu.RLock()
	nothing := s.nothingNew(k, program)
	s.mu.RUnlock()
	if nothing {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range [...]string{anyProgram, program} {
		r, now := s.view(recordOf(k.Owner, of)), s.view(key{SessionKey: k})
		if now.Labels.Cover(r.Labels) && (now.Top || !r.Top) {
			continue
		}
		s.raise(key{SessionKey: k}, lesson{connection: true, labels: r.Labels, top: r.Top, lost: true})
		if e, from := s.kept[key{SessionKey: k}], s.kept[recordOf(k.Owner, of)]; e != nil && from != nil {
			for name, call := range from.raised {
				if e.raised[name] == "" {
					e.raised[name] = call
				}
			}
		}
	}
	s.bequeath(k, lesson{program: program}, true)
}

// nothingNew reports whether neither a session nor the record of its program has what the
// other has not. Both count as used. Callers hold mu, for reading at least.
func (s *Sessions) nothingNew(k gate.SessionKey, program string) bool {
	if !s.dropped.unused() || !s.lost.IsZero() {
		return false
	}
	e, r, all := s.kept[key{SessionKey: k}], s.kept[recordOf(k.Owner, program)], s.kept[recordOf(k.Owner, anyProgram)]
	if e == nil || r == nil || all != nil {
		return e == nil && r == nil && all == nil
	}
	now := time.Now()
	if !e.fresh(s, now) || !r.fresh(s, now) || e.state.Top != r.state.Top || !slices.Equal(e.state.Labels, r.state.Labels) {
		return false
	}
	e.use(s, now)
	r.use(s, now)
	return true
}

// bequeath has the programs of a session, and that of a lesson, begin their next ones with
// what this one has read. Risen says that it has more labels by the lesson.
func (s *Sessions) bequeath(k gate.SessionKey, l lesson, risen bool) {
	e := s.kept[key{SessionKey: k}]
	if !s.o.Inherit || e == nil || len(e.state.Labels) == 0 && !e.state.Top {
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
		s.raise(recordOf(k.Owner, program), lesson{call: l.call, labels: e.state.Labels, top: e.state.Top})
		e.record = s.kept[recordOf(k.Owner, program)]
	}
}

// disown takes what a session had read from the records of its programs, which keep what
// others have read.
func (s *Sessions) disown(e *entry, now time.Time) {
	for _, program := range append([]string{anyProgram}, e.programs...) {
		if r, ok := s.kept[recordOf(e.key.Owner, program)]; ok {
			s.clear(r, now)
		}
	}
	for _, other := range s.kept {
		if !other.key.program && other.key.Owner == e.key.Owner && other.fresh(s, now) {
			s.bequeath(other.key.SessionKey, lesson{}, true)
		}
	}
}
