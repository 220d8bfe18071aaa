package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/internal/testing/unraced"
	"github.com/wasmgate/wasmgate/sandbox"
)

const mebi = 1 << 20

// loop repeats its body for ever.
func loop(body ...any) []byte { return join(0x03, 0x40, join(body...), 0x0c, 0, 0x0b) }

// hostile returns modules that would not end by themselves within hours, with what ends them: a
// limit that is reached at once, or "" if only time does.
func hostile() map[string]struct {
	guest *guest
	trap  string
} {
	modules := map[string]struct {
		guest *guest
		trap  string
	}{}
	add := func(name string, g *guest, trap string) {
		modules[name] = struct {
			guest *guest
			trap  string
		}{g, trap}
	}
	// in returns a reactor to which f adds functions before tool_call, which
	// has the body that f returns. Function 0 is the allocator.
	in := func(f func(g *guest) []byte) *guest {
		g := newGuest()
		g.allocator()
		g.function("tool_call", i32+i32+i32+i32, i32, f(g), number(0))
		return g.section("wasmgate", []byte(manifest))
	}
	table := func(g *guest) *guest { g.table = join(0x70, 0, 100); return g }

	add("an endless loop", reactor(forever, unreachable), "")
	add("an endless loop in a start function", func() *guest {
		g := newGuest()
		g.start = leb(0)
		g.function("", "", "", forever)
		g.allocator()
		g.function("tool_call", i32+i32+i32+i32, i32, number(0))
		return g.section("wasmgate", []byte(manifest))
	}(), "")
	add("two loops within each other", reactor(loop(0x03, 0x40, get(4), number(1), 0x6a, 0x22, 4, number(1000), 0x70, 0x0d, 0, 0x0b), unreachable), "")
	add("a loop around a jump table", reactor(0x03, 0x40, 0x02, 0x40, get(4), 0x0e, 2, 1, 0, 1, 0x0b, 0x0c, 0, 0x0b, unreachable), "")
	add("a call tree without loops", in(func(g *guest) []byte {
		call := g.function("", "", "", 0x01)
		for range 60 {
			call = g.function("", "", "", call, call)
		}
		return call
	}), "")
	add("a call tree of 32 levels without loops", in(func(g *guest) []byte {
		call := g.function("", "", "", 0x01)
		for range 32 {
			call = g.function("", "", "", call, call)
		}
		return join(call, call, call, call)
	}), "")
	add("recursion of two functions that comes back", in(func(g *guest) []byte {
		// f(n): if n { g(n-1); g(n-1) }, and g the same with f.
		self := func(other byte) []byte {
			again := join(get(0), number(1), 0x6b, 0x10, int(other))
			return join(get(0), 0x04, 0x40, again, again, 0x0b)
		}
		g.function("", i32, "", self(2))
		g.function("", i32, "", self(1))
		return join(number(60), 0x10, 1)
	}), "")
	add("recursion that works while it returns", in(func(g *guest) []byte {
		again := join(get(0), 0x04, 0x40, get(0), number(1), 0x6b, 0x10, 1, 0x0b)
		return loop(number(20_000), g.function("", i32, "", again, bytes.Repeat([]byte{0x01}, 10_000)))
	}), "")
	add("endless recursion", in(func(g *guest) []byte { return g.function("", "", "", 0x10, 1) }), "bytes of stack")
	add("endless recursion of two functions", in(func(g *guest) []byte {
		g.function("", "", "", 0x10, 2)
		return g.function("", "", "", 0x10, 1)
	}), "bytes of stack")
	add("endless recursion through a table", table(in(func(g *guest) []byte {
		g.elements = join(0, number(0), 0x0b, 1, 1) // function 1 at 0
		g.function("", "", "", number(0), 0x11, 1, 0)
		return join(number(0), 0x11, 1, 0)
	})), "bytes of stack")
	add("memory that grows for ever", reactor(loop(number(1), memoryGrow, drop), unreachable), "")
	add("memory that grows by too much for ever", reactor(loop(number(-1), memoryGrow, drop), unreachable), "")
	add("branches that carry a thousand values, after code that is charged and not executed", in(func(g *guest) []byte {
		many := strings.Repeat(i32, 1000)
		typ := g.typ(many, many)
		skipped := join(0x02, 0x40, number(1), 0x0d, 0, bytes.Repeat([]byte{0x01}, 4000), 0x0b)
		cheap := join(number(4000), 0x21, 4, 0x03, 0x40, skipped, get(4), number(1), 0x6b, 0x22, 4, 0x0d, 0, 0x0b)
		return join(cheap, bytes.Repeat(number(1), 1000), 0x03, typ, get(4), 0x0c, 0, 0x0b, bytes.Repeat(drop, 1000))
	}), "")
	add("a table that grows for ever", table(reactor(loop(0xd0, 0x70, number(1), 0xfc, 15, 0, drop), unreachable)), "")
	add("a table that is filled for ever", table(reactor(0xd0, 0x70, number(200_000), 0xfc, 15, 0, drop,
		loop(number(0), 0xd0, 0x70, number(200_000), 0xfc, 17, 0), unreachable)), "")
	add("a table that is copied for ever", table(reactor(0xd0, 0x70, number(200_000), 0xfc, 15, 0, drop,
		loop(number(0), number(1), number(200_000), 0xfc, 14, 0, 0), unreachable)), "")
	add("memory that is filled for ever", reactor(number(1000), memoryGrow, drop,
		loop(number(0), number(1), number(60*mebi), 0xfc, 11, 0), unreachable), "")
	add("memory that is copied for ever", reactor(number(1000), memoryGrow, drop,
		loop(number(0), number(1), number(60*mebi), 0xfc, 10, 0, 0), unreachable), "")
	host := func(name, params string, body func(call []byte) []byte) *guest {
		g := newGuest()
		call := g.wasi(name, params, i32)
		g.allocator()
		g.function("tool_call", i32+i32+i32+i32, i32, body(call), number(0))
		return g.section("wasmgate", []byte(manifest))
	}
	add("host calls for ever", host("clock_time_get", i32+i64+i32, func(call []byte) []byte {
		return loop(number(0), 0x42, 0, number(64), call, drop)
	}), "")
	add("random numbers for ever", host("random_get", i32+i32, func(call []byte) []byte {
		return join(number(1000), memoryGrow, drop, loop(number(0), number(60*mebi), call, drop))
	}), "")
	add("output to the log for ever", host("fd_write", i32+i32+i32+i32, func(call []byte) []byte {
		return join(number(1000), memoryGrow, drop, put(0, 0), put(4, 60*mebi), loop(number(2), number(0), number(1), number(8), call, drop))
	}), "")
	add("a write of nothing in a million pieces, for ever", host("fd_write", i32+i32+i32+i32, func(call []byte) []byte {
		return join(number(1000), memoryGrow, drop, loop(number(2), number(1024), number(mebi), number(8), call, drop))
	}), "")
	add("a wait for a million things, for ever", host("poll_oneoff", i32+i32+i32+i32, func(call []byte) []byte {
		return join(number(1000), memoryGrow, drop, loop(number(1024), number(4096), number(60*mebi/48), number(16), call, drop))
	}), "")
	add("sleep for ever", host("poll_oneoff", i32+i32+i32+i32, func(call []byte) []byte {
		return join(put(1024+24, 0), put(1024+28, 1<<20), loop(number(1024), number(2048), number(1), number(4096), call, drop))
	}), "")
	return modules
}

// TestHostile runs every hostile module under a deadline and under a budget.
func TestHostile(t *testing.T) {
	unraced.Long(t)
	r := newRuntime(t, sandbox.Config{})
	for name, h := range hostile() {
		t.Run(name, func(t *testing.T) {
			timed := compile(t, r, h.guest.bytes(), sandbox.ModuleConfig{Limits: sandbox.Limits{Timeout: 100 * time.Millisecond}})
			res, err := timed.Call(t.Context(), "t", nil, sandbox.CallConfig{})
			t.Logf("%s: ended after %v, %d instructions: %v", name, res.Took, res.Fuel, err)
			if overflown := h.trap != "" && err != nil && strings.Contains(err.Error(), h.trap); code(err) != "trap_deadline" && code(err) != "trap_fuel" && !overflown {
				t.Errorf("code = %q, want trap_deadline", code(err))
			}
			if h.trap != "" || strings.HasPrefix(name, "sleep") || strings.HasPrefix(name, "a wait") { // end by the stack; use hardly any fuel
				return
			}
			budgeted := compile(t, r, h.guest.bytes(), sandbox.ModuleConfig{Limits: sandbox.Limits{Fuel: mebi}})
			res, err = budgeted.Call(t.Context(), "t", nil, sandbox.CallConfig{})
			if code(err) != "trap_fuel" || res.Fuel != mebi {
				t.Errorf("code = %q after %d instructions, want trap_fuel after %d", code(err), res.Fuel, mebi)
			}
			if want := fmt.Sprintf("needs more than %d instructions", mebi); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("err = %v, want one with %q", err, want)
			}
		})
	}
}

// TestFuelIsExact finds the least budget with which a call succeeds: it is what
// the call says it used.
func TestFuelIsExact(t *testing.T) {
	r := newRuntime(t, sandbox.Config{CacheDir: cache})
	tests := map[string]struct {
		wasm       []byte
		tool, args string
		want       uint64 // 0: any
	}{
		// cabi_realloc: 5 instructions, end and 6 variables, twice; tool_call: 3
		// puts of 3, one more constant, end and 6 variables.
		"straight code": {reactor(answer(0, get(argsPtr), get(argsLen))).bytes(), "t", `{}`, 2*12 + 17},
		"a loop": {reactor(number(100), 0x21, 4, 0x03, 0x40, get(4), number(1), 0x6b, 0x22, 4, 0x0d, 0, 0x0b, say(number(1))).bytes(), "t", `{}`,
			2*12 + 3 + 100*6 + 22},
		"a bulk instruction": {reactor(number(0), number(0), number(804), 0xfc, 11, 0, say(number(1))).bytes(), "t", `{}`, 2*12 + 4 + 804/8 + 22},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			with := func(fuel uint64) (sandbox.Result, error) {
				m := compile(t, r, tt.wasm, sandbox.ModuleConfig{Limits: sandbox.Limits{Fuel: fuel}})
				return m.Call(t.Context(), tt.tool, []byte(tt.args), sandbox.CallConfig{})
			}
			first, err := with(0)
			if err != nil || first.Fuel == 0 || tt.want != 0 && first.Fuel != tt.want {
				t.Fatalf("used %d, want %d: %v", first.Fuel, tt.want, err)
			}
			if res, err := with(first.Fuel); err != nil || string(res.Output) != string(first.Output) {
				t.Errorf("with %d instructions: %v", first.Fuel, err)
			}
			if res, err := with(first.Fuel - 1); code(err) != "trap_fuel" || res.Fuel != first.Fuel-1 {
				t.Errorf("with one instruction less: code = %q after %d", code(err), res.Fuel)
			}
		})
	}
}

// TestFuelIsTheSameEachTime calls a guest that recurs, loops, branches by its
// input and moves memory. Tools written in Go are not the same each time:
// their maps are seeded with random numbers.
func TestFuelIsTheSameEachTime(t *testing.T) {
	unraced.Long(t)
	g := newGuest()
	g.allocator()
	g.function("", i32, "", get(0), 0x04, 0x40, get(0), number(1), 0x6b, 0x10, 1, number(0), number(64), get(0), 0xfc, 11, 0, 0x0b)
	g.function("tool_call", i32+i32+i32+i32, i32, get(argsLen), 0x21, 4,
		0x03, 0x40, get(4), 0x10, 1, get(4), number(1), 0x6b, 0x22, 4, 0x0d, 0, 0x0b, say(number(1)))
	g.section("wasmgate", []byte(manifest))
	r := newRuntime(t, sandbox.Config{})
	m := compile(t, r, g.bytes(), sandbox.ModuleConfig{})
	fuel := map[string]uint64{}
	for range 20 {
		for _, args := range []string{`{}`, `{"a":1}`, `{"a":"` + strings.Repeat("a", 999) + `"}`} {
			res, err := m.Call(t.Context(), "t", []byte(args), sandbox.CallConfig{})
			if err != nil {
				t.Fatal(err)
			}
			if fuel[args] == 0 {
				fuel[args] = res.Fuel
			}
			if fuel[args] != res.Fuel {
				t.Errorf("%.10s used %d instructions, before it was %d", args, res.Fuel, fuel[args])
			}
		}
	}
	if len(fuel) != 3 || fuel[`{}`] == fuel[`{"a":1}`] {
		t.Errorf("fuel = %v, want one for each input", fuel)
	}
}

// TestSlicesOfMuchMemory counts how often the time is looked at: more often where loads can miss
// every cache.
func TestSlicesOfMuchMemory(t *testing.T) {
	r := newRuntime(t, sandbox.Config{})
	const fuel = 1 << 24
	for pages, slice := range map[uint32]int64{0: 1 << 15, 1: 1 << 19, 1 << 6: 1 << 19, 1<<6 + 1: 1 << 18, 1 << 7: 1 << 18, 1 << 8: 1 << 17, 1 << 9: 1 << 16, 1<<9 + 1: 1 << 15, 1 << 10: 1 << 15, 1 << 15: 1 << 15} {
		if got := sandbox.SliceOf(pages << 16); got != slice {
			t.Errorf("with %d pages: slices of %d, want %d", pages, got, slice)
		}
	}
	for pages, least := range map[uint32]int64{1: fuel >> 19, 1 << 9: fuel >> 16, 1 << 10: fuel >> 15} {
		g := reactor(forever, unreachable)
		g.pages = pages
		looks := &counted{Context: t.Context()}
		m := compile(t, r, g.bytes(), sandbox.ModuleConfig{Limits: sandbox.Limits{Fuel: fuel, Timeout: time.Minute}})
		if _, err := m.Call(looks, "t", nil, sandbox.CallConfig{}); code(err) != "trap_fuel" || looks.asked.Load() < least {
			t.Errorf("with %d pages: %d looks, want at least %d: %v", pages, looks.asked.Load(), least, err)
		}
	}
}

// counted is a context that counts how often it is asked whether it has ended.
type counted struct {
	context.Context
	asked atomic.Int64
}

func (c *counted) Err() error { c.asked.Add(1); return c.Context.Err() }

// TestCollectionDuringCall collects garbage while a guest spins: the collector
// needs all goroutines to stop, and must not have to wait for the guest's end.
// If it has to, it waits until the guest's time is up, and the guest has ended.
func TestCollectionDuringCall(t *testing.T) {
	r := newRuntime(t, sandbox.Config{})
	m := compile(t, r, reactor(forever, unreachable).bytes(), sandbox.ModuleConfig{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := m.Call(ctx, "t", nil, sandbox.CallConfig{})
		ended <- err
	}()
	for range 10 {
		time.Sleep(5 * time.Millisecond) // so that it spins; if it does not yet, the test proves less but fails no more
		runtime.GC()
	}
	select {
	case err := <-ended:
		t.Fatalf("the guest ended before it was told to: %v", err)
	default:
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v, want the context's own", err)
	}
}

// TestStartFunctionUnsealed runs modules with a start function that cannot be
// sealed: the engine calls it before the host has hold of the instance.
func TestStartFunctionUnsealed(t *testing.T) {
	r := newRuntime(t, sandbox.Config{})
	g := newGuest()
	g.start = leb(0)
	g.function("", "", "", number(1000), setGlobal, 0x03, 0x40, getGlobal, number(1), 0x6b, setGlobal, getGlobal, 0x0d, 0, 0x0b) // until the global is 0
	g.allocator()
	g.function("tool_call", i32+i32+i32+i32, i32, say(getGlobal))
	g.section("wasmgate", []byte(manifest))
	g.custom = append(g.custom, join(11, 5, 1, 1, 2, 7, 7)) // a passive data segment
	m := compile(t, r, g.bytes(), sandbox.ModuleConfig{})
	if m.Unfit() == "" {
		t.Fatal("the module was sealed")
	}
	res, err := m.Call(t.Context(), "t", nil, sandbox.CallConfig{})
	if err != nil || string(res.Output) != "3" { // which the allocator has added for its arguments
		t.Errorf("output %q, %v", res.Output, err)
	}
}

// TestFuelOfValues checks that what moves many values costs more.
func TestFuelOfValues(t *testing.T) {
	r := newRuntime(t, sandbox.Config{CacheDir: cache})
	const values = 100
	many := strings.Repeat(i32, values)
	gets := bytes.Repeat(get(4), values)
	drops := bytes.Repeat(drop, values)
	in := func(body func(typ int32) []byte) *guest {
		g := newGuest()
		g.allocator()
		typ := g.typ(many, many)
		g.function("tool_call", i32+i32+i32+i32, i32, body(int32(typ[0])), say(number(1)))
		return g.section("wasmgate", []byte(manifest))
	}
	again := join(get(4), number(1), add, 0x22, 4, number(10), 0x48, 0x0d, 0) // ten times
	for name, tt := range map[string]struct {
		guest *guest
		least uint64
	}{
		"branches": {in(func(typ int32) []byte { return join(gets, 0x03, byte(typ), again, 0x0b, drops) }), 10 * values / 4},
		"blocks": {in(func(typ int32) []byte {
			return join(gets, 0x03, 0x40, 0x0b, bytes.Repeat([]byte{0x02, byte(typ), 0x0b}, 10), drops)
		}), 10 * values / 4},
	} {
		t.Run(name, func(t *testing.T) {
			m := compile(t, r, tt.guest.bytes(), sandbox.ModuleConfig{})
			res, err := m.Call(t.Context(), "t", []byte(`{}`), sandbox.CallConfig{})
			if err != nil || res.Fuel < tt.least+2*values {
				t.Errorf("used %d, want at least %d for branches and %d for the rest: %v", res.Fuel, tt.least, 2*values, err)
			}
		})
	}
}
