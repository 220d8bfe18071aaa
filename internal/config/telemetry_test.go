package config_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/internal/config"
)

func TestTelemetry(t *testing.T) {
	usual := config.Traces{Refused: true, TrustParent: true}
	tests := map[string]struct {
		file string
		want config.Telemetry
		err  string
	}{
		"nothing said": {"", config.Telemetry{Metrics: config.Metrics{Series: 2000}, Traces: usual}, ""},
		"metrics":      {"telemetry: {metrics: {listen: \"0.0.0.0:9464\", series: 5000}}\n", config.Telemetry{Metrics: config.Metrics{Listen: "0.0.0.0:9464", Series: 5000}, Traces: usual}, ""},
		"all of it": {
			"telemetry: {otlp: {endpoint: \"https://otel:4318\", headers: {authorization: \"${TICKETS_TOKEN}\"}, private: true, timeout: 5s, compression: gzip, signals: [traces], every: 10s, service: gw}, traces: {ratio: 0.05, refused: false, trust_parent: false}, baggage: forward}\n",
			config.Telemetry{
				Metrics: config.Metrics{Series: 2000}, Traces: config.Traces{Ratio: "0.05"}, Baggage: true,
				OTLP: config.OTLP{
					Endpoint: "https://otel:4318", Headers: map[string]config.Secret{"authorization": "t0p"}, Private: true, Timeout: 5 * time.Second,
					Compression: "gzip", Signals: []string{"traces"}, Every: 10 * time.Second, Service: "gw",
				},
			}, "",
		},
		"more than all":       {"telemetry: {traces: {ratio: 1.5}}\n", config.Telemetry{}, `wasmgate.yaml:1: telemetry.traces.ratio: "1.5" is not a number from 0 to 1`},
		"no such signal":      {"telemetry: {otlp: {signals: [logs]}}\n", config.Telemetry{}, `wasmgate.yaml:1: telemetry.otlp.signals[0]: "logs" is not one of traces, metrics`},
		"no address":          {"telemetry: {otlp: {endpoint: \"otel:4318\"}}\n", config.Telemetry{}, `wasmgate.yaml:1: telemetry.otlp.endpoint: "otel:4318" does not begin with https:// or http://`},
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

// TestExports: the keys win over OpenTelemetry's variables, and what is wrong with one of
// these is said and ignored.
func TestExports(t *testing.T) {
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"
	target := func(signal string) *config.Target {
		return &config.Target{URL: "http://collector:4318/v1/" + signal, Private: true, Timeout: 10 * time.Second, Headers: map[string]config.Secret{}}
	}
	usual := config.Exports{Traces: target("traces"), Metrics: target("metrics"), Every: time.Minute, Ratio: 1, TrustParent: true, Resource: [][2]string{{"service.name", "wasmgate"}}}
	with := func(change func(*config.Exports)) config.Exports {
		x := usual
		change(&x)
		return x
	}
	key := config.OTLP{Endpoint: "https://keys:4318/", Headers: map[string]config.Secret{"a": "b"}, Timeout: time.Second, Compression: "gzip"}
	keyed := func(signal string) *config.Target {
		return &config.Target{URL: "https://keys:4318/v1/" + signal, Timeout: time.Second, Headers: key.Headers, Gzip: true}
	}
	tests := map[string]struct {
		otlp config.OTLP
		env  map[string]string
		want config.Exports
		errs string
	}{
		"nothing said": {config.OTLP{}, nil, with(func(x *config.Exports) { x.Traces, x.Metrics = nil, nil }), "[]"},
		"a variable":   {config.OTLP{}, map[string]string{endpoint: "http://collector:4318/"}, usual, "[]"},
		"a signal's":   {config.OTLP{}, map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4318/v1/traces"}, with(func(x *config.Exports) { x.Metrics = nil }), "[]"},
		"disabled":     {config.OTLP{}, map[string]string{endpoint: "http://collector:4318", "OTEL_SDK_DISABLED": "true"}, with(func(x *config.Exports) { x.Traces, x.Metrics, x.Resource = nil, nil, nil }), "[]"},
		"no metrics":   {config.OTLP{}, map[string]string{endpoint: "http://collector:4318", "OTEL_METRICS_EXPORTER": "none"}, with(func(x *config.Exports) { x.Metrics = nil }), "[]"},
		"the keys win": {key, map[string]string{
			endpoint: "http://collector:4318", "OTEL_EXPORTER_OTLP_HEADERS": "x=y", "OTEL_EXPORTER_OTLP_TIMEOUT": "7", "OTEL_EXPORTER_OTLP_COMPRESSION": "none", "OTEL_SDK_DISABLED": "true",
		}, with(func(x *config.Exports) { x.Traces, x.Metrics = keyed("traces"), keyed("metrics") }), "[]"},
		"all variables": {config.OTLP{}, map[string]string{
			endpoint: "http://collector:4318", "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20x", "OTEL_EXPORTER_OTLP_METRICS_HEADERS": "m=1, n=2", "OTEL_EXPORTER_OTLP_TIMEOUT": "2000",
			"OTEL_EXPORTER_OTLP_TRACES_COMPRESSION": "gzip", "OTEL_SERVICE_NAME": "gw", "OTEL_RESOURCE_ATTRIBUTES": "service.name=other,deployment.environment.name=a%2Cb",
			"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.25", "OTEL_METRIC_EXPORT_INTERVAL": "5000",
		}, with(func(x *config.Exports) {
			x.Traces, x.Metrics = target("traces"), target("metrics")
			x.Traces.Headers, x.Traces.Timeout, x.Traces.Gzip = map[string]config.Secret{"authorization": "Bearer x"}, 2*time.Second, true
			x.Metrics.Headers, x.Metrics.Timeout = map[string]config.Secret{"m": "1", "n": "2"}, 2*time.Second
			x.Ratio, x.TrustParent, x.Every = 0.25, false, 5*time.Second
			x.Resource = [][2]string{{"deployment.environment.name", "a,b"}, {"service.name", "gw"}}
		}), "[]"},
		"what cannot be read": {config.OTLP{}, map[string]string{
			endpoint: "http://collector:4318", "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "grpc", "OTEL_TRACES_SAMPLER": "jaeger_remote", "OTEL_METRIC_EXPORT_INTERVAL": "1m",
		}, with(func(x *config.Exports) { x.Metrics = nil }), `[OTEL_METRIC_EXPORT_INTERVAL: "1m" is not a number of milliseconds from 100 on OTEL_TRACES_SAMPLER: "jaeger_remote" is not a sampler that is known here OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: "grpc" is not spoken here: http/protobuf is]`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			telemetry := config.Telemetry{OTLP: tt.otlp, Traces: config.Traces{TrustParent: true}}
			got, errs := telemetry.Exports(environment(tt.env))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if got := fmt.Sprint(errs); got != tt.errs {
				t.Errorf("errors %s, want %s", got, tt.errs)
			}
		})
	}
}
