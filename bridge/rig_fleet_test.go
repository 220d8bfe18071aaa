package bridge_test

import (
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/bridge"
)

// within waits until what is true, for a generous while.
func within(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if is() {
			return
		}
	}
	t.Errorf("not in time: %s", what)
}

func newFleet(t testing.TB, cfg bridge.FleetConfig) *bridge.Fleet {
	t.Helper()
	f, err := bridge.NewFleet(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func connected(t testing.TB, cfg bridge.FleetConfig) *bridge.Fleet {
	t.Helper()
	f := newFleet(t, cfg)
	if err := f.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	return f
}

// repetitionsEnv is how many misdeeds [TestTortureLeavesNothing] does.
const repetitionsEnv = "WASMGATE_REPETITIONS"
