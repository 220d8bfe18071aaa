package sandbox_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/internal/testing/seed"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
	"github.com/wasmgate/wasmgate/sandbox"
)

// scribbler returns a reactor that counts its calls in a global, in memory that
// it has from the start, in memory that it grows and, if tables says so, in a
// table; it answers with the sum of what it found, which is 0 in a fresh
// instance, and then traps if its arguments are longer than {}.
func scribbler(tables bool) *guest {
	count := func(address int32) []byte {
		return join(get(4), number(address), load, add, 0x21, 4, number(address), number(1), store)
	}
	g := newGuest()
	g.table = join(0x70, 0, 10)
	g.function("cabi_realloc", i32+i32+i32+i32, i32, number(1024))
	body := join(number(1), memoryGrow, drop, getGlobal, number(4096), 0x6b, 0x21, 4, number(5000), setGlobal, count(60000), count(2<<16-8))
	if tables {
		body = join(body, get(4), number(3), 0x25, 0, 0xd1, 0x45, add, 0x21, 4, number(3), 0xd2, 0, 0x26, 0) // whether the entry is there; now it is
		g.elements = join(3, 0, 1, 0)                                                                        // function 0 may be referred to
	}
	g.function("tool_call", i32+i32+i32+i32, i32, body,
		get(argsLen), number(2), 0x4a, 0x04, 0x40, unreachable, 0x0b, say(get(4)))
	return g.section("wasmgate", []byte(manifest))
}

// TestCallsAreApart calls modules of all kinds from several goroutines, some
// calls ended by traps, by fuel at any point and by memory: no call finds what another left,
// and every instance that waits for the next is as the snapshot, byte for byte.
func TestCallsAreApart(t *testing.T) {
	seed := seed.Of(t)
	calls := unraced.Fewer(2000)
	if testing.Short() {
		calls = 100
	}
	for _, isolation := range []sandbox.Isolation{sandbox.IsolationCall, sandbox.IsolationInstance} {
		for _, method := range []string{"best", "copy"} {
			for _, tables := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/tables=%v", isolation, method, tables), func(t *testing.T) {
					t.Parallel()
					r := newRuntime(t, sandbox.Config{Concurrent: 8})
					if method == "copy" {
						r.CopyMemories()
					}
					m := compile(t, r, scribbler(tables).bytes(), sandbox.ModuleConfig{Isolation: isolation})
					if fit := m.Unfit() == ""; fit == tables {
						t.Fatalf("unfit: %q", m.Unfit())
					}
					var wg sync.WaitGroup
					for worker := range 8 {
						wg.Go(func() { apart(t, m, rand.New(rand.NewPCG(seed, uint64(worker))), calls) })
					}
					wg.Wait()
					n, err := m.CheckIdle()
					if err != nil || isolation == sandbox.IsolationCall && !tables && n == 0 {
						t.Errorf("%d instances wait: %v", n, err)
					}
				})
			}
		}
	}
}

func apart(t *testing.T, m *sandbox.Module, rnd *rand.Rand, calls int) {
	for range calls {
		args, cfg, want := "{}", sandbox.CallConfig{}, "ok"
		switch rnd.IntN(6) {
		case 0:
			args, want = `{"trap":1}`, "trap_guest"
		case 1:
			cfg.Limits.Fuel, want = 1+uint64(rnd.IntN(60)), "trap_fuel"
		case 2:
			cfg.Limits.Memory, want = 1<<16, "trap_memory"
		}
		res, err := m.Call(t.Context(), "t", []byte(args), cfg)
		if got := code(err); got != want || err == nil && string(res.Output) != "0" {
			t.Errorf("got %s %q, want %s 0: %v", got, res.Output, want, err)
			return
		}
	}
}

// TestManyCalls has 8 callers make 10,000 calls each of one module, which end in
// every way. Meanwhile, again and again, all instances that wait are compared with
// the snapshot; and in the end nothing has become more.
func TestManyCalls(t *testing.T) {
	if testing.Short() {
		t.Skip("makes 80,000 calls")
	}
	seed := seed.Of(t)
	const callers = 8
	r := newRuntime(t, sandbox.Config{Concurrent: callers})
	m := compile(t, r, scribbler(false).bytes(), sandbox.ModuleConfig{})
	all := func(calls int) {
		var wg sync.WaitGroup
		for worker := range callers {
			wg.Go(func() { apart(t, m, rand.New(rand.NewPCG(seed, uint64(worker))), calls) })
		}
		wg.Wait()
	}
	all(100)
	before := takeVitals(t)
	ctx, cancel := context.WithCancel(t.Context())
	var checks, waited int
	var checker sync.WaitGroup
	checker.Go(func() {
		for ; ctx.Err() == nil; checks++ {
			n, err := m.CheckIdle()
			if waited += n; err != nil {
				t.Error(err)
				return
			}
			time.Sleep(time.Millisecond) // no call gets an instance while they are compared
		}
	})
	all(unraced.Fewer(10_000))
	cancel()
	checker.Wait()
	if n, err := m.CheckIdle(); err != nil || n == 0 || n > callers {
		t.Errorf("%d instances wait: %v", n, err)
	}
	t.Logf("%d instances compared in %d looks", waited, checks)
	before.images += callers // that may wait
	takeVitals(t).check(t, before)
}

// TestWordsAreNotLeft passes a guest a long text, and has it look for any of it in
// the next call. A session, which is meant to keep its state, shows that it would
// find it.
func TestWordsAreNotLeft(t *testing.T) {
	// Answers 1 if memory from 5000 to its end holds anything, and keeps its
	// arguments at 5000, beyond what it needs of them otherwise.
	keep := join(number(5000), get(argsPtr), get(argsLen), 0xfc, 10, 0, 0)
	look := join(number(5000), 0x21, 4,
		0x03, 0x40, get(5), get(4), load, 0x72, 0x21, 5, get(4), number(4), add, 0x22, 4, number(65536), 0x48, 0x0d, 0, 0x0b,
		get(5), number(0), 0x47, 0x21, 5)
	tests := map[sandbox.Isolation]string{sandbox.IsolationCall: "0", sandbox.IsolationInstance: "0", sandbox.IsolationSession: "1"}
	text := []byte(`"` + strings.Repeat("confidential ", 1000) + `"`)
	for isolation, want := range tests {
		t.Run(string(isolation), func(t *testing.T) {
			g := newGuest()
			g.function("cabi_realloc", i32+i32+i32+i32, i32, number(1024))
			g.function("tool_call", i32+i32+i32+i32, i32, get(argsLen), number(2), 0x4a, 0x04, 0x40, keep, 0x0b, look, say(get(5)))
			g.section("wasmgate", []byte(manifest))
			m := compile(t, newRuntime(t, sandbox.Config{}), g.bytes(), sandbox.ModuleConfig{Isolation: isolation})
			for range 10 {
				cfg := sandbox.CallConfig{Session: "s"}
				if res, err := m.Call(t.Context(), "t", text, cfg); err != nil || string(res.Output) != "1" {
					t.Fatalf("the text: %s, %v, want 1", res.Output, err)
				}
				if res, err := m.Call(t.Context(), "t", nil, cfg); err != nil || string(res.Output) != want {
					t.Fatalf("the next call: %s, %v, want %s", res.Output, err, want)
				}
			}
		})
	}
}

// TestGoInstancesAreReset does the same with a module of a language that has a
// runtime of its own: the embedded tools, ended at any point.
func TestGoInstancesAreReset(t *testing.T) {
	unraced.Long(t)
	rnd := seed.Rand(t)
	r := newRuntime(t, sandbox.Config{CacheDir: cache})
	m := compile(t, r, embedded(t), sandbox.ModuleConfig{})
	const args = `{"text":"hello","algorithm":"sha256"}`
	full, err := m.Call(t.Context(), "hash", []byte(args), sandbox.CallConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for range 60 {
		limits := sandbox.Limits{Fuel: 1 + rnd.Uint64N(full.Fuel-1)}
		if _, err := m.Call(t.Context(), "hash", []byte(args), sandbox.CallConfig{Limits: limits}); code(err) != "trap_fuel" {
			t.Fatalf("with %d of %d instructions: %v", limits.Fuel, full.Fuel, err)
		}
		if _, err := m.CheckIdle(); err != nil {
			t.Fatalf("after %d of %d instructions: %v", limits.Fuel, full.Fuel, err)
		}
		res, err := m.Call(t.Context(), "hash", []byte(args), sandbox.CallConfig{})
		if err != nil || string(res.Output) != string(full.Output) {
			t.Fatalf("after a trap: %s, %v, want %s", res.Output, err, full.Output)
		}
		if n, err := m.CheckIdle(); err != nil || n != 1 {
			t.Fatalf("after a call: %d instances wait: %v", n, err)
		}
	}
}

// TestSessions checks that calls of one session share a state and those of two
// do not, and that a call which fails ends the state.
func TestSessions(t *testing.T) {
	g := newGuest()
	g.function("cabi_realloc", i32+i32+i32+i32, i32, number(1024))
	g.function("tool_call", i32+i32+i32+i32, i32, number(60000), number(60000), load, number(1), add, store,
		get(argsLen), number(2), 0x4a, 0x04, 0x40, unreachable, 0x0b, say(join(number(60000), load)))
	m := compile(t, newRuntime(t, sandbox.Config{}), g.offering(), inSessions)
	steps := []struct{ session, args, want string }{
		{"a", "{}", "1"}, {"a", "{}", "2"}, {"b", "{}", "1"}, {"a", "{}", "3"},
		{"a", `{"trap":1}`, "trap_guest"}, {"a", "{}", "1"}, {"b", "{}", "2"}, {"", "{}", "names none"},
	}
	for i, s := range steps {
		res, err := m.Call(t.Context(), "t", []byte(s.args), sandbox.CallConfig{Session: s.session})
		got := string(res.Output)
		if err != nil {
			got = code(err)
		}
		if !strings.Contains(got, s.want) {
			t.Errorf("step %d: session %q got %q, want %q", i, s.session, got, s.want)
		}
	}
	for i := range 100 { // more than are kept
		if res, err := m.Call(t.Context(), "t", nil, sandbox.CallConfig{Session: fmt.Sprint("many", i)}); err != nil || string(res.Output) != "1" {
			t.Fatalf("session %d: %q, %v", i, res.Output, err)
		}
	}
	if res, err := m.Call(t.Context(), "t", nil, sandbox.CallConfig{Session: "a"}); err != nil || string(res.Output) != "1" {
		t.Errorf("a session that had to make room: %q, %v, want 1", res.Output, err)
	}
}

// TestSessionIsSerial has many calls of one session count: none is lost.
func TestSessionIsSerial(t *testing.T) {
	g := newGuest()
	g.function("cabi_realloc", i32+i32+i32+i32, i32, number(1024))
	count := join(number(60000), number(60000), load, number(1), add, number(10), 0x6f, store) // modulo 10
	g.function("tool_call", i32+i32+i32+i32, i32, count, say(join(number(60000), load)))
	m := compile(t, newRuntime(t, sandbox.Config{Concurrent: 4}), g.offering(), inSessions)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 25 {
				if _, err := m.Call(t.Context(), "t", nil, sandbox.CallConfig{Session: "s"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	res, err := m.Call(t.Context(), "t", nil, sandbox.CallConfig{Session: "s"})
	if err != nil || string(res.Output) != "1" {
		t.Errorf("after 200 calls: %q, %v, want 1", res.Output, err)
	}
}

// mappings counts the mappings of this process whose name holds text.
func mappings(t testing.TB, text string) int {
	if runtime.GOOS != "linux" {
		return 0
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(maps), text)
}

// TestNothingIsLeft checks that calls leave no memory, no descriptor and no
// goroutine behind when their runtime is closed.
func TestNothingIsLeft(t *testing.T) {
	unraced.Long(t)
	before, mapped := runtime.NumGoroutine(), mappings(t, "wasm-image")
	for range 20 {
		r, err := sandbox.New(t.Context(), sandbox.Config{})
		if err != nil {
			t.Fatal(err)
		}
		m := compile(t, r, scribbler(false).bytes(), sandbox.ModuleConfig{})
		if _, err := m.Call(t.Context(), "t", nil, sandbox.CallConfig{}); err != nil {
			t.Fatal(err)
		}
		if err := r.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	if after := runtime.NumGoroutine(); after > before+2 {
		t.Errorf("%d goroutines, %d before", after, before)
	}
	if left := mappings(t, "wasm-image"); left > mapped {
		t.Errorf("%d mappings of images, %d before", left, mapped)
	}
}
