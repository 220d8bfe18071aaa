package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/wasmgate/wasmgate/sandbox"
)

// long is a timeout that no test waits for.
const long = time.Minute

func newRuntime(t testing.TB, cfg sandbox.Config) *sandbox.Runtime {
	t.Helper()
	if cfg.Limits.Timeout == 0 {
		cfg.Limits.Timeout = long
	}
	r, err := sandbox.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return r
}

func compile(t testing.TB, r *sandbox.Runtime, wasm []byte, cfg sandbox.ModuleConfig) *sandbox.Module {
	t.Helper()
	m, err := r.Compile(t.Context(), wasm, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func code(err error) string {
	var trap *sandbox.Trap
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &trap):
		return trap.Code()
	}
	return err.Error()
}

func TestCall(t *testing.T) {
	echo := answer(0, get(argsPtr), get(argsLen))
	grow := join(number(1), memoryGrow)
	start := newGuest()
	start.start = leb(0)
	start.function("", "", "", forever)
	start.allocator()
	start.function("tool_call", i32+i32+i32+i32, i32, echo)
	start.section("wasmgate", []byte(manifest))

	initialized := reactor(say(join(number(64), load)))
	initialized.function("_initialize", "", "", put(64, 7))
	badInit := reactor(echo)
	badInit.function("_initialize", "", "", unreachable)

	exits := newGuest()
	exit := exits.wasi("proc_exit", i32, "")
	exits.allocator()
	exits.function("tool_call", i32+i32+i32+i32, i32, number(0), exit, unreachable)
	exits.section("wasmgate", []byte(manifest))

	badAllocator := newGuest()
	badAllocator.function("cabi_realloc", i32+i32+i32+i32, i32, number(-1))
	badAllocator.function("tool_call", i32+i32+i32+i32, i32, echo)
	badAllocator.section("wasmgate", []byte(manifest))

	recursive := newGuest()
	recursive.allocator()
	recursive.function("tool_call", i32+i32+i32+i32, i32, get(0), get(1), get(2), get(3), 0x10, 1)
	recursive.section("wasmgate", []byte(manifest))

	silent := newGuest()
	silent.function("_start", "", "", 0x01)
	silent.section("wasmgate", []byte(manifest))
	stubborn := newGuest() // exits with 1 when it gets no memory, as C programs do
	exit = stubborn.wasi("proc_exit", i32, "")
	stubborn.function("_start", "", "", number(60000), memoryGrow, drop, number(1), exit)
	stubborn.section("wasmgate", []byte(manifest))
	flood := newGuest()
	write := flood.wasi("fd_write", i32+i32+i32+i32, i32)
	flood.function("_start", "", "", put(0, 1024), put(4, 512),
		0x03, 0x40, number(1), number(0), number(1), number(8), write, drop, 0x0c, 0, 0x0b)
	flood.section("wasmgate", []byte(manifest))

	tests := map[string]struct {
		guest *guest
		code  string
		want  string // the output, or what the error contains
	}{
		"a reactor answers":                   {reactor(echo), "ok", `{"a":1}`},
		"a reactor is initialized first":      {initialized, "ok", "7"},
		"a reactor's error is a result":       {reactor(answer(1, get(namePtr), get(nameLen))), "tool", "t"},
		"a command answers":                   {command(1, 0), "ok", `{"name":"t","arguments":{"a":1}}`},
		"a command's exit code is its error":  {command(2, 3), "tool", `{"name":"t","arguments":{"a":1}}`},
		"a command may fail without a word":   {command(1, 3), "tool", "the tool exited with code 3 and no message"},
		"a command writes nothing":            {silent, "trap_guest", "not one JSON value"},
		"a command that gets no memory exits": {stubborn, "trap_memory", "more than 131072 bytes"},
		"a command floods its output":         {flood, "trap_guest", "its output has more than 65536 bytes"},
		"an endless loop":                     {reactor(forever, unreachable), "trap_deadline", "longer than 200ms"},
		"an endless loop in the start":        {start, "trap_deadline", "longer than 200ms"},
		"endless recursion":                   {recursive, "trap_memory", "bytes of stack"},
		"unreachable code":                    {reactor(unreachable), "trap_guest", "unreachable"},
		"unreachable code at initialization":  {badInit, "trap_guest", "does not initialize"},
		"a division by zero":                  {reactor(number(1), number(0), 0x6d), "trap_guest", "integer divide by zero"},
		"a load out of bounds":                {reactor(number(-4), load), "trap_guest", "out of bounds memory access"},
		"an exit in the middle":               {exits, "trap_guest", "exited with code 0"},
		"memory up to the limit":              {reactor(grow, drop, echo), "ok", `{"a":1}`},
		"memory beyond the limit, handled":    {reactor(grow, drop, grow, drop, echo), "ok", `{"a":1}`},
		"memory beyond the limit, insisted on": {reactor(0x03, 0x40, grow, number(-1), 0x46, 0x04, 0x40, unreachable, 0x0b, 0x0c, 0, 0x0b, unreachable),
			"trap_memory", "more than 131072 bytes"},
		"a result out of bounds":            {reactor(number(-16)), "trap_guest", "no result"},
		"a result at the end of memory":     {reactor(number(65536 - 11)), "trap_guest", "no result"},
		"a discriminant that is neither":    {reactor(answer(2, get(argsPtr), get(argsLen))), "trap_guest", "no result"},
		"output out of bounds":              {reactor(answer(0, number(65535), number(2))), "trap_guest", "outside its memory"},
		"output that claims to be huge":     {reactor(answer(0, number(0), number(-1))), "trap_guest", "more than 65536 bytes"},
		"output that is not JSON":           {reactor(answer(0, get(namePtr), get(nameLen))), "trap_guest", "not one JSON value"},
		"output that is two values":         {reactor(put(32, 0x20312031), answer(0, number(32), number(4))), "trap_guest", "not one JSON value"},
		"output with space around it":       {reactor(put(32, 0x0a312020), answer(0, number(32), number(4))), "ok", "1"},
		"an error that is not UTF-8":        {reactor(put(32, -1), answer(1, number(32), number(4))), "trap_guest", "not UTF-8"},
		"an allocator that lies":            {badAllocator, "trap_guest", "cabi_realloc returned a pointer out of bounds"},
		"output that is JSON but not UTF-8": {reactor(put(32, 0x22ff22), answer(0, number(32), number(3))), "trap_guest", "not one JSON value"},
	}
	r := newRuntime(t, sandbox.Config{})
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			limits := sandbox.Limits{Timeout: long, Memory: 2 << 16, Output: 1 << 16}
			if tt.code == "trap_deadline" {
				limits.Timeout = 200 * time.Millisecond
			}
			m := compile(t, r, tt.guest.bytes(), sandbox.ModuleConfig{Limits: limits})
			res, err := m.Call(t.Context(), "t", []byte(`{"a":1}`), sandbox.CallConfig{})
			got, text := code(err), string(res.Output)
			if err != nil {
				text = err.Error()
			} else if res.IsError {
				got = "tool"
			}
			if got != tt.code {
				t.Errorf("code = %q, want %q (%s)", got, tt.code, text)
			}
			if err == nil && text != tt.want || !strings.Contains(text, tt.want) {
				t.Errorf("got %q, want %q", text, tt.want)
			}
			if res.Took <= 0 || res.MemoryPeak < 1<<16 || res.MemoryPeak > 2<<16 {
				t.Errorf("took %v with %d bytes at most, want some time and 65536 to 131072 bytes", res.Took, res.MemoryPeak)
			}
		})
	}
}

func TestCallArguments(t *testing.T) {
	m := compile(t, newRuntime(t, sandbox.Config{}), reactor(answer(0, get(argsPtr), get(argsLen))).bytes(), sandbox.ModuleConfig{Name: "m"})
	tests := map[string]struct{ tool, args, want string }{
		"no arguments are an object":     {"t", "", "{}"},
		"arguments pass byte for byte":   {"t", `{ "a" : 1.0 }`, `{ "a" : 1.0 }`},
		"half of a surrogate pair":       {"t", `"\ud83d"`, `"\ufffd"`},
		"a reactor checks them itself":   {"t", `"a" 1`, "sandbox: tool t: guest: its output is not one JSON value in UTF-8; it wrote: \"\\\"a\\\" 1\""},
		"a tool that the module has not": {"u", `{}`, `sandbox: module "m" has no tool "u"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			res, err := m.Call(t.Context(), tt.tool, []byte(tt.args), sandbox.CallConfig{})
			got := string(res.Output)
			if err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestOutputIsReadAsByTheGateway: what the gateway would refuse is refused here, by its author's tools.
func TestOutputIsReadAsByTheGateway(t *testing.T) {
	m := compile(t, newRuntime(t, sandbox.Config{}), reactor(answer(0, get(argsPtr), get(argsLen))).bytes(), sandbox.ModuleConfig{Name: "m"})
	_, err := m.Call(t.Context(), "t", []byte(`{"a":1,"a":2}`), sandbox.CallConfig{})
	if err == nil || !strings.Contains(err.Error(), "an object has two members of the same name") {
		t.Errorf("error %v", err)
	}
}

// TestCommandArguments checks that what is no JSON cannot become a part of the
// request that a command reads.
func TestCommandArguments(t *testing.T) {
	m := compile(t, newRuntime(t, sandbox.Config{}), command(1, 0).bytes(), sandbox.ModuleConfig{})
	_, err := m.Call(t.Context(), "t", []byte(`{}, "name": "x"`), sandbox.CallConfig{})
	if err == nil || !strings.Contains(err.Error(), "the arguments are not JSON") {
		t.Errorf("err = %v, want one that says so", err)
	}
}

// TestStackSize checks that the engine's functions have the field by which the
// size of their stacks is known.
func TestStackSize(t *testing.T) {
	engine := wazero.NewRuntime(t.Context())
	defer engine.Close(t.Context())
	g := newGuest()
	g.function("deep", i32, "", get(0), 0x04, 0x40, get(0), number(1), 0x6b, 0x10, 0, 0x0b)
	mod, err := engine.Instantiate(t.Context(), g.bytes())
	if err != nil {
		t.Fatal(err)
	}
	deep := mod.ExportedFunction("deep")
	before := sandbox.StackSize(deep)
	if _, err := deep.Call(t.Context(), 100_000); err != nil {
		t.Fatal(err)
	}
	if after := sandbox.StackSize(deep); before <= 0 || after < 100_000*16 {
		t.Errorf("%d bytes before, %d after a recursion of 100,000", before, after)
	}
}

// TestCallLeavesNothing has a guest count in a global, in its memory and in
// memory that it grows: every call is the first.
func TestCallLeavesNothing(t *testing.T) {
	count := func(address int32) []byte {
		return join(number(address), number(address), load, number(1), add, store)
	}
	sum := join(getGlobal, number(-4096), add, number(60000), load, add, number(65536), load, add)
	g := newGuest()
	g.function("cabi_realloc", i32+i32+i32+i32, i32, number(1024))
	g.function("tool_call", i32+i32+i32+i32, i32,
		number(1), memoryGrow, drop, getGlobal, number(1), add, setGlobal, count(60000), count(65536), say(sum))
	g.section("wasmgate", []byte(manifest))
	m := compile(t, newRuntime(t, sandbox.Config{Concurrent: 4}), g.bytes(), sandbox.ModuleConfig{})

	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				res, err := m.Call(t.Context(), "t", nil, sandbox.CallConfig{})
				if err != nil || string(res.Output) != "3" {
					t.Errorf("got %q, %v, want 3: the guest found what another call left", res.Output, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestCallAfterTrap(t *testing.T) {
	// Writes to memory, then traps if its arguments are longer than {}.
	g := reactor(number(60000), load, get(4), drop, 0x21, 4, put(60000, 9),
		get(argsLen), number(2), 0x4a, 0x04, 0x40, unreachable, 0x0b, say(get(4)))
	m := compile(t, newRuntime(t, sandbox.Config{}), g.bytes(), sandbox.ModuleConfig{})
	for range 10 {
		if _, err := m.Call(t.Context(), "t", []byte(`{"trap":1}`), sandbox.CallConfig{}); code(err) != "trap_guest" {
			t.Fatalf("code = %q, want trap_guest", code(err))
		}
		res, err := m.Call(t.Context(), "t", nil, sandbox.CallConfig{})
		if err != nil || string(res.Output) != "0" {
			t.Fatalf("after a trap: got %q, %v, want 0", res.Output, err)
		}
	}
}

func TestCallEndsWithItsContext(t *testing.T) {
	sleeper := newGuest()
	poll := sleeper.wasi("poll_oneoff", i32+i32+i32+i32, i32)
	sleeper.function("_start", "", "", put(1024+24, 0), put(1024+28, 1<<20), // a clock that rings after weeks
		number(1024), number(2048), number(1), number(4096), poll, drop)
	sleeper.section("wasmgate", []byte(manifest))

	r := newRuntime(t, sandbox.Config{Concurrent: 1})
	for name, g := range map[string]*guest{"in a loop": reactor(forever, unreachable), "asleep": sleeper} {
		t.Run(name, func(t *testing.T) {
			m := compile(t, r, g.bytes(), sandbox.ModuleConfig{})
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			_, err := m.Call(ctx, "t", nil, sandbox.CallConfig{})
			if !errors.Is(err, context.DeadlineExceeded) || code(err) == "trap_deadline" {
				t.Errorf("err = %v, want the context's own", err)
			}
		})
		t.Run(name+", cancelled", func(t *testing.T) {
			m := compile(t, r, g.bytes(), sandbox.ModuleConfig{})
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(50*time.Millisecond, cancel)
			if _, err := m.Call(ctx, "t", nil, sandbox.CallConfig{}); !errors.Is(err, context.Canceled) {
				t.Errorf("err = %v, want the context's own", err)
			}
		})
		t.Run(name+", beyond the deadline", func(t *testing.T) {
			m := compile(t, r, g.bytes(), sandbox.ModuleConfig{Limits: sandbox.Limits{Timeout: 50 * time.Millisecond}})
			if _, err := m.Call(t.Context(), "t", nil, sandbox.CallConfig{}); code(err) != "trap_deadline" {
				t.Errorf("err = %v, want a trap_deadline", err)
			}
		})
	}
}

// TestConcurrent keeps the only place of a module busy: a second call of it waits
// until its context ends, another module has its first place all the same, and Close
// waits until its own context ends.
func TestConcurrent(t *testing.T) {
	r := newRuntime(t, sandbox.Config{Concurrent: 1})
	busy := compile(t, r, reactor(forever, unreachable).bytes(), sandbox.ModuleConfig{})
	quick := compile(t, r, reactor(say(number(1))).bytes(), sandbox.ModuleConfig{})
	short := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { busy.Call(ctx, "t", nil, sandbox.CallConfig{}) })
	for { // until the place is taken
		_, err := busy.Call(short(), "t", nil, sandbox.CallConfig{})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("without a place: %v, want the context's error", err)
		}
		if strings.Contains(err.Error(), "wait for other calls") {
			break
		}
	}
	if _, err := quick.Call(t.Context(), "t", nil, sandbox.CallConfig{}); err != nil {
		t.Errorf("a module that has no place: %v", err)
	}
	if err := r.Close(short()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Close during a call: %v, want its context's error", err)
	}
	cancel()
	if err := r.Close(t.Context()); err != nil {
		t.Errorf("Close after the call: %v", err)
	}
	if _, err := quick.Call(t.Context(), "t", nil, sandbox.CallConfig{}); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("a call after Close: %v, want an error that says so", err)
	}
	if _, err := r.Compile(t.Context(), reactor(unreachable).bytes(), sandbox.ModuleConfig{}); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("compile after Close: %v, want an error that says so", err)
	}
}

func TestGuestSeesNothing(t *testing.T) {
	// Answers with how many variables its environment has, and whether
	// descriptor 3, the first that could be a directory, is one.
	g := newGuest()
	environ := g.wasi("environ_sizes_get", i32+i32, i32)
	prestat := g.wasi("fd_prestat_get", i32+i32, i32)
	g.allocator()
	g.function("tool_call", i32+i32+i32+i32, i32, number(64), number(68), environ, drop,
		number(3), number(72), prestat, 0x45, number(64), load, add, 0x21, 4, say(get(4)))
	g.section("wasmgate", []byte(manifest))
	m := compile(t, newRuntime(t, sandbox.Config{}), g.bytes(), sandbox.ModuleConfig{})
	t.Setenv("SEEN", "1")
	if res, err := m.Call(t.Context(), "t", nil, sandbox.CallConfig{}); err != nil || string(res.Output) != "0" {
		t.Errorf("got %s, %v, want 0: no variable, no directory", res.Output, err)
	}
}

// TestClocksAndRandom has a guest return what it gets from the host, twice:
// the engine's defaults would be the same each time.
func TestClocksAndRandom(t *testing.T) {
	for name, id := range map[string]int32{"realtime": 0, "monotonic": 1, "random": -1} {
		t.Run(name, func(t *testing.T) {
			g := newGuest()
			random := g.wasi("random_get", i32+i32, i32)
			clock := g.wasi("clock_time_get", i32+i64+i32, i32)
			g.allocator()
			ask := join(number(id), 0x42, 0, number(64), clock, drop)
			if id < 0 {
				ask = join(number(64), number(4), random, drop)
			}
			// The low 28 bits as seven letters in quotes.
			body := join(ask, put(32, '"'))
			for i := range int32(7) {
				body = join(body, number(33+i), number(64), load, number(4*i), 0x76, number(15), 0x71, number('a'), add, store8)
			}
			g.function("tool_call", i32+i32+i32+i32, i32, body, number(40), number('"'), store8, answer(0, number(32), number(9)))
			g.section("wasmgate", []byte(manifest))
			m := compile(t, newRuntime(t, sandbox.Config{}), g.bytes(), sandbox.ModuleConfig{})
			seen := map[string]bool{}
			for range 4 {
				time.Sleep(2 * time.Millisecond) // clocks are coarse
				res, err := m.Call(t.Context(), "t", nil, sandbox.CallConfig{})
				if err != nil {
					t.Fatal(err)
				}
				seen[string(res.Output)] = true
			}
			if len(seen) < 2 {
				t.Errorf("four calls got the same: %v", seen)
			}
		})
	}
}

func TestLog(t *testing.T) {
	var log bytes.Buffer
	r := newRuntime(t, sandbox.Config{Log: slog.New(slog.NewTextHandler(&log, nil)), Limits: sandbox.Limits{Log: 20}})
	chatty := command(2, 0) // writes to stderr alone
	m := compile(t, r, chatty.bytes(), sandbox.ModuleConfig{Name: "chatty"})
	if _, err := m.Call(t.Context(), "t", []byte("\n\"\x1b[31m\""), sandbox.CallConfig{}); err == nil {
		t.Error("arguments with a bare escape are not JSON, but were taken")
	}
	if _, err := m.Call(t.Context(), "t", []byte("\n\n{}"), sandbox.CallConfig{}); code(err) != "trap_guest" {
		t.Fatalf("code = %q, want trap_guest", code(err))
	}
	if n := strings.Count(log.String(), "\n"); n != 1 {
		t.Errorf("%d lines were logged, want 1:\n%s", n, log.String())
	}
	if want := `module=chatty tool=t text="{\"name\":\"t\",\"argumen" truncated=true`; !strings.Contains(log.String(), want) {
		t.Errorf("logged %s, want %s", log.String(), want)
	}

	log.Reset()
	m = compile(t, r, command(2, 1).bytes(), sandbox.ModuleConfig{})
	if res, err := m.Call(t.Context(), "t", nil, sandbox.CallConfig{}); err != nil || !res.IsError || len(res.Output) != 20 {
		t.Errorf("got %q, %v, want a tool error of 20 bytes", res.Output, err)
	}
	if log.Len() > 0 {
		t.Errorf("a tool error was logged: %s", log.String())
	}
}

func TestNew(t *testing.T) {
	open := t.TempDir()
	if err := os.Chmod(open, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		cfg  sandbox.Config
		want string
	}{
		"a negative limit":            {sandbox.Config{Limits: sandbox.Limits{Memory: -1}}, "negative"},
		"negative concurrency":        {sandbox.Config{Concurrent: -1}, "negative"},
		"a cache that is a file":      {sandbox.Config{CacheDir: file}, "compile cache"},
		"a cache that is open to all": {sandbox.Config{CacheDir: open}, "chmod 700"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if tt.cfg.CacheDir == open && runtime.GOOS == "windows" {
				t.Skip("Windows has no permission bits")
			}
			r, err := sandbox.New(t.Context(), tt.cfg)
			if err == nil {
				r.Close(t.Context())
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("err = %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestCacheDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "cache")
	wasm := reactor(say(number(1))).bytes()
	for range 2 {
		r := newRuntime(t, sandbox.Config{CacheDir: dir})
		m := compile(t, r, wasm, sandbox.ModuleConfig{})
		if res, err := m.Call(t.Context(), "t", nil, sandbox.CallConfig{}); err != nil || string(res.Output) != "1" {
			t.Errorf("got %s, %v, want 1", res.Output, err)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil || len(files) != 1 {
		t.Errorf("the cache holds %v (%v), want one file", files, err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 && runtime.GOOS != "windows" {
		t.Errorf("the cache has mode %v, %v, want 0700", info.Mode(), err)
	}
}

// TestATrapQuotesItsGuest: the operator reads the line of what a guest wrote that says
// why it ended, apart from the sandbox's own words.
func TestATrapQuotesItsGuest(t *testing.T) {
	g := newGuest()
	write := g.wasi("fd_write", i32+i32+i32+i32, i32)
	g.allocator()
	g.function("tool_call", i32+i32+i32+i32, i32, put(0, 0), number(0), get(argsPtr), store, number(4), get(argsLen), store,
		number(2), number(0), number(1), number(8), write, drop, unreachable)
	m := compile(t, newRuntime(t, sandbox.Config{}), g.section("wasmgate", []byte(manifest)).bytes(), sandbox.ModuleConfig{})
	for text, want := range map[string]string{
		"":                              "",
		"\n  no such file: x\nsecond\n": "no such file: x",
		"working\npanic: assignment to entry in nil map\n\ngoroutine 1 [running]:\n": "panic: assignment to entry in nil map",
		strings.Repeat("x", 1000): strings.Repeat("x", 200),
	} {
		_, err := m.Call(t.Context(), "t", []byte(text+" "), sandbox.CallConfig{})
		var trap *sandbox.Trap
		if !errors.As(err, &trap) || trap.Said != want || strings.Contains(trap.Reason, "panic:") {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if quoted := fmt.Sprintf("; it says: %q", want); strings.Contains(err.Error(), "it says") != (want != "") || want != "" && !strings.HasSuffix(err.Error(), quoted) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A buffer that a guest has not filled fills no line of a log.
func TestATrapQuotesFewNULs(t *testing.T) {
	trap := sandbox.Trap{Kind: sandbox.TrapGuest, Tool: "t", Reason: "r", Wrote: "a" + strings.Repeat("\x00", 100) + "b", Said: "m\x00\x00x"}
	if want := `sandbox: tool t: guest: r; it wrote: "a\x00...b"; it says: "m\x00\x00x"`; trap.Error() != want {
		t.Errorf("%s, want %s", trap.Error(), want)
	}
}

// Languages without a standard error log why they end.
func TestATrapQuotesTheLog(t *testing.T) {
	for level, want := range map[int32]string{3: "no such file: x", 1: ""} {
		g := newGuest()
		log := g.asks("log")
		g.allocator()
		g.function("tool_call", i32+i32+i32+i32, i32, number(level), get(argsPtr), get(argsLen), log, unreachable)
		m := compile(t, newRuntime(t, sandbox.Config{}), g.section("wasmgate", []byte(manifest)).bytes(), sandbox.ModuleConfig{})
		_, err := m.Call(t.Context(), "t", []byte("no such file: x\nsecond"), sandbox.CallConfig{})
		if trap, ok := errors.AsType[*sandbox.Trap](err); !ok || trap.Said != want {
			t.Errorf("level %d: %v, want %q", level, err, want)
		}
	}
}

// An output that is no answer is quoted, so that its author sees what went wrong.
func TestATrapQuotesTheOutput(t *testing.T) {
	r := newRuntime(t, sandbox.Config{})
	m := compile(t, r, reactor(answer(0, get(argsPtr), get(argsLen))).bytes(), sandbox.ModuleConfig{})
	for out, want := range map[string]string{
		"no value":                   "no value",
		" \n\xff[31m":                "\xff[31m",
		strings.Repeat("word ", 100): strings.Repeat("word ", 40),
	} {
		_, err := m.Call(t.Context(), "t", []byte(out), sandbox.CallConfig{})
		trap, ok := errors.AsType[*sandbox.Trap](err)
		if !ok || trap.Wrote != want || !strings.HasSuffix(err.Error(), fmt.Sprintf("; it wrote: %q", want)) || strings.Contains(trap.Reason, "wrote") {
			t.Errorf("%q: %v", out, err)
		}
	}
}

func TestDirsAreKnownByAnotherPath(t *testing.T) {
	r, dir := newRuntime(t, sandbox.Config{}), t.TempDir()
	for as, ok := range map[string]bool{"": true, "/data": true, "/": true, ".": true, "data": false, "..": false, "/data/": false, "/a/../b": false} {
		_, err := r.Compile(t.Context(), reactor(say(number(1))).bytes(), sandbox.ModuleConfig{Grants: sandbox.Grants{Dirs: []sandbox.Dir{{Path: dir, As: as}}}})
		if (err == nil) != ok {
			t.Errorf("as %q: %v", as, err)
		}
	}
	twice := sandbox.Grants{Dirs: []sandbox.Dir{{Path: dir, As: "/data"}, {Path: t.TempDir(), As: "/data"}}}
	if _, err := r.Compile(t.Context(), reactor(say(number(1))).bytes(), sandbox.ModuleConfig{Grants: twice}); err == nil {
		t.Error("two folders by one path")
	}
}

// What has ended is closed, also by who has no time to wait.
func TestCloseWithoutTime(t *testing.T) {
	r := newRuntime(t, sandbox.Config{})
	compile(t, r, reactor(say(number(1))).bytes(), sandbox.ModuleConfig{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 30 {
		if err := r.Close(ctx); err != nil {
			t.Fatal(err)
		}
	}
}
