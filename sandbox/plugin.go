package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero/api"

	"github.com/wasmgate/wasmgate/sandbox/internal/extism"
)

// pluginOf finds the state of the plug-in that runs.
func pluginOf(ctx context.Context) *extism.Plugin {
	return ctx.Value(callKey{}).(*call).plugin
}

// newPlugin is the state of a call of a plug-in. What it may ask for it asks the
// host of the call.
func newPlugin(c *call) *extism.Plugin {
	p := &extism.Plugin{
		Config: c.module.grants.Config, Charge: c.meter.toll, MaxHeap: c.limits.Memory,
		Log: func(level, message string) { c.log.message(pluginLevels[level], []byte(message)) },
	}
	p.NoHTTP = fmt.Errorf("%w: it is granted no HTTP", ErrDenied)
	if c.module.grants.HTTP {
		p.HTTP = func(_ context.Context, method, url string, header map[string][]string, body []byte) (int, map[string][]string, []byte, error) {
			r, err := c.requests.send(HTTPRequest{Method: method, URL: url, Header: header, Body: body})
			return r.Status, r.Header, r.Body, err
		}
	}
	if c.module.grants.KV {
		p.Var = func(_ context.Context, key string) ([]byte, bool, error) {
			r, err := c.requests.keep(KVRequest{Op: "get", Key: key})
			return r.Value, r.Found, err
		}
		p.SetVar = func(_ context.Context, key string, value []byte) error {
			op := "set"
			if value == nil {
				op = "delete"
			}
			_, err := c.requests.keep(KVRequest{Op: op, Key: key, Value: value})
			return err
		}
	}
	return p
}

var pluginLevels = map[string]slog.Level{
	"trace": slog.LevelDebug, "debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
}

// A pluginCall is the call of a plug-in, by the conventions of Extism.
type pluginCall struct{ *call }

// answer has an instance answer the call.
func (c pluginCall) answer(in *instance) (Result, error) {
	if c.module.plain {
		return c.answerPlain(in)
	}
	input, err := extism.Request(c.module.version, c.tool, c.args)
	if err != nil {
		return Result{}, fmt.Errorf("sandbox: tool %s: %w", c.tool, err)
	}
	out, err := c.run(in, c.module.version.Call(), input)
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
		return Result{}, c.trap(TrapGuest, "its output is not a result of a tool", err)
	}
	b, err := json.Marshal(answer)
	if err != nil {
		return Result{}, c.trap(TrapGuest, "its output is not a result of a tool", err)
	}
	return Result{Output: b, IsError: answer.IsError, Whole: true}, nil
}

// run runs a function of a plug-in from input to output. The error is an
// [*extism.GuestError] if the plug-in reports one.
func (c pluginCall) run(in *instance, function string, input []byte) ([]byte, error) {
	c.plugin.Input = input
	f := in.function(function)
	var stack [1]uint64
	if err := c.invoke(f, stack[:]); err != nil {
		return nil, c.ending(err)
	}
	return c.plugin.Answer(stack[:len(f.Definition().ResultTypes())])
}

// ending tells apart what ended a plug-in: its ABI cannot tell it of
// failures, so that a denial ends it as well.
func (c pluginCall) ending(err error) error {
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
	if m.plain {
		return m.listPlain()
	}
	c := pluginCall{newCall(ctx, m, m.version.List(), nil, CallConfig{}, m.limits)}
	if c.process != nil {
		c.process.Env, c.process.Dirs = nil, nil
	}
	c.plugin = &extism.Plugin{Charge: c.meter.toll, MaxHeap: c.limits.Memory}
	c.begin()
	if err := c.turn.Enter(c); err != nil {
		return nil, c.busy(err)
	}
	defer c.turn.Leave()
	defer c.finish(&Result{}, &err)
	in, err := m.first(c.call)
	if err != nil {
		return nil, c.outcome(err)
	}
	defer in.close(context.WithoutCancel(ctx))
	if err := c.initialize(in); err != nil {
		return nil, c.outcome(err)
	}
	out, err := c.run(in, m.version.List(), extism.ListRequest(m.version))
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

// followPlugin finds out by which convention a plug-in offers tools.
func (m *Module) followPlugin() error {
	exports := m.compiled.ExportedFunctions()
	v, ok := extism.Detect(func(name string) bool { return exports[name] != nil })
	if !ok {
		m.plain = true
		if len(m.callable()) == 0 {
			return errors.New("it is an Extism plug-in, but exports no function from nothing to i32 that could be a tool")
		}
		return nil
	}
	m.version = v
	for _, name := range []string{v.Call(), v.List()} {
		if !isCallable(exports[name]) {
			return fmt.Errorf("it is an Extism plug-in, but does not export %s from nothing to i32", name)
		}
	}
	return nil
}

// isCallable reports whether a plug-in's host can call a function: from nothing to i32, or
// to nothing (Extism, "Writing plug-ins").
func isCallable(f api.FunctionDefinition) bool {
	return f != nil && len(f.ParamTypes()) == 0 && (len(f.ResultTypes()) == 0 || bytes.Equal(f.ResultTypes(), []byte{i32}))
}

// ofRuntimes are exports that are no tools: they belong to what a plug-in was written in.
var ofRuntimes = []string{"_start", "_initialize", "__wasm_call_ctors", "hs_init", "hs_exit", "__wasi_proc_exit"}

// callable returns the names of the functions of a plain plug-in.
func (m *Module) callable() (names []string) {
	for name, f := range m.compiled.ExportedFunctions() {
		if isCallable(f) && !slices.Contains(ofRuntimes, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (m *Module) checkExport(tool string) error {
	if names := m.callable(); !slices.Contains(names, tool) {
		return fmt.Errorf("it exports no function %q, after which a tool of its manifest is named; there are: %s", tool, strings.Join(names, ", "))
	}
	return nil
}

// textInput is the schema of a tool that takes a text.
const textInput = `{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}`

// listPlain makes a tool of each function, from a text to a text.
func (m *Module) listPlain() (tools []Tool, err error) {
	for _, name := range m.callable() {
		tools = append(tools, Tool{Name: name, Description: "The function " + name + " of an Extism plug-in, from a text to a text.", InputSchema: []byte(textInput)})
	}
	return tools, Manifest{Tools: tools}.check()
}

// answerPlain calls a function of a plain plug-in. One whose only argument is a text, input,
// gets it as it is, others their arguments as JSON. One with an output schema answers with
// JSON, others with a text.
func (c pluginCall) answerPlain(in *instance) (Result, error) {
	tool := c.module.tools[slices.IndexFunc(c.module.tools, func(t Tool) bool { return t.Name == c.tool })]
	input := c.args
	var schema struct{ Properties map[string]json.RawMessage }
	var lone struct{ Input *string }
	if json.Unmarshal(tool.InputSchema, &schema) == nil && len(schema.Properties) == 1 && json.Unmarshal(c.args, &lone) == nil && lone.Input != nil {
		input = []byte(*lone.Input)
	}
	out, err := c.run(in, c.tool, input)
	var failed *extism.GuestError
	switch {
	case errors.As(err, &failed):
		return Result{Output: []byte(strings.ToValidUTF8(failed.Text, "\ufffd")), IsError: true}, nil
	case err != nil:
		return Result{}, err
	case int64(len(out)) > c.limits.Output:
		return Result{}, c.trap(TrapGuest, fmt.Sprintf("its output has more than %d bytes", c.limits.Output), nil)
	case tool.OutputSchema != nil:
		return structured(c.tool, out)
	}
	return text(c.tool, out)
}
