package session

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/provenance"
)

// ErrUnknown says that a session is not kept: there is none of that name, or it has read
// nothing.
var ErrUnknown = errors.New("the gateway has no such session")

// Sessions keeps what sessions have read. Use it from several goroutines.
type Sessions struct {
	table
	file *keptFile // nil without Options.File

	moving sync.RWMutex // held alone to give sessions away, or take them; over learning if several gateways share them
}

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
	s := &Sessions{table: table{o: o, started: time.Now(), kept: map[key]*entry{}, dropped: newFilter(o.TTL)}}
	if o.File != "" {
		s.file = &keptFile{path: o.File}
		s.file.load(&s.table)
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

// Begin says that a program begins to use a session: see [gate.Call.Program]. A program that
// connects again goes on with what it has in its context, so that the session gets the labels
// of its earlier ones, as long as those last, and counts every value as met in untrusted
// content: which it has met is not known. A program that has read nothing begins clean.
//
// It may be called before each request.
func (s *Sessions) Begin(k gate.SessionKey, program string) { s.begin(k, program) }

// Problem says what is wrong with Options.File, and what follows from it; nil if
// nothing is. While it cannot be written no call is admitted.
func (s *Sessions) Problem() error { return s.file.trouble(&s.table) }

// save returns when what outlives the process has all labels up to a rise.
func (s *Sessions) save(rises uint64) error { return s.file.save(&s.table, rises) }
