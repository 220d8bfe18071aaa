//go:build unix

package gateway

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/internal/testing/e2e"
)

// testGrowingResults has six calls at once return results of 9.8 MB that markers would make nine
// times as long, while a neighbour calls another tool. It bounds the memory of the gateway, and
// logs how long the neighbour waits.
func testGrowingResults(t *testing.T, p *e2e.Program) {
	const size, calls = 9_800_000, 6
	blob := `{"type":"resource","resource":{"uri":"note://a","mimeType":"text/plain","blob":"` + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\x01.", size*3/8))) + `"}}`
	text := `{"type":"text","text":"` + strings.Repeat(`\u0001.`, size/7) + `"}`
	up := &e2e.Stub{Tools: `[{"name":"blob","inputSchema":{"type":"object"}},{"name":"text","inputSchema":{"type":"object"}},{"name":"small","inputSchema":{"type":"object"}}]`, Answer: func(w http.ResponseWriter, _ *http.Request, c e2e.StubCall) {
		switch c.Params.Name {
		case "blob":
			e2e.Result(w, c.ID, `{"content":[`+blob+`]}`)
		case "text":
			e2e.Result(w, c.ID, `{"content":[`+text+`]}`)
		default:
			e2e.AnswerFine(w, nil, c)
		}
	}}
	pl := p.Place(t, "servers:\n  up: {url: "+up.Start(t)+"}\n")
	pl.Must("grant", "--yes", "up__*")
	pl.Env = append(pl.Env, steadyMemory)
	gw := pl.Serve()
	neighbour := e2e.MustWire(t, gw.URL)
	waits := func(while func() bool) time.Duration {
		var all []time.Duration
		for while() {
			begin := time.Now()
			if a := neighbour.MustCall(t, "up__small", "{}"); !strings.Contains(string(a.Result), "fine") {
				t.Fatalf("the neighbour got %s", a.Result)
			}
			all = append(all, time.Since(begin))
			time.Sleep(5 * time.Millisecond)
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	n := 0
	quiet := waits(func() bool { n++; return n < 60 })
	for _, tool := range []string{"up__blob", "up__text"} {
		var group sync.WaitGroup
		for range calls {
			w := e2e.MustWire(t, gw.URL)
			group.Go(func() {
				if a := w.MustCall(t, tool, "{}"); len(a.Result) > 1000 || !strings.Contains(string(a.Result), "text/size") {
					t.Errorf("%s returned %.200s", tool, a.Result)
				}
			})
		}
		done := make(chan bool)
		go func() { group.Wait(); close(done) }()
		busy := waits(func() bool {
			select {
			case <-done:
				return false
			default:
				return true
			}
		})
		peak := peakMemory(t, gw.PID())
		t.Logf("%s, %d at once: %d MB at most; a neighbour's call takes %v instead of %v (medians)", tool, calls, peak>>20, busy, quiet)
		if peak > 700<<20 {
			t.Errorf("the gateway took %d MB", peak>>20)
		}
	}
}
