package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// BenchmarkGateway measures the whole: load clients, the gateway as a process of its own and echo
// servers, of both revisions each, with policy, both validations, sanitizing and audit on. It
// reports the gateway's CPU and allocations for each call, and the latency, to compare with that of
// clients of the server's revision that are connected directly, in turn in the same run. It fails
// if calls make the gateway shake hands with a server again, or hold more. At the end it prints a
// table. Its budget is 250 us of CPU a call with 16 clients.
//
//	go test ./cmd/wasmgate -run '^$' -bench 'Gateway$' -benchtime 2000x
func BenchmarkGateway(b *testing.B) {
	linuxOnly(b)
	ups := everyUpstream(b)
	gw := startGateway(b, os.Args[0], b.TempDir(), ups...)
	var rows table
	for _, up := range ups {
		for _, revision := range []string{older, newer} {
			for _, clients := range []int{1, 16} {
				var last *comparison
				b.Run(fmt.Sprintf("server=%s/client=%s/clients=%d", up.id, revision[:4], clients), func(b *testing.B) {
					last = compare(b, gw, up, revision, clients)
				})
				if last != nil { // this one was asked for
					rows.add(up.id, revision[:4], clients, last)
				}
			}
		}
	}
	rows.print()
}

// everyUpstream returns an echo server of each kind.
func everyUpstream(tb testing.TB) (all []*upstream) {
	for _, kind := range []string{"stdio", "http"} {
		for _, revision := range []string{older, newer} {
			all = append(all, startUpstream(tb, kind, revision, 1))
		}
	}
	return all
}

// A comparison is of calls through a gateway and of calls without it.
type comparison struct {
	calls           int
	direct, through run
	cpu             time.Duration // of the gateway
	before, after   held
}

// run is how long calls took, each and together.
type run struct {
	each []time.Duration
	all  time.Duration
}

func (r *run) add(each []time.Duration, began time.Time) {
	r.each, r.all = append(r.each, each...), r.all+time.Since(began)
}

// turns is how often calls alternate between the gateway and the server: what else a
// machine does then concerns both.
const turns = 5

func compare(b *testing.B, gw gatewayProcess, up *upstream, revision string, clients int) *comparison {
	direct := newLoad(b, up.revision, "echo_0", up.direct(b, clients)...)
	through := newLoad(b, revision, up.id+"__echo_0", newHTTPClients(b, gw.url, revision, clients)...)
	direct.run(b, 20*clients)
	through.run(b, 20*clients)
	c := &comparison{calls: b.N, before: gw.holds(b, up)}
	cpu := gw.cpu(b)
	b.ResetTimer()
	for turn := range turns {
		n := b.N*(turn+1)/turns - b.N*turn/turns
		b.StopTimer()
		began := time.Now()
		c.direct.add(direct.run(b, n), began)
		b.StartTimer()
		began = time.Now()
		c.through.add(through.run(b, n), began)
	}
	b.StopTimer()
	c.cpu = gw.cpu(b) - cpu
	c.after = gw.settles(b, c.before, up)
	c.after.kept(b, c.before, clients)
	for unit, value := range c.figures() {
		b.ReportMetric(value, unit)
	}
	return c
}

// figures returns what is reported, by its unit.
func (c *comparison) figures() map[string]float64 {
	calls := float64(c.calls)
	return map[string]float64{
		"direct-p50-us": c.direct.quantile(0.5), "p50-us": c.through.quantile(0.5), "p99-us": c.through.quantile(0.99),
		"direct-calls/s": calls / c.direct.all.Seconds(), "calls/s": calls / c.through.all.Seconds(),
		"gw-cpu-us/call": float64(c.cpu.Microseconds()) / calls,
		"gw-allocs/call": float64(c.after.Mallocs-c.before.Mallocs) / calls, "gw-KB/call": float64(c.after.Bytes-c.before.Bytes) / calls / 1e3,
	}
}

// quantile returns a quantile in microseconds.
func (r *run) quantile(q float64) float64 {
	slices.Sort(r.each)
	return float64(r.each[int(q*float64(len(r.each)-1))].Nanoseconds()) / 1e3
}

// A table is of comparisons, in Markdown.
type table []string

func (t *table) add(server, revision string, clients int, c *comparison) {
	f := c.figures()
	*t = append(*t, fmt.Sprintf("%s\t| %s\t| %d\t| %.0f\t| %.0f\t| %.1f\t| %.0f\t| %.0f\t| %.0f\t| %.0f\t| %d\t| %d / %d\t| %d / %d",
		server, revision, clients, f["p50-us"], f["direct-p50-us"], f["p50-us"]/f["direct-p50-us"], f["calls/s"], f["direct-calls/s"],
		f["gw-cpu-us/call"], f["gw-allocs/call"], c.after.hellos-c.before.hellos, c.before.files, c.after.files, c.before.Goroutines, c.after.Goroutines))
}

func (t *table) print() {
	if len(*t) == 0 {
		return
	}
	head := "server\t| client\t| clients\t| p50, us\t| direct\t| ratio\t| calls/s\t| direct\t| CPU, us\t| allocations\t| new handshakes\t| descriptors\t| goroutines"
	rule := strings.Repeat("---\t| ", strings.Count(head, "|")) + "---"
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 1, ' ', 0)
	for _, row := range append([]string{head, rule}, *t...) {
		fmt.Fprintf(w, "| %s\t|\n", row)
	}
	_ = w.Flush()
}

// BenchmarkGatewayMemory measures what a gateway occupies after 10,000 calls
// from 16 clients to the 100 tools of an upstream, whatever b.N is. Its
// budget is 100 MB.
//
//	go test ./cmd/wasmgate -run '^$' -bench GatewayMemory -benchtime 1x
func BenchmarkGatewayMemory(b *testing.B) {
	const tools, calls, clients = 100, 10_000, 16
	linuxOnly(b)
	wasmgate := build(b)
	up := startUpstream(b, "http", older, tools)
	dir := b.TempDir()
	b.Run("first", func(b *testing.B) { // what only a first start does is not measured
		startGateway(b, wasmgate, dir, up)
		b.SkipNow()
	})
	b.Run(fmt.Sprintf("tools=%d/calls=%d", tools, calls), func(b *testing.B) {
		gw := startGateway(b, wasmgate, dir, up)
		fresh := gw.memory(b, "VmRSS")
		through := newLoad(b, older, "", newHTTPClients(b, gw.url, older, clients)...)
		b.ResetTimer()
		for i := range tools {
			through.tool = fmt.Sprintf("%s__echo_%d", up.id, i)
			through.run(b, calls/tools)
		}
		b.StopTimer()
		b.ReportMetric(fresh, "fresh-rss-MB")
		b.ReportMetric(gw.memory(b, "VmRSS"), "rss-MB")
		b.ReportMetric(gw.memory(b, "VmHWM"), "peak-rss-MB")
	})
}

// build builds the program as it is shipped.
func build(tb testing.TB) string {
	path := filepath.Join(tb.TempDir(), "wasmgate")
	if out, err := exec.CommandContext(tb.Context(), "go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		tb.Fatalf("build: %v\n%s", err, out)
	}
	return path
}

// repetitionsEnv is how many calls [TestGatewayHoldsNoMore] makes.
const repetitionsEnv = "WASMGATE_REPETITIONS"

// TestGatewayHoldsNoMore: over thousands of calls, by clients of both revisions to servers
// of both, over stdio and HTTP, a gateway holds as many goroutines and descriptors as
// before, and shakes hands with no server again.
func TestGatewayHoldsNoMore(t *testing.T) {
	unraced.Long(t)
	linuxOnly(t)
	calls := 200
	if s := os.Getenv(repetitionsEnv); s != "" {
		var err error
		if calls, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	const clients = 4
	ups := everyUpstream(t)
	gw := startGateway(t, os.Args[0], t.TempDir(), ups...)
	var loads []*load
	for _, up := range ups {
		for _, revision := range []string{older, newer} {
			l := newLoad(t, revision, up.id+"__echo_0", newHTTPClients(t, gw.url, revision, clients)...)
			l.run(t, 5*clients)
			loads = append(loads, l)
		}
	}
	before := gw.holds(t, ups...)
	for _, l := range loads {
		l.run(t, calls/len(loads))
	}
	after := gw.settles(t, before, ups...)
	t.Logf("%d calls: descriptors %d, then %d; goroutines %d, then %d; handshakes with %d servers %d, then %d",
		calls, before.files, after.files, before.Goroutines, after.Goroutines, len(ups), before.hellos, after.hellos)
	after.kept(t, before, clients)
	if before.hellos < int64(len(ups)) {
		t.Error("the handshakes were not counted")
	}
}
