package upstream

import (
	"sync"
	"time"
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
	// counted returns how many there are, which of them can make room first, nil for none,
	// and whether there will be no more.
	counted() (n int, first *unused, closed bool)
}

// unused is a process that is not used, since when, and what ends it if that is so yet.
type unused struct {
	since time.Time
	end   func()
}

// room reports whether there is room for one process more, and ends the one that was not
// used for the longest time if that makes it.
func (p *Pool) room(its processes) bool {
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
	var oldest *unused
	n := 0
	for one := range p.all {
		has, first, closed := one.counted()
		n += has
		if first != nil && (oldest == nil || first.since.Before(oldest.since)) {
			oldest = first
		}
		if closed {
			delete(p.all, one)
		}
	}
	if n < most {
		return true
	}
	if oldest == nil {
		return false
	}
	oldest.end()
	return true
}
