package sandbox

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"

	"github.com/wasmgate/wasmgate/sandbox/internal/extism"
	"github.com/wasmgate/wasmgate/sandbox/internal/rewrite"
	"github.com/wasmgate/wasmgate/sandbox/internal/turns"
	"github.com/wasmgate/wasmgate/sandbox/internal/wasi"
)

// A CallConfig is what one call has beyond its arguments. The zero CallConfig
// has the module's limits and no host.
type CallConfig struct {
	// Limits are stricter than the module's, or without effect.
	Limits Limits
	// Host carries out what the guest asks for. Nil denies it all.
	Host Host
	// Sees reports whether the guest may know of a place in a granted directory at all,
	// such as its metadata. One that it may not is refused, and the host is asked about
	// reading it. Nil hides nothing.
	Sees func(path string) bool
	// Caller names the caller. The callers of a module that wait are served in turn, and one that
	// has no call under way does not wait for others.
	Caller string
	// Session names whose instance a module with [IsolationSession] uses: calls
	// that must not see each other's state have different ones.
	Session string
	// Waiter, if it is not nil, learns when the call begins to wait for others of the sandbox.
	Waiter Waiter
}

// A Waiter learns that a call waits, perhaps several times.
type Waiter interface{ Waits() }

// Call runs a tool on args, a JSON value; empty args mean {}. A reactor gets them
// as they are.
//
// The guest may use what the limits allow, and sees only what the module's [Grants] and the call's
// [Host] let it see. No other call sees its changes of its own state, unless the module has
// [IsolationSession].
//
// The first call of a module also takes its snapshot.
//
// The error is a [*Trap] if the guest failed or exceeded a limit, a [*BusyError] if
// the time of the call was over before it could begin, and wraps ctx.Err() if ctx
// ended first. Call may be used from several goroutines.
func (m *Module) Call(ctx context.Context, tool string, args []byte, cfg CallConfig) (Result, error) {
	if !slices.ContainsFunc(m.tools, func(t Tool) bool { return t.Name == tool }) {
		return Result{}, fmt.Errorf("sandbox: module %q has no tool %q", m.name, tool)
	}
	if len(args) == 0 {
		args = []byte("{}")
	}
	if m.kind != reactor && !json.Valid(args) { // others get them as a part of JSON
		return Result{}, fmt.Errorf("sandbox: tool %s: the arguments are not JSON", tool)
	}
	limits, err := cfg.Limits.narrowed(m.limits)
	if err != nil {
		return Result{}, err
	}
	c := newCall(ctx, m, tool, args, cfg, limits)
	if m.invocation.filled() {
		words, stdin, err := m.invocation.fill(tool, args)
		if err != nil {
			return Result{Output: []byte(err.Error()), IsError: true}, nil
		}
		if c.input = stdin; c.process != nil {
			c.process.Args = words
		}
	}
	if m.isolation == IsolationSession {
		return m.runtime.sessions.call(c, cfg.Session)
	}
	if m.standbys != nil {
		return m.callStandby(c)
	}
	c.begin()
	leave, err := c.enter()
	if err != nil {
		return Result{Took: time.Since(c.started)}, err
	}
	defer leave()
	return c.once()
}

// enter waits for a place among the calls under way, and for a slot to run in.
func (c *call) enter() (leave func(), err error) {
	places := c.module.places
	if err := places.Enter(c, c.turn.Caller(), c.waiter); err != nil {
		return nil, c.busy(err)
	}
	if err := c.turn.Enter(c); err != nil {
		places.Leave(c.turn.Caller())
		return nil, c.busy(err)
	}
	c.beginTime() // what it has waited for others is none of its time
	return func() {
		c.turn.Leave()
		places.Leave(c.turn.Caller())
	}, nil
}

// busy says why a call has not begun.
func (c *call) busy(err error) error {
	switch {
	case errors.Is(err, turns.ErrClosed):
		return err
	case ended(c.parent) != nil:
		return fmt.Errorf("sandbox: tool %s: wait for other calls: %w", c.tool, ended(c.parent))
	}
	return &BusyError{Tool: c.tool, Waited: time.Since(c.started).Round(time.Millisecond)}
}

// away carries out what a guest waits for. Another has its slot meanwhile.
func (c *call) away(wait func()) {
	c.turn.Leave()
	defer func() {
		if err := c.turn.Enter(c); err != nil {
			panic(err) // is how a host function ends a guest
		}
	}()
	wait()
}

// sleep waits until ctx ends, for a guest that waits for nothing but a clock.
func (c *call) sleep(ctx context.Context) {
	if c.serving { // whose own end is none of its deadline
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, c.deadline)
		defer cancel()
	}
	c.away(func() { <-ctx.Done() })
}

// A call is the state of one call, and the context in which its guest runs: nothing that the host
// keeps for a guest is anywhere else.
type call struct {
	lifetime
	module *Module
	tool   string
	args   []byte
	input  []byte // that a command reads; nil for the request
	limits Limits
	sees   func(path string) bool
	waiter Waiter // may be nil

	meter    meter
	turn     *turns.Turn // of the goroutine in which the guest runs
	requests requests
	log      guestLog
	process  *wasi.Process  // nil if the module does not use WASI
	plugin   *extism.Plugin // nil if it is none
	stdin    bytes.Reader
	stdout   output
	stderr   output // and, of a reactor, stdout

	instance     *instance
	running      api.Function // of the guest, innermost
	deniedMemory bool
	allocating   bool     // the guest runs its cabi_realloc
	quoted       bool     // stderr became the text of a tool error
	intact       bool     // the instance can be used again
	broken       error    // the host's panic, if any
	standby      *standby // that is the call; nil for others
	fuel         uint64
	peak         int64
}

func newCall(ctx context.Context, m *Module, tool string, args []byte, cfg CallConfig, limits Limits) *call {
	c := &call{
		lifetime: lifetime{parent: ctx, timeout: limits.Timeout}, module: m, tool: tool, args: args, limits: limits, sees: cfg.Sees, waiter: cfg.Waiter,
		stdout: output{max: limits.Output},
		stderr: output{max: limits.Log},
	}
	c.log.call, c.requests = c, requests{call: c, host: noHost{}}
	if cfg.Host != nil {
		c.requests.host = guarded{c, cfg.Host}
	}
	c.meter = meter{life: &c.lifetime, stdout: &c.stdout, budget: int64(limits.Fuel)}
	c.turn = turns.NewTurn(m.slots, cfg.Caller)
	if m.wasi {
		c.process = c.newProcess()
	}
	if m.kind == plugin {
		c.plugin = newPlugin(c)
	}
	return c
}

// newProcess is what the guest sees through WASI.
func (c *call) newProcess() *wasi.Process {
	name := c.tool
	if c.module.kind != command { // what it has read once is there for all of its tools
		name = c.module.name
	}
	p := &wasi.Process{
		Args: append([]string{name}, c.module.invocation.args...), Env: c.module.env, Dirs: c.module.dirs, Stderr: &c.stderr, Stdout: &c.stderr,
		Ask: c.requests.file, Sees: c.sees, Charge: c.meter.toll, Sleep: c.sleep, MaxWritten: c.limits.Files,
	}
	if c.module.kind == command {
		p.Stdin, p.Stdout = &c.stdin, &c.stdout
	}
	return p
}

// callKey finds the call in the context that the engine hands to host functions.
type callKey struct{}

// Value implements [context.Context].
func (c *call) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return c.parent.Value(key)
}

// grow implements [user].
func (c *call) grow(used, size uint64) bool {
	if size > uint64(c.limits.Memory) {
		c.deniedMemory = true
		return false
	}
	c.meter.charge(size - used) // the new pages have to be cleared
	return true
}

// refill is called by a guest that has used up a slice, or calls the host. A
// panic is how a host function ends a guest.
func refill(ctx context.Context, guest api.Module, stack []uint64) {
	c := ctx.Value(callKey{}).(*call)
	m := &c.meter
	if m.globals.left == nil { // a start function runs before the host gets hold of the instance
		m.globals = globalsOf(guest)
	}
	left, now := int64(stack[0]), c.now()
	if err := m.check(left, now); err != nil {
		m.stop(left, err)
	}
	if left < 0 || int64(m.globals.behind.Get()) < 0 { // a slice is used up
		m.adapt(now, c.turn.Since(), sliceOf(guest.Memory().Size()))
		if c.running != nil && stackSize(c.running) > c.limits.Stack { // a start function has a stack of the engine's
			m.globals.left.Set(stack[0])
			c.end(TrapMemory, fmt.Sprintf("it needs more than %d bytes of stack", c.limits.Stack))
		}
	}
	if err := c.turn.Pass(c, now); err != nil { // also of a guest that calls its host so often that it uses up no slice
		m.stop(left, err)
	}
	more := min(m.slice-min(left, m.slice), m.budget-m.granted)
	m.granted += more
	m.globals.behind.Set(uint64(m.slice))
	stack[0] = uint64(left + more)
}

// once carries out the call on an instance that no other call uses meanwhile,
// and that is as the snapshot left it.
func (c *call) once() (res Result, err error) {
	s, res, err := c.prepare()
	if err != nil {
		return res, err
	}
	defer c.finish(&res, &err)
	in, err := c.module.acquire(c, s)
	if err != nil {
		return Result{}, c.outcome(err)
	}
	defer func() {
		c.measure(in)
		c.module.release(c.parent, in, s, c.intact)
	}()
	return c.on(in, true)
}

// on carries out the call on an instance, which, if it is fresh, is at the
// module's snapshot point.
func (c *call) on(in *instance, fresh bool) (res Result, err error) {
	in.fuel.begin()
	c.meter.globals = in.fuel
	if fresh && c.module.point == SnapshotInst {
		err = c.initialize(in)
	}
	if err == nil {
		res, err = c.serve(in)
	}
	return res, c.settle(in, err)
}

// initialize runs what a module wants to run before its first call.
func (c *call) initialize(in *instance) error {
	steps := []string{rewrite.StartFunction}
	switch {
	case c.module.kind == command: // runs whole, in each call
	case c.module.kind == plugin && in.function(exportInit) == nil:
		steps = append(steps, exportCtors)
	default:
		steps = append(steps, exportInit)
	}
	for _, name := range steps {
		f := in.function(name)
		if f == nil {
			continue
		}
		if err := c.invoke(f, nil); err != nil {
			return c.failure("it does not initialize", err)
		}
	}
	return nil
}

// serve has an instance answer the call.
func (c *call) serve(in *instance) (Result, error) {
	switch c.module.kind {
	case command:
		return c.runCommand(in)
	case plugin:
		return pluginCall{c}.answer(in)
	}
	return reactorCall{c}.answer(in)
}

// invoke calls a function of the guest, also from within another.
func (c *call) invoke(f api.Function, stack []uint64) error {
	outer := c.running
	c.running = f
	err := f.CallWithStack(c, stack)
	c.running = outer
	return err
}

// settle looks at how the guest ended.
func (c *call) settle(in *instance, err error) error {
	if c.meter.used() > deepFuel {
		in.dropStacks()
	}
	c.intact = c.endedWell(err) && c.broken == nil
	return c.outcome(err)
}

// conclude is the end of a call that is not carried out by [call.once]. There may be no instance.
func (c *call) conclude(in *instance, res Result, cause error) (_ Result, err error) {
	if in == nil {
		err = c.outcome(cause)
	} else {
		err = c.settle(in, cause)
		c.measure(in)
	}
	c.finish(&res, &err)
	return res, err
}

// measure takes the figures of the call from the instance, which is the next
// call's afterwards.
func (c *call) measure(in *instance) {
	c.fuel, c.peak = c.meter.used(), in.memory.Peak()
}

// outcome says why a call failed, if it did: not each guest that is ended fails
// at once, and some exit as if they had chosen to.
func (c *call) outcome(err error) error {
	var trap *Trap
	switch {
	case c.broken != nil:
		return c.broken
	case c.stdout.full:
		return c.trap(TrapGuest, fmt.Sprintf("its output has more than %d bytes", c.stdout.max), err)
	case err == nil:
		return nil
	case errors.As(err, &trap) && trap.final:
		return trap
	case c.meter.empty:
		return c.trap(TrapFuel, fmt.Sprintf("it needs more than %d instructions", c.limits.Fuel), err)
	case ended(c.parent) != nil:
		return fmt.Errorf("sandbox: tool %s: %w", c.tool, ended(c.parent))
	case c.Err() != nil:
		return c.trap(TrapDeadline, fmt.Sprintf("it ran longer than %v", c.limits.Timeout), err)
	case c.deniedMemory:
		return c.trap(TrapMemory, fmt.Sprintf("it needs more than %d bytes of memory", c.limits.Memory), err)
	}
	return err
}

// finish fills in what there is to say of a call when it has ended, also by a
// panic of the engine.
func (c *call) finish(res *Result, err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("sandbox: tool %s: panic in the engine: %v", c.tool, p)
	}
	if c.process != nil {
		*err = errors.Join(*err, c.process.Close())
	}
	if *err != nil {
		*res = Result{}
	}
	if t, ok := errors.AsType[*Trap](*err); ok && !c.quoted {
		t.Said = cmp.Or(said(c.stderr.buf), c.log.complaint)
	}
	c.expire()
	res.Fuel, res.MemoryPeak, res.HostCalls, res.Took = c.fuel, c.peak, c.requests.made, time.Since(c.started)
	if !c.quoted { // output that was returned to the caller is not logged: results never are
		c.log.stderr(&c.stderr)
	}
}

func (c *call) trap(kind TrapKind, reason string, err error) *Trap {
	return &Trap{Kind: kind, Tool: c.tool, Reason: reason, Err: err}
}

// end ends the guest from within a host function, which a panic does.
func (c *call) end(kind TrapKind, reason string) {
	t := c.trap(kind, reason, nil)
	t.final = true
	panic(t)
}

// endedWell reports whether an instance can be used again after err: whether it is known how it
// ended. After a panic of ours or the engine's it is not known.
func (c *call) endedWell(err error) bool {
	var exit *sys.ExitError
	var trap *Trap
	switch {
	case err == nil, errors.As(err, &exit), c.Err() != nil, errors.Is(err, errFuel), errors.Is(err, errOutput):
		return true
	case !errors.As(err, &trap):
		return false
	case trap.final || trap.Err == nil:
		return true
	}
	return slices.Contains(guestTraps, innermost(trap.Err).Error())
}

// failure makes a trap of an engine's error. It has only the innermost of a chain of errors: the
// ones around it contain names that the module chose.
func (c *call) failure(what string, err error) error {
	var exit *sys.ExitError
	var trap *Trap
	switch {
	case errors.As(err, &trap):
		return trap
	case errors.As(err, &exit):
		return c.trap(TrapGuest, fmt.Sprintf("%s: it exited with code %d", what, exit.ExitCode()), err)
	}
	return c.trap(TrapGuest, fmt.Sprintf("%s: %.200q", what, innermost(err).Error()), err)
}
