package session

import (
	"time"

	"github.com/wasmgate/wasmgate/gate"
)

// usualTTL is after how long without use a session begins anew by default.
const usualTTL = time.Hour

// SetTTL replaces [Options].TTL, with the same meaning: sessions that have not been used for that
// long begin anew at once.
func (s *Sessions) SetTTL(ttl time.Duration) {
	if ttl <= 0 {
		ttl = usualTTL
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.o.TTL, s.dropped.ttl = ttl, ttl
}

// Change replaces the numbers [LimitOptions].Concurrent and Session, with the same meanings. Slots
// that are taken stay taken, and rates stay as used up as they are. Calls that are under way beyond
// a smaller limit go on, and no others begin before they have ended.
func (l *Limits) Change(concurrent, session int) {
	if concurrent <= 0 {
		concurrent = usualConcurrent
	}
	l.session.Store(int64(session))
	l.concurrent.Store(int64(concurrent))
	for _, p := range []*pool{l.calls, l.relays, l.agents, l.away} {
		p.Change(all, l.size(p))
	}
}

// Forget forgets a session that will not be used again.
func (s *Sessions) Forget(k gate.SessionKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.kept[key{SessionKey: k}]; ok {
		s.remove(e)
	}
}

// Places returns how many calls have a slot, how many wait for one, and how many slots there are.
func (l *Limits) Places() (taken, waiting, most int64) {
	taken, waiting = l.calls.State(all)
	return taken, waiting, l.concurrent.Load()
}
