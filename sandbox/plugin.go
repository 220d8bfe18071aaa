package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/tetratelabs/wazero/api"

	"github.com/wasmgate/wasmgate/sandbox/extism"
)

// pluginOf finds the state of the plug-in that runs.
func pluginOf(ctx context.Context) *extism.Plugin {
	return ctx.Value(callKey{}).(*call).plugin
}

// newPlugin is the state of a call of a plug-in. What it may ask for it asks the
// host of the call.
func (c *call) newPlugin(config map[string]string) *extism.Plugin {
	p := &extism.Plugin{
		Config: config, Charge: c.toll, MaxHeap: c.limits.Memory,
		Log: func(level, message string) { c.message(pluginLevels[level], []byte(message)) },
	}
	p.NoHTTP = fmt.Errorf("%w: it is granted no HTTP", ErrDenied)
	if c.module.grants.HTTP {
		p.HTTP = func(_ context.Context, method, url string, header map[string][]string, body []byte) (int, map[string][]string, []byte, error) {
			r, err := c.send(HTTPRequest{Method: method, URL: url, Header: header, Body: body})
			return r.Status, r.Header, r.Body, err
		}
	}
	if c.module.grants.KV {
		p.Var = func(_ context.Context, key string) ([]byte, bool, error) {
			r, err := c.keep(KVRequest{Op: "get", Key: key})
			return r.Value, r.Found, err
		}
		p.SetVar = func(_ context.Context, key string, value []byte) error {
			op := "set"
			if value == nil {
				op = "delete"
			}
			_, err := c.keep(KVRequest{Op: op, Key: key, Value: value})
			return err
		}
	}
	return p
}

var pluginLevels = map[string]slog.Level{
	"trace": slog.LevelDebug, "debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
}

// callPlugin calls a tool of a plug-in.
func (c *call) callPlugin(in *instance) (Result, error) {
	input, err := extism.Request(c.module.version, c.tool, c.args)
	if err != nil {
		return Result{}, fmt.Errorf("sandbox: tool %s: %w", c.tool, err)
	}
	out, err := c.runPlugin(in, c.module.version.Call(), input)
	var failed *extism.GuestError
	if errors.As(err, &failed) {
		return Result{Output: []byte(strings.ToValidUTF8(failed.Text, "\ufffd")), IsError: true}, nil
	}
	if err != nil {
		return Result{}, err
	}
	if int64(len(out)) > c.limits.Output {
		return Result{}, c.trap(TrapGuest, fmt.Sprintf("its output has more than %d bytes", c.limits.Output), nil)
	}
	answer, err := extism.ParseResult(c.module.version, out)
	if err != nil {
		return Result{}, c.trap(TrapGuest, "its output is no result of a tool", err)
	}
	b, err := json.Marshal(answer)
	if err != nil {
		return Result{}, c.trap(TrapGuest, "its output is no result of a tool", err)
	}
	return Result{Output: b, IsError: answer.IsError, Whole: true}, nil
}

// runPlugin runs a function of a plug-in from input to output. The error is an
// [*extism.GuestError] if the plug-in reports one.
func (c *call) runPlugin(in *instance, function string, input []byte) ([]byte, error) {
	c.plugin.Input = input
	f := in.function(function)
	var stack [1]uint64
	if err := c.invoke(f, stack[:]); err != nil {
		return nil, c.pluginFailure(err)
	}
	return c.plugin.Answer(stack[:len(f.Definition().ResultTypes())])
}

// pluginFailure tells apart what ended a plug-in: its ABI cannot tell it of
// failures, so that a denial ends it as well.
func (c *call) pluginFailure(err error) error {
	var host *extism.Error
	switch {
	case errors.Is(err, extism.ErrHeap):
		return c.trap(TrapMemory, fmt.Sprintf("its heap needs more than %d bytes", c.limits.Memory), err)
	case errors.As(err, &host) && errors.Is(err, ErrDenied):
		return c.trap(TrapDenied, fmt.Sprintf("%.200q", host.Error()), err)
	case errors.As(err, &host):
		return c.trap(TrapGuest, fmt.Sprintf("%.200q", host.Error()), err)
	case c.plugin.Err != "":
		return c.trap(TrapGuest, fmt.Sprintf("it trapped, and says: %.200q", c.plugin.Err), err)
	}
	return c.failure("it trapped", err)
}

// list asks a plug-in that has no manifest for its tools. Its own code answers:
// without grants, in an instance that no call uses.
func (m *Module) list(ctx context.Context) (tools []Tool, err error) {
	c := newCall(ctx, m, m.version.List(), nil, CallConfig{}, m.limits)
	if c.process != nil {
		c.process.Env, c.process.Dirs = nil, nil
	}
	c.plugin = &extism.Plugin{Charge: c.toll, MaxHeap: c.limits.Memory}
	c.begin()
	if err := c.turn.enter(c); err != nil {
		return nil, c.busy(err)
	}
	defer c.turn.leave()
	defer c.finish(&Result{}, &err)
	in, err := m.first(c)
	if err != nil {
		return nil, c.outcome(err)
	}
	defer in.close(context.WithoutCancel(ctx))
	if err := c.initialize(in); err != nil {
		return nil, c.outcome(err)
	}
	out, err := c.runPlugin(in, m.version.List(), extism.ListRequest(m.version))
	if err != nil {
		return nil, fmt.Errorf("it does not list its tools: %w", c.outcome(err))
	}
	listed, err := extism.ParseTools(m.version, out)
	if err != nil {
		return nil, fmt.Errorf("it does not list its tools: %w", err)
	}
	for _, t := range listed {
		tools = append(tools, Tool(t))
	}
	return tools, Manifest{Tools: tools}.check()
}

// pluginVersion returns the convention by which a plug-in offers tools.
func pluginVersion(exports map[string]api.FunctionDefinition) (extism.Version, error) {
	v, ok := extism.Detect(func(name string) bool { return exports[name] != nil })
	if !ok {
		return 0, errors.New("it is an Extism plug-in, but exports neither call and describe nor call_tool and list_tools")
	}
	for _, name := range []string{v.Call(), v.List()} {
		f := exports[name]
		if f == nil || len(f.ParamTypes()) > 0 || len(f.ResultTypes()) > 1 || len(f.ResultTypes()) == 1 && !bytes.Equal(f.ResultTypes(), []byte{i32}) {
			return 0, fmt.Errorf("it is an Extism plug-in, but does not export %s from nothing to i32", name)
		}
	}
	return v, nil
}
