// Package memory sets the garbage collector for a gateway: calls leave little behind, so that
// collecting less often makes them cheaper.
package memory

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// gcPercent lets the heap grow to a multiple of what lives in it: calls leave
	// nothing behind, and collecting less often makes them cheaper.
	gcPercent = 800
	// leastLimit is where the collector works harder instead, as long as what lives
	// is a third of it (BenchmarkGatewayMemory). If more does, the limit is
	// liveTimes that: one that is close to what lives would have the collector do
	// nothing else, for instance while a large module is compiled.
	leastLimit = 64 << 20
	liveTimes  = 3
)

// Tune sets the collector, unless the environment does.
func Tune() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(leastLimit)
		afterCollection(func() { debug.SetMemoryLimit(memoryLimit(liveHeap())) })
	}
}

func memoryLimit(live uint64) int64 { return max(leastLimit, int64(live)*liveTimes) }

// liveHeap is how many bytes the last collection found alive.
func liveHeap() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return sample[0].Value.Uint64()
}

// afterCollection has f run after each collection: something that no one refers
// to is gone after the next.
func afterCollection(f func()) {
	nobodys := new([64]byte)
	runtime.AddCleanup(nobodys, func(f func()) {
		f()
		afterCollection(f)
	}, f)
}
