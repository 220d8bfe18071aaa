package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/internal/testing/unraced"
	"github.com/wasmgate/wasmgate/sandbox"
)

// sleeping is a command that waits for a clock that rings after weeks.
func sleeping() *guest {
	g := newGuest()
	poll := g.wasi("poll_oneoff", i32+i32+i32+i32, i32)
	g.function("_start", "", "", put(1024+24, 0), put(1024+28, 1<<20), number(1024), number(2048), number(1), number(4096), poll, drop)
	return g.section("wasmgate", []byte(manifest))
}

// asking is a reactor that asks its host once.
func asking(function string) *guest {
	g := newGuest()
	call := g.asks(function)
	g.function("cabi_realloc", i32+i32+i32+i32, i32, number(1024))
	g.function("tool_call", i32+i32+i32+i32, i32, ask(call), say(number(1)))
	return g.section("wasmgate", []byte(manifest))
}

// many calls a module until the context ends.
func many(ctx context.Context, t *testing.T, m *sandbox.Module, callers int, args string, host sandbox.Host) {
	var wg sync.WaitGroup
	t.Cleanup(wg.Wait)
	for i := range callers {
		wg.Go(func() {
			for ctx.Err() == nil {
				_, _ = m.Call(ctx, "t", []byte(args), sandbox.CallConfig{Caller: fmt.Sprint(i), Host: host})
			}
		})
	}
}

// TestOthersCallsGoOn keeps many more calls under way than guests can run at once. They sleep, wait
// for their hosts, or spin, by themselves or in what WASI answers. A call of another module is
// carried out meanwhile, and so is a call of a module that other callers keep busy.
func TestOthersCallsGoOn(t *testing.T) {
	unraced.Long(t)
	const callers = 40
	asked := make(chan struct{}, callers)
	never := make(chan struct{})
	files := t.TempDir()
	if err := os.WriteFile(filepath.Join(files, "f"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		g      *guest
		grants sandbox.Grants
		args   string
		host   sandbox.Host
	}{
		"asleep":       {g: sleeping()},
		"for http":     {asking("http"), sandbox.Grants{HTTP: true}, evilArgs, blocking(never, asked)},
		"for a value":  {asking("kv"), sandbox.Grants{KV: true}, `{"op":"get","key":"k"}`, fakeHost{kv: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}},
		"for a file":   {opener(), sandbox.Grants{Dirs: []sandbox.Dir{{Path: files}}}, evilArgs, fakeHost{file: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}},
		"in WASI":      {opener(), sandbox.Grants{Dirs: []sandbox.Dir{{Path: t.TempDir()}}}, evilArgs, fakeHost{}}, // which knows without a question that there is no file
		"in a loop":    {g: reactor(forever, unreachable)},
		"for snapshot": {g: initializing(forever)},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRuntime(t, sandbox.Config{Limits: sandbox.Limits{Timeout: 2 * long}})
			busy := compile(t, r, tt.g.bytes(), sandbox.ModuleConfig{Grants: tt.grants})
			quick := compile(t, r, reactor(say(number(1))).bytes(), sandbox.ModuleConfig{})
			ctx, end := context.WithCancel(t.Context())
			defer end()
			many(ctx, t, busy, callers, tt.args, tt.host)
			for r.UnderWay() < 4 {
				runtime.Gosched()
			}
			patience, over := context.WithTimeout(t.Context(), long)
			defer over()
			for range 20 {
				if _, err := quick.Call(patience, "t", nil, sandbox.CallConfig{}); err != nil {
					t.Fatalf("beside calls that go on: %v", err)
				}
			}
		})
	}
}

// initializing is a reactor with this body of _initialize.
func initializing(body ...any) *guest {
	g := reactor(say(number(1)))
	g.function("_initialize", "", "", body...)
	return g
}

// A line has calls under way that wait for an answer, of modules whose places are few.
type line struct {
	t       *testing.T
	runtime *sandbox.Runtime
	wg      sync.WaitGroup
	asked   chan string // by whom, as soon as a call is under way
}

func newLine(t *testing.T, cfg sandbox.Config) *line {
	return &line{t: t, runtime: newRuntime(t, cfg), asked: make(chan string)}
}

func (l *line) module(g *guest, most int) *sandbox.Module {
	return compile(l.t, l.runtime, g.bytes(), sandbox.ModuleConfig{Grants: sandbox.Grants{HTTP: true}, Limits: sandbox.Limits{Concurrent: most}})
}

// call makes a call, which ends when release does.
func (l *line) call(m *sandbox.Module, caller string, release <-chan struct{}) {
	host := fakeHost{http: func(context.Context) (sandbox.HTTPResponse, error) {
		l.asked <- caller
		<-release
		return sandbox.HTTPResponse{}, nil
	}}
	l.wg.Go(func() {
		if _, err := m.Call(l.t.Context(), "t", []byte(evilArgs), sandbox.CallConfig{Caller: caller, Host: host}); err != nil {
			l.t.Error(err)
		}
	})
}

// holds makes a call that is under way at once.
func (l *line) holds(m *sandbox.Module, caller string, release <-chan struct{}) {
	l.t.Helper()
	l.call(m, caller, release)
	if got := <-l.asked; got != caller {
		l.t.Fatalf("a call of %s is under way, want one of %s", got, caller)
	}
}

// waits makes a call that has to wait.
func (l *line) waits(m *sandbox.Module, caller string, release <-chan struct{}) {
	waiting := l.runtime.Waiting()
	l.call(m, caller, release)
	for l.runtime.Waiting() == waiting {
		select {
		case got := <-l.asked:
			l.t.Fatalf("a call of %s is under way, where one of %s should wait", got, caller)
		default:
			runtime.Gosched()
		}
	}
}

// TestTurns checks in which order calls are served that wait for a place: the modules in
// turn, and of each its callers.
func TestTurns(t *testing.T) {
	l := newLine(t, sandbox.Config{Concurrent: 4})
	a, b := l.module(asking("http"), 4), l.module(asking("http").section("another", nil), 4)
	one, release, answer := make(chan struct{}), make(chan struct{}), make(chan struct{})
	l.holds(a, "a's y", one)
	l.holds(a, "a's y", release) // callers without a call under way would not wait
	l.holds(a, "a's x", release)
	l.holds(b, "b's x", release)
	for range 3 {
		l.waits(a, "a's x", answer)
	}
	l.waits(b, "b's x", answer)
	l.waits(a, "a's y", answer)
	l.waits(b, "b's x", answer)

	close(one)
	var order []string
	for range 6 {
		order = append(order, <-l.asked)
		answer <- struct{}{}
	}
	close(release)
	l.wg.Wait()
	if want := []string{"a's x", "b's x", "a's y", "b's x", "a's x", "a's x"}; !slices.Equal(order, want) {
		t.Errorf("served %q, want %q", order, want)
	}
}

// TestCallersWithoutACall checks that a caller that has no call under way does not wait for
// those of another, neither of its module nor of all, and how many such there can be.
func TestCallersWithoutACall(t *testing.T) {
	for name, cfg := range map[string]struct{ all, module int }{"of the module": {64, 4}, "of all": {4, 16}} {
		t.Run(name, func(t *testing.T) {
			l := newLine(t, sandbox.Config{Concurrent: cfg.all})
			m := l.module(asking("http"), cfg.module)
			release := make(chan struct{})
			for range 4 {
				l.holds(m, "many", release)
			}
			for range 3 {
				l.waits(m, "many", release)
			}
			for i := range 16 {
				l.holds(m, fmt.Sprint("caller ", i), release)
			}
			l.waits(m, "caller 0", release) // it has one
			l.waits(m, "one too many", release)
			close(release)
			for range 5 {
				<-l.asked
			}
			l.wg.Wait()
			release = make(chan struct{})
			for range 2 { // now that others have called in the last minute
				l.holds(m, "many", release)
			}
			l.waits(m, "many", release)
			l.holds(m, "caller 1", release)
			l.holds(m, "caller 1", release)
			l.waits(m, "caller 1", release)
			l.holds(m, "caller 2", release)
			close(release)
			for range 2 {
				<-l.asked
			}
			l.wg.Wait()
		})
	}
}

// TestTimeBeginsWithThePlace checks that what a call waits for others is none of its time.
func TestTimeBeginsWithThePlace(t *testing.T) {
	l := newLine(t, sandbox.Config{Limits: sandbox.Limits{Timeout: long}})
	m := l.module(asking("http"), 1)
	release := make(chan struct{})
	l.holds(m, "x", release)
	deadline := make(chan time.Time, 1)
	host := fakeHost{http: func(ctx context.Context) (sandbox.HTTPResponse, error) {
		at, _ := ctx.Deadline()
		deadline <- at
		return sandbox.HTTPResponse{}, nil
	}}
	l.wg.Go(func() {
		if _, err := m.Call(t.Context(), "t", []byte(evilArgs), sandbox.CallConfig{Caller: "x", Host: host}); err != nil {
			t.Error(err)
		}
	})
	for l.runtime.Waiting() == 0 {
		runtime.Gosched()
	}
	time.Sleep(2 * time.Millisecond)
	released := time.Now()
	close(release)
	if at := <-deadline; at.Before(released.Add(long)) {
		t.Errorf("it has %v, want %v", at.Sub(released), long)
	}
	l.wg.Wait()
}

// TestBusy checks how a call ends that waits for as long as it may take.
func TestBusy(t *testing.T) {
	m := compile(t, newRuntime(t, sandbox.Config{}), asking("http").bytes(), sandbox.ModuleConfig{
		Grants: sandbox.Grants{HTTP: true}, Limits: sandbox.Limits{Concurrent: 1},
	})
	gate, asked := make(chan struct{}), make(chan struct{}, 1)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(gate)
	wg.Go(func() {
		_, _ = m.Call(t.Context(), "t", []byte(evilArgs), sandbox.CallConfig{Host: blocking(gate, asked)})
	})
	<-asked
	res, err := m.Call(t.Context(), "t", nil, sandbox.CallConfig{Limits: sandbox.Limits{Timeout: 30 * time.Millisecond}})
	var busy *sandbox.BusyError
	if !errors.As(err, &busy) || busy.Code() != "refused_busy" || busy.Waited < 30*time.Millisecond || res.Took < busy.Waited-time.Millisecond {
		t.Errorf("%v after %v, want refused_busy after its 30ms", err, res.Took)
	}
}

// TestServersGiveWay checks that servers that spin, and those that wait for input, leave
// slots to others.
func TestServersGiveWay(t *testing.T) {
	unraced.Long(t)
	r := newRuntime(t, sandbox.Config{Limits: sandbox.Limits{Timeout: 2 * long}})
	quick := compile(t, r, reactor(say(number(1))).bytes(), sandbox.ModuleConfig{})
	spinning := newGuest()
	spinning.function("_start", "", "", forever)
	for name, g := range map[string]*guest{"in a loop": spinning, "for input": command(1, 0), "asleep": sleeping()} {
		t.Run(name, func(t *testing.T) {
			m := compile(t, r, g.bytesWithout(), sandbox.ModuleConfig{Server: true})
			ctx, end := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			defer wg.Wait()
			defer end()
			for range 2*runtime.GOMAXPROCS(0) + 2 {
				wg.Go(func() { _ = m.Serve(ctx, sandbox.NewPipe(), io.Discard, sandbox.ServeConfig{}) })
			}
			patience, over := context.WithTimeout(t.Context(), long)
			defer over()
			for range 20 {
				if _, err := quick.Call(patience, "t", nil, sandbox.CallConfig{}); err != nil {
					t.Fatalf("beside servers: %v", err)
				}
				time.Sleep(time.Millisecond) // until they have all begun
			}
		})
	}
}

// TestServerThatSleepsEnds checks that a server has a time for what it does, sleep
// included, and none for waiting for input.
func TestServerThatSleepsEnds(t *testing.T) {
	r := newRuntime(t, sandbox.Config{})
	cfg := sandbox.ModuleConfig{Server: true, Limits: sandbox.Limits{Timeout: 50 * time.Millisecond}}
	sleeper := newGuest()
	poll := sleeper.wasi("poll_oneoff", i32+i32+i32+i32, i32)
	sleeper.function("_start", "", "", put(1024+24, 0), put(1024+28, 1<<20),
		loop(number(1024), number(2048), number(1), number(4096), poll, drop))
	asleep := compile(t, r, sleeper.bytes(), cfg)
	if err := asleep.Serve(t.Context(), sandbox.NewPipe(), io.Discard, sandbox.ServeConfig{}); code(err) != "trap_deadline" {
		t.Errorf("asleep: %v, want trap_deadline", err)
	}
	cfg.Limits.Timeout = long
	asleep = compile(t, r, sleeper.bytes(), cfg)
	ctx, end := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, end)
	if err := asleep.Serve(ctx, sandbox.NewPipe(), io.Discard, sandbox.ServeConfig{}); !errors.Is(err, context.Canceled) {
		t.Errorf("asleep, without a connection: %v, want the context's end", err)
	}
}

// TestServerHasItsFuelForALine checks that a server gets its limits with each line, and
// not with each byte that it reads.
func TestServerHasItsFuelForALine(t *testing.T) {
	// Reads a byte at a time, and works a thousand instructions for each.
	sip := newGuest()
	read := sip.wasi("fd_read", i32+i32+i32+i32, i32)
	exit := sip.wasi("proc_exit", i32, "")
	work := []byte{0x41, 0xe4, 0, 0x21, 0, 0x03, 0x40, 0x20, 0, 0x41, 1, 0x6b, 0x22, 0, 0x0d, 0, 0x0b} // 100 rounds
	sip.function("_start", "", "", put(0, 1024), put(4, 1), 0x03, 0x40,
		number(0), number(0), number(1), number(8), read, drop,
		number(8), load, []byte{0x45, 0x04, 0x40}, number(0), exit, 0x0b, work, 0x0c, 0, 0x0b)
	m := compile(t, newRuntime(t, sandbox.Config{}), sip.bytes(), sandbox.ModuleConfig{Server: true, Limits: sandbox.Limits{Fuel: 20_000}})
	for name, tt := range map[string]struct{ input, want string }{
		"many lines":  {input: strings.Repeat("abc\n", 100), want: "ok"},
		"a long line": {input: strings.Repeat("abc ", 100), want: "trap_fuel"},
	} {
		t.Run(name, func(t *testing.T) {
			in := sandbox.NewPipe()
			if _, err := io.WriteString(in, tt.input); err != nil {
				t.Fatal(err)
			}
			in.Close()
			if err := m.Serve(t.Context(), in, io.Discard, sandbox.ServeConfig{}); code(err) != tt.want {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
}

type waiterFunc func()

func (f waiterFunc) Waits() { f() }

// TestWaiter: a call that waits for others of its module reports that, and one that does not wait
// reports nothing.
func TestWaiter(t *testing.T) {
	l := newLine(t, sandbox.Config{})
	m := l.module(asking("http"), 1)
	told := make(chan struct{}, 10)
	call := func(release <-chan struct{}) {
		host := fakeHost{http: func(context.Context) (sandbox.HTTPResponse, error) {
			l.asked <- "x"
			<-release
			return sandbox.HTTPResponse{}, nil
		}}
		l.wg.Go(func() {
			cfg := sandbox.CallConfig{Caller: "x", Host: host, Waiter: waiterFunc(func() { told <- struct{}{} })}
			if _, err := m.Call(t.Context(), "t", []byte(evilArgs), cfg); err != nil {
				t.Error(err)
			}
		})
	}
	release := make(chan struct{})
	call(release)
	<-l.asked
	if len(told) > 0 {
		t.Error("a call that does not wait reports that it does")
	}
	call(release)
	<-told
	close(release)
	<-l.asked
	l.wg.Wait()
}
