//go:build unix

package gateway

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/internal/testing/e2e"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
)

// testFair has callers keep as many calls under way as they can, which sleep for as long as the test
// lasts. None of another caller's calls is refused, of their tool or of another.
func testFair(t *testing.T, p *e2e.Program) {
	for name, tt := range map[string]struct {
		limits string
		greedy []string // the key of each session; "" without auth
		victim string
		naps   int64 // that are under way before the other caller calls
	}{
		"one principal":                 {"", []string{"alice", "alice"}, "bob", 64},
		"two sessions, without auth":    {"", []string{"", ""}, "", 33},
		"three keys":                    {"", []string{"alice", "alice", "carol", "dave"}, "bob", 33},
		"a tool's limit":                {"limits: {tools: {\"up__nap\": 4}}\n", []string{"alice", "alice"}, "bob", 4},
		"a server's limit":              {"concurrent", []string{"alice", "alice"}, "bob", 4},
		"a tool's limit, without auth":  {"limits: {tools: {\"up__nap\": 4}}\n", []string{"", ""}, "", 3},
		"few slots":                     {"limits: {concurrent: 2, session: 64}\n", []string{"alice"}, "bob", 2},
		"few slots and a tool's of one": {"limits: {concurrent: 2, tools: {\"up__*\": 1}}\n", []string{"alice"}, "bob", 1},
	} {
		t.Run(name, func(t *testing.T) {
			var asleep atomic.Int64
			wake := make(chan struct{})
			up := &e2e.Stub{Tools: `[{"name":"nap","inputSchema":{"type":"object","properties":{"for":{"type":"string"}}}},{"name":"quick","inputSchema":{"type":"object"}}]`}
			up.Answer = func(w http.ResponseWriter, r *http.Request, c e2e.StubCall) {
				if strings.Contains(string(c.Params.Arguments), "long") {
					asleep.Add(1)
					select {
					case <-wake:
					case <-r.Context().Done():
					}
				}
				e2e.AnswerFine(w, r, c)
			}
			server := "servers: {up: {url: " + up.Start(t)
			limits := tt.limits
			if limits == "concurrent" {
				server, limits = server+", concurrent: 4", ""
			}
			auth := "auth: {keys: true}\nprincipals: {alice: {}, bob: {}, carol: {}, dave: {}}\n"
			if tt.victim == "" {
				auth = ""
			}
			pl := p.Place(t, auth+limits+server+"}}\n")
			key := map[string]string{"": ""}
			for _, who := range append(tt.greedy, tt.victim) {
				if _, has := key[who]; !has {
					key[who] = strings.TrimSpace(pl.Must("key", "create", who, "--as", who))
					pl.Must("grant", "--yes", "--to", who, "up__*")
				}
			}
			if auth == "" {
				pl.Must("grant", "--yes", "up__*")
			}
			gw := pl.Serve()
			ctx, end := context.WithCancel(t.Context())
			var all sync.WaitGroup
			defer all.Wait()
			defer end()
			defer close(wake)
			for _, who := range tt.greedy {
				c := keyWire(t, gw.URL, key[who])
				for i := range 32 {
					all.Go(func() {
						one := *c
						for one.Last = i * 1000; ctx.Err() == nil; {
							_, _ = one.Call(ctx, "up__nap", `{"for":"long"}`)
							time.Sleep(100 * time.Millisecond) // a full queue refuses at once
						}
					})
				}
			}
			timelimit.Wait(t, "the calls sleep", func() bool { return asleep.Load() >= tt.naps })
			victim := keyWire(t, gw.URL, key[tt.victim])
			for range 20 {
				for _, tool := range []string{"up__quick", "up__nap"} {
					if a := victim.MustCall(t, tool, `{}`); string(a.Result) == "" || strings.Contains(string(a.Result), "refus") {
						t.Fatalf("%s: %s %+v", tool, a.Result, a.Error)
					}
				}
			}
		})
	}
}

// keyWire opens a session with an API key; "" is none.
func keyWire(t testing.TB, url, key string) *e2e.Wire {
	t.Helper()
	w := &e2e.Wire{URL: url, Key: key}
	if err := w.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w
}
