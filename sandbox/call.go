package sandbox

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/sys"
)

// Grants are the capabilities that a call has beyond computing. This version
// knows none, so that all Grants are the zero Grants, which grant nothing.
type Grants struct{}

// A Result is what a tool answered. Its figures are also set when Call
// returns an error.
type Result struct {
	// Output is one JSON value in UTF-8, or, if IsError, the text of the tool
	// error. It is the caller's.
	Output  []byte
	IsError bool // the tool reported an error of its own

	Fuel       uint64        // instructions; the same for the same call, unless the guest looks at clocks or random numbers
	MemoryPeak int64         // bytes of linear memory
	Took       time.Duration // from instantiation to result, without waiting for a slot
}

// Call runs a tool on args, a JSON value; empty args mean {}.
//
// Each call gets a fresh instance: nothing survives from one call to the next.
// The guest may use what the module's [Limits] allow, and sees only what g
// grants.
//
// The error is a [*Trap] if the guest failed or exceeded a limit, and wraps
// ctx.Err() if ctx ended first. Call may be used from several goroutines.
func (m *Module) Call(ctx context.Context, tool string, args []byte, g Grants) (res Result, err error) {
	if !slices.ContainsFunc(m.tools, func(t Tool) bool { return t.Name == tool }) {
		return Result{}, fmt.Errorf("sandbox: module %q has no tool %q", m.name, tool)
	}
	if len(args) == 0 {
		args = []byte("{}")
	}
	if !json.Valid(args) {
		return Result{}, fmt.Errorf("sandbox: tool %s: the arguments are not JSON", tool)
	}
	if err := m.runtime.enter(ctx); err != nil {
		return Result{}, err
	}
	defer m.runtime.leave()

	start := time.Now()
	c := newCall(m, tool)
	m.buffers.take(&c.memory)
	defer func() {
		res.Fuel, res.MemoryPeak, res.Took = c.meter.used(), c.memory.peak(), time.Since(start)
		if p := recover(); p != nil { // the buffer is not kept: nobody knows who refers to it
			err = fmt.Errorf("sandbox: tool %s: panic in the engine: %v", tool, p)
			return
		}
		c.log(ctx)
		m.buffers.keep(&c.memory)
	}()
	return c.run(ctx, args)
}

// A call is the state of one call. Nothing of it outlives the call.
type call struct {
	module *Module
	tool   string
	memory memory
	meter  meter
	stdout output
	stderr output // and, of a reactor, stdout
	quoted bool   // stderr became the text of a tool error
}

func newCall(m *Module, tool string) *call {
	c := &call{
		module: m,
		tool:   tool,
		meter:  meter{budget: int64(m.limits.Fuel)},
		stdout: output{max: m.limits.Output},
		stderr: output{max: m.limits.Log},
	}
	c.memory = memory{limit: uint64(m.limits.Memory), meter: &c.meter}
	return c
}

func (c *call) run(ctx context.Context, args []byte) (Result, error) {
	limited, cancel := context.WithTimeout(ctx, c.module.limits.Timeout)
	defer cancel()
	c.stdout.overflow = cancel
	c.meter.deadline, _ = limited.Deadline()
	metered := context.WithValue(experimental.WithMemoryAllocator(limited, &c.memory), meterKey{}, &c.meter)
	res, err := c.instance(metered, args)
	switch {
	case c.stdout.full:
		return Result{}, c.trap(TrapGuest, fmt.Sprintf("its output has more than %d bytes", c.stdout.max), err)
	case err == nil:
		return res, nil
	case c.meter.empty:
		return Result{}, c.trap(TrapFuel, fmt.Sprintf("it needs more than %d instructions", c.module.limits.Fuel), err)
	case ended(ctx) != nil:
		return Result{}, fmt.Errorf("sandbox: tool %s: %w", c.tool, ended(ctx))
	case ended(limited) != nil:
		return Result{}, c.trap(TrapDeadline, fmt.Sprintf("it ran longer than %v", c.module.limits.Timeout), err)
	case c.memory.denied:
		return Result{}, c.trap(TrapMemory, fmt.Sprintf("it needs more than %d bytes of memory", c.module.limits.Memory), err)
	}
	return Result{}, err
}

// ended is ctx.Err(), also before the context's timer rings.
func ended(ctx context.Context) error {
	if at, ok := ctx.Deadline(); ok && ctx.Err() == nil && !time.Now().Before(at) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

// instance makes an instance, has it answer, and closes it.
func (c *call) instance(ctx context.Context, args []byte) (Result, error) {
	mod, err := c.module.runtime.engine.InstantiateModule(ctx, c.module.compiled, c.wasi(ctx, args))
	if err != nil {
		return Result{}, c.failure("it does not start", err)
	}
	defer mod.Close(context.WithoutCancel(ctx)) // frees no more than memory; its error is always nil
	if c.module.reactor {
		return c.react(ctx, mod, args)
	}
	return c.command(ctx, mod)
}

// wasi is all that a guest sees of the world.
func (c *call) wasi(ctx context.Context, args []byte) wazero.ModuleConfig {
	cfg := wazero.NewModuleConfig().
		WithName(""). // anonymous instances can exist side by side
		WithStartFunctions().
		WithArgs(c.tool).
		WithStderr(toll{ctx: ctx, meter: &c.meter, to: &c.stderr}).
		// The engine's own defaults for these four are fakes: a fixed seed, a
		// fixed date, a sleep that returns at once. Clocks are precise for now;
		// coarse ones, which hide more from a guest that measures what runs
		// beside it, belong to a WASI of our own.
		WithRandSource(toll{ctx: ctx, meter: &c.meter, from: rand.Reader}).
		WithSysWalltime().
		WithSysNanotime().
		WithNanosleep(func(ns int64) { sleep(ctx, time.Duration(ns)) })
	if c.module.reactor {
		return cfg.WithStdout(toll{ctx: ctx, meter: &c.meter, to: &c.stderr})
	}
	return cfg.WithStdout(toll{ctx: ctx, meter: &c.meter, to: &c.stdout}).
		WithStdin(toll{ctx: ctx, meter: &c.meter, from: bytes.NewReader(request(c.tool, args))})
}

// sleep ends with the call, which the engine's own would outlast.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// request returns what a command reads. The arguments go in byte for byte.
func request(tool string, args []byte) []byte {
	name, _ := json.Marshal(tool) // a string always marshals
	return slices.Concat([]byte(`{"name":`), name, []byte(`,"arguments":`), args, []byte("}"))
}

// command runs a WASI command to its end.
func (c *call) command(ctx context.Context, mod api.Module) (Result, error) {
	_, err := mod.ExportedFunction(exportStart).Call(ctx)
	var exit *sys.ExitError
	switch {
	case err == nil, errors.As(err, &exit) && exit.ExitCode() == 0:
		return c.structured(c.stdout.buf)
	case exit == nil:
		return Result{}, c.failure("it trapped", err)
	case ended(ctx) != nil, c.meter.empty, // then its reads and writes fail, and it exits for that
		c.memory.denied: // most language runtimes exit when they get no memory
		return Result{}, c.failure("it did not end well", err)
	}
	return c.toolError(exit.ExitCode()), nil
}

// toolError is the result of a command that exited with another code than 0.
func (c *call) toolError(code uint32) Result {
	c.quoted = true
	text := strings.TrimSpace(strings.ToValidUTF8(string(c.stderr.buf), "\ufffd"))
	if text == "" {
		text = fmt.Sprintf("the tool exited with code %d and no message", code)
	}
	return Result{Output: []byte(text), IsError: true}
}

// react calls a reactor by the canonical ABI. What the guest allocates for the
// result is not freed (cabi_post_tool_call): the instance ends here.
func (c *call) react(ctx context.Context, mod api.Module, args []byte) (Result, error) {
	if start := mod.ExportedFunction(exportInit); start != nil {
		if _, err := start.Call(ctx); err != nil {
			return Result{}, c.failure("it does not initialize", err)
		}
	}
	params := make([]uint64, 0, 4)
	for _, s := range [][]byte{[]byte(c.tool), args} {
		at, err := mod.ExportedFunction(exportRealloc).Call(ctx, 0, 0, 1, uint64(len(s)))
		if err != nil {
			return Result{}, c.failure("it trapped in cabi_realloc", err)
		}
		if !mod.Memory().Write(uint32(at[0]), s) {
			return Result{}, c.trap(TrapGuest, "cabi_realloc returned a pointer out of bounds", nil)
		}
		params = append(params, uint64(uint32(at[0])), uint64(len(s)))
	}
	answer, err := mod.ExportedFunction(exportCall).Call(ctx, params...)
	if err != nil {
		return Result{}, c.failure("it trapped", err)
	}
	return c.lift(mod.Memory(), uint32(answer[0]))
}

// lift reads a result<string, string>: a discriminant, a pointer, a length
// (Component Model, CanonicalABI.md, Loading).
func (c *call) lift(mem api.Memory, at uint32) (Result, error) {
	area, ok := mem.Read(at, 12)
	if !ok || area[0] > 1 {
		return Result{}, c.trap(TrapGuest, "tool_call returned no result<string, string>", nil)
	}
	isError := area[0] == 1
	from, size := binary.LittleEndian.Uint32(area[4:]), binary.LittleEndian.Uint32(area[8:])
	if int64(size) > c.module.limits.Output {
		return Result{}, c.trap(TrapGuest, fmt.Sprintf("its output has more than %d bytes", c.module.limits.Output), nil)
	}
	view, ok := mem.Read(from, size)
	if !ok {
		return Result{}, c.trap(TrapGuest, "its output lies out of bounds", nil)
	}
	out := slices.Clone(view) // the guest's memory must not leave the call
	if isError {
		if !utf8.Valid(out) {
			return Result{}, c.trap(TrapGuest, "its error is not UTF-8", nil)
		}
		return Result{Output: out, IsError: true}, nil
	}
	return c.structured(out)
}

// structured checks that a tool answered with one JSON value.
func (c *call) structured(out []byte) (Result, error) {
	out = bytes.TrimSpace(out)
	if !utf8.Valid(out) || !json.Valid(out) {
		return Result{}, c.trap(TrapGuest, "its output is not one JSON value in UTF-8", nil)
	}
	return Result{Output: out}, nil
}

func (c *call) trap(kind TrapKind, reason string, err error) *Trap {
	return &Trap{Kind: kind, Tool: c.tool, Reason: reason, Err: err}
}

// failure makes a trap of an engine's error. Of a chain of errors only the
// innermost is told: around it stand names that the module chose.
func (c *call) failure(what string, err error) *Trap {
	var exit *sys.ExitError
	if errors.As(err, &exit) {
		return c.trap(TrapGuest, fmt.Sprintf("%s: it exited with code %d", what, exit.ExitCode()), err)
	}
	cause := err
	for inner := errors.Unwrap(cause); inner != nil; inner = errors.Unwrap(cause) {
		cause = inner
	}
	return c.trap(TrapGuest, fmt.Sprintf("%s: %.200q", what, cause.Error()), err)
}

// log writes what the guest wrote to stderr as one record. Handlers quote it,
// so that it cannot look like records of its own. What was returned to the
// caller is not logged: results never are.
func (c *call) log(ctx context.Context) {
	if len(c.stderr.buf) == 0 || c.quoted {
		return
	}
	c.module.runtime.log.LogAttrs(ctx, slog.LevelInfo, "guest stderr",
		slog.String("module", c.module.name), slog.String("tool", c.tool),
		slog.String("text", strings.ToValidUTF8(string(c.stderr.buf), "\ufffd")), slog.Bool("truncated", c.stderr.full))
}

// An output takes what a guest writes, up to max bytes. Only the guest's
// goroutine uses it.
type output struct {
	buf      []byte
	max      int64
	full     bool
	overflow func() // called when more than max comes; nil drops it silently
}

var errOutputFull = errors.New("output limit reached")

func (o *output) Write(p []byte) (int, error) {
	room := o.max - int64(len(o.buf))
	if int64(len(p)) <= room {
		o.buf = append(o.buf, p...)
		return len(p), nil
	}
	o.buf = append(o.buf, p[:room]...)
	o.full = true
	if o.overflow == nil {
		return len(p), nil
	}
	o.overflow()
	return int(room), errOutputFull
}
