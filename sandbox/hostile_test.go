package sandbox_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/internal/testing/unraced"
	"github.com/wasmgate/wasmgate/sandbox"
)

// An attack is a module that misbehaves when its arguments are evilArgs, and
// answers 7 otherwise.
type attack struct {
	guest  *guest
	grants sandbox.Grants
	host   sandbox.Host
	module sandbox.Limits // of the module; zero fields mean the defaults
	limits sandbox.Limits // of the evil calls only
	code   string         // of the trap that ends it; "" if it is no trap
	reason string         // in the error, or the output if there is none
	spoils bool           // the instance is not used again
	times  int            // how often it is tried; zero means 200
}

const evilArgs = `{"evil":true}`

// twoFaced returns a reactor that does what f returns when its arguments are not
// {}. f may add imports and functions, cabi_realloc among them, to the guest.
func twoFaced(f func(g *guest) []byte) *guest {
	g := newGuest()
	evil := f(g)
	if !g.has("cabi_realloc") {
		g.allocator()
	}
	g.function("tool_call", i32+i32+i32+i32, i32, get(argsLen), number(2), 0x4a, 0x04, 0x40, evil, 0x0b, say(number(7)))
	return g.section("wasmgate", []byte(manifest))
}

// twoFacedCommand does the same for a command; f is given the call of fd_write.
func twoFacedCommand(f func(g *guest, write []byte) []byte) *guest {
	g := newGuest()
	read := g.wasi("fd_read", i32+i32+i32+i32, i32)
	write := g.wasi("fd_write", i32+i32+i32+i32, i32)
	evil := f(g, write)
	g.function("_start", "", "", put(0, 1024), put(4, 512), number(0), number(0), number(1), number(8), read, drop,
		number(8), load, number(int32(len(`{"name":"t","arguments":{}}`))), 0x4a, 0x04, 0x40, evil, 0x0b,
		put(32, '7'), put(0, 32), put(4, 1), number(1), number(0), number(1), number(8), write, drop)
	return g.section("wasmgate", []byte(manifest))
}

func (g *guest) has(export string) bool {
	for _, e := range g.exports {
		if bytes.HasPrefix(e, name(export)) {
			return true
		}
	}
	return false
}

// self is the call of the function that is added next.
func (g *guest) self() []byte { return join(0x10, leb(uint32(len(g.imports)+len(g.functions)))) }

// asks imports a function of the host's own.
func (g *guest) asks(function string) (call []byte) {
	return g.link("wasmgate", function, join(0, g.typ(i32+i32+i32, "")))
}

// A fakeHost answers as its functions say; those that are missing deny.
type fakeHost struct {
	http func(ctx context.Context) (sandbox.HTTPResponse, error)
	kv   func(ctx context.Context) error
	file func(ctx context.Context) error
}

func (h fakeHost) HTTP(ctx context.Context, _ sandbox.HTTPRequest) (sandbox.HTTPResponse, error) {
	if h.http == nil {
		return sandbox.HTTPResponse{}, sandbox.ErrDenied
	}
	return h.http(ctx)
}

func (h fakeHost) KV(ctx context.Context, _ sandbox.KVRequest) (sandbox.KVResponse, error) {
	if h.kv == nil {
		return sandbox.KVResponse{}, sandbox.ErrDenied
	}
	return sandbox.KVResponse{}, h.kv(ctx)
}

func (h fakeHost) File(ctx context.Context, _, _ string) error {
	if h.file == nil {
		return sandbox.ErrDenied
	}
	return h.file(ctx)
}

// vitals is what a process must not lose, whatever its guests do.
type vitals struct {
	goroutines, descriptors, images int
	heap                            uint64
}

func takeVitals(t testing.TB) vitals {
	t.Helper()
	var m runtime.MemStats
	for range 2 { // what has a finalizer goes with the second
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return vitals{runtime.NumGoroutine(), descriptors(t), mappings(t, "wasm-image"), m.HeapAlloc}
}

// descriptors counts what is open.
func descriptors(t testing.TB) int {
	t.Helper()
	if runtime.GOOS != "linux" {
		return 0
	}
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(open)
}

// heapSlack is how much the heap may differ between two looks: caches of the
// runtime and of the engine.
const heapSlack = 8 << 20

func (v vitals) check(t testing.TB, before vitals) {
	t.Helper()
	if v.goroutines > before.goroutines+2 || v.descriptors > before.descriptors || v.images > before.images || v.heap > before.heap+heapSlack {
		t.Errorf("the process has %+v, before it had %+v", v, before)
	}
}

// TestAttacks tries each attack again and again: each time a trap names what
// ended it, the next call of the same module is answered, what waits for it is
// as the snapshot, byte for byte, and in the end the process has what it had.
func TestAttacks(t *testing.T) {
	r := newRuntime(t, sandbox.Config{})
	for name, a := range attacks(t) {
		t.Run(name, func(t *testing.T) {
			if name == "endless recursion to the engine's bound" {
				unraced.Long(t)
			}
			m := compile(t, r, a.guest.bytes(), sandbox.ModuleConfig{Grants: a.grants, Limits: a.module})
			times := max(1, unraced.Fewer(cmp.Or(a.times, 200)))
			if testing.Short() {
				times = 5
			}
			const warm = 5 // calls after which the pools are full
			var before vitals
			for i := range warm + times {
				if i == warm {
					before = takeVitals(t)
				}
				a.try(t, m)
				if n := descriptors(t); i >= warm && n > before.descriptors { // the collector would close them later
					t.Errorf("%d descriptors are open, %d were", n, before.descriptors)
				}
				if t.Failed() {
					t.FailNow()
				}
			}
			takeVitals(t).check(t, before)
			if err := m.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// try does evil once, and then not.
func (a attack) try(t *testing.T, m *sandbox.Module) {
	t.Helper()
	res, err := m.Call(t.Context(), "t", []byte(evilArgs), sandbox.CallConfig{Limits: a.limits, Host: a.host})
	text := string(res.Output)
	if err != nil {
		text = err.Error()
	}
	if got := code(err); got != a.code && (a.code != "" || strings.HasPrefix(got, "trap")) || !strings.Contains(text, a.reason) {
		t.Errorf("got %.300s: %.300s; want %s with %q", got, text, a.code, a.reason)
	}
	if n, err := m.CheckIdle(); err != nil || a.spoils && n > 0 {
		t.Errorf("after the attack: %d instances wait: %v", n, err)
	}
	res, err = m.Call(t.Context(), "t", nil, sandbox.CallConfig{})
	if err != nil || string(res.Output) != "7" {
		t.Errorf("after the attack: %q, %v, want 7", res.Output, err)
	}
	if n, err := m.CheckIdle(); err != nil || m.Unfit() == "" && a.guest.pages > 0 && n != 1 {
		t.Errorf("after the attack, and a call: %d instances wait: %v", n, err)
	}
}

func attacks(t *testing.T) map[string]attack {
	all := map[string]attack{}
	for _, some := range []map[string]attack{machineAttacks(), outputAttacks(), hostAttacks(), pointerAttacks(), fileAttacks(t)} {
		for name, a := range some {
			if _, twice := all[name]; twice {
				t.Fatalf("two attacks are called %q", name)
			}
			all[name] = a
		}
	}
	return all
}

// fuel is a budget that is used up within a fraction of a millisecond.
var fuel = sandbox.Limits{Fuel: 100_000}

const outOfFuel = "it needs more than 100000 instructions"

// machineAttacks use up what the machine has, or leave it in a state.
func machineAttacks() map[string]attack {
	plain := func(body ...any) *guest { return twoFaced(func(*guest) []byte { return join(body...) }) }
	table := func(g *guest) *guest { g.table = join(0x70, 0, 100); return g }
	wasi := func(name, params string, body func(call []byte) []byte) *guest {
		return twoFaced(func(g *guest) []byte { return body(g.wasi(name, params, i32)) })
	}
	endless := func(g *guest) []byte { return g.function("", "", "", g.self()) }
	tree := func(g *guest) []byte {
		call := g.function("", "", "", 0x01)
		for range 60 {
			call = g.function("", "", "", call, call)
		}
		return call
	}
	// Fills all of the memory, as large as it may become, the global and what
	// the allocator knows.
	scribble := join(number(10), memoryGrow, drop, number(0), number(-1), 0x3f, 0, number(16), 0x74, 0xfc, 11, 0, number(-1), setGlobal)
	empty := func() *guest { // has no page before its allocator runs, and wants all at once
		g := twoFaced(func(g *guest) []byte {
			g.function("cabi_realloc", i32+i32+i32+i32, i32, get(3), number(2), 0x4a, 0x04, 0x40, number(1000), memoryGrow, number(-1), 0x46, 0x04, 0x40, unreachable, 0x0b, 0x0b,
				number(1), memoryGrow, drop, number(4096))
			return nil
		})
		g.pages = 0
		return g
	}
	exit := func(g *guest) []byte { return join(number(0), g.wasi("proc_exit", i32, "")) }
	return map[string]attack{
		"an endless loop":                         {guest: plain(forever), limits: fuel, code: "trap_fuel", reason: outOfFuel},
		"an endless loop against the clock":       {guest: plain(forever), limits: sandbox.Limits{Timeout: 20 * time.Millisecond}, code: "trap_deadline", reason: "it ran longer than 20ms", times: 10},
		"a call tree without loops":               {guest: twoFaced(tree), limits: fuel, code: "trap_fuel", reason: outOfFuel},
		"a call tree against the clock":           {guest: twoFaced(tree), limits: sandbox.Limits{Timeout: 20 * time.Millisecond}, code: "trap_deadline", reason: "it ran longer than 20ms", times: 10},
		"endless recursion":                       {guest: twoFaced(endless), limits: sandbox.Limits{Stack: 1 << 20}, code: "trap_memory", reason: "it needs more than 1048576 bytes of stack", times: 50},
		"endless recursion to the default":        {guest: twoFaced(endless), code: "trap_memory", reason: "bytes of stack", times: 20},
		"endless recursion to the engine's bound": {guest: twoFaced(endless), module: sandbox.Limits{Stack: 1 << 30}, code: "trap_guest", reason: "stack overflow", spoils: true, times: 5},
		"memory that grows for ever": {guest: plain(loop(number(1), memoryGrow, number(-1), 0x46, 0x04, 0x40, unreachable, 0x0b)),
			limits: sandbox.Limits{Memory: 8 << 20}, code: "trap_memory", reason: "it needs more than 8388608 bytes of memory"},
		"memory that begins with nothing": {guest: empty(), limits: sandbox.Limits{Memory: 8 << 20}, code: "trap_memory", reason: "it needs more than 8388608 bytes of memory"},
		"memory that grows and shrugs":    {guest: plain(loop(number(1), memoryGrow, drop)), limits: sandbox.Limits{Memory: 8 << 20, Fuel: 1e6}, code: "trap_fuel", reason: "1000000 instructions", times: 50},
		"a table that grows for ever":     {guest: table(plain(loop(0xd0, 0x70, number(1000), 0xfc, 15, 0, drop))), limits: fuel, code: "trap_fuel", reason: outOfFuel, times: 50},
		"a table that is overwritten": {guest: table(plain(number(0), 0xd0, 0x70, number(100), 0xfc, 17, 0, unreachable)),
			code: "trap_guest", reason: `"unreachable"`},
		"everything is overwritten, and then a trap": {guest: plain(scribble, unreachable), limits: sandbox.Limits{Memory: 1 << 20}, code: "trap_guest", reason: "unreachable"},
		"everything is overwritten, and an answer":   {guest: plain(scribble), limits: sandbox.Limits{Memory: 1 << 20}, code: "ok", reason: "7"},
		"everything is overwritten, and a loop":      {guest: plain(scribble, forever), limits: sandbox.Limits{Memory: 1 << 20, Fuel: 1e6}, code: "trap_fuel", reason: "1000000 instructions"},
		"a load beyond the memory":                   {guest: plain(number(-4), load, drop), code: "trap_guest", reason: `"out of bounds memory access"`},
		"a call of nothing in a table": {guest: table(twoFaced(func(g *guest) []byte {
			g.function("", "", "", 0x01) // of type 0
			return join(number(3), 0x11, 0, 0)
		})), code: "trap_guest", reason: `"invalid table access"`},
		"an exit in the middle": {guest: twoFaced(exit), code: "trap_guest", reason: "it exited with code 0"},
		"an allocator that exits": {guest: twoFaced(func(g *guest) []byte {
			exit := g.wasi("proc_exit", i32, "")
			// Of more than two bytes: the arguments, if they are evil.
			g.function("cabi_realloc", i32+i32+i32+i32, i32, get(3), number(2), 0x4a, 0x04, 0x40, number(3), exit, 0x0b, number(4096))
			return nil
		}), code: "trap_guest", reason: "it trapped in cabi_realloc: it exited with code 3"},
		"a result beyond the memory": {guest: plain(number(65536-11), 0x0f), code: "trap_guest", reason: "no result<string, string>"},
		"the clock, for ever": {guest: wasi("clock_time_get", i32+i64+i32, func(call []byte) []byte {
			return loop(number(0), 0x42, 0, number(64), call, drop)
		}), limits: fuel, code: "trap_fuel", reason: outOfFuel},
		"random numbers, for ever": {guest: wasi("random_get", i32+i32, func(call []byte) []byte {
			return loop(number(0), number(60000), call, drop)
		}), limits: fuel, code: "trap_fuel", reason: outOfFuel},
		"a random number as large as the memory": {guest: wasi("random_get", i32+i32, func(call []byte) []byte {
			return join(number(1000), memoryGrow, drop, number(0), number(60*mebi), call, drop)
		}), limits: fuel, code: "trap_fuel", reason: outOfFuel},
		"sleep for weeks": {guest: wasi("poll_oneoff", i32+i32+i32+i32, func(call []byte) []byte {
			return join(put(1024+24, 0), put(1024+28, 1<<20), loop(number(1024), number(2048), number(1), number(4096), call, drop))
		}), limits: sandbox.Limits{Timeout: 20 * time.Millisecond}, code: "trap_deadline", reason: "it ran longer than 20ms", times: 10},
		"sleep for no time, for ever": {guest: wasi("poll_oneoff", i32+i32+i32+i32, func(call []byte) []byte {
			return loop(number(1024), number(2048), number(1), number(4096), call, drop)
		}), limits: fuel, code: "trap_fuel", reason: outOfFuel},
	}
}

// outputAttacks write what cannot be read.
func outputAttacks() map[string]attack {
	// flood writes 512 bytes to a stream, for ever.
	flood := func(fd int32) func(*guest, []byte) []byte {
		return func(_ *guest, write []byte) []byte {
			return join(put(0, 1024), put(4, 512), loop(number(fd), number(0), number(1), number(8), write, drop))
		}
	}
	// drip writes a byte and sleeps for a millisecond, for ever.
	drip := func(g *guest, write []byte) []byte {
		poll := g.wasi("poll_oneoff", i32+i32+i32+i32, i32)
		return join(put(2048+24, 1e6), put(0, 1024), put(4, 1),
			loop(number(1), number(0), number(1), number(8), write, drop, number(2048), number(3072), number(1), number(4096), poll, drop))
	}
	half := func(g *guest, write []byte) []byte {
		exit := g.wasi("proc_exit", i32, "")
		return join(put(0, 1024), put(4, 7), number(1), number(0), number(1), number(8), write, drop, number(0), exit)
	}
	small := sandbox.Limits{Output: 4096, Fuel: 1e6}
	return map[string]attack{
		"stdout is flooded": {guest: twoFacedCommand(flood(1)), limits: small, code: "trap_guest", reason: "its output has more than 4096 bytes"},
		"stderr is flooded": {guest: twoFacedCommand(flood(2)), limits: fuel, code: "trap_fuel", reason: outOfFuel},
		"stdout drips":      {guest: twoFacedCommand(drip), limits: sandbox.Limits{Timeout: 20 * time.Millisecond}, code: "trap_deadline", reason: "it ran longer than 20ms", times: 10},
		"stdout drips until it is full": {guest: twoFacedCommand(drip), limits: sandbox.Limits{Output: 5},
			code: "trap_guest", reason: "its output has more than 5 bytes", times: 10},
		"an exit in the middle of the output": {guest: twoFacedCommand(half), code: "trap_guest", reason: "its output is not one JSON value"},
		"a result that is too large": {guest: twoFaced(func(*guest) []byte {
			return join(answer(0, number(0), number(4097)), 0x0f)
		}), limits: small, code: "trap_guest", reason: "its output has more than 4096 bytes"},
		"an error that is too large": {guest: twoFaced(func(*guest) []byte {
			return join(answer(1, number(0), number(4097)), 0x0f)
		}), limits: small, code: "trap_guest", reason: "its output has more than 4096 bytes"},
		"a reactor floods its stdout": {guest: twoFaced(func(g *guest) []byte {
			return flood(1)(g, g.wasi("fd_write", i32+i32+i32+i32, i32))
		}), limits: fuel, code: "trap_fuel", reason: outOfFuel},
		"the log is flooded": {guest: twoFaced(func(g *guest) []byte {
			return loop(number(3), number(0), number(60000), g.asks("log"))
		}), limits: fuel, code: "trap_fuel", reason: outOfFuel},
		"the log is flooded with nothing": {guest: twoFaced(func(g *guest) []byte {
			return loop(number(3), number(0), number(0), g.asks("log"))
		}), limits: fuel, code: "trap_fuel", reason: outOfFuel},
	}
}

// ask passes the arguments to a function of the host, whose answer is put at 64.
func ask(call []byte) []byte { return join(get(argsPtr), get(argsLen), number(64), call) }

// hostAttacks misuse the host, or have one that fails them.
func hostAttacks() map[string]attack {
	http := func(body func(call []byte) []byte) *guest {
		return twoFaced(func(g *guest) []byte { return body(g.asks("http")) })
	}
	again := func(call []byte) []byte { return loop(ask(call)) }
	// reenter asks from within its allocator, once its tool has said so at 8.
	reenter := func(function string) *guest {
		return twoFaced(func(g *guest) []byte {
			call := g.asks(function)
			g.function("cabi_realloc", i32+i32+i32+i32, i32,
				number(8), load, 0x04, 0x40, number(0), number(2), number(64), call, 0x0b, number(4096))
			return join(put(8, 1), ask(call))
		})
	}
	// allocate has an allocator that does evil, once its tool has said so at 8.
	allocate := func(evil func(g *guest) []byte) *guest {
		return twoFaced(func(g *guest) []byte {
			call := g.asks("http")
			body := evil(g)
			g.function("cabi_realloc", i32+i32+i32+i32, i32, number(8), load, 0x04, 0x40, body, 0x0b, number(4096))
			return join(put(8, 1), ask(call))
		})
	}
	body := func(size int) sandbox.Host {
		return fakeHost{http: func(context.Context) (sandbox.HTTPResponse, error) {
			return sandbox.HTTPResponse{Status: 200, Body: bytes.Repeat([]byte("a"), size)}, nil
		}}
	}
	fails := func(err error) sandbox.Host {
		return fakeHost{http: func(context.Context) (sandbox.HTTPResponse, error) { return sandbox.HTTPResponse{}, err }}
	}
	slow := fakeHost{http: func(ctx context.Context) (sandbox.HTTPResponse, error) {
		<-ctx.Done()
		return sandbox.HTTPResponse{}, ctx.Err()
	}}
	panics := fakeHost{http: func(context.Context) (sandbox.HTTPResponse, error) { panic("a fault of the host") }}
	web := sandbox.Grants{HTTP: true, KV: true}
	tiny := sandbox.Limits{HostCalls: 20, Fuel: 1e7}
	return map[string]attack{
		"more questions than it has":          {guest: http(again), grants: web, host: body(1), limits: tiny, code: "trap_guest", reason: "it asks its host more than 20 times"},
		"more denials than it gets":           {guest: http(again), grants: web, host: fakeHost{}, limits: fuel, code: "trap_denied", reason: "it was denied what it asked for more than 16 times"},
		"more denials without a host":         {guest: http(again), grants: web, limits: fuel, code: "trap_denied", reason: "more than 16 times"},
		"questions from within its allocator": {guest: reenter("http"), grants: web, host: body(1), code: "trap_guest", reason: "it calls its host from cabi_realloc"},
		"values from within its allocator":    {guest: reenter("kv"), grants: web, code: "trap_guest", reason: "it calls its host from cabi_realloc"},
		"an allocator that traps":             {guest: allocate(func(*guest) []byte { return unreachable }), grants: web, host: body(1), code: "trap_guest", reason: "it trapped in cabi_realloc"},
		"an allocator that spins":             {guest: allocate(func(*guest) []byte { return forever }), grants: web, host: body(1), limits: fuel, code: "trap_fuel", reason: outOfFuel},
		"an allocator that recurs": {guest: allocate(func(g *guest) []byte { return g.function("", "", "", g.self()) }), grants: web, host: body(1),
			limits: sandbox.Limits{Stack: 1 << 20}, code: "trap_memory", reason: "bytes of stack", times: 50},
		"an allocator that wants all memory": {guest: allocate(func(*guest) []byte {
			return join(number(1000), memoryGrow, number(-1), 0x46, 0x04, 0x40, unreachable, 0x0b)
		}), grants: web, host: body(1), limits: sandbox.Limits{Memory: 1 << 20}, code: "trap_memory", reason: "it needs more than 1048576 bytes of memory"},
		"an answer that is larger than the memory": {guest: http(ask), grants: web, host: body(1 << 20), code: "trap_guest", reason: "cabi_realloc returned a pointer out of bounds", times: 20},
		"an answer that nobody pays for":           {guest: http(ask), grants: web, host: body(1 << 20), limits: fuel, code: "trap_fuel", reason: outOfFuel, times: 20},
		"a request that is too large": {guest: http(func(call []byte) []byte { // {} and 5 MiB of spaces
			return join(number(100), memoryGrow, drop, number(65536), number(' '), number(5*mebi), 0xfc, 11, 0, put(65536, '{'|'}'<<8|' '<<16|' '<<24),
				number(65536), number(5*mebi), number(64), call, say(join(number(64), load)), 0x0f)
		}), grants: web, host: body(1), code: "ok", reason: "1", times: 20},
		"a host that panics":            {guest: http(ask), grants: web, host: panics, reason: "sandbox: tool t: the host: panic: a fault of the host", spoils: true},
		"a host that takes too long":    {guest: http(ask), grants: web, host: slow, limits: sandbox.Limits{Timeout: 20 * time.Millisecond}, code: "trap_deadline", reason: "it ran longer than 20ms", times: 10},
		"a host that fails":             {guest: http(ask), grants: web, host: fails(errors.New("unreachable")), code: "ok", reason: "7"},
		"a host whose own time is up":   {guest: http(ask), grants: web, host: fails(context.DeadlineExceeded), code: "ok", reason: "7"},
		"a host whose error has no end": {guest: http(ask), grants: web, host: fails(errors.New(strings.Repeat("a", 1<<20))), code: "trap_guest", reason: "cabi_realloc returned a pointer out of bounds"},
	}
}

// pointerAttacks pass to the host what lies elsewhere.
func pointerAttacks() map[string]attack {
	const page = 65536
	all := map[string]attack{}
	add := func(name, function string, at, size, area int32, reason string) {
		all[fmt.Sprintf("%s, %s", function, name)] = attack{
			guest: twoFaced(func(g *guest) []byte {
				return join(number(at), number(size), number(area), g.asks(function))
			}),
			grants: sandbox.Grants{HTTP: true, KV: true}, code: map[bool]string{true: "ok", false: "trap_guest"}[reason == "7"], reason: reason, times: 20,
		}
	}
	for _, function := range []string{"http", "kv"} {
		add("a request that ends beyond the memory", function, page-1, 2, 64, "it passes a string that is outside its memory")
		add("a request beyond the memory", function, -1, 1, 64, "it passes a string that is outside its memory")
		add("a request larger than the memory", function, 0, page+1, 64, "it passes a string that is outside its memory")
		add("a request that wraps around", function, -16, 4<<20, 64, "it passes a string that is outside its memory")
		add("a request of all addresses", function, 0, -1, 64, "7") // it hears that it is too large
		add("an answer beyond the memory", function, 0, 2, -4, "it asks for an answer outside its memory")
		add("an answer that ends beyond the memory", function, 0, 2, page-11, "it asks for an answer outside its memory")
		add("an answer over the request", function, 0, 12, 0, "7")
		add("no request at the end of the memory", function, page, 0, 64, "7")
	}
	add("a message beyond the memory", "log", 0, -1, 1, "it passes a string that is outside its memory")
	add("a message that ends beyond the memory", "log", 0, page-1, 2, "it passes a string that is outside its memory")
	add("a level that is none", "log", -1, 0, 5, "7")
	return all
}

// opener returns a guest that opens the file f of its first directory, for ever,
// and closes nothing.
func opener() *guest {
	return twoFaced(func(g *guest) []byte {
		open := g.wasi("path_open", i32+i32+i32+i32+i32+i64+i64+i32+i32, i32)
		return join(number(128), number('f'), store8,
			loop(number(3), number(0), number(128), number(1), number(0), 0x42, 2, 0x42, 0, number(0), number(64), open, drop))
	})
}

// fileAttacks misuse a directory that they were granted.
func fileAttacks(t *testing.T) map[string]attack {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	grants := sandbox.Grants{Dirs: []sandbox.Dir{{Path: dir}}}
	allow := fakeHost{file: func(context.Context) error { return nil }}
	panics := fakeHost{file: func(context.Context) error { panic("a fault of the host") }}
	limits := sandbox.Limits{Fuel: 1e7, HostCalls: 50}
	return map[string]attack{
		"files that are never closed":  {guest: opener(), grants: grants, host: allow, limits: sandbox.Limits{Fuel: 1e5}, code: "trap_fuel", reason: outOfFuel},
		"more files than it may open":  {guest: opener(), grants: grants, host: allow, limits: limits, code: "trap_guest", reason: "it asks its host more than 50 times"},
		"more files than it is given":  {guest: opener(), grants: grants, host: fakeHost{}, limits: limits, code: "trap_denied", reason: "more than 16 times"},
		"a file at which a host fails": {guest: opener(), grants: grants, host: panics, limits: limits, reason: "sandbox: tool t: the host: panic: a fault of the host", spoils: true},
	}
}
