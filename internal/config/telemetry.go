package config

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/internal/config/check"
	"github.com/wasmgate/wasmgate/internal/config/decode"
	"github.com/wasmgate/wasmgate/internal/config/tree"
)

// Telemetry says what monitoring systems get. The zero Telemetry sends them nothing, unless the
// environment says otherwise: see [Telemetry.Exports].
type Telemetry struct {
	Metrics Metrics `key:"metrics"`
	OTLP    OTLP    `key:"otlp"`
	Traces  Traces  `key:"traces"`
	Ship    []Ship  `key:"ship"`
	Baggage bool    `key:"baggage drop|forward"` // what clients say in baggage goes on to servers
}

// Metrics says where Prometheus finds what is counted.
type Metrics struct {
	Listen string `key:"listen hostport"`                    // empty for nowhere
	Series int    `key:"series 500..1000000" default:"2000"` // the maximum, not counting those of Go and the process
}

// OTLP says where signals go by OpenTelemetry's protocol over HTTP. Empty members are taken from the
// environment.
type OTLP struct {
	Endpoint    string            `key:"endpoint url"` // without the path of a signal
	Headers     map[string]Secret `key:"headers header"`
	Private     bool              `key:"private"`           // the host may have a loopback or private address
	Timeout     time.Duration     `key:"timeout 100ms..5m"` // of one request
	Compression string            `key:"compression gzip|none"`
	Signals     []string          `key:"signals traces|metrics"`
	Every       time.Duration     `key:"every 1s..1h"` // between two exports of metrics
	Service     string            `key:"service"`      // that this is
}

// Traces says which calls become spans.
type Traces struct {
	Ratio       string `key:"ratio ratio"`                 // from 0 to 1, of the calls that are in no trace; empty: the environment says
	Refused     bool   `key:"refused" default:"true"`      // also calls that were refused, ten a second
	TrustParent bool   `key:"trust_parent" default:"true"` // a trace of the client's is sampled if it says so, and only then
}

// Check implements [decode.Checker].
func (o *OTLP) Check(v decode.Value) {
	if v.Has("endpoint") && check.Insecure(o.Endpoint) {
		v.Get("endpoint").Warn("plain http to another machine: what is sent, headers too, can be read on the way")
	}
}

// ratio reads a number from 0 to 1.
func ratio(to *string) decode.Reader {
	return func(v decode.Value) {
		s, ok := v.Scalar(tree.Number)
		if !ok {
			return
		}
		if r, err := strconv.ParseFloat(s, 64); err != nil || !(r >= 0 && r <= 1) {
			v.Fail("%q is not a number from 0 to 1", v.Text)
			return
		}
		*to = s
	}
}

// Exports are where signals go once the environment was asked.
type Exports struct {
	Traces, Metrics *Target // nil exports none
	Every           time.Duration
	Ratio           float64
	TrustParent     bool
	Resource        [][2]string // names and values of attributes
}

// A Target is a URL to which something is sent.
type Target struct {
	URL     string            `key:"url url"` // may hold a secret in its query
	Headers map[string]Secret `key:"headers header"`
	Private bool              `key:"private"` // the host may have a loopback or private address
	Timeout time.Duration     `key:"timeout 100ms..5m" default:"30s"`
	Gzip    bool
}

// Exports returns what is exported where, by the keys and, where those are silent, by the
// variables that OpenTelemetry names for it (OpenTelemetry, Environment Variable
// Specification). An error says which of these could not be read; it counts as absent.
func (t Telemetry) Exports(lookup func(string) (string, bool)) (Exports, []error) {
	env := &otelEnviron{lookup: lookup}
	x := Exports{Every: t.OTLP.Every, TrustParent: t.Traces.TrustParent}
	if x.Every == 0 {
		x.Every = env.milliseconds("OTEL_METRIC_EXPORT_INTERVAL", time.Minute)
	}
	x.Ratio, x.TrustParent = t.Traces.sampled(env)
	if env.get("OTEL_SDK_DISABLED") == "true" && t.OTLP.Endpoint == "" {
		return x, env.problems
	}
	x.Traces, x.Metrics = t.OTLP.target("traces", env), t.OTLP.target("metrics", env)
	x.Resource = t.OTLP.resource(env)
	return x, env.problems
}

func (t Traces) sampled(env *otelEnviron) (ratio float64, trustParent bool) {
	if t.Ratio != "" {
		ratio, _ = strconv.ParseFloat(t.Ratio, 64)
		return ratio, t.TrustParent
	}
	sampler := env.get("OTEL_TRACES_SAMPLER")
	kind, parentBased := strings.CutPrefix(sampler, "parentbased_")
	trustParent = t.TrustParent && (parentBased || sampler == "")
	switch kind {
	case "", "always_on":
		return 1, trustParent
	case "always_off":
		return 0, trustParent
	case "traceidratio":
		text := cmp.Or(env.get("OTEL_TRACES_SAMPLER_ARG"), "1")
		ratio, err := strconv.ParseFloat(text, 64)
		if err != nil || !(ratio >= 0 && ratio <= 1) {
			env.fail("OTEL_TRACES_SAMPLER_ARG", "%q is not a number from 0 to 1", text)
			ratio = 1
		}
		return ratio, trustParent
	}
	env.fail("OTEL_TRACES_SAMPLER", "%q is not a sampler that is known here", sampler)
	return 1, t.TrustParent
}

// target returns where a signal goes; nil if nowhere.
func (o OTLP) target(signal string, env *otelEnviron) *Target {
	upper := strings.ToUpper(signal)
	if o.Signals != nil && !slices.Contains(o.Signals, signal) {
		return nil
	}
	if exporter := env.get("OTEL_" + upper + "_EXPORTER"); o.Signals == nil && exporter != "" && exporter != "otlp" {
		if exporter != "none" {
			env.fail("OTEL_"+upper+"_EXPORTER", "%q is not otlp or none", exporter)
		}
		return nil
	}
	to := &Target{Headers: o.Headers, Private: o.Private, Timeout: o.Timeout, Gzip: o.Compression == "gzip"}
	name := func(what string) string {
		return cmp.Or(env.set("OTEL_EXPORTER_OTLP_"+upper+"_"+what), "OTEL_EXPORTER_OTLP_"+what)
	}
	switch at := name("ENDPOINT"); {
	case o.Endpoint != "":
		to.URL = strings.TrimSuffix(o.Endpoint, "/") + "/v1/" + signal
	case env.get(at) == "":
		return nil
	default:
		to.URL, to.Private = env.get(at), true // the operator has named it, perhaps with a private address
		if at == "OTEL_EXPORTER_OTLP_ENDPOINT" {
			to.URL = strings.TrimSuffix(to.URL, "/") + "/v1/" + signal
		}
		if err := check.URL(to.URL); err != nil {
			env.fail(at, "%v", err)
			return nil
		}
	}
	if p := env.get(name("PROTOCOL")); p != "" && p != "http/protobuf" {
		env.fail(name("PROTOCOL"), "%q is not spoken here: http/protobuf is", p)
		if o.Endpoint == "" {
			return nil
		}
	}
	if o.Headers == nil {
		to.Headers = env.headers(name("HEADERS"))
	}
	if o.Timeout == 0 {
		to.Timeout = env.milliseconds(name("TIMEOUT"), 10*time.Second)
	}
	if o.Compression == "" {
		to.Gzip = env.get(name("COMPRESSION")) == "gzip"
	}
	return to
}

func (o OTLP) resource(env *otelEnviron) (all [][2]string) {
	given := env.pairs("OTEL_RESOURCE_ATTRIBUTES")
	given["service.name"] = cmp.Or(o.Service, env.get("OTEL_SERVICE_NAME"), given["service.name"], "wasmgate")
	for _, name := range slices.Sorted(maps.Keys(given)) {
		all = append(all, [2]string{name, given[name]})
	}
	return all
}

// otelEnviron reads OpenTelemetry's variables. An empty one counts as absent.
type otelEnviron struct {
	lookup   func(string) (string, bool)
	problems []error
}

func (e *otelEnviron) get(name string) string {
	v, _ := e.lookup(name)
	return strings.TrimSpace(v)
}

// set returns the name if the variable is set.
func (e *otelEnviron) set(name string) string {
	if e.get(name) == "" {
		return ""
	}
	return name
}

// fail says what is wrong with a variable, once.
func (e *otelEnviron) fail(name, format string, args ...any) {
	err := fmt.Errorf("%s: %s", name, fmt.Sprintf(format, args...))
	if !slices.ContainsFunc(e.problems, func(p error) bool { return p.Error() == err.Error() }) {
		e.problems = append(e.problems, err)
	}
}

func (e *otelEnviron) milliseconds(name string, usual time.Duration) time.Duration {
	text := e.get(name)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 100 || n > 24*3600*1000 {
		e.fail(name, "%q is not a number of milliseconds from 100 on", text)
		return usual
	}
	return time.Duration(n) * time.Millisecond
}

// pairs reads key=value, separated by commas, each escaped as in a URL.
func (e *otelEnviron) pairs(name string) map[string]string {
	all := make(map[string]string)
	for part := range strings.SplitSeq(e.get(name), ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		key, value, ok := strings.Cut(part, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if key = strings.TrimSpace(key); !ok || key == "" || err != nil {
			e.fail(name, "is not key=value, separated by commas")
			continue
		}
		all[key] = value
	}
	return all
}

func (e *otelEnviron) headers(name string) map[string]Secret {
	all := make(map[string]Secret)
	for key, value := range e.pairs(name) {
		if err := cmp.Or(check.Header(key), check.HeaderValue(value)); err != nil {
			e.fail(name, "%q %v", key, err)
			continue
		}
		all[key] = Secret(value)
	}
	return all
}
