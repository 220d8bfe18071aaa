package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero/sys"
)

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

// answered makes a result of what a command wrote.
func (c *call) answered(out []byte) (Result, error) {
	if !c.module.invocation.text {
		return structured(c.tool, out)
	}
	return text(c.tool, out)
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
