package shares

import (
	"slices"
	"sync"
)

// Places are held by keys. Use them from several goroutines.
type Places[K comparable] struct {
	max int

	mu sync.Mutex
	n  int
	by map[K][]*place // the oldest first
}

type place struct{ end func() }

// New returns max places.
func New[K comparable](max int) *Places[K] {
	return &Places[K]{max: max, by: make(map[K][]*place)}
}

// Enter takes a place for key, until leave is called. If all are taken, the key that has the most
// gives up its oldest place: the end function of that place is called, in a goroutine. ok is false
// if no other key has at least two places more than this one.
func (p *Places[K]) Enter(key K, end func()) (leave func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.n >= p.max {
		most := key
		for k, all := range p.by {
			if len(all) > len(p.by[most]) {
				most = k
			}
		}
		if len(p.by[most]) <= len(p.by[key])+1 {
			return nil, false
		}
		oldest := p.by[most][0]
		p.remove(most, oldest)
		go oldest.end() // which may wait for its client
	}
	one := &place{end}
	p.by[key] = append(p.by[key], one)
	p.n++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.remove(key, one)
	}, true
}

// remove forgets a place, unless it has made room for another. The caller holds mu.
func (p *Places[K]) remove(key K, one *place) {
	i := slices.Index(p.by[key], one)
	if i < 0 {
		return
	}
	p.n--
	if p.by[key] = slices.Delete(p.by[key], i, i+1); len(p.by[key]) == 0 {
		delete(p.by, key)
	}
}
