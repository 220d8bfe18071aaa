//go:build linux

package gateway

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/internal/testing/compiled"
	"github.com/wasmgate/wasmgate/internal/testing/database"
	"github.com/wasmgate/wasmgate/internal/testing/e2e"
	"github.com/wasmgate/wasmgate/internal/testing/freeport"
	wasmgate "github.com/wasmgate/wasmgate/internal/testing/program"
)

const (
	// benchRounds is how often each kind of call is measured, in turns, and benchClients how many clients call at once.
	benchRounds, benchClients = 9, 16
)

// BenchmarkCluster measures the processor time of gateways for a call: of one alone, of one with a database, and of two for a call that one forwards to
// the other. It reports medians of ratios, each of one round; b.N is the number of calls in a round.
//
//	go test ./cmd/internal/e2e/gateway -run '^$' -bench Cluster -benchtime 800x
func BenchmarkCluster(b *testing.B) {
	program := &e2e.Program{Plain: wasmgate.Build(b, false)}
	program.Path, program.WASM = program.Plain, compiled.Folder(b)
	up := &e2e.Stub{Tools: `[{"name":"do","inputSchema":{"type":"object"}}]`, Answer: e2e.AnswerFine}
	server, db, secret := up.Start(b), database.Start(b), rand.Text()+rand.Text()
	shared := db.New(b)
	gateway := func(name, url string) (pl *e2e.Place, at string, gw *e2e.Process) {
		pl = program.Place(b, "")
		text := fmt.Sprintf("version: 1\npolicy: {packs: [grants, flow], data: {grants: grants.yaml, labels: labels.yaml}}\nservers: {up: {url: %q}}\nauth: {keys: true}\nprincipals: {alice: {}}\npublic_url: http://127.0.0.1:1\n"+
			"sessions: {scope: principal}\nstate: state\nconsole: {listen: \"off\"}\n", server)
		if url != "" {
			text += fmt.Sprintf("store: {postgres: %q, secret: %s, node: %s}\ncluster: {listen: \"127.0.0.1:%d\", linger: 1s}\n", url, secret, name, freeport.Port(b))
		}
		pl.Write("wasmgate.yaml", text)
		pl.Write("grants.yaml", "- {to: [\"*\"], servers: [up]}\n")
		pl.Write("labels.yaml", "up__do: {result: trusted, effect: [read]}\n")
		at = fmt.Sprintf("127.0.0.1:%d", freeport.Port(b))
		gw = pl.Serve("--listen", at)
		return pl, "http://" + at + "/mcp", gw
	}
	type calls struct {
		url, key string
		of       []*e2e.Process // whose time counts
	}
	key := func(pl *e2e.Place) string {
		return strings.TrimSpace(pl.Must("key", "create", "bench", "--as", "alice"))
	}
	alonePlace, aloneURL, aloneGW := gateway("alone", "")
	storedPlace, storedURL, storedGW := gateway("stored", db.New(b))
	firstPlace, firstURL, firstGW := gateway("first", shared)
	_, secondURL, secondGW := gateway("second", shared)
	sharedKey := key(firstPlace)
	kinds := []calls{
		{aloneURL, key(alonePlace), []*e2e.Process{aloneGW}},
		{storedURL, key(storedPlace), []*e2e.Process{storedGW}},
		{firstURL, sharedKey, []*e2e.Process{firstGW}}, // first, so that it is the home
		{secondURL, sharedKey, []*e2e.Process{firstGW, secondGW}},
	}
	measure := func(c calls) time.Duration {
		var before, after time.Duration
		for _, gw := range c.of {
			before += processorTime(b, gw.PID())
		}
		var calling sync.WaitGroup
		for i := range benchClients {
			w := &e2e.Wire{URL: c.url, Key: c.key, Stateless: true, Last: i << 20}
			calling.Go(func() {
				for range max(1, b.N/benchClients) {
					if a, err := w.Call(b.Context(), "up__do", `{}`); err != nil || !strings.Contains(string(a.Result), "fine") {
						b.Errorf("%s, %v", a.Result, err)
						return
					}
				}
			})
		}
		calling.Wait()
		for _, gw := range c.of {
			after += processorTime(b, gw.PID())
		}
		up.Mu.Lock()
		up.Seen = nil // it would keep all arguments
		up.Mu.Unlock()
		return (after - before) / time.Duration(benchClients*max(1, b.N/benchClients))
	}
	for _, c := range kinds { // warm
		measure(c)
	}
	b.ResetTimer()
	var stored, forwarded []float64
	took := make([][]float64, len(kinds))
	for range benchRounds {
		var round []float64
		for i, c := range kinds {
			us := float64(measure(c).Nanoseconds()) / 1000
			round = append(round, us)
			took[i] = append(took[i], us)
		}
		stored, forwarded = append(stored, round[1]/round[0]), append(forwarded, round[3]/round[2])
	}
	median := func(all []float64) float64 { slices.Sort(all); return all[len(all)/2] }
	for i, name := range []string{"alone", "stored", "home", "forwarded"} {
		b.ReportMetric(median(took[i]), name+"-us")
	}
	b.ReportMetric(median(stored), "stored/alone")
	b.ReportMetric(median(forwarded), "forwarded/home")
	b.ReportMetric(loadAverage(), "load")
}

// processorTime returns what a process has used, of all its threads.
func processorTime(b *testing.B, pid int) (all time.Duration) {
	b.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(files) == 0 {
		b.Fatalf("the system does not tell what process %d has used: %v", pid, err)
	}
	for _, name := range files {
		text, _ := os.ReadFile(name) // a thread may have ended
		first, _, _ := strings.Cut(string(text), " ")
		ns, _ := strconv.ParseInt(first, 10, 64)
		all += time.Duration(ns)
	}
	return all
}
