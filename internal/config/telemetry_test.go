package config_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/internal/config"
)

func TestTelemetry(t *testing.T) {
	tests := map[string]struct {
		file string
		want config.Telemetry
		err  string
	}{
		"nothing said":        {"", config.Telemetry{Metrics: config.Metrics{Series: 2000}}, ""},
		"metrics":             {"telemetry: {metrics: {listen: \"0.0.0.0:9464\", series: 5000}}\n", config.Telemetry{Metrics: config.Metrics{Listen: "0.0.0.0:9464", Series: 5000}}, ""},
		"no port":             {"telemetry: {metrics: {listen: localhost}}\n", config.Telemetry{}, `wasmgate.yaml:1: telemetry.metrics.listen: "localhost" is not host:port, such as 127.0.0.1:9464`},
		"a port that is none": {"telemetry: {metrics: {listen: \"localhost:x\"}}\n", config.Telemetry{}, `wasmgate.yaml:1: telemetry.metrics.listen: "localhost:x" has no port from 0 to 65535`},
		"too few series":      {"telemetry:\n  metrics: {series: 1}\n", config.Telemetry{}, `wasmgate.yaml:2: telemetry.metrics.series: "1" is not a whole number from 500 to 1000000`},
		"a key that is none":  {"telemetry: {metric: {}}\n", config.Telemetry{}, `wasmgate.yaml:1: telemetry.metric: unknown key; did you mean "metrics"?`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c, err := config.Parse("wasmgate.yaml", []byte(tt.file), options(t.TempDir()))
			if tt.err != "" {
				if err == nil || err.Error() != tt.err {
					t.Errorf("error %v, want %s", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, c.Telemetry); diff != "" {
				t.Error(diff)
			}
		})
	}
}
