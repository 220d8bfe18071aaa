package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/internal/testing/unraced"
	"github.com/wasmgate/wasmgate/sandbox"
)

// inSessions has a module keep a state for each session.
var inSessions = sandbox.ModuleConfig{Isolation: sandbox.IsolationSession}

// offering writes a guest with a manifest.
func (g *guest) offering() []byte { return g.section("wasmgate", []byte(manifest)).bytes() }

// counter returns a guest that counts its calls, after it did something else.
func counter(body ...any) *guest {
	g := newGuest()
	g.function("cabi_realloc", i32+i32+i32+i32, i32, number(1024))
	g.function("tool_call", i32+i32+i32+i32, i32, join(body...), number(60000), number(60000), load, number(1), add, store, say(join(number(60000), load)))
	return g
}

// TestSessionNames checks that names which look alike are sessions of their own.
func TestSessionNames(t *testing.T) {
	m := compile(t, newRuntime(t, sandbox.Config{}), counter().offering(), inSessions)
	names := []string{"a", "A", "a ", " a", "a\x00", "a\x00b", "a\nb", "\u00e9", "e\u0301", "\xff", "\xfe", strings.Repeat("a", 1<<20), strings.Repeat("a", 1<<20) + "b"}
	for _, want := range []string{"1", "2"} {
		for _, name := range names {
			res, err := m.Call(t.Context(), "t", nil, sandbox.CallConfig{Session: name})
			if err != nil || string(res.Output) != want {
				t.Errorf("session %.20q: %s, %v, want %s", name, res.Output, err, want)
			}
		}
	}
}

// blocking is a host whose answers wait until the gate opens.
func blocking(gate chan struct{}, asked chan<- struct{}) sandbox.Host {
	return fakeHost{http: func(ctx context.Context) (sandbox.HTTPResponse, error) {
		asked <- struct{}{}
		select {
		case <-gate:
		case <-ctx.Done():
		}
		return sandbox.HTTPResponse{}, ctx.Err()
	}}
}

// TestSessionsInUse holds as many sessions as there can be. One more is refused, and no other
// session's state is given up for it. A call that waits for a session that is in use takes no slot
// from the others.
func TestSessionsInUse(t *testing.T) {
	const most = 64
	g := newGuest()
	call := g.asks("http")
	g.function("cabi_realloc", i32+i32+i32+i32, i32, number(1024))
	g.function("tool_call", i32+i32+i32+i32, i32, number(60000), number(60000), load, number(1), add, store,
		get(argsLen), number(2), 0x4a, 0x04, 0x40, ask(call), 0x0b, say(join(number(60000), load)))
	r := newRuntime(t, sandbox.Config{Concurrent: most + 1})
	m := compile(t, r, g.offering(), sandbox.ModuleConfig{Isolation: sandbox.IsolationSession, Grants: sandbox.Grants{HTTP: true}, Limits: sandbox.Limits{Concurrent: most}})
	gate, asked := make(chan struct{}), make(chan struct{}, most)
	var holders, waiters sync.WaitGroup
	for i := range most {
		holders.Go(func() {
			cfg := sandbox.CallConfig{Session: fmt.Sprint(i), Host: blocking(gate, asked)}
			if res, err := m.Call(t.Context(), "t", []byte(evilArgs), cfg); err != nil || string(res.Output) != "1" {
				t.Errorf("session %d: %s, %v, want 1", i, res.Output, err)
			}
		})
	}
	for range most {
		<-asked
	}
	if _, err := m.Call(t.Context(), "t", nil, sandbox.CallConfig{Session: "new"}); err == nil || !strings.Contains(err.Error(), "all 64 sessions that the module can have are in use") {
		t.Errorf("one session more: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	for range 20 {
		waiters.Go(func() {
			if _, err := m.Call(ctx, "t", nil, sandbox.CallConfig{Session: "0"}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a call of a session that is in use: %v, want its context's error", err)
			}
		})
	}
	other := compile(t, r, counter().offering(), inSessions)
	if res, err := other.Call(t.Context(), "t", nil, sandbox.CallConfig{Session: "0"}); err != nil || string(res.Output) != "1" {
		t.Errorf("the same session of another module: %s, %v, want 1", res.Output, err)
	}
	waiters.Wait()
	close(gate)
	holders.Wait()
	if res, err := m.Call(t.Context(), "t", nil, sandbox.CallConfig{Session: "0"}); err != nil || string(res.Output) != "2" {
		t.Errorf("a session after all that: %s, %v, want 2", res.Output, err)
	}
	if res, err := m.Call(t.Context(), "t", nil, sandbox.CallConfig{Session: "new"}); err != nil || string(res.Output) != "1" {
		t.Errorf("a new session after all that: %s, %v, want 1", res.Output, err)
	}
}

// TestSessionHolds checks that a session cannot keep more than its limits: not
// the stack of a recursion, nor memory by growing a little in each call.
func TestSessionHolds(t *testing.T) {
	unraced.Long(t)
	t.Run("no deep stacks", func(t *testing.T) {
		g := newGuest()
		down := g.function("", i32, "", get(0), 0x04, 0x40, get(0), number(1), 0x6b, g.self(), 0x0b)
		g.function("cabi_realloc", i32+i32+i32+i32, i32, number(1024))
		g.function("tool_call", i32+i32+i32+i32, i32, number(60_000), down, say(number(1)))
		m := compile(t, newRuntime(t, sandbox.Config{}), g.offering(), inSessions)
		before := takeVitals(t)
		for i := range 40 { // of a stack of more than a megabyte each
			if _, err := m.Call(t.Context(), "t", nil, sandbox.CallConfig{Session: fmt.Sprint(i)}); err != nil {
				t.Fatal(err)
			}
		}
		if after := takeVitals(t); after.heap > before.heap+16<<20 {
			t.Errorf("40 sessions hold %d bytes of heap", after.heap-before.heap)
		}
	})
	t.Run("no more memory", func(t *testing.T) {
		g := counter(number(4), memoryGrow, number(-1), 0x46, 0x04, 0x40, unreachable, 0x0b)
		m := compile(t, newRuntime(t, sandbox.Config{}), g.offering(), sandbox.ModuleConfig{Isolation: sandbox.IsolationSession, Limits: sandbox.Limits{Memory: 13 << 16}})
		for i, want := range []string{"1", "2", "3", "trap_memory", "1", "2"} {
			res, err := m.Call(t.Context(), "t", nil, sandbox.CallConfig{Session: "s"})
			got := string(res.Output)
			if err != nil {
				got = code(err)
			}
			if got != want || res.MemoryPeak > 13<<16 {
				t.Errorf("call %d: %s with %d bytes, want %s", i, got, res.MemoryPeak, want)
			}
		}
	})
	t.Run("no more fuel", func(t *testing.T) {
		m := compile(t, newRuntime(t, sandbox.Config{}), counter(get(argsLen), number(2), 0x4a, 0x04, 0x40, forever, 0x0b).offering(), sandbox.ModuleConfig{Isolation: sandbox.IsolationSession, Limits: fuel})
		for range 20 {
			cfg := sandbox.CallConfig{Session: "s"}
			if res, err := m.Call(t.Context(), "t", nil, cfg); err != nil || string(res.Output) != "1" {
				t.Errorf("a new state: %s, %v, want 1", res.Output, err)
			}
			if res, err := m.Call(t.Context(), "t", []byte(evilArgs), cfg); code(err) != "trap_fuel" || res.Fuel != fuel.Fuel {
				t.Errorf("%v after %d instructions", err, res.Fuel)
			}
		}
	})
}

// A session's state ends with the session, also under way, and by itself.
func TestSessionsEnd(t *testing.T) {
	r := newRuntime(t, sandbox.Config{})
	m := compile(t, r, counter().offering(), inSessions)
	count := func(session, want string) {
		t.Helper()
		if res, err := m.Call(t.Context(), "t", nil, sandbox.CallConfig{Session: session}); err != nil || string(res.Output) != want {
			t.Errorf("session %s: %s, %v, want %s", session, res.Output, err, want)
		}
	}
	count("a", "1")
	count("b", "1")
	count("a", "2")
	r.EndSession(t.Context(), "a")
	count("a", "1")
	count("b", "2")
	r.Trim(5 * time.Minute)
	count("b", "3")
	r.Trim(11 * time.Minute)
	if held := r.SessionBytes(); held != 0 {
		t.Errorf("sessions that are idle hold %d bytes", held)
	}
	count("b", "1")

	asks := newGuest()
	call := asks.asks("http")
	asks.function("cabi_realloc", i32+i32+i32+i32, i32, number(1024))
	asks.function("tool_call", i32+i32+i32+i32, i32, ask(call), say(number(1)))
	m = compile(t, r, asks.offering(), sandbox.ModuleConfig{Isolation: sandbox.IsolationSession, Grants: sandbox.Grants{HTTP: true}})
	gate, asked := make(chan struct{}), make(chan struct{}, 1)
	done := make(chan error)
	go func() {
		_, err := m.Call(t.Context(), "t", []byte(evilArgs), sandbox.CallConfig{Session: "c", Host: blocking(gate, asked)})
		done <- err
	}()
	<-asked
	r.EndSession(t.Context(), "c")
	r.EndSession(t.Context(), "b")
	close(gate)
	if err := <-done; err != nil {
		t.Errorf("a call under way at the end of its session: %v", err)
	}
	if held := r.SessionBytes(); held != 0 {
		t.Errorf("sessions that have ended hold %d bytes", held)
	}
}

// Sessions are bounded by their memory, over all modules.
func TestSessionsByBytes(t *testing.T) {
	r := newRuntime(t, sandbox.Config{})
	big := counter(number(160), memoryGrow, drop).offering() // ten MiB for each call
	m, other := compile(t, r, big, inSessions), compile(t, r, big, inSessions)
	const most = 64 << 20
	r.BoundSessions(most)
	for i := range 30 {
		for _, one := range []*sandbox.Module{m, other} {
			if _, err := one.Call(t.Context(), "t", nil, sandbox.CallConfig{Session: fmt.Sprint(i)}); err != nil {
				t.Fatal(err)
			}
			if held := r.SessionBytes(); held > most {
				t.Fatalf("sessions hold %d bytes", held)
			}
		}
	}
	if res, err := m.Call(t.Context(), "t", nil, sandbox.CallConfig{Session: "29"}); err != nil || string(res.Output) != "2" {
		t.Errorf("the last session but one: %s, %v, want 2", res.Output, err)
	}
	if res, err := m.Call(t.Context(), "t", nil, sandbox.CallConfig{Session: "0"}); err != nil || string(res.Output) != "1" {
		t.Errorf("the first session: %s, %v, want 1", res.Output, err)
	}
}

// It is the configuration that has a module keep anything.
func TestManifestCannotChooseSessions(t *testing.T) {
	r := newRuntime(t, sandbox.Config{})
	wasm := counter().section("wasmgate", []byte(strings.Replace(manifest, "{", `{"isolation":"session",`, 1))).bytes()
	m := compile(t, r, wasm, sandbox.ModuleConfig{})
	for range 2 {
		if res, err := m.Call(t.Context(), "t", nil, sandbox.CallConfig{Session: "s"}); err != nil || string(res.Output) != "1" {
			t.Errorf("%s, %v, want 1", res.Output, err)
		}
	}
	if !strings.Contains(m.Note(), "the configuration's to choose") || compile(t, r, wasm, inSessions).Note() != "" {
		t.Errorf("note %q", m.Note())
	}
}

// Only the configuration can give what a manifest wants beyond the defaults, and the note says so.
func TestManifestCannotRaiseLimits(t *testing.T) {
	r := newRuntime(t, sandbox.Config{})
	wasm := counter().section("wasmgate", []byte(strings.Replace(manifest, "{", `{"limits":{"memory":"4GiB","timeout":"1h","fuel":7},`, 1))).bytes()
	m := compile(t, r, wasm, sandbox.ModuleConfig{})
	if !strings.HasSuffix(m.Note(), "(limits: {timeout: 1h0m0s, memory: 4096MiB})") {
		t.Errorf("note %q", m.Note())
	}
	set := compile(t, r, wasm, sandbox.ModuleConfig{Limits: sandbox.Limits{Memory: 64 << 20, Timeout: time.Second}})
	if set.Note() != "" {
		t.Errorf("note %q of limits that are set", set.Note())
	}
}

// Instances that are not used for a time give their memory back.
func TestIdleInstancesAreTrimmed(t *testing.T) {
	r := newRuntime(t, sandbox.Config{})
	m := compile(t, r, reactor(say(number(1))).bytes(), sandbox.ModuleConfig{})
	idle := func(want int) {
		t.Helper()
		if n, err := m.CheckIdle(); err != nil || n != want {
			t.Errorf("%d instances wait, %v, want %d", n, err, want)
		}
	}
	for range 2 {
		if _, err := m.Call(t.Context(), "t", nil, sandbox.CallConfig{}); err != nil {
			t.Fatal(err)
		}
		idle(1)
		r.Trim(time.Minute)
		idle(1)
		r.Trim(3 * time.Minute)
		idle(0)
	}
}
