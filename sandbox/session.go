package sandbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// maxSessions is how many sessions of a module keep an instance. Beyond it the one
	// that was not used for the longest begins anew.
	maxSessions = 64
	// maxSessionBytes is how much memory the instances of sessions keep between calls,
	// over all modules. Beyond it those that were not used for the longest begin anew.
	maxSessionBytes = 1 << 30
	// idleSession is after what time a session that is not used ends.
	idleSession = 10 * time.Minute
)

// sessions keep the instances of modules that have one for each session.
type sessions struct {
	mu    sync.Mutex
	by    map[sessionKey]*session
	bytes int64 // of the instances that are kept
	most  int64
}

type sessionKey struct {
	module *Module
	name   string
}

// A session has one instance, which its calls use one at a time.
type session struct {
	key  sessionKey
	busy chan struct{} // holds a token while a call runs
	in   *instance     // nil before the first call, and after one that failed

	// Guarded by the mutex of the sessions.
	users int       // calls that run or wait
	used  time.Time // when the last of them ended
	bytes int64     // of the instance, when a call last ended
	over  bool      // it keeps nothing any more
}

// call carries out a call on the instance of its session.
func (s *sessions) call(c *call, name string) (Result, error) {
	c.begin()
	one, err := s.enter(c.parent, sessionKey{c.module, name})
	if err != nil {
		return Result{}, fmt.Errorf("sandbox: tool %s: %w", c.tool, err)
	}
	defer s.leave(c.parent, one)
	select {
	case one.busy <- struct{}{}:
	default:
		if c.waiter != nil {
			c.waiter.Waits()
		}
		select {
		case one.busy <- struct{}{}:
		case <-c.Done():
			return Result{}, c.busy(c.Err())
		}
	}
	defer func() { <-one.busy }()
	leave, err := c.enter()
	if err != nil {
		return Result{}, err
	}
	defer leave()
	return one.call(c)
}

func (one *session) call(c *call) (res Result, err error) {
	s, res, err := c.prepare()
	if err != nil {
		return res, err
	}
	defer c.finish(&res, &err)
	in, fresh := one.in, one.in == nil
	if fresh {
		if in, err = c.module.acquire(c, s); err != nil {
			return Result{}, c.outcome(err)
		}
	}
	in.user, c.instance, one.in = c, in, nil
	defer func() {
		c.measure(in)
		if in.user = nil; c.intact && err == nil {
			one.in = in
			return
		}
		c.module.release(c.parent, in, s, false) // whatever state it is in now, it is none to go on from
	}()
	return c.on(in, fresh)
}

var (
	errNoSession = errors.New("the module keeps a state for each session, and the call names none")
	errSessions  = fmt.Errorf("all %d sessions that the module can have are in use", maxSessions)
)

// enter returns a session, which it makes if need be.
func (s *sessions) enter(ctx context.Context, key sessionKey) (*session, error) {
	if key.name == "" {
		return nil, errNoSession
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.by[key]
	if !ok {
		if s.count(key.module) >= maxSessions && !s.evict(ctx, key.module) {
			return nil, errSessions
		}
		one = &session{key: key, busy: make(chan struct{}, 1)}
		s.by[key] = one
	}
	one.users++
	return one, nil
}

func (s *sessions) count(m *Module) (n int) {
	for key := range s.by {
		if key.module == m {
			n++
		}
	}
	return n
}

// leave keeps the session's instance after a call, as far as there is room.
func (s *sessions) leave(ctx context.Context, one *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one.users--
	one.used = time.Now()
	if one.users > 0 {
		return
	}
	if one.over {
		one.close(ctx)
		return
	}
	s.bytes -= one.bytes
	one.bytes = 0
	if one.in != nil {
		one.bytes = int64(one.in.mod.Memory().Size())
	}
	s.bytes += one.bytes
	for s.bytes > s.most && s.evict(ctx, nil) {
	}
}

// evict ends the session that was not used for the longest, of a module or of all, if
// one is not in use.
func (s *sessions) evict(ctx context.Context, of *Module) bool {
	var oldest *session
	for key, one := range s.by {
		if one.users == 0 && (of == nil || key.module == of) && (oldest == nil || one.used.Before(oldest.used)) {
			oldest = one
		}
	}
	if oldest == nil {
		return false
	}
	s.end(ctx, oldest)
	return true
}

// end ends a session, or has it end with its calls. The mutex is held.
func (s *sessions) end(ctx context.Context, one *session) {
	delete(s.by, one.key)
	s.bytes -= one.bytes
	if one.over = true; one.users == 0 {
		one.close(ctx)
	}
}

func (one *session) close(ctx context.Context) {
	if one.in != nil {
		_ = one.in.close(context.WithoutCancel(ctx)).Close() // only unmaps
		one.in = nil
	}
}

// endAll ends the sessions that are such.
func (s *sessions) endAll(ctx context.Context, such func(*session) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.by {
		if such(one) {
			s.end(ctx, one)
		}
	}
}

// EndSession ends a session of all modules that have [IsolationSession]: what they keep
// for it is dropped, after its calls that are under way.
func (r *Runtime) EndSession(ctx context.Context, name string) {
	r.sessions.endAll(ctx, func(one *session) bool { return one.key.name == name })
}
