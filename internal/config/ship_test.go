package config_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/internal/config"
)

func TestShips(t *testing.T) {
	tests := map[string]struct {
		file string
		want []config.Ship
		err  string
	}{
		"a target": {"telemetry: {ship: {siem: {to: http, url: \"https://siem/in\", format: ocsf, headers: {authorization: \"${TICKETS_TOKEN}\"}, private: true, timeout: 5s, compression: none}}}\n", []config.Ship{
			{Name: "siem", To: "http", Format: "ocsf", Target: config.Target{URL: "https://siem/in", Headers: map[string]config.Secret{"authorization": "t0p"}, Private: true, Timeout: 5 * time.Second}},
		}, ""},
		"what is silent":  {"telemetry: {ship: {opa: {to: opa, url: \"https://opa/logs\"}}}\n", []config.Ship{{Name: "opa", To: "opa", Format: "audit", Target: config.Target{URL: "https://opa/logs", Timeout: 30 * time.Second, Gzip: true}}}, ""},
		"nowhere":         {"telemetry:\n  ship:\n    siem: {}\n", nil, "wasmgate.yaml:3: telemetry.ship.siem: has no to\nwasmgate.yaml:3: telemetry.ship.siem: has no url"},
		"no such kind":    {"telemetry: {ship: {siem: {to: syslog, url: \"https://siem/\"}}}\n", nil, `wasmgate.yaml:1: telemetry.ship.siem.to: "syslog" is not one of http, otlp, opa`},
		"a format of opa": {"telemetry: {ship: {siem: {to: opa, url: \"https://siem/\", format: ocsf}}}\n", nil, `wasmgate.yaml:1: telemetry.ship.siem.format: has no effect on a target opa, which receives decisions`},
		"a path as name":  {"telemetry: {ship: {\"../x\": {to: http, url: \"https://siem/\"}}}\n", nil, `wasmgate.yaml:1: telemetry.ship["../x"]: the name of a target has lower-case letters, digits and . _ -`},
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
			if diff := cmp.Diff(tt.want, c.Telemetry.Ship); diff != "" {
				t.Error(diff)
			}
		})
	}
}
