package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/testing/gatetest"
)

// Each notification of progress gives the call its timeout again, up to ten times of it in
// all. What is no progress of this call does not.
func TestProgressExtends(t *testing.T) {
	tests := map[string]struct {
		token string // of the notifications
		every time.Duration
		took  time.Duration
	}{
		"progress all the time":     {"1", time.Second, 100 * time.Second},
		"progress that stops":       {"1", 0, 10 * time.Second},
		"progress of another call":  {"2", time.Second, 10 * time.Second},
		"progress that is too late": {"1", 11 * time.Second, 10 * time.Second},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := rig.NewScript(map[string]string{"tools/call": "-"})
				cfg := s.Config("s")
				cfg.CallTimeout = 10 * time.Second
				e := rig.Ready(t, cfg)
				stop := make(chan struct{})
				go func() {
					for tt.every > 0 {
						select {
						case <-time.After(tt.every):
							s.Tell(&jsonrpc.Request{Method: "notifications/progress", Params: json.RawMessage(`{"progressToken":` + tt.token + `,"progress":1}`)})
						case <-stop:
							return
						}
					}
				}()
				c := rig.NewCall("s__echo", "{}")
				c.Meta = gate.MustDoc(`{"progressToken":"mine"}`)
				c.Client = &gatetest.Client{OnNotify: func(context.Context, string, gate.Doc) {}}
				g, _ := rig.NewGate(t, e)
				before := time.Now()
				_, err := g.Do(t.Context(), c)
				close(stop)
				if took := time.Since(before); rig.Kind(err) != "timeout" || took != tt.took {
					t.Errorf("%v after %v, want a timeout after %v", err, took, tt.took)
				}
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v is not an end of a deadline", err)
				}
				synctest.Wait()
				if s.Count("notifications/cancelled 3") != 1 {
					t.Errorf("the server was not told: %v", s.Seen)
				}
				e.Close()
			})
		})
	}
}

// A tool has the timeout of the first pattern that matches, else the server's.
func TestTimeoutsOfTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := rig.NewScript(map[string]string{"tools/call": "-"})
		tools := ""
		for _, name := range []string{"get", "get_all", "get_one", "put"} {
			tools += `,{"name":"` + name + `","inputSchema":{"type":"object"}}`
		}
		s.List(tools[1:])
		cfg := s.Config("s")
		cfg.CallTimeout = 3 * time.Second
		cfg.CallTimeouts = []options.ToolTimeout{{Pattern: "get_one", Timeout: time.Second}, {Pattern: "get_*", Timeout: 2 * time.Second}, {Pattern: "get_all", Timeout: time.Hour}}
		e := rig.Ready(t, cfg)
		for name, want := range map[string]time.Duration{"get_one": time.Second, "get_all": 2 * time.Second, "get": 3 * time.Second, "put": 3 * time.Second} {
			before := time.Now()
			if _, err := rig.Do(t.Context(), t, e, "s__"+name, "{}"); rig.Kind(err) != "timeout" || time.Since(before) != want {
				t.Errorf("%s: %v after %v, want %v", name, err, time.Since(before), want)
			}
		}
		e.Close()
	})
}
