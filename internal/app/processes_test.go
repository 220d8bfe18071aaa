package app_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/app"
	"github.com/wasmgate/wasmgate/internal/logs"
)

// Servers of which each client has a process because the configuration says nothing else are named
// in the status always, and in the log of the first start.
func TestOwnProcessesAreNamed(t *testing.T) {
	cfg := load(t, `version: 1
servers:
  a: {command: no-such-program}
  b: {command: no-such-program, sessions: own}
  c: {command: no-such-program, sessions: shared}
  d: {url: "http://127.0.0.1:9/mcp"}
  e: {command: no-such-program, sessions: auto}
  f: {command: no-such-program, enabled: false}
`)
	for start, want := range []int{1, 0} {
		var w written
		a, err := app.New(t.Context(), cfg, logs.New(&w, cfg.Log, nil), "")
		if err != nil {
			t.Fatal(err)
		}
		_, _, end := run(t, a, app.Front{Listen: []string{"127.0.0.1:0"}})
		if named := a.Status().OwnProcesses; !slices.Equal(named, []string{"a", "e"}) {
			t.Errorf("start %d: the status names %q", start, named)
		}
		end()
		if err := a.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if n := strings.Count(w.String(), `servers="[a e]"`); n != want {
			t.Errorf("start %d: the log names them %d times:\n%s", start, n, w.String())
		}
	}
}
