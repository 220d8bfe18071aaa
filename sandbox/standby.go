package sandbox

import (
	"context"
	"io"
	"slices"
	"sync"
	"time"
)

// standbys are the instances of a command that were started before their calls, and wait
// where they first read their input. What an interpreter does before that takes longer than
// most calls. Each serves one call, and sees nothing of others.
type standbys struct {
	mu     sync.Mutex
	idle   []*standby
	all    sync.WaitGroup // of their goroutines
	closed bool
}

// A standby is a guest that becomes a call, or ends before.
type standby struct {
	call  *call
	end   context.CancelFunc
	since time.Time

	waits chan struct{} // closed when it reads its input
	hand  chan handed
	done  chan struct{} // closed when it has ended
	taken bool          // it got a call
	res   Result
	err   error
}

// handed is what makes a call of a standby.
type handed struct {
	*call
	host Host
}

// callStandby has a standby become the call.
func (m *Module) callStandby(c *call, cfg CallConfig) (Result, error) {
	c.begin()
	defer func() {
		c.over.Store(true)
		if c.timer.cancel != nil {
			c.timer.cancel()
		}
	}()
	if err := m.places.enter(c, c.turn.name); err != nil {
		return Result{Took: time.Since(c.started)}, c.busy(err)
	}
	defer m.places.leave()
	s := m.standbys.take()
	if s == nil {
		if s = m.start(false); s == nil {
			return Result{}, errClosed
		}
	}
	defer s.end()
	select {
	case <-s.waits:
	case <-s.done:
	case <-c.Done():
		return Result{Took: time.Since(c.started)}, c.outcome(c.Err())
	}
	select {
	case s.hand <- handed{c, cfg.Host}:
	case <-s.done: // before it has read anything
		if s.err == nil {
			s.err = c.trap(TrapGuest, "it ended before it read its request; snapshot: input is for commands that read it", nil)
		}
		return Result{Took: time.Since(c.started)}, s.err
	}
	<-s.done // its own meter and context end it
	m.start(true)
	return s.res, s.err
}

// start starts a standby, for whoever calls next if it is to be kept; nil if the module is
// closed, or enough are kept.
func (m *Module) start(keep bool) *standby {
	pool := m.standbys
	pool.mu.Lock()
	defer pool.mu.Unlock()
	if pool.closed || keep && len(pool.idle) >= keptInstances() {
		return nil
	}
	ctx, end := context.WithCancel(context.Background())
	c := newCall(ctx, m, m.tools[0].Name, nil, CallConfig{}, m.limits)
	s := &standby{call: c, end: end, since: time.Now(), waits: make(chan struct{}), hand: make(chan handed), done: make(chan struct{})}
	c.standby, c.process.Stdin = s, s
	if keep {
		pool.idle = append(pool.idle, s)
	}
	pool.all.Go(func() {
		defer close(s.done)
		c.begin()
		if s.err = c.turn.enter(c); s.err != nil {
			return
		}
		defer c.turn.leave()
		s.res, s.err = c.once()
	})
	return s
}

// Read implements [io.Reader]. The first one waits for the call.
func (s *standby) Read(p []byte) (int, error) {
	if !s.taken {
		s.wait()
	}
	if !s.taken {
		return 0, io.ErrUnexpectedEOF
	}
	return s.call.stdin.Read(p)
}

func (s *standby) wait() {
	c, life := s.call, s.call.parent
	c.meter.deadline = time.Now().Add(maxWait)
	close(s.waits)
	c.away(func() {
		select {
		case h := <-s.hand:
			s.taken = true
			c.become(h)
		case <-life.Done():
			c.meter.deadline = time.Now()
		}
	})
}

// become makes a standby's call that of somebody. The guest's goroutine calls it.
func (c *call) become(h handed) {
	c.parent, c.started, c.tool, c.args, c.input, c.limits = h.parent, h.started, h.tool, h.args, h.input, h.limits
	if h.host != nil {
		c.host = guarded{c, h.host}
	}
	c.turn.name = h.turn.name
	c.stdout.max, c.stderr.max, c.process.MaxWritten = h.limits.Output, h.limits.Log, h.limits.Files
	c.hostCalls, c.denied, c.logBytes = 0, 0, 0
	c.spent = c.meter.used()
	c.meter.renew(h.limits)
	c.meter.deadline = h.meter.deadline
	c.stdin.Reset(c.reads())
}

// take returns a standby that nobody has, nil if there is none. One that has ended before
// its call, for want of a slot on a busy machine, is none: what it ended of is not the
// caller's.
func (p *standbys) take() *standby {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.idle) > 0 {
		s := p.idle[0]
		p.idle = p.idle[1:]
		select {
		case <-s.done:
			s.end()
		default:
			return s
		}
	}
	return nil
}

// trim ends all but one of those that have waited for long.
func (p *standbys) trim(before time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.idle) > 1 && p.idle[0].since.Before(before) {
		p.idle[0].end()
		p.idle = slices.Delete(p.idle, 0, 1)
	}
}

// close ends all, and waits for that.
func (p *standbys) close() {
	p.mu.Lock()
	p.closed = true
	for _, s := range p.idle {
		s.end()
	}
	p.idle = nil
	p.mu.Unlock()
	p.all.Wait()
}
