package fleet_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/fleet"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
)

// BenchmarkFleetStart connects 20 servers that each take a while to start. overhead-ms is
// what their number adds to the time of one: at most 100.
func BenchmarkFleetStart(b *testing.B) {
	const servers, slow = 20, 200 * time.Millisecond
	scripts := make([]*rig.Script, servers)
	for i := range scripts {
		scripts[i] = rig.NewScript(nil)
	}
	var overhead time.Duration
	for b.Loop() {
		var cfg fleet.Config
		for i, s := range scripts {
			one := s.Config(fmt.Sprintf("s%d", i))
			one.Dial = func() (mcp.Transport, error) {
				time.Sleep(slow)
				return s.Dial()
			}
			cfg.Servers = append(cfg.Servers, one)
		}
		f := rig.NewFleet(b, cfg)
		began := time.Now()
		if err := f.Connect(b.Context()); err != nil {
			b.Fatal(err)
		}
		overhead += time.Since(began) - slow
		for _, s := range f.Status() {
			if s.Phase != status.Ready {
				b.Fatalf("%+v", s)
			}
		}
		f.Close()
	}
	b.ReportMetric(float64(overhead.Microseconds())/1000/float64(b.N), "overhead-ms")
}
