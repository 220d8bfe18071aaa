package sandbox

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"

	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/sandbox/internal/rewrite"
)

// A kind is the ABI that a module follows.
type kind string

const (
	command kind = "command" // WASI: _start
	reactor kind = "reactor" // tool_call, cabi_realloc
	plugin  kind = "extism"  // a plug-in of Extism's
)

const (
	i32 = api.ValueTypeI32

	exportStart   = "_start"
	exportInit    = "_initialize"
	exportCtors   = "__wasm_call_ctors" // what some plug-ins of Extism have for it
	exportCall    = "tool_call"
	exportPost    = "cabi_post_tool_call"
	exportRealloc = "cabi_realloc"
	exportMemory  = "memory"
)

// abi lists the parameters and results of the functions that are called.
var abi = map[string][2][]api.ValueType{
	exportStart:   {{}, {}},
	exportInit:    {{}, {}},
	exportCtors:   {{}, {}},
	exportCall:    {{i32, i32, i32, i32}, {i32}},
	exportPost:    {{i32}, {}},
	exportRealloc: {{i32, i32, i32, i32}, {i32}},
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
		return c.callPlugin(in)
	}
	return c.callReactor(in)
}

// invoke calls a function of the guest, also from within another.
func (c *call) invoke(f api.Function, stack []uint64) error {
	outer := c.running
	c.running = f
	err := f.CallWithStack(c, stack)
	c.running = outer
	return err
}

// reads returns what a command reads.
func (c *call) reads() []byte {
	if c.input != nil {
		return c.input
	}
	return request(c.tool, c.args)
}

// request returns a call as JSON. The arguments go in byte for byte.
func request(tool string, args []byte) []byte {
	name, _ := json.Marshal(tool) // a string always marshals
	return slices.Concat([]byte(`{"name":`), name, []byte(`,"arguments":`), args, []byte("}"))
}

// runCommand runs a WASI command to its end.
func (c *call) runCommand(in *instance) (Result, error) {
	c.stdin.Reset(c.reads())
	return c.exited(c.invoke(in.function(exportStart), nil))
}

// exited is the result of a command that has ended.
func (c *call) exited(err error) (Result, error) {
	var exit *sys.ExitError
	switch {
	case err == nil, errors.As(err, &exit) && exit.ExitCode() == 0:
		return c.answered(c.stdout.buf)
	case exit == nil:
		return Result{}, c.failure("it trapped", err)
	case c.Err() != nil, c.meter.empty, // then its reads and writes fail, and it exits for that
		c.deniedMemory: // most language runtimes exit when they get no memory
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

// callReactor calls a reactor by the canonical ABI.
func (c *call) callReactor(in *instance) (Result, error) {
	var stack [4]uint64
	for i, s := range [][]byte{[]byte(c.tool), c.args} {
		at, err := c.lower(in, s)
		if err != nil {
			return Result{}, err
		}
		stack[2*i], stack[2*i+1] = uint64(at), uint64(len(s))
	}
	if err := c.invoke(in.function(exportCall), stack[:]); err != nil {
		return Result{}, c.failure("it trapped", err)
	}
	answer := uint32(stack[0])
	res, err := c.lift(in.mod.Memory(), answer)
	if post := in.function(exportPost); post != nil && err == nil && c.module.isolation == IsolationSession {
		stack[0] = uint64(answer)
		if err := c.invoke(post, stack[:1]); err != nil {
			return Result{}, c.failure("it trapped in "+exportPost, err)
		}
	}
	return res, err
}

// lower copies a string into memory that the guest allocates for it.
func (c *call) lower(in *instance, s []byte) (uint32, error) {
	c.allocating = true
	stack := [4]uint64{0, 0, 1, uint64(len(s))}
	err := c.invoke(in.function(exportRealloc), stack[:])
	c.allocating = false
	if err != nil {
		return 0, c.failure("it trapped in "+exportRealloc, err)
	}
	if !in.mod.Memory().Write(uint32(stack[0]), s) {
		return 0, c.trap(TrapGuest, exportRealloc+" returned a pointer out of bounds", nil)
	}
	return uint32(stack[0]), nil
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
	if int64(size) > c.limits.Output {
		return Result{}, c.trap(TrapGuest, fmt.Sprintf("its output has more than %d bytes", c.limits.Output), nil)
	}
	view, ok := mem.Read(from, size)
	if !ok {
		return Result{}, c.trap(TrapGuest, "its output is outside its memory", nil)
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

// structured checks that a tool answered with one JSON value, as the gateway reads it: halves of
// surrogate pairs become U+FFFD, and no object has a member twice.
func (c *call) structured(out []byte) (Result, error) {
	out = bytes.TrimSpace(out)
	doc.ReplaceSurrogates(out)
	if _, err := doc.Parse(out); err != nil {
		why := "its output is not one JSON value in UTF-8"
		if utf8.Valid(out) && json.Valid(out) {
			why = "its output is JSON that parsers read in different ways: " + err.Error()
		}
		return Result{}, c.unreadable(why, out)
	}
	return Result{Output: out}, nil
}

// unreadable is the trap of a guest whose output is not what it has to be.
func (c *call) unreadable(reason string, out []byte) *Trap {
	t := c.trap(TrapGuest, reason, nil)
	t.Wrote = string(out[:min(len(out), maxSaid)])
	return t
}
