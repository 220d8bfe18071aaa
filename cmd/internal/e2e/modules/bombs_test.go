//go:build unix

package modules

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/internal/testing/bombs"
	"github.com/wasmgate/wasmgate/internal/testing/compiled"
	"github.com/wasmgate/wasmgate/internal/testing/e2e"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// testBombs gives a running gateway modules that are made to break a compiler, as many at
// a time as it may have: each is loaded, or refused for what it would take, no child has
// more than its bounds, and afterwards the gateway has the memory that it had. How many is
// in WASMGATE_BOMBS; what calls of a native tool take meanwhile is in the log.
func testBombs(t *testing.T, p *e2e.Program) {
	if unraced.Raced() {
		t.Skip("it is the program itself that is measured: the tests without the race detector do")
	}
	n, batch := 24, 3 // .ci/nightly has 10,000
	if s := os.Getenv("WASMGATE_BOMBS"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	batch = min(batch, n/2) // a reload waits for all of them
	r := seed.Rand(t)

	up := &e2e.Stub{Tools: `[{"name":"echo","inputSchema":{"type":"object"}}]`, Answer: e2e.AnswerFine}
	pl := p.Place(t, "")
	pl.Env = append(pl.Env, "GOGC=100")                      // collected as calls allocate: by default memory grows up to a limit that few bombs do not reach
	if err := os.Remove(pl.File("state/wasm")); err != nil { // the bombs have a cache of their own
		t.Fatal(err)
	}
	compiled.Copy(t, pl.File("state/wasm"))
	config := "version: 1\npolicy: {timeout: 5s}\nservers:\n  up: {url: " + up.Start(t) + "}\n"
	pl.Write("wasmgate.yaml", config)
	pl.Must("grant", "--yes", "up__*")
	gw := pl.Serve()
	call := caller200(t, gw.URL)
	quiet := during(call, func() { time.Sleep(2 * time.Second) })

	seen := watchChildren(gw.PID())
	counts := map[string]int{}
	var resident []float64 // after each batch has gone
	busy := during(call, func() {
		for at := 0; at < n; at += batch {
			explode(pl, gw, config, r, min(batch, n-at), at, counts)
			settle(pl, gw, config, nil)
			resident = append(resident, residentMB(t, gw.PID()))
		}
	})
	most, cpu := seen.end()
	within, _ := slices.BinarySearch(cpu, 2*time.Second)
	t.Logf("%v; %d children with at most %d MiB; of CPU %v at most, %d of them more than 2s; a native tool, p99: %v quiet, %v meanwhile (%d and %d calls)",
		counts, len(cpu), most>>20, slices.Max(append(cpu, 0)), len(cpu)-within, quiet.p99(), busy.p99(), len(*quiet), len(*busy))
	if counts["loaded"] == 0 || counts["refused"] == 0 {
		t.Errorf("too little was tried: %v", counts)
	}
	if most > 1<<30+256<<20 || slices.Max(append(cpu, 0)) > 61*time.Second {
		t.Errorf("a child had %d MiB, or %v of CPU", most>>20, slices.Max(append(cpu, 0)))
	}
	t.Logf("the gateway has %.0f MB after each batch", resident)
	if n := len(resident); n >= 8 { // a collection is due at any time
		if begun, ended := slices.Max(resident[:n/2]), slices.Min(resident[n-n/4:]); ended > begun*1.1 {
			t.Errorf("the gateway has %.0f MB in the end, %.0f at most before", ended, begun)
		}
	}
	pl.Verify()
}

// explode has the gateway load so many bombs, and looks at what became of each.
func explode(pl *e2e.Place, gw *e2e.Process, config string, r *rand.Rand, n, first int, counts map[string]int) {
	pl.T.Helper()
	names := map[string]string{}
	for i := range n {
		name, wasm := bombs.Random(r)
		id := fmt.Sprintf("bomb-%d", first+i)
		pl.Write(id+".wasm", string(wasm))
		pl.Write(id+".yaml", fmt.Sprintf(`tools: [{name: bomb_%d, inputSchema: {type: object}}]`, first+i))
		names[id] = name
	}
	for id, m := range settle(pl, gw, config, names) {
		switch {
		case m.Error == "":
			counts["loaded"]++
		case strings.Contains(m.Error, ", more than "), strings.Contains(m.Error, "too costly to compile: "):
			counts["refused"]++
			if strings.Contains(m.Error, "compile: it takes ") {
				counts["refused by the child"]++
			}
		default:
			pl.T.Errorf("%s, %s: %s", id, names[id], m.Error)
		}
	}
	for id := range names {
		for _, suffix := range []string{".wasm", ".yaml"} {
			if err := os.Remove(pl.File(id + suffix)); err != nil {
				pl.T.Fatal(err)
			}
		}
	}
}

type moduleStatus struct {
	Module, Error, Progress string
	Tools                   int
}

// settle has the gateway read a configuration with these modules and no others, and waits
// until none of them is compiled any more.
func settle(pl *e2e.Place, gw *e2e.Process, config string, names map[string]string) map[string]moduleStatus {
	pl.T.Helper()
	var b strings.Builder
	b.WriteString(config)
	if len(names) > 0 {
		b.WriteString("tools:\n")
	}
	for _, id := range slices.Sorted(maps.Keys(names)) {
		fmt.Fprintf(&b, "  %s: {module: %[1]s.wasm}\n", id)
	}
	pl.Write("wasmgate.yaml", b.String())
	gw.Signal(syscall.SIGHUP)
	found := map[string]moduleStatus{}
	timelimit.Wait(pl.T, "the modules are compiled", func() bool {
		var s struct{ Modules []moduleStatus }
		if err := json.Unmarshal([]byte(pl.Must("status", "--json")), &s); err != nil {
			pl.T.Fatal(err)
		}
		clear(found)
		for _, m := range s.Modules {
			if _, ok := names[m.Module]; ok && m.Progress != "" {
				return false
			}
			found[m.Module] = m
		}
		for id := range names {
			if _, ok := found[id]; !ok {
				return false
			}
		}
		for id := range found {
			if _, ok := names[id]; !ok && strings.HasPrefix(id, "bomb-") {
				return false
			}
		}
		return true
	})
	for id := range found {
		if _, ok := names[id]; !ok {
			delete(found, id)
		}
	}
	return found
}

// latencies are of calls, one after the other.
type latencies []time.Duration

func (l latencies) p99() time.Duration {
	if len(l) == 0 {
		return 0
	}
	slices.Sort(l)
	return l[len(l)*99/100].Round(100 * time.Microsecond)
}

// caller200 returns a call of a native tool, made at most 200 times a second.
func caller200(t *testing.T, url string) func() time.Duration {
	w := e2e.MustWire(t, url)
	return func() time.Duration {
		begun := time.Now()
		a, err := w.Call(t.Context(), "up__echo", "{}")
		took := time.Since(begun)
		if err != nil || a.Text() != "fine" {
			t.Errorf("a native tool: %v, %s %+v", err, a.Result, a.Error)
		}
		time.Sleep(5 * time.Millisecond)
		return took
	}
}

// during makes calls as long as something lasts.
func during(call func() time.Duration, f func()) *latencies {
	l := new(latencies)
	over := make(chan struct{})
	var caller sync.WaitGroup
	caller.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
				*l = append(*l, call())
			}
		}
	})
	defer func() {
		close(over)
		caller.Wait()
	}()
	f()
	return l
}

// A childWatch has seen the children of a process: how much resident memory one had at
// most, and how much CPU each.
type childWatch struct {
	over chan struct{}
	done sync.WaitGroup
	most int
	cpu  map[string]time.Duration
}

// watchChildren looks into /proc, where there is one.
func watchChildren(parent int) *childWatch {
	w := &childWatch{over: make(chan struct{}), cpu: map[string]time.Duration{}}
	w.done.Go(func() {
		every := time.NewTicker(20 * time.Millisecond)
		defer every.Stop()
		for {
			select {
			case <-w.over:
				return
			case <-every.C:
				w.look(parent)
			}
		}
	})
	return w
}

func (w *childWatch) look(parent int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	for _, file := range files {
		b, _ := os.ReadFile(file)
		for _, pid := range strings.Fields(string(b)) {
			line, _ := os.ReadFile("/proc/" + pid + "/cmdline")
			if !bytes.HasPrefix(line, []byte("wasmgate-compiler")) {
				continue
			}
			if status, err := os.ReadFile("/proc/" + pid + "/status"); err == nil {
				if m := e2e.Peak.FindSubmatch(status); m != nil {
					kb, _ := strconv.Atoi(string(m[1]))
					w.most = max(w.most, kb<<10)
				}
			}
			if stat, err := os.ReadFile("/proc/" + pid + "/stat"); err == nil {
				_, rest, _ := bytes.Cut(stat, []byte(") "))
				if fields := strings.Fields(string(rest)); len(fields) > 12 {
					user, _ := strconv.Atoi(fields[11])
					system, _ := strconv.Atoi(fields[12])
					w.cpu[pid] = max(w.cpu[pid], time.Duration(user+system)*10*time.Millisecond)
				}
			}
		}
	}
}

// end returns the CPU of each child, the most last.
func (w *childWatch) end() (most int, cpu []time.Duration) {
	close(w.over)
	w.done.Wait()
	return w.most, slices.Sorted(maps.Values(w.cpu))
}

// residentMB is how much memory a process has; 0 where that cannot be seen.
func residentMB(t *testing.T, pid int) float64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	pages, err := strconv.Atoi(strings.Fields(string(b))[1])
	if err != nil {
		t.Fatal(err)
	}
	return float64(pages*os.Getpagesize()) / 1e6
}
