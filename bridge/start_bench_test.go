package bridge_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge"
)

// BenchmarkFleetStart connects 20 servers that each take a while to start. overhead-ms is
// what their number adds to the time of one: at most 100.
func BenchmarkFleetStart(b *testing.B) {
	const servers, slow = 20, 200 * time.Millisecond
	scripts := make([]*script, servers)
	for i := range scripts {
		scripts[i] = newScript(nil)
	}
	var overhead time.Duration
	for b.Loop() {
		var cfg bridge.FleetConfig
		for i, s := range scripts {
			one := s.config(fmt.Sprintf("s%d", i))
			one.Dial = func() (mcp.Transport, error) {
				time.Sleep(slow)
				return s.dial()
			}
			cfg.Servers = append(cfg.Servers, one)
		}
		f := newFleet(b, cfg)
		began := time.Now()
		if err := f.Connect(b.Context()); err != nil {
			b.Fatal(err)
		}
		overhead += time.Since(began) - slow
		for _, s := range f.Status() {
			if s.Phase != bridge.Ready {
				b.Fatalf("%+v", s)
			}
		}
		f.Close()
	}
	b.ReportMetric(float64(overhead.Microseconds())/1000/float64(b.N), "overhead-ms")
}
