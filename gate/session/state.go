package session

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/wasmgate/wasmgate/gate"
)

// A State is what is known of a session, for people.
type State struct {
	Key     gate.SessionKey
	Version uint64
	Labels  gate.Labels
	// Top says that not all of the session's state could be kept: policies see it as
	// having read everything.
	Top bool
	// Raised is the call with which each label came, and with the name "" that with
	// which the session became Top. The call is "" if it is not known any more.
	Raised map[string]string
	Began  time.Time // when the session was kept first, by this process
	Used   time.Time // last
	Values int       // that are kept
	// Destinations are those that a person has approved for the session.
	Destinations []gate.Destination
}

func (e *entry) tell(s *Sessions) State {
	return State{
		Key: e.state.Key, Version: e.state.Version, Labels: e.state.Labels, Top: e.state.Top,
		Raised: maps.Clone(e.raised), Began: e.began, Used: s.lastUsed(e), Values: e.state.Values.Len(), Destinations: e.state.Destinations,
	}
}

// List returns all sessions that are kept, the last used one first. One that has
// read nothing is in the state in which every session begins, and is not kept. It
// does not count as use.
func (s *Sessions) List() []State {
	s.mu.RLock()
	defer s.mu.RUnlock()
	now := time.Now()
	var list []State
	for _, e := range s.kept {
		if !e.key.program && s.fresh(e, now) {
			list = append(list, e.tell(s))
		}
	}
	slices.SortFunc(list, func(a, b State) int { return cmp.Compare(b.Used.UnixNano(), a.Used.UnixNano()) })
	return list
}

// Reset makes a session that of one which has read nothing, if it still has the
// version that was seen; else the error is [gate.ErrStale], and nothing changes. A
// call that is under way is not affected: what it reads the session has read, and
// what it was decided on it goes on with. Record, which may be nil, is called before, while the
// session has that version, and its error leaves all as it is; it may not use the sessions.
func (s *Sessions) Reset(ctx context.Context, k gate.SessionKey, version uint64, record func() error) error {
	if local := record; s.o.Shared != nil {
		record = func() error {
			if local != nil {
				if err := local(); err != nil {
					return err
				}
			}
			return s.o.Shared.Reset(ctx, k)
		}
	}
	rises, err := s.reset(k, version, record)
	if err != nil {
		return err
	}
	return s.save(rises)
}

// reset returns how often sessions had risen by then.
func (s *Sessions) reset(k gate.SessionKey, version uint64, record func() error) (rises uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.kept[key{SessionKey: k}]
	if !ok || e.state.Version != version {
		return 0, fmt.Errorf("session %q of %s: %w", k.ID, k.Owner.ID, gate.ErrStale)
	}
	if record != nil {
		if err := record(); err != nil {
			return 0, err
		}
	}
	now := time.Now()
	s.clear(e, now)
	s.disown(e, now)
	s.rises++
	return s.rises, nil
}

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

// Forget forgets a session that will not be used again.
func (s *Sessions) Forget(k gate.SessionKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.kept[key{SessionKey: k}]; ok {
		s.remove(e)
	}
}
