package sandbox_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/sandbox"
)

// TestInspectAnyModule: whatever a module is, it is said what, and what it would take.
func TestInspectAnyModule(t *testing.T) {
	importing := func(module, function string) []byte {
		g := newGuest()
		g.link(module, function, join(0, g.typ(i32, "")))
		g.function("_start", "", "")
		return g.bytes()
	}
	library := newGuest()
	library.function("add", "", "")
	memory := newGuest()
	memory.link("env", "memory", join(2, 0, 1))
	memory.memory = ""
	asks := newGuest()
	asks.asks("kv")
	asks.allocator()
	asks.function("tool_call", i32+i32+i32+i32, i32, number(0))
	uninitialized := reactor(say(number(1)))
	uninitialized.function("_start", "", "")
	tests := map[string]struct {
		wasm    []byte
		bare    bool     // only a manifest is missing
		problem []string // of the last problem
	}{
		"a command with a manifest":       {command(1, 0).bytes(), false, nil},
		"a command without":               {command(1, 0).bytesWithout(), true, []string{"sandbox manifest MODULE", "MCP server"}},
		"a reactor without":               {asks.bytesWithout(), true, []string{"sandbox manifest MODULE"}},
		"a library":                       {library.bytes(), false, []string{"neither _start"}},
		"a component":                     {[]byte("\x00asm\x0d\x00\x01\x00"), false, []string{"wasm32-wasip1"}},
		"no module":                       {[]byte("#!/bin/sh\n"), false, []string{"not a WebAssembly module"}},
		"half a module":                   {command(1, 0).bytes()[:100], false, []string{""}},
		"the core of a component":         {importing("wasi:cli/run@0.2.0", "run"), false, []string{"WASI 0.2"}},
		"a half of wasm-bindgen":          {importing("__wbindgen_placeholder__", "__wbindgen_describe"), false, []string{"wasm32-wasip1"}},
		"Go for browsers":                 {importing("gojs", "runtime.wasmExit"), false, []string{"GOOS=wasip1"}},
		"Emscripten":                      {importing("env", "emscripten_resize_heap"), false, []string{"STANDALONE_WASM"}},
		"an addon for Node":               {importing("env", "napi_create_function"), false, []string{"addon for Node"}},
		"memory of a host":                {memory.bytes(), false, []string{"a memory of its own"}},
		"what nobody knows":               {importing("acme", "launch"), false, []string{`"acme.launch"`}},
		"a function of ours that is none": {importing("wasmgate", "exec"), false, []string{`"wasmgate.exec"`}},
	}
	r := newRuntime(t, sandbox.Config{})
	if report, err := sandbox.Inspect(t.Context(), r, uninitialized.bytes(), sandbox.ModuleConfig{Name: "m.wasm"}); err != nil || !strings.Contains(report.Note, "-buildmode=c-shared") {
		t.Errorf("a reactor that was built as a command: %+v, %v", report, err)
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			report, err := sandbox.Inspect(t.Context(), r, tt.wasm, sandbox.ModuleConfig{Name: "m.wasm"})
			if err != nil || len(report.SHA256) != 64 || report.Size != len(tt.wasm) {
				t.Fatalf("%+v, %v", report, err)
			}
			if len(tt.problem) == 0 != (len(report.Problems) == 0) || report.NoManifest != tt.bare || (report.ABI != "") != (tt.bare || tt.problem == nil) {
				t.Fatalf("%+v", report)
			}
			for _, want := range tt.problem {
				if last := report.Problems[len(report.Problems)-1]; !strings.Contains(last, want) || strings.Contains(last, "compile module") {
					t.Errorf("problems %q, want %q", report.Problems, want)
				}
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := sandbox.Inspect(ctx, r, command(1, 0).bytesWithout(), sandbox.ModuleConfig{}); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
