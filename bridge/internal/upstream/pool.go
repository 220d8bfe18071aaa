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
	all map[processes]bool
}

// processes are those of one server that belong to a client each.
type processes interface {
	// count adds them to a tally, and reports whether there will be no more.
	count(*tally) (closed bool)
}

// A process can be ended to make room for another one.
type process interface {
	endUnused() // unless it was taken meanwhile
}

// room reports whether a caller may have one process more, and ends another one if that
// makes the room.
func (p *Pool) room(its processes, caller gate.SessionKey) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all = map[processes]bool{}
	}
	p.all[its] = true
	most := p.Most
	if most == 0 {
		most = DefaultPool
	}
	var t tally
	for s := range p.all {
		if s.count(&t) {
			delete(p.all, s)
		}
	}
	goes, ok := t.room(most, caller)
	if goes != nil {
		goes.endUnused()
	}
	return ok
}

// A tally counts processes, or connections, that belong to a client each, by caller.
type tally struct {
	n      int
	by     map[gate.SessionKey]int
	oldest unused                     // that can make room for any other
	unused map[gate.SessionKey]unused // of each caller
}

// unused is a process without a call that was not used for the longest time; its zero value is none.
type unused struct {
	process
	since time.Time
}

func (u *unused) older(p process, since time.Time) {
	if u.process == nil || since.Before(u.since) {
		*u = unused{p, since}
	}
}

// add counts one of a caller. busy says that it has calls; since is when it was last used.
func (t *tally) add(p process, caller gate.SessionKey, busy bool, since time.Time) {
	if t.by == nil {
		t.by, t.unused = make(map[gate.SessionKey]int), make(map[gate.SessionKey]unused)
	}
	t.n++
	t.by[caller]++
	if !busy {
		u := t.unused[caller]
		u.older(p, since)
		t.unused[caller] = u
	}
}

// room reports whether a caller may have one connection more, and which one makes room for it.
// A caller that has none may have one beyond most, where no other has two that it does not use.
func (t *tally) room(most int, caller gate.SessionKey) (goes process, ok bool) {
	if t.n < most {
		return nil, true
	}
	if t.oldest.process != nil {
		return t.oldest.process, true
	}
	has := t.by[caller] + 1
	for other, n := range t.by {
		if u := t.unused[other]; u.process != nil && n > has {
			goes, has = u.process, n
		}
	}
	beyond := min(most, fair.Extras)
	return goes, goes != nil || t.by[caller] == 0 && t.n < most+beyond
}
