//go:build unix

package gateway

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/internal/testing/compiled"
	"github.com/wasmgate/wasmgate/internal/testing/e2e"
	wasmgate "github.com/wasmgate/wasmgate/internal/testing/program"
)

// BenchmarkNeighbours measures what calls of one client take, alone and while another principal keeps
// the gateway busy, and the memory that the gateway has had at most.
//
//	go test ./cmd/internal/e2e -run '^$' -bench Neighbours -benchtime 200x
func BenchmarkNeighbours(b *testing.B) {
	program := &e2e.Program{Plain: wasmgate.Build(b, false)}
	program.Path, program.WASM = program.Plain, compiled.Folder(b)
	wake := make(chan struct{})
	defer close(wake)
	markers := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\x01.", 9_800_000*3/8)))
	up := &e2e.Stub{Tools: `[{"name":"do","inputSchema":{"type":"object","properties":{"what":{"type":"string"}}}}]`}
	up.Answer = func(w http.ResponseWriter, r *http.Request, c e2e.StubCall) {
		up.Mu.Lock()
		up.Seen = nil // it would keep all arguments
		up.Mu.Unlock()
		switch args := c.Params.Arguments; {
		case len(args) < 100 && strings.Contains(string(args), "sleep"):
			select {
			case <-wake:
			case <-r.Context().Done():
			}
		case len(args) < 100 && strings.Contains(string(args), "markers"):
			e2e.Result(w, c.ID, `{"content":[{"type":"resource","resource":{"uri":"x:y","mimeType":"text/plain","blob":"`+markers+`"}}]}`)
			return
		}
		e2e.AnswerFine(w, r, c)
	}
	url := up.Start(b)
	for _, load := range []struct {
		name, what string
		calls      int
		each       bool // has a session of its own
	}{
		{"sleeping", "sleep", 64, false}, {"secrets", "token:" + strings.Repeat("AAAA", 1_000_000), 12, false},
		{"markers", "markers", 6, false}, {"bodies", strings.Repeat("a word ", 430_000), 200, true},
	} {
		b.Run(load.name, func(b *testing.B) {
			pl := program.Place(b, "auth: {keys: true}\nprincipals: {alice: {}, bob: {}}\nlimits: {result: 20MiB}\nservers: {up: {url: "+url+"}}\n")
			keys := map[string]string{}
			for _, who := range []string{"alice", "bob"} {
				keys[who] = strings.TrimSpace(pl.Must("key", "create", who, "--as", who))
				pl.Must("grant", "--yes", "--to", who, "up__*")
			}
			gw := pl.Serve()
			victim := keyWire(b, gw.URL, keys["bob"])
			measure := func() (all []time.Duration) {
				for range b.N {
					began := time.Now()
					if a := victim.MustCall(b, "up__do", `{}`); strings.Contains(string(a.Result), "refus") {
						b.Fatalf("%s", a.Result)
					}
					all = append(all, time.Since(began))
				}
				slices.Sort(all)
				return all
			}
			quiet := measure()
			ctx, end := context.WithCancel(b.Context())
			var all sync.WaitGroup
			args := fmt.Sprintf(`{"what":%q}`, load.what)
			for i := range load.calls {
				c := keyWire(b, gw.URL, keys["alice"])
				c.Last = i << 20
				all.Go(func() {
					for ctx.Err() == nil {
						if _, err := c.Call(ctx, "up__do", args); err != nil {
							time.Sleep(100 * time.Millisecond)
						}
					}
				})
			}
			time.Sleep(time.Second) // they are under way
			b.ResetTimer()
			busy := measure()
			b.StopTimer()
			end()
			all.Wait()
			ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
			for name, all := range map[string][]time.Duration{"quiet": quiet, "busy": busy} {
				b.ReportMetric(ms(all[len(all)/2]), name+"-p50-ms")
				b.ReportMetric(ms(all[len(all)*99/100]), name+"-p99-ms")
			}
			b.ReportMetric(float64(busy[len(busy)/2])/float64(quiet[len(quiet)/2]), "busy/quiet-p50")
			b.ReportMetric(loadAverage(), "load")
			b.ReportMetric(memoryPeak(b, gw.PID()), "peak-MB")
		})
	}
}

// loadAverage returns that of the last minute, without which times say little; 0 if the system does
// not tell.
func loadAverage() float64 {
	b, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(b), " ")
	load, _ := strconv.ParseFloat(first, 64)
	return load
}

// memoryPeak returns the most memory that a process has had, in MB; 0 if the system does not tell.
func memoryPeak(b *testing.B, pid int) float64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kb, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	n, _ := strconv.ParseFloat(kb, 64)
	return n / 1000
}
