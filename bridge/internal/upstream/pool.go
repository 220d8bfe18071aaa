package upstream

import (
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/fair"
)

// DefaultPool is how many processes may belong to a client each, of all servers together.
const DefaultPool = 64

// A Pool bounds the processes that belong to a client each, of all servers together. The
// zero Pool bounds them to [DefaultPool].
type Pool struct {
	Most int // 0: DefaultPool

	mu  sync.Mutex
	all map[*audiences]bool
}

// room reports whether a caller may have one process more, and ends another one if that
// makes the room.
func (p *Pool) room(its *audiences, caller gate.SessionKey) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all = map[*audiences]bool{}
	}
	p.all[its] = true
	most := p.Most
	if most == 0 {
		most = DefaultPool
	}
	var t tally
	for s := range p.all {
		s.mu.Lock()
		t.add(s)
		if s.closed {
			delete(p.all, s)
		}
		s.mu.Unlock()
	}
	goes, ok := t.room(most, caller)
	if goes != nil {
		goes.owner.dropUnused(goes)
	}
	return ok
}

// A tally counts the connections that belong to a client each, by caller.
type tally struct {
	n      int
	by     map[gate.SessionKey]int
	oldest unused                     // that can make room for any other
	unused map[gate.SessionKey]unused // of each caller
}

// unused is the connection without a call that was not used for the longest time.
type unused struct {
	*audience
	since time.Time
}

func (u *unused) older(a *audience) {
	if a != nil && (u.audience == nil || a.used.Before(u.since)) {
		*u = unused{a, a.used}
	}
}

// add counts those of a server. The caller holds its mu.
func (t *tally) add(s *audiences) {
	if t.by == nil {
		t.by, t.unused = make(map[gate.SessionKey]int), make(map[gate.SessionKey]unused)
	}
	t.n += len(s.all)
	t.oldest.older(s.oldest())
	for _, a := range s.all {
		t.by[a.caller]++
		if a.calls == 0 {
			u := t.unused[a.caller]
			u.older(a)
			t.unused[a.caller] = u
		}
	}
}

// room reports whether a caller may have one connection more, and which one makes room for it.
// A caller that has none may have one beyond most, where no other has two that it does not use.
func (t *tally) room(most int, caller gate.SessionKey) (goes *audience, ok bool) {
	if t.n < most {
		return nil, true
	}
	if t.oldest.audience != nil {
		return t.oldest.audience, true
	}
	has := t.by[caller] + 1
	for other, n := range t.by {
		if u := t.unused[other]; u.audience != nil && n > has {
			goes, has = u.audience, n
		}
	}
	beyond := min(most, fair.Extras)
	return goes, goes != nil || t.by[caller] == 0 && t.n < most+beyond
}
