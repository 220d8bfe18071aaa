package rig

import (
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/fleet"
)

// Within waits until a condition is true, for a generous while.
func Within(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if is() {
			return
		}
	}
	t.Errorf("not in time: %s", what)
}

// NewFleet returns a fleet that is closed with the test.
func NewFleet(t testing.TB, cfg fleet.Config) *fleet.Fleet {
	t.Helper()
	f, err := fleet.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// Connected returns a fleet whose servers are connected.
func Connected(t testing.TB, cfg fleet.Config) *fleet.Fleet {
	t.Helper()
	f := NewFleet(t, cfg)
	if err := f.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	return f
}

// RepetitionsEnv is how often a test that looks for what is left behind does what it does.
const RepetitionsEnv = "WASMGATE_REPETITIONS"
