package sandbox

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/wasmgate/wasmgate/sandbox/internal/rewrite"
	"github.com/wasmgate/wasmgate/sandbox/internal/turns"
)

// standbys are the instances of a command that were started before their calls, and wait where they
// first read their input. The work of an interpreter before that takes longer than most calls. One
// that can be rewound serves a call after the other; others serve one.
type standbys struct {
	mu     sync.Mutex
	idle   []*standby     // since when they are it, the first first
	all    sync.WaitGroup // of their goroutines
	closed bool
}

// A standby is a guest that becomes one call after the other.
type standby struct {
	*call  // the one that it serves; between two calls one without a caller
	module *Module
	life   context.Context // of its goroutine
	stop   context.CancelFunc
	since  time.Time // when it was last kept

	waits  chan struct{} // closed when it first reads its input
	hand   chan handed
	done   chan struct{} // closed when it has ended
	failed error         // what it ended of before it had a call

	// Only the goroutine uses these, like the call.
	in     *instance
	engine context.Context // of the host function that the guest was in last
	before before
	reply  chan<- answer // of the call's owner; nil if there is none
	rewind rewind
}

// handed is a call for a standby.
type handed struct {
	*call
	reply chan<- answer
}

type answer struct {
	res Result
	err error
}

// before is what a guest has done before it read its input, as far as a call tells of it.
type before struct {
	stdout, stderr []byte
	complaint      string
	deniedMemory   bool
}

// callStandby has a standby become the call.
func (m *Module) callStandby(c *call) (Result, error) {
	c.begin()
	defer c.expire()
	if err := m.places.Enter(c, c.turn.Caller(), c.waiter); err != nil {
		return Result{Took: time.Since(c.started)}, c.busy(err)
	}
	defer m.places.Leave(c.turn.Caller())
	c.beginTime()
	s := m.standbys.take()
	if s == nil {
		if s = m.start(false); s == nil {
			return Result{}, turns.ErrClosed
		}
	}
	select {
	case <-s.waits:
	case <-s.done:
	case <-c.Done():
		m.standbys.keep(s)
		return Result{Took: time.Since(c.started)}, c.outcome(c.Err())
	}
	if err := c.turn.Enter(c); err != nil {
		m.standbys.keep(s)
		return Result{Took: time.Since(c.started)}, c.busy(err)
	}
	reply := make(chan answer, 1)
	select {
	case s.hand <- handed{c, reply}:
	case <-s.done: // before it has read anything
		c.turn.Leave()
		if s.failed == nil {
			s.failed = c.trap(TrapGuest, "it ended before it read its request; snapshot: input is for commands that read it", nil)
		}
		return Result{Took: time.Since(c.started)}, s.failed
	}
	a := <-reply // its own meter and context end it
	return a.res, a.err
}

// start starts a standby, for the next call if it is to be kept; nil if the module is closed, or
// enough are kept.
func (m *Module) start(keep bool) *standby {
	pool := m.standbys
	pool.mu.Lock()
	defer pool.mu.Unlock()
	if pool.closed || keep && len(pool.idle) >= keptInstances() {
		return nil
	}
	s := &standby{module: m, waits: make(chan struct{}), hand: make(chan handed), done: make(chan struct{}), since: time.Now()}
	s.life, s.stop = context.WithCancel(context.Background())
	s.call = s.nobodys()
	if keep {
		pool.idle = append(pool.idle, s)
	}
	pool.all.Go(func() {
		defer close(s.done)
		defer s.stop()
		s.run()
	})
	return s
}

// nobodys returns a call without a caller, with a process as a guest has it when it begins.
func (s *standby) nobodys() *call {
	c := newCall(s.life, s.module, s.module.tools[0].Name, nil, CallConfig{}, s.module.limits)
	c.standby = s
	p := c.process // of the call that will come
	p.Stdin, p.Stdout, p.Stderr = s, &written{s, false}, &written{s, true}
	p.Ask = func(ctx context.Context, op, path string) error { return s.requests.file(ctx, op, path) }
	p.Charge = func(bytes int) error { return s.meter.toll(bytes) }
	p.Sleep = func(ctx context.Context) { s.sleep(ctx) }
	p.Exit = s.exits
	c.begin()
	return c
}

// written is stdout or stderr of a standby.
type written struct {
	by     *standby
	stderr bool
}

// Write implements [io.Writer].
func (w *written) Write(p []byte) (int, error) {
	if w.stderr {
		return w.by.stderr.Write(p)
	}
	return w.by.stdout.Write(p)
}

// run runs the guest until it ends, and answers the last of its calls.
func (s *standby) run() {
	if s.failed = s.turn.Enter(s.call); s.failed != nil {
		return
	}
	a := s.live()
	s.turn.Leave()
	if s.reply == nil {
		s.failed = a.err
		return
	}
	s.module.start(true) // in its place
	s.reply <- a
}

// live has the guest live on an instance of its own.
func (s *standby) live() (a answer) {
	snapshot, res, err := s.prepare()
	if err != nil {
		return answer{res, err}
	}
	defer s.release(snapshot)
	res, err = s.guest(snapshot)
	if s.rewind.owed != nil { // the call was over by then
		return *s.rewind.owed
	}
	res, err = s.conclude(s.in, res, err)
	return answer{res, err}
}

// release gives back what the instance had.
func (s *standby) release(to *snapshot) {
	switch {
	case s.in == nil:
	case s.rewind.to == nil:
		s.module.release(context.Background(), s.in, to, s.intact)
	default: // its memory is none of the module's
		_ = s.in.close(context.Background()).Close() // only unmaps, as the next
		_ = s.rewind.to.image.Close()
	}
}

// guest runs the guest to its end.
func (s *standby) guest(from *snapshot) (res Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.broken = fmt.Errorf("sandbox: tool %s: panic in the engine: %v", s.tool, p)
		}
	}()
	if s.in, err = s.module.acquire(s.call, from); err != nil {
		return Result{}, err
	}
	s.become(s.call)
	ctx := experimental.WithSnapshotter(current{context.Background(), s})
	if f := s.in.function(rewrite.StartFunction); f != nil {
		if err := s.enter(ctx, f); err != nil {
			return Result{}, s.failure("it does not initialize", err)
		}
	}
	f := s.in.function(rewrite.RunFunction)
	if s.rewind.run = f; f == nil {
		f = s.in.function(exportStart)
	}
	return s.exited(s.enter(ctx, f))
}

func (s *standby) enter(ctx context.Context, f api.Function) error {
	s.running = f
	return f.CallWithStack(ctx, nil)
}

// current is the context in which the engine runs a standby. It knows the call that the guest
// is now, and nothing else.
type current struct {
	context.Context
	of *standby
}

// Value implements [context.Context].
func (c current) Value(key any) any {
	if key == (callKey{}) {
		return c.of.call
	}
	return c.Context.Value(key)
}

// become makes the guest that of a call, which has used nothing yet.
func (s *standby) become(c *call) {
	c.standby, c.instance, c.running = s, s.in, s.running
	c.meter.globals = s.in.fuel
	s.in.fuel.begin()
	s.in.user, s.call = c, c
}

// Read implements [io.Reader]. The first one waits for the call.
func (s *standby) Read(p []byte) (int, error) {
	if s.reply == nil || s.rewind.owed != nil {
		s.wait()
	}
	return s.stdin.Read(p)
}

// wait waits where the guest reads its input, for the call that it becomes.
func (s *standby) wait() {
	if s.allocating {
		s.call.end(TrapGuest, "it reads its input from "+exportRealloc)
	}
	if !closed(s.waits) {
		s.before = before{s.stdout.buf, s.stderr.buf, s.log.complaint, s.deniedMemory}
		s.mark()
		close(s.waits)
	}
	s.turn.Leave()
	s.rewind.wait(s)
	select {
	case h := <-s.hand:
		s.receive(h)
	case <-s.life.Done():
		panic(turns.ErrClosed) // is how a host function ends a guest
	}
}

// receive makes the guest that of a call whose caller waits.
func (s *standby) receive(h handed) {
	c := h.call
	c.process = s.process
	c.process.MaxWritten, c.process.Sees = c.limits.Files, c.sees
	c.log.complaint, c.deniedMemory = s.before.complaint, s.before.deniedMemory
	_, _ = c.stdout.Write(s.before.stdout) // never fails, as the next
	_, _ = c.stderr.Write(s.before.stderr)
	c.stdin.Reset(c.reads())
	s.become(c)
	s.reply = h.reply
}

// take returns a standby that has no call yet, nil if there is none: the last that waits, or else
// the first that was started. One that has ended before its call, because it got no slot on a busy
// machine, does not count: what it ended of is not the caller's.
func (p *standbys) take() *standby {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = slices.DeleteFunc(p.idle, func(s *standby) bool { return closed(s.done) })
	if len(p.idle) == 0 {
		return nil
	}
	at := 0
	for i, s := range p.idle {
		if closed(s.waits) {
			at = i
		}
	}
	s := p.idle[at]
	p.idle = slices.Delete(p.idle, at, at+1)
	return s
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// keep keeps a standby for the next call, or ends it if there are enough.
func (p *standbys) keep(s *standby) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle) >= keptInstances() {
		s.stop()
		return
	}
	s.since = time.Now()
	p.idle = append(p.idle, s)
}

// trim ends all but one of those that have waited for long.
func (p *standbys) trim(before time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.idle) > 1 && p.idle[0].since.Before(before) {
		p.idle[0].stop()
		p.idle = slices.Delete(p.idle, 0, 1)
	}
}

// close ends all, and waits for that.
func (p *standbys) close() {
	p.mu.Lock()
	p.closed = true
	for _, s := range p.idle {
		s.stop()
	}
	p.idle = nil
	p.mu.Unlock()
	p.all.Wait()
}
