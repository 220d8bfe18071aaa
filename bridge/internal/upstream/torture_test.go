package upstream_test

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/fleet"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// A rack is a fleet of servers that misbehave, and one that does not.
type rack struct {
	fleet *fleet.Fleet
	gate  *gate.Gate
	webs  []*httptest.Server
	hurry bool // do not wait for a server to be connected again by itself
}

// tortureTime is the timeout of the tool late.
const tortureTime = 50 * time.Millisecond

func newRack(t testing.TB) *rack {
	t.Helper()
	r := new(rack)
	pipe := rig.Child("torture")
	pipe.Server = "pipe"
	servers := []options.Endpoint{pipe}
	for server, h := range map[string]http.Handler{
		"web": new(tortureWeb), "tasks": &tortureTasks{modern: true, deeds: modernTaskDeeds}, "older-tasks": &tortureTasks{deeds: olderTaskDeeds},
	} {
		web := httptest.NewServer(h)
		r.webs = append(r.webs, web)
		servers = append(servers, options.Endpoint{Server: server, URL: web.URL, Tools: rig.Options()})
	}
	for i := range servers {
		servers[i].MaxMessage = tortureMost
		servers[i].CallTimeouts = []options.ToolTimeout{{Pattern: "late", Timeout: tortureTime}}
	}
	r.fleet = rig.NewFleet(t, fleet.Config{Servers: append(servers, rig.NewScript(nil).Config("healthy"))})
	var err error
	r.gate, err = gate.New(gate.Parts{
		Upstream: r.fleet, Authorizer: rig.AuthorizerFunc(rig.Allow), Sessions: rig.Sessions{}, Sanitizer: rig.SanitizerFunc(rig.Unchanged), Recorder: forgetful{},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.fleet.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r
}

// forgetful keeps no records, so that what the gateway keeps can be measured.
type forgetful struct{}

func (forgetful) Record(context.Context, *gate.Record) error { return nil }

func (r *rack) close() {
	r.fleet.Close()
	for _, web := range r.webs {
		web.Close()
	}
}

// A misdeed is something that a server of the rack does, and what is to come of it.
type misdeed struct{ server, deed, code, says string }

// misdeeds returns all of them.
func misdeeds() (all []misdeed) {
	for deed, want := range webDeeds {
		all = append(all, misdeed{"web", deed, want.code, want.says})
	}
	for deed, want := range pipeDeeds {
		all = append(all, misdeed{"pipe", deed, want.code, want.says})
	}
	for server, deeds := range map[string]map[string]taskDeed{"tasks": modernTaskDeeds, "older-tasks": olderTaskDeeds} {
		for deed, want := range deeds {
			all = append(all, misdeed{server, deed, want.code, want.says})
		}
	}
	slices.SortFunc(all, func(a, b misdeed) int { return cmp.Or(cmp.Compare(a.server, b.server), cmp.Compare(a.deed, b.deed)) })
	return all
}

// do has a server do something, and returns how the call ended.
func (r *rack) do(ctx context.Context, server, deed, code string) (string, error) {
	tool := "echo"
	if code == "timeout" {
		tool = "late"
	}
	if code == "cancelled" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		defer time.AfterFunc(tortureTime/10, cancel).Stop()
	}
	res, err := r.gate.Do(ctx, rig.NewCall(server+"__"+tool, fmt.Sprintf(`{"do":%q}`, deed)))
	if err == nil && res.IsError {
		return "tool_error", nil
	}
	return rig.Kind(err), err
}

// torment has a server do one misdeed, and fails the test unless that ends as it should,
// the server can be called again after it, and the other one is none the worse.
func (r *rack) torment(t *testing.T, m misdeed) {
	t.Helper()
	server, deed, code, says := m.server, m.deed, m.code, m.says
	got, err := r.do(t.Context(), server, deed, code)
	if got != code || err != nil && !strings.Contains(err.Error(), says) {
		t.Errorf("%s %s: %s, want %s with %q: %v", server, deed, got, code, says, err)
	}
	if r.hurry {
		_ = r.fleet.Connect(t.Context())
	}
	if got, err := r.do(t.Context(), "healthy", "answers", "ok"); err != nil {
		t.Errorf("after %s of %s, the healthy one: %s: %v", deed, server, got, err)
	}
	got, err = r.do(t.Context(), server, "answers", "ok")
	for end := time.Now().Add(timelimit.Patience(t)); got == "not_connected" && time.Now().Before(end); {
		got, err = r.do(t.Context(), server, "answers", "ok") // a call waits for a server that starts, on a slow machine not long enough
	}
	if err != nil {
		t.Errorf("%s, after %s: %s: %v", server, deed, got, err)
	}
}

// Whatever a server does, the call ends with an error that says what was wrong, or passes;
// nothing else is harmed; and the server is called again as if nothing had been.
func TestTorture(t *testing.T) {
	unraced.Long(t)
	r := newRack(t)
	defer r.close()
	for _, m := range misdeeds() {
		t.Run(m.server+" "+m.deed, func(t *testing.T) { r.torment(t, m) })
	}
	for _, s := range r.fleet.Status() {
		if s.Phase != status.Ready || s.Circuit != "" {
			t.Errorf("at the end: %+v", s)
		}
	}
}

// A server that lists nonsense is faulted with a reason, unless its tools can be told
// apart from the rest, and is found again when it has come to its senses.
func TestTortureOfListings(t *testing.T) {
	unraced.Long(t)
	tests := map[string]struct {
		says  string // of the fault; "" if there is none
		tools int
	}{
		"10,000 tools":              {"", 10_000},
		"10,001 tools":              {"more than 10000 tools", 0},
		"a cursor that goes round":  {"", 3},
		"a cursor without end":      {"more than 1000 pages", 2},
		"a cursor that is a number": {"", 2},
		"no array of tools":         {"no array of tools", 2},
		"tools that are not tools":  {"", 2},
	}
	for how, tt := range tests {
		t.Run(how, func(t *testing.T) {
			web := httptest.NewServer(&tortureWeb{list: how})
			defer web.Close()
			e := rig.NewEndpoint(t, options.Endpoint{Server: "s", URL: web.URL, Tools: rig.Options()})
			err := e.Connect(t.Context())
			if tt.says == "" && err != nil || tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)) {
				t.Errorf("%v, want %q", err, tt.says)
			}
			rig.Within(t, "it is found again", func() bool { return e.Phase() == status.Ready || tt.tools == 0 })
			if got := len(e.Tools(t.Context())); got != tt.tools {
				t.Errorf("%d tools, want %d", got, tt.tools)
			}
		})
	}
}

// After any number of misdeeds there are as many goroutines and descriptors as before, and
// the heap has not grown by more than growth.
func TestTortureLeavesNothing(t *testing.T) {
	unraced.Long(t)
	const growth = 8 << 20 // bytes
	n := 200
	if s := os.Getenv(rig.RepetitionsEnv); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	rng := seed.Rand(t)
	all := misdeeds()

	warm := newRack(t) // what is made once, and stays
	warm.torment(t, misdeed{"web", "a gzip bomb", "refused_limit", ""})
	warm.torment(t, misdeed{"pipe", "exits", "transport", ""})
	warm.close()
	before := measure(t, usage{goroutines: 1 << 30, files: 1 << 30, heap: 1 << 60})
	r := newRack(t)
	r.hurry = true
	began := time.Now()
	for range n {
		r.torment(t, all[rng.IntN(len(all))])
	}
	took := time.Since(began)
	during := measure(t, usage{goroutines: 1 << 30, files: 1 << 30, heap: 1 << 60})
	r.close()
	after := measure(t, usage{before.goroutines, before.files, before.heap + growth})
	t.Logf("%d misdeeds of %d kinds in %v: %+v before, %+v during, %+v after", n, len(all), took.Round(time.Millisecond), before, during, after)
	if during.heap > before.heap+growth {
		t.Errorf("the heap has grown while the servers were connected: %+v before, %+v after %d misdeeds", before, during, n)
	}
	if after.goroutines > before.goroutines || after.files > before.files || after.heap > before.heap+growth {
		t.Errorf("left behind: %+v before, %+v after %d misdeeds", before, after, n)
	}
}

// usage is what this process holds: files is 0 where that cannot be asked.
type usage struct {
	goroutines, files int
	heap              uint64
}

// measure waits, for a while, until no more is held than most.
func measure(t *testing.T, most usage) (now usage) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		now = usage{goroutines: runtime.NumGoroutine(), heap: m.HeapAlloc}
		if files, err := os.ReadDir("/proc/self/fd"); err == nil { // Linux
			now.files = len(files)
		}
		if now.goroutines <= most.goroutines && now.files <= most.files && now.heap <= most.heap {
			return now
		}
	}
	return now
}
