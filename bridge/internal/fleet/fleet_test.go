package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/fleet"
	"github.com/wasmgate/wasmgate/bridge/internal/local"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
)

func newLocal(t testing.TB, server string, o options.Tools, names ...string) *local.Server {
	t.Helper()
	var tools []options.LocalTool
	for _, n := range names {
		tools = append(tools, options.LocalTool{
			Definition: gate.MustDoc(rig.Tool(n)),
			Call: func(_ context.Context, c *gate.Call, _ gate.Permit) (gate.Result, error) {
				return gate.Result{Doc: gate.MustDoc(`{"content":[],"by":"` + server + `"}`)}, nil
			},
		})
	}
	l, err := local.New(server, o, tools...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestFleetConnects in parallel: a server that hangs and one that is broken do not hold up the
// others, and their faults stay their own.
func TestFleetConnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := rig.NewScript(map[string]string{"initialize": "-"}).Config("hangs")
		hangs.ConnectTimeout = 5 * time.Second
		slow := rig.NewScript(nil)
		slowly := slow.Config("slow")
		slowly.Dial = func() (mcp.Transport, error) { time.Sleep(4 * time.Second); return slow.Dial() }
		f := rig.NewFleet(t, fleet.Config{
			Locals: []*local.Server{newLocal(t, "local", rig.Options(), "hash")},
			Servers: []options.Endpoint{
				rig.NewScript(nil).Config("one"), hangs, slowly,
				{Server: "broken", Command: "/nonexistent", Tools: rig.Options()}, rig.NewScript(nil).Config("two"),
			},
		})
		start := time.Now()
		if err := f.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took > 6*time.Second {
			t.Errorf("took %v, one after the other", took)
		}
		var got []string
		for _, s := range f.Status() {
			got = append(got, fmt.Sprint(s.Server, " ", s.Phase, " ", s.Tools, " ", s.Fault))
		}
		want := []string{"local ready 1 ", "one ready 1 ", "hangs faulted 0 timeout", "slow ready 1 ", "broken faulted 0 spawn_failed", "two ready 1 "}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"local__hash", "one__echo", "slow__echo", "two__echo"}, rig.Offered(f, t)); diff != "" {
			t.Error(diff)
		}
		for _, name := range []string{"local__hash", "one__echo", "slow__echo"} {
			if _, err := rig.Do(t.Context(), t, f, name, "{}"); err != nil {
				t.Error(err)
			}
		}
		f.Close()
	})
}

// TestFleetSettles: listings and unknown names wait for servers that connect for
// the first time, known names do not, and none waits longer than allowed.
func TestFleetSettles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, never := rig.NewScript(nil), rig.NewScript(map[string]string{"initialize": "-"})
		slowly := slow.Config("slow")
		slowly.Dial = func() (mcp.Transport, error) { time.Sleep(3 * time.Second); return slow.Dial() }
		f := rig.NewFleet(t, fleet.Config{
			Locals:  []*local.Server{newLocal(t, "local", rig.Options(), "hash")},
			Servers: []options.Endpoint{slowly},
		})
		took := func(act func()) time.Duration { start := time.Now(); act(); return time.Since(start) }
		f.Start(t.Context())
		if d := took(func() { _, _ = f.Lookup(t.Context(), gate.CallTool, "local__hash") }); d != 0 {
			t.Errorf("a known tool took %v", d)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if d := took(func() { f.Tools(ctx) }); d != time.Second {
			t.Errorf("who waits 1 s waited %v", d)
		}
		if d := took(func() {
			if _, err := f.Lookup(t.Context(), gate.CallTool, "slow__echo"); err != nil {
				t.Error(err)
			}
		}); d != 2*time.Second {
			t.Errorf("the tool that was coming took %v", d)
		}
		if d := took(func() {
			if _, err := f.Lookup(t.Context(), gate.CallTool, "none__x"); !errors.Is(err, gate.ErrUnknown) {
				t.Error(err)
			}
		}); d != 0 {
			t.Errorf("an unknown tool took %v once all are there", d)
		}
		go f.Add(t.Context(), never.Config("never"))
		synctest.Wait()
		if d := took(func() { f.Tools(t.Context()) }); d != time.Second {
			t.Errorf("a listing waited %v for a server that hangs", d)
		}
		f.Close()
	})
}

// TestFleetTriesAgain: a server that was down at the start is found later, and watchers hear of
// each change once.
func TestFleetTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := rig.NewScript(nil)
		s.Cut(errors.New("down"))
		f := rig.NewFleet(t, fleet.Config{Servers: []options.Endpoint{s.Config("s")}})
		var changes atomic.Int32
		stop := f.Watch(func(status.Lists) { changes.Add(1) })
		_ = f.Connect(t.Context())
		time.Sleep(time.Second)
		n, want := s.Count("dial"), int32(2)
		if n < 2 || n > 20 {
			t.Errorf("%d attempts within a second", n)
		}
		if n >= 5 { // the pauses between them are random; at the fifth the circuit opens
			want++
		}
		s.Cut(nil)
		time.Sleep(31 * time.Second)
		synctest.Wait()
		if diff := cmp.Diff([]string{"s__echo"}, rig.Offered(f, t)); diff != "" {
			t.Error(diff)
		}
		if changes.Load() != want {
			t.Errorf("%d changes, of a fault, a connection and perhaps the circuit: %d attempts had failed", changes.Load(), n)
		}
		stop()
		s.Cut(nil)
		synctest.Wait()
		if changes.Load() != want {
			t.Error("told after stop")
		}
		f.Close()
	})
}

// TestFleetClashes: names are one tool's each, whatever servers list.
func TestFleetClashes(t *testing.T) {
	bare := rig.Options()
	bare.Bare = true
	d := rig.Digest(rig.Tool("echo"))
	f := rig.NewFleet(t, fleet.Config{Locals: []*local.Server{
		newLocal(t, "a", bare, "echo"), newLocal(t, "b", bare, "echo"), newLocal(t, "c", bare, "echo"), newLocal(t, "d", bare, "echo", "a__echo"),
	}})
	want := []string{"echo", "echo_" + d, "c__echo", "d__echo", "d__a__echo"}
	if diff := cmp.Diff(want, rig.Offered(f, t)); diff != "" {
		t.Error(diff)
	}
	for name, server := range map[string]string{
		"echo": "a", "a__echo": "a", "echo_" + d: "b", "b__echo": "b", "c__echo": "c", "d__echo": "d", "d__a__echo": "d",
	} {
		res, err := rig.Do(t.Context(), t, f, name, "{}")
		if err != nil || res.Doc.Get("by").Text() != server {
			t.Errorf("%s went to %s: %v", name, res.Doc.Get("by"), err)
		}
	}
	notes := 0
	for _, s := range f.Status() {
		for _, n := range s.Notes {
			if strings.Contains(n.Text, "which comes first, has echo") {
				notes++
			}
		}
	}
	if notes != 3 {
		t.Errorf("%d notes: %+v", notes, f.Status())
	}
}

// TestFleetSupersedes: of two servers of one id the later counts, and says so;
// one that is put in its place at run time is no mistake.
func TestFleetSupersedes(t *testing.T) {
	first, second := rig.NewScript(nil), rig.NewScript(nil)
	f := rig.NewFleet(t, fleet.Config{Servers: []options.Endpoint{first.Config("x"), rig.NewScript(nil).Config("y"), second.Config("x")}})
	if err := f.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if first.Dials != 0 || second.Dials != 1 {
		t.Errorf("%d dials of the first, %d of the second", first.Dials, second.Dials)
	}
	st := f.Status()
	if len(st) != 2 || st[0].Server != "x" || len(st[0].Notes) != 1 || !strings.Contains(st[0].Notes[0].Text, "replaces 1") {
		t.Errorf("status %+v", st)
	}
	for range 3 {
		if err := f.Reload(t.Context(), "y"); err != nil {
			t.Fatal(err)
		}
	}
	if st := f.Status(); len(st) != 2 || st[1].Server != "y" || len(st[1].Notes) != 0 {
		t.Errorf("status after reload %+v", st)
	}
}

func TestFleetMembers(t *testing.T) {
	rig.NoLeaks(t)
	s := rig.NewScript(nil)
	f := rig.NewFleet(t, fleet.Config{Locals: []*local.Server{newLocal(t, "local", rig.Options(), "hash")}})
	if err := f.Add(t.Context(), s.Config("s")); err != nil {
		t.Fatal(err)
	}
	permitted, _ := f.Lookup(t.Context(), gate.CallTool, "s__echo")
	if permitted == nil {
		t.Fatal("what was added is not offered")
	}
	for name, err := range map[string]error{
		"a broken server is added":   f.Add(t.Context(), options.Endpoint{Server: "b", Broken: "so", Tools: rig.Options()}),
		"a nonsense one":             f.Add(t.Context(), options.Endpoint{Server: "A!", Tools: rig.Options()}),
		"nobody is removed":          f.Remove("nobody"),
		"nobody is reloaded":         f.Reload(t.Context(), "nobody"),
		"a local server is reloaded": f.Reload(t.Context(), "local"),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for _, id := range []string{"s", "local", "b"} {
		if err := f.Remove(id); err != nil {
			t.Error(err)
		}
	}
	if len(f.Status()) != 0 || len(f.Tools(t.Context())) != 0 {
		t.Errorf("left: %+v", f.Status())
	}
	if _, err := f.Invoke(t.Context(), gate.Permit{}); err == nil {
		t.Error("the zero permit was taken")
	}
	f.Close()
	if err := f.Add(t.Context(), s.Config("s")); err == nil {
		t.Error("a closed fleet took a server")
	}
}

// TestFleetHammer calls, while servers come, go, break and announce changes.
func TestFleetHammer(t *testing.T) {
	rig.NoLeaks(t)
	seed := seed.Of(t)
	scripts := map[string]*rig.Script{"a": rig.NewScript(nil), "b": rig.NewScript(nil), "c": rig.NewScript(nil)}
	f := rig.NewFleet(t, fleet.Config{
		Locals:  []*local.Server{newLocal(t, "local", rig.Options(), "hash")},
		Servers: []options.Endpoint{scripts["a"].Config("a"), scripts["b"].Config("b"), scripts["c"].Config("c")},
	})
	_ = f.Connect(t.Context())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	g, _ := rig.NewGate(t, f)
	codes := map[string]int{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	stream := uint64(0)
	loop := func(act func(rng *rand.Rand)) {
		stream++
		rng := rand.New(rand.NewPCG(seed, stream))
		wg.Go(func() {
			for ctx.Err() == nil {
				act(rng)
			}
		})
	}
	servers := []string{"a", "b", "c", "local"}
	for range 8 {
		loop(func(rng *rand.Rand) {
			name := servers[rng.IntN(4)] + "__" + []string{"echo", "hash"}[rng.IntN(2)]
			_, err := g.Do(ctx, rig.NewCall(name, "{}"))
			mu.Lock()
			codes[gate.Code(err)]++
			mu.Unlock()
		})
	}
	loop(func(rng *rand.Rand) { _ = f.Reload(ctx, servers[rng.IntN(3)]) })
	loop(func(rng *rand.Rand) {
		id := servers[rng.IntN(3)]
		_ = f.Remove(id)
		_ = f.Add(ctx, scripts[id].Config(id))
	})
	loop(func(rng *rand.Rand) { scripts[servers[rng.IntN(3)]].Cut(nil); time.Sleep(10 * time.Millisecond) })
	loop(func(*rand.Rand) { f.Tools(ctx); f.Status(); f.Watch(func(status.Lists) {})() })
	time.Sleep(time.Second)
	rig.Within(t, "a call goes through", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return codes["ok"] > 0
	})
	cancel()
	wg.Wait()
	f.Close()
	for code := range codes {
		switch code {
		case "ok", "refused_lookup", "not_connected", "transport", "cancelled", "timeout":
		default:
			t.Errorf("%d calls ended as %s", codes[code], code)
		}
	}
}

// TestLocal: a program's own tools are held to what servers' are.
func TestLocal(t *testing.T) {
	ok := func(context.Context, *gate.Call, gate.Permit) (gate.Result, error) {
		return gate.Result{Doc: gate.MustDoc(`{}`)}, nil
	}
	def := gate.MustDoc(rig.Tool("x"))
	tests := map[string]struct {
		server string
		tools  []options.LocalTool
	}{
		"a bad id":       {"A", nil},
		"no function":    {"l", []options.LocalTool{{Definition: def}}},
		"listed twice":   {"l", []options.LocalTool{{Definition: def, Call: ok}, {Definition: def, Call: ok}}},
		"no name":        {"l", []options.LocalTool{{Definition: gate.MustDoc(`{}`), Call: ok}}},
		"an evil schema": {"l", []options.LocalTool{{Definition: gate.MustDoc(`{"name":"x","inputSchema":{"type":"object","$ref":"#"}}`), Call: ok}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := local.New(tt.server, rig.Options(), tt.tools...); err == nil {
				t.Error("no error")
			}
		})
	}
	l, err := local.New("l", rig.Options(),
		options.LocalTool{Definition: def, Call: ok},
		options.LocalTool{Definition: gate.MustDoc(rig.Tool("w")), Call: ok, Sandboxed: true, Capabilities: gate.MustDoc(`{"kv":true}`)})
	if err != nil {
		t.Fatal(err)
	}
	f := rig.NewFleet(t, fleet.Config{Locals: []*local.Server{l}})
	w, _ := f.Lookup(t.Context(), gate.CallTool, "l__w")
	if w == nil || !w.Sandboxed || !w.Capabilities.Get("kv").True() {
		t.Errorf("%+v", w)
	}
	told := 0
	f.Watch(func(status.Lists) { told++ })
	if err := l.Set(options.LocalTool{Definition: gate.MustDoc(rig.Tool("new")), Call: ok}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"l__new"}, rig.Offered(f, t)); diff != "" || told != 1 {
		t.Errorf("told %d times, %s", told, diff)
	}
}
