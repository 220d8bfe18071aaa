package sandbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// maxSessions is how many sessions of a module keep an instance. Beyond it the
// one that was not used for the longest begins anew.
const maxSessions = 64

// sessions keep the instances of a module that has one for each session.
type sessions struct {
	mu   sync.Mutex
	by   map[string]*session
	turn uint64 // counts the calls
}

// A session has one instance, which its calls use one at a time.
type session struct {
	busy chan struct{} // holds a token while a call runs
	in   *instance     // nil before the first call, and after one that failed

	// Guarded by the mutex of the sessions.
	users int    // calls that run or wait
	used  uint64 // the turn of the last call
}

// call carries out a call on the instance of its session.
func (s *sessions) call(c *call, name string) (Result, error) {
	c.begin()
	one, err := s.enter(c.parent, name)
	if err != nil {
		return Result{}, fmt.Errorf("sandbox: tool %s: %w", c.tool, err)
	}
	defer s.leave(one)
	select {
	case one.busy <- struct{}{}:
		defer func() { <-one.busy }()
	case <-c.Done():
		return Result{}, c.busy(c.Err())
	}
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
	in.call, c.instance, one.in = c, in, nil
	defer func() {
		c.measure(in)
		if in.call = nil; c.intact && err == nil {
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
func (s *sessions) enter(ctx context.Context, name string) (*session, error) {
	if name == "" {
		return nil, errNoSession
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.by[name]
	if !ok {
		if len(s.by) >= maxSessions && !s.evict(ctx) {
			return nil, errSessions
		}
		one = &session{busy: make(chan struct{}, 1)}
		s.by[name] = one
	}
	s.turn++
	one.used = s.turn
	one.users++
	return one, nil
}

func (s *sessions) leave(one *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one.users--
}

// evict ends the session that was not used for the longest, if one is not in
// use.
func (s *sessions) evict(ctx context.Context) bool {
	oldest := ""
	for name, one := range s.by {
		if one.users == 0 && (oldest == "" || one.used < s.by[oldest].used) {
			oldest = name
		}
	}
	if oldest == "" {
		return false
	}
	s.by[oldest].close(ctx)
	delete(s.by, oldest)
	return true
}

func (one *session) close(ctx context.Context) {
	if one.in != nil {
		_ = one.in.close(context.WithoutCancel(ctx)).Close() // only unmaps
	}
}

// close ends all sessions. No call may run.
func (s *sessions) close(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.by {
		one.close(ctx)
	}
	clear(s.by)
}
