package session

import (
	"context"
	"slices"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/provenance"
)

// admitShared is Admit where several gateways share sessions. It reads once, before the call
// enters the order of its session; what another gateway admits later comes after it.
func (s *Sessions) admitShared(ctx context.Context, v gate.Session, c *gate.Call, labels gate.Labels) (gate.Session, error) {
	known, err := s.o.Shared.Read(ctx, v.Key, s.ttl())
	for err == nil && known.Behind {
		if err = s.writeAgain(ctx); err == nil {
			known, err = s.o.Shared.Read(ctx, v.Key, s.ttl())
		}
	}
	if err != nil {
		return gate.Session{}, err
	}
	if err := s.o.Follow(ctx, known.Generation); err != nil {
		return gate.Session{}, err
	}
	if err := adopt(ctx, s, known); err != nil {
		return gate.Session{}, err
	}
	now := s.absorb(known, v.Key)
	if v.Generation != known.Generation || behind(v, now) {
		now.Labels, now.Top, now.Generation = now.Labels.Join(v.Labels), now.Top || v.Top, known.Generation
		return now, gate.ErrStale
	}
	r := Rise{Labels: v.Labels.Join(labels), Top: v.Top, Call: c.ID, Reader: readerOf(s, known)}
	if !known.covers(r) {
		s.moving.RLock()
		if known, err = s.o.Shared.Raise(ctx, v.Key, s.ttl(), r); err == nil {
			now, v.Labels = s.absorbOthers(known, v.Key), r.Labels
		}
		s.moving.RUnlock()
		if err != nil {
			return gate.Session{}, err
		}
		if behind(v, now) {
			return now, gate.ErrStale
		}
	}
	now, _, err = s.admit(v, c, labels)
	return now, err
}

// Renew follows other gateways, and returns the state that a session has then. It is false if they have
// changed nothing since v, or that is not known.
func (s *Sessions) Renew(ctx context.Context, v gate.Session) (gate.Session, bool) {
	known, err := s.o.Shared.Read(ctx, v.Key, s.ttl())
	if err != nil || known.Generation == v.Generation || s.o.Follow(ctx, known.Generation) != nil {
		return v, false
	}
	now, err := s.View(ctx, v.Key)
	return now, err == nil
}

// behind reports whether a session has read something that a view of it does not have.
func behind(v, now gate.Session) bool {
	lost := now.Values == now.Values.Lost() && v.Values != v.Values.Lost()
	return now.Top && !v.Top || !v.Labels.Cover(now.Labels) || lost
}

// absorb takes over what is known of a session, and returns its state.
func (s *Sessions) absorb(n Known, k gate.SessionKey) gate.Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.kept[key{SessionKey: k}]
	if e != nil && (e.synced && e.resets < n.Resets || !s.fresh(e, time.Now())) {
		s.remove(e)
		e = nil
	}
	l := lesson{labels: n.Labels, top: n.Top || n.Lost}
	// Values that are not in this process, or no longer, were met all the same.
	l.lost = (len(n.Labels) > 0 || n.Top) && e == nil || n.missed(e, s.o.Reader)
	state := s.raise(key{SessionKey: k}, l)
	s.sync(k, n)
	return state
}

// absorbOthers is absorb after this gateway's own rise: only what others have read is new.
func (s *Sessions) absorbOthers(n Known, k gate.SessionKey) gate.Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.raise(key{SessionKey: k}, lesson{labels: n.Labels, top: n.Top, lost: n.missed(s.kept[key{SessionKey: k}], s.o.Reader)})
	s.sync(k, n)
	return state
}

// sync notes up to which reset this gateway knows a session. Callers hold mu.
func (s *Sessions) sync(k gate.SessionKey, n Known) {
	e := s.kept[key{SessionKey: k}]
	if e == nil {
		return
	}
	e.synced, e.resets = true, n.Resets
	if n.Home > 0 { // zero after a rise, which does not ask
		e.home = n.Home
	}
	for name := range e.raised {
		if call := n.Raised[name]; call != "" {
			e.raised[name] = call
		}
	}
}

// missed reports whether values of a session may have been met that are not in the process of a reader: others
// have read in it, or are its home, or have been since this one was. Callers hold mu.
func (n Known) missed(e *entry, reader string) bool {
	moved := n.Elsewhere || e != nil && e.home > 0 && n.Home > e.home
	return moved || slices.ContainsFunc(n.Readers, func(r string) bool { return r != reader })
}

func (s *Sessions) ttl() time.Duration {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.o.TTL
}

// learnShared has all gateways know what a session has learned, before anyone can act on it.
func (s *Sessions) learnShared(ctx context.Context, k gate.SessionKey, l gate.Lesson) error {
	if len(l.Labels) == 0 && !l.Top {
		return nil
	}
	known, err := s.o.Shared.Read(ctx, k, s.ttl())
	r := Rise{Labels: l.Labels, Top: l.Top, Call: l.Call, Reader: readerOf(s, known)}
	if err == nil && !known.covers(r) {
		known, err = s.o.Shared.Raise(ctx, k, s.ttl(), r)
	}
	if err == nil {
		s.absorbOthers(known, k)
	}
	return err
}

// readerOf names this gateway among the readers of a session. What it reads once it has handed the session
// over is by another name: the next home does not know it, and counts values as lost.
func readerOf(s *Sessions, n Known) string {
	if n.Elsewhere || n.Behind {
		return s.o.Reader + " later"
	}
	return s.o.Reader
}

// HandOver gives away what is known of the sessions of an owner, each by its ID, and forgets it if give
// returns nil. What is learned of them meanwhile waits, and is learned by a gateway that is not their home.
func HandOver(ctx context.Context, s *Sessions, of gate.Owner, give func(ctx context.Context, values map[string][]byte) error) error {
	s.moving.Lock()
	defer s.moving.Unlock()
	var all []*entry
	values := map[string][]byte{}
	s.mu.RLock()
	for k, e := range s.kept {
		if k.Owner == of && !k.program {
			all = append(all, e)
		}
	}
	now := time.Now()
	for _, e := range all {
		if raw, err := provenance.Encode(e.state.Values); err == nil && s.fresh(e, now) {
			values[e.key.ID] = raw
		}
	}
	s.mu.RUnlock()
	if err := give(ctx, values); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range all {
		if s.kept[e.key] == e {
			s.remove(e)
		}
	}
	return nil
}

// adopt takes over what the home before this one has handed over of a session. What cannot be read is lost.
func adopt(ctx context.Context, s *Sessions, n Known) error {
	if !n.Handed || n.Elsewhere {
		return nil
	}
	s.moving.Lock()
	defer s.moving.Unlock()
	raw, err := s.o.Shared.Take(ctx, n)
	if err != nil || raw == nil { // another call has taken it
		return err
	}
	values, err := provenance.Decode(raw)
	if err != nil {
		values = values.Lost()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k := key{SessionKey: n.Key}
	if e := s.kept[k]; e != nil {
		s.remove(e)
	}
	s.keep(k, gate.Session{Key: n.Key, Version: 1, Values: values}, lesson{}, time.Now())
	s.sync(n.Key, n)
	return nil
}

// writeAgain writes again what this gateway knows, after the last changes in Shared may be lost.
func (s *Sessions) writeAgain(ctx context.Context) error {
	return s.o.Shared.Restore(context.WithoutCancel(ctx), func(ctx context.Context) (whole bool, err error) {
		s.moving.Lock() // what is being raised is in Shared first
		now := time.Now()
		all := map[gate.SessionKey]Rise{}
		s.mu.RLock()
		whole = now.Sub(s.forgot) >= s.o.TTL
		for k, e := range s.kept {
			if !k.program && s.fresh(e, now) && (e.state.Top || len(e.state.Labels) > 0) {
				all[k.SessionKey] = Rise{Labels: e.state.Labels, Top: e.state.Top, Reader: s.o.Reader}
			}
		}
		s.mu.RUnlock()
		s.moving.Unlock()
		for k, r := range all {
			if _, err := s.o.Shared.Raise(ctx, k, s.ttl(), r); err != nil {
				return false, err
			}
		}
		return whole, nil
	})
}

// Refresh takes over what all gateways know of sessions: of all, for people who look at them, or
// only of those that were reset, so that calls are not denied for what they had read before.
func (s *Sessions) Refresh(ctx context.Context, reset bool) error {
	if s.o.Shared == nil {
		return nil
	}
	if err := s.writeAgain(ctx); err != nil {
		return err
	}
	all, err := s.o.Shared.All(ctx, s.ttl(), reset)
	for _, n := range all {
		s.absorb(n, n.Key)
	}
	return err
}
