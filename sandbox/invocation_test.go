package sandbox_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/sandbox"
)

// said is a command that writes its arguments, each with a NUL behind it.
func said() []byte {
	g := newGuest()
	sizes := g.wasi("args_sizes_get", i32+i32, i32)
	args := g.wasi("args_get", i32+i32, i32)
	write := g.wasi("fd_write", i32+i32+i32+i32, i32)
	g.function("_start", "", "",
		number(0), number(4), sizes, drop,
		number(64), number(1024), args, drop,
		put(16, 1024), number(20), number(4), load, store,
		number(1), number(16), number(1), number(8), write, drop)
	return g.bytes()
}

// TestArgumentsOfAReactor: what a reactor reads at its start holds for all of its tools.
func TestArgumentsOfAReactor(t *testing.T) {
	g := newGuest()
	args := g.wasi("args_get", i32+i32, i32)
	write := g.wasi("fd_write", i32+i32+i32+i32, i32)
	g.allocator()
	g.function("_initialize", "", "", number(64), number(1024), args, drop)
	g.function("tool_call", i32+i32+i32+i32, i32, put(16, 1024), put(20, 4), number(2), number(16), number(1), number(8), write, drop, unreachable)
	var tools []sandbox.Tool
	for _, name := range []string{"a", "b"} {
		tools = append(tools, sandbox.Tool{Name: name, InputSchema: []byte(`{"type":"object"}`)})
	}
	r := newRuntime(t, sandbox.Config{})
	m := compile(t, r, g.bytes(), sandbox.ModuleConfig{Name: "m", Manifest: &sandbox.Manifest{Tools: tools, Args: []string{"x"}}})
	for _, tool := range tools {
		_, err := m.Call(t.Context(), tool.Name, nil, sandbox.CallConfig{})
		if trap, ok := errors.AsType[*sandbox.Trap](err); !ok || trap.Said != "m\x00x\x00" {
			t.Errorf("tool %s: %v", tool.Name, err)
		}
	}
}

// TestInvocation: a WASI program that knows nothing of tools gets arguments of the call, reads
// one of them, and writes text.
func TestInvocation(t *testing.T) {
	tool := []sandbox.Tool{{Name: "t", InputSchema: []byte(`{"type":"object"}`)}}
	text := func(s string) string { return `{"content":[{"text":"` + s + `","type":"text"}]}` }
	r := newRuntime(t, sandbox.Config{})
	for name, tt := range map[string]struct {
		wasm     []byte
		manifest sandbox.Manifest
		args     string
		want     string // in the output
		failure  string // in the tool's error
	}{
		"arguments of the call": {said(), sandbox.Manifest{Args: []string{"-e", "{{code}}", "{{n}}", "{{list}}"}, Stdout: "text"},
			`{"code":"a b; \"c\"","n":5,"list":[1, 2]}`, text(`t\u0000-e\u0000a b; \"c\"\u00005\u0000[1, 2]\u0000`), ""},
		"one that is not there": {said(), sandbox.Manifest{Args: []string{"-e", "{{code}}", "{{n}}"}, Stdout: "text"}, `{"n":null}`, text(`t\u0000-e\u0000`), ""},
		"braces in code":        {said(), sandbox.Manifest{Args: []string{"f'{{x}}'", "{{", "{{}}", "{{a}}{{b}}"}, Stdout: "text"}, `{"x":1,"a":2,"b":3}`, text(`t\u0000f'{{x}}'\u0000{{\u0000{{}}\u0000{{a}}{{b}}\u0000`), ""},
		"a NUL":                 {said(), sandbox.Manifest{Args: []string{"{{code}}"}, Stdout: "text"}, `{"code":"a\u0000-x"}`, "", "argument code has a NUL character"},
		"standard input":        {command(1, 0).bytesWithout(), sandbox.Manifest{Stdin: "{{text}}", Stdout: "text"}, `{"text":"a\nb"}`, text(`a\nb`), ""},
		"nothing to read":       {command(1, 0).bytesWithout(), sandbox.Manifest{Stdin: "{{text}}", Stdout: "text"}, `{}`, text(``), ""},
		"an object to read":     {command(1, 0).bytesWithout(), sandbox.Manifest{Stdin: "{{data}}"}, `{"data":{"a":1}}`, `{"a":1}`, ""},
		"read after the start":  {command(1, 0).bytesWithout(), sandbox.Manifest{Stdin: "{{text}}", Stdout: "text", Snapshot: sandbox.SnapshotInput}, `{"text":"a"}`, text(`a`), ""},
		"no JSON object":        {said(), sandbox.Manifest{Args: []string{"{{code}}"}, Stdout: "text"}, `[]`, "", "not a JSON object"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.manifest.Tools = tool
			m := compile(t, r, tt.wasm, sandbox.ModuleConfig{Manifest: &tt.manifest})
			for range 3 {
				res, err := m.Call(t.Context(), "t", []byte(tt.args), sandbox.CallConfig{})
				if err != nil || res.IsError != (tt.failure != "") || tt.want != "" && string(res.Output) != tt.want || !strings.Contains(string(res.Output), tt.failure) {
					t.Errorf("%s (%v), %v; want %s%s", res.Output, res.IsError, err, tt.want, tt.failure)
				}
			}
		})
	}
	for name, tt := range map[string]struct {
		wasm     []byte
		manifest sandbox.Manifest
		want     string
	}{
		"more than an argument to read":    {said(), sandbox.Manifest{Stdin: "a {{text}}"}, "stdin"},
		"another kind of output":           {said(), sandbox.Manifest{Stdout: "yaml"}, "stdout"},
		"text with a schema":               {said(), sandbox.Manifest{Stdout: "text", Tools: []sandbox.Tool{{Name: "t", InputSchema: []byte(`{}`), OutputSchema: []byte(`{}`)}}}, "outputSchema"},
		"arguments before there is a call": {said(), sandbox.Manifest{Args: []string{"{{a}}"}, Snapshot: sandbox.SnapshotInput}, "before there is a call"},
		"a reactor":                        {reactor(say(number(1))).bytesWithout(), sandbox.Manifest{Stdin: "{{a}}"}, "work only for WASI commands"},
	} {
		if tt.manifest.Tools == nil {
			tt.manifest.Tools = tool
		}
		if _, err := r.Compile(t.Context(), tt.wasm, sandbox.ModuleConfig{Manifest: &tt.manifest}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
}

// TestTextOutput: what is no text is not taken for one.
func TestTextOutput(t *testing.T) {
	g := newGuest()
	write := g.wasi("fd_write", i32+i32+i32+i32, i32)
	g.function("_start", "", "", put(0, 64), put(4, 4), put(64, -1), number(1), number(0), number(1), number(8), write, drop)
	m := compile(t, newRuntime(t, sandbox.Config{}), g.bytes(), sandbox.ModuleConfig{Manifest: &sandbox.Manifest{Stdout: "text", Tools: []sandbox.Tool{{Name: "t", InputSchema: []byte(`{}`)}}}})
	if _, err := m.Call(t.Context(), "t", nil, sandbox.CallConfig{}); code(err) != "trap_guest" || !strings.Contains(err.Error(), "not text in UTF-8") {
		t.Error(err)
	}
}

// TestStubs: a module runs without functions that are not here if its manifest says so. What
// is here, and not granted, has no stub, and nor has what is no function.
func TestStubs(t *testing.T) {
	importing := func(use bool, link func(g *guest) (call []byte)) []byte {
		g := newGuest()
		call := link(g)
		write := g.wasi("fd_write", i32+i32+i32+i32, i32)
		body := []any{number(0), drop}
		if use {
			body = []any{number(64), call, number(48), add, store}
		} else {
			body = append(body, put(64, '7'))
		}
		g.function("_start", "", "", append(body, put(0, 64), put(4, 1), number(1), number(0), number(1), number(8), write, drop)...)
		return g.bytes()
	}
	connect := func(g *guest) []byte { return join(number(3), g.wasi("sock_connect", i32, i32)) }
	launch := func(g *guest) []byte { return g.link("env", "launch", join(0, g.typ("", i32))) }
	r := newRuntime(t, sandbox.Config{})
	for name, tt := range map[string]struct {
		wasm []byte
		stub []string
		want string // the output, the trap's code, or what the error has
	}{
		"of WASI, called":               {importing(true, connect), []string{"wasi_snapshot_preview1.sock_*"}, "d"}, // 48 + 52
		"another, not called":           {importing(false, launch), []string{"env.launch"}, "7"},
		"another, called":               {importing(true, launch), []string{"env.*"}, "trap_guest"},
		"of WASI, of another form":      {importing(true, func(g *guest) []byte { return join(number(3), g.wasi("sock_accept", i32, i32)) }), []string{"wasi_snapshot_preview1.sock_*"}, "d"},
		"the same, without a stub":      {importing(false, func(g *guest) []byte { return g.wasi("sock_accept", i32, i32) }), nil, "they must be [i32 i32 i32]"},
		"of WASI, and here":             {importing(true, func(g *guest) []byte { return join(number(3), number(0), g.wasi("sock_shutdown", i32+i32, i32)) }), []string{"*"}, "8"}, // 48 + 8, no such descriptor
		"everything":                    {importing(true, connect), []string{"*"}, "d"},
		"no stubs":                      {importing(false, launch), nil, `not granted: "env.launch"`},
		"stubs of others":               {importing(false, launch), []string{"env.laun", "launch", "wasi_snapshot_preview1.*"}, `not granted: "env.launch"`},
		"what is here is not granted":   {importing(false, func(g *guest) []byte { return g.asks("kv") }), []string{"*"}, "tools.NAME.grant.kv"},
		"a memory":                      {importing(false, func(g *guest) []byte { return g.link("env", "memory", []byte{2, 0, 1}) }), []string{"*"}, "env.memory (not a function)"},
		"the meter":                     {importing(false, func(g *guest) []byte { return g.link("wasmgate:meter", "fuel", join(0, g.typ("", ""))) }), []string{"*"}, "reserved for the sandbox"},
		"a result that is not an errno": {importing(false, func(g *guest) []byte { return g.wasi("sock_connect", i32, i64) }), []string{"*"}, "invalid function"},
	} {
		t.Run(name, func(t *testing.T) {
			manifest := sandbox.Manifest{Stdout: "text", Tools: []sandbox.Tool{{Name: "t", InputSchema: []byte(`{}`)}}}
			manifest.Imports.Stub = tt.stub
			m, err := r.Compile(t.Context(), tt.wasm, sandbox.ModuleConfig{Manifest: &manifest})
			if err != nil {
				if len(tt.want) == 1 || strings.HasPrefix(tt.want, "trap") || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%v, want %s", err, tt.want)
				}
				return
			}
			for range 2 {
				res, err := m.Call(t.Context(), "t", nil, sandbox.CallConfig{})
				trap, _ := errors.AsType[*sandbox.Trap](err)
				if trap != nil && trap.Code() == tt.want || err == nil && string(res.Output) == `{"content":[{"text":"`+tt.want+`","type":"text"}]}` {
					continue
				}
				t.Errorf("%s, %v; want %s", res.Output, err, tt.want)
			}
		})
	}
}
