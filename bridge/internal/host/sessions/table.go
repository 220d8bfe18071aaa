package sessions

import (
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/gate"
)

// sessions are all sessions that there are.
type sessions struct {
	most  int          // maxSessions, except in tests
	mu    sync.RWMutex // requests only read
	by    map[string]*Session
	lines map[*Session]struct{}
	sweep *time.Timer // ends those that are idle; nil while there are none
}

// add adds a session of a request that is under way. Those that have to make room are
// ended.
func (l *sessions) add(s *Session) {
	l.mu.Lock()
	var out []*Session
	for len(l.by) >= l.most {
		v := l.victim()
		delete(l.by, v.ID)
		out = append(out, v)
	}
	s.busy.Store(1)
	s.seen.Store(clock())
	l.by[s.ID] = s
	if l.sweep == nil {
		l.sweep = time.AfterFunc(sessionIdle, l.endIdle)
	}
	l.mu.Unlock()
	for _, v := range out {
		v.End()
	}
}

// victim returns the session that makes room for another: of the principal who has the
// most, the one that was not used for the longest time. The caller holds mu.
func (l *sessions) victim() *Session {
	has := make(map[gate.Owner]int)
	for _, s := range l.by {
		has[s.Client.Who.Owner]++
	}
	var out *Session
	for _, s := range l.by {
		if out == nil || has[s.Client.Who.Owner] > has[out.Client.Who.Owner] ||
			has[s.Client.Who.Owner] == has[out.Client.Who.Owner] && s.seen.Load() < out.seen.Load() {
			out = s
		}
	}
	return out
}

// find returns the session of an id that is a principal's, for a request, until used is
// called; nil if there is none.
func (l *sessions) find(id string, who *gate.Principal) *Session {
	l.mu.RLock()
	defer l.mu.RUnlock()
	s := l.by[id]
	if s == nil || s.Client.Who.Owner != who.Owner {
		return nil
	}
	s.busy.Add(1)
	s.seen.Store(clock())
	return s
}

// forget has a session be found no more.
func (l *sessions) forget(s *Session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.by, s.ID)
	delete(l.lines, s)
}

// endIdle ends the sessions whose clients have given no sign of life.
func (l *sessions) endIdle() {
	l.mu.Lock()
	var idle []*Session
	next := sessionIdle
	for _, s := range l.by {
		if s.busy.Load() > 0 {
			continue
		}
		if left := sessionIdle - time.Duration(clock()-s.seen.Load()); left <= 0 {
			idle = append(idle, s)
		} else {
			next = min(next, left)
		}
	}
	if l.sweep = nil; len(l.by) > len(idle) {
		l.sweep = time.AfterFunc(next, l.endIdle)
	}
	l.mu.Unlock()
	for _, s := range idle {
		s.End()
	}
}

// stop has idle sessions be ended no more.
func (l *sessions) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sweep != nil {
		l.sweep.Stop()
	}
}

// connect adds a session in lines.
func (l *sessions) connect(s *Session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines[s] = struct{}{}
}

// all returns the sessions that there are.
func (l *sessions) all() []*Session {
	l.mu.RLock()
	defer l.mu.RUnlock()
	all := make([]*Session, 0, len(l.by)+len(l.lines))
	for _, s := range l.by {
		all = append(all, s)
	}
	for s := range l.lines {
		all = append(all, s)
	}
	return all
}
