package app_test

import (
	"context"
	"testing"

	"github.com/wasmgate/wasmgate/internal/app"
	"github.com/wasmgate/wasmgate/internal/app/calls"
	"github.com/wasmgate/wasmgate/internal/config"
)

// BenchmarkTelemetry measures a call of an embedded tool with telemetry off and on. What it
// costs shows in allocations, and in times only of runs that take turns (-count).
func BenchmarkTelemetry(b *testing.B) {
	dead := "otlp: {endpoint: \"http://127.0.0.1:9\", every: 1h}"
	for _, one := range []struct{ name, yaml string }{
		{"off", ""},
		{"metrics", "telemetry: {metrics: {listen: \"127.0.0.1:0\"}}\n"},
		{"unsampled", "telemetry: {metrics: {listen: \"127.0.0.1:0\"}, " + dead + ", traces: {ratio: 0}}\n"},
		{"sampled", "telemetry: {metrics: {listen: \"127.0.0.1:0\"}, " + dead + ", traces: {ratio: 1}}\n"},
	} {
		b.Run(one.name, func(b *testing.B) {
			dir := b.TempDir()
			cfg, err := config.Parse(dir+"/wasmgate.yaml", []byte("version: 1\n"+one.yaml), config.Options{})
			if err != nil {
				b.Fatal(err)
			}
			a, err := app.New(b.Context(), cfg, quiet, "")
			if err != nil {
				b.Fatal(err)
			}
			defer a.Close(context.Background())
			call := func() {
				if _, err := a.Calls.Call(b.Context(), calls.Request{Tool: "local__hash", Args: hello}); err != nil {
					b.Fatal(err)
				}
			}
			call() // which compiles
			b.ReportAllocs()
			for b.Loop() {
				call()
			}
		})
	}
}
