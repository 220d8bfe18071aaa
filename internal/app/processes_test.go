package app_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"github.com/wasmgate/wasmgate/internal/app"
)

// The status names the servers that run one process for each client because the configuration does not
// choose.
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
	a, err := app.New(t.Context(), cfg, slog.New(slog.DiscardHandler), "")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close(context.Background())
	if named := a.Overview.Status().OwnProcesses; !slices.Equal(named, []string{"a", "e"}) {
		t.Errorf("the status names %q", named)
	}
}
