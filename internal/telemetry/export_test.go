package telemetry_test

import (
	"compress/gzip"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/codes"
	"github.com/wasmgate/wasmgate/gate/tracing"
	"github.com/wasmgate/wasmgate/internal/telemetry"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// A receiver takes OTLP over HTTP.
type receiver struct {
	*httptest.Server
	mu      sync.Mutex
	spans   []*trace.Span
	metrics map[string]*metrics.Metric
	body    string // all that came
	header  http.Header
	answers []int // status of the next answers; then 200
	asked   int
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{metrics: make(map[string]*metrics.Metric)}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.header = req.Header
	if r.asked++; len(r.answers) > 0 {
		status := r.answers[0]
		r.answers = r.answers[1:]
		w.WriteHeader(status)
		return
	}
	var body io.Reader = req.Body
	if req.Header.Get("Content-Encoding") == "gzip" {
		body, _ = gzip.NewReader(req.Body)
	}
	b, err := io.ReadAll(body)
	if err == nil {
		err = r.take(req.URL.Path, b)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

func (r *receiver) take(path string, b []byte) error {
	r.body += string(b)
	if path == "/v1/traces" {
		var m trace.TracesData
		if err := proto.Unmarshal(b, &m); err != nil {
			return err
		}
		for _, res := range m.ResourceSpans {
			for _, scope := range res.ScopeSpans {
				r.spans = append(r.spans, scope.Spans...)
			}
		}
		return nil
	}
	var m metrics.MetricsData
	if err := proto.Unmarshal(b, &m); err != nil {
		return err
	}
	for _, res := range m.ResourceMetrics {
		for _, scope := range res.ScopeMetrics {
			for _, one := range scope.Metrics {
				r.metrics[one.Name] = one
			}
		}
	}
	return nil
}

func (r *receiver) endpoint(signal string) *telemetry.Endpoint {
	return &telemetry.Endpoint{
		URL: r.URL + "/v1/" + signal, Headers: map[string]string{"Authorization": "t0p"}, Timeout: time.Minute, Gzip: true,
		Client: &http.Client{CheckRedirect: telemetry.NoRedirects},
	}
}

func text(all []*common.KeyValue) map[string]string {
	m := make(map[string]string)
	for _, a := range all {
		m[a.Key] = a.Value.GetStringValue()
	}
	return m
}

// exported runs an exporter until what it has is sent.
func exported(t *testing.T, e *telemetry.Exporter) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // what is there is sent all the same
	if e.Failed == nil {
		e.Failed = func(signal string, err error) {
			if err != nil {
				t.Error(signal, err)
			}
		}
	}
	if e.Traces != nil {
		e.ExportSpans(ctx)
	}
	if e.Metrics != nil {
		e.ExportMetrics(ctx)
	}
}

// TestSpans holds the spans of calls against the conventions: names, kinds, parents, times.
func TestSpans(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	s := telemetry.NewSpans(true)
	sampler := telemetry.NewSampler(0, true)
	call := ended("files", "read", codes.ToolError)
	call.Time = time.Unix(1_800_000_000, 0)
	call.Call.ID, call.Call.Args, call.Call.Session.ID = "id-1", gate.MustDoc(`{"a":"canary"}`), "canary"
	call.Call.Meta = gate.MustDoc(`{"traceparent":"` + parent + `"}`)
	call.Call.Trace.Header = "00-ffffffffffffffffffffffffffffffff-b7ad6b7169203331-01"
	call.Call.Trace = sampler.Place(call.Call)
	s.Observe(call, nil)
	refused := ended("x", "y", "refused_lookup")
	refused.Tool, refused.Steps, refused.Call.Name, refused.Reason = nil, nil, "canary", "canary"
	s.Observe(refused, nil)
	unsampled := ended("files", "other", codes.OK)
	unsampled.Call.Trace = sampler.Place(unsampled.Call)
	s.Observe(unsampled, nil)
	resource := ended("files", "", codes.OK)
	resource.Call.Action, resource.Call.Name, resource.Tool.Offered, resource.Call.Trace = gate.ReadResource, "canary://x", "", call.Call.Trace
	s.Observe(resource, nil)

	r := newReceiver(t)
	exported(t, &telemetry.Exporter{Traces: r.endpoint("traces"), Spans: s, Resource: []telemetry.Attribute{{"service.name", "wasmgate"}}})
	if r.header.Get("Authorization") != "t0p" || r.header.Get("Content-Type") != "application/x-protobuf" {
		t.Errorf("headers %v", r.header)
	}
	if strings.Contains(r.body, "canary") {
		t.Error("arguments, a session, a URI, a reason or a name that a client made up is in the spans")
	}
	by := make(map[string]*trace.Span)
	for _, one := range r.spans {
		by[one.Kind.String()+" "+one.Name] = one
	}
	server, client, wait := by["SPAN_KIND_SERVER tools/call files__read"], by["SPAN_KIND_CLIENT tools/call read"], by["SPAN_KIND_INTERNAL approve tools/call files__read"]
	no := by["SPAN_KIND_SERVER tools/call _other"]
	if server == nil || client == nil || wait == nil || no == nil || by["SPAN_KIND_SERVER resources/read"] == nil || len(r.spans) != 7 {
		t.Fatalf("%d spans: %v", len(r.spans), by)
	}
	if got := hex.EncodeToString(server.TraceId) + "-" + hex.EncodeToString(server.ParentSpanId); got != parent[3:52] {
		t.Errorf("the parent is %s", got)
	}
	if string(client.ParentSpanId) != string(server.SpanId) || string(wait.ParentSpanId) != string(server.SpanId) || string(client.SpanId) != string(call.Call.Trace.Client[:]) {
		t.Error("what the gateway sent on is not a child of what it received")
	}
	if len(server.Links) != 1 || hex.EncodeToString(server.Links[0].TraceId) != strings.Repeat("f", 32) {
		t.Errorf("the HTTP request is not linked: %v", server.Links)
	}
	began, ms := uint64(call.Time.UnixNano()), uint64(time.Millisecond)
	if server.StartTimeUnixNano != began || server.EndTimeUnixNano != began+12*ms || client.StartTimeUnixNano != began+2*ms+ms/10 || client.EndTimeUnixNano != began+11*ms+ms/10 {
		t.Errorf("times: %v %v", server, client)
	}
	for name, want := range map[string]string{
		"mcp.method.name": "tools/call", "gen_ai.tool.name": "files__read", "gen_ai.operation.name": "execute_tool", "error.type": "tool_error",
		"wasmgate.server": "files", "wasmgate.call": "id-1", "wasmgate.code": "tool_error", "wasmgate.effect": "allow", "wasmgate.step.authorize": "90µs",
	} {
		if got := text(server.Attributes)[name]; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if server.Status.GetCode() != trace.Status_STATUS_CODE_ERROR || no.Status.GetMessage() != "refused_lookup" || len(no.TraceId) != 16 || len(no.SpanId) != 8 {
		t.Errorf("status %v %v", server.Status, no)
	}
}

// TestRefusedAreBounded: a flood of refused calls does not crowd out the others.
func TestRefusedAreBounded(t *testing.T) {
	s := telemetry.NewSpans(true)
	for i := range 5000 {
		refused := ended("x", "y", "refused_authorize")
		refused.Time = time.Unix(1_800_000_000+int64(i/2500), 0)
		s.Observe(refused, nil)
	}
	none := telemetry.NewSpans(false)
	none.Observe(ended("x", "y", "refused_authorize"), nil)
	r := newReceiver(t)
	exported(t, &telemetry.Exporter{Traces: r.endpoint("traces"), Spans: s})
	n := 0
	for _, one := range r.spans {
		if one.Kind == trace.Span_SPAN_KIND_SERVER {
			n++
		}
	}
	exported(t, &telemetry.Exporter{Traces: r.endpoint("traces"), Spans: none})
	if n != 20 || s.Lost() != 0 || r.asked != 1 {
		t.Errorf("%d spans of refused calls, %d lost, %d requests", n, s.Lost(), r.asked)
	}
}

// TestDeadReceiver: a receiver that takes nothing costs spans, which are counted, and no
// call waits for it.
func TestDeadReceiver(t *testing.T) {
	unraced.Long(t)
	r := newReceiver(t)
	r.answers = []int{http.StatusServiceUnavailable, http.StatusOK}
	s := telemetry.NewSpans(true)
	sampled := ended("files", "read", codes.OK)
	sampled.Call.Trace = telemetry.NewSampler(1, true).Place(sampled.Call)
	for range 3000 {
		s.Observe(sampled, nil)
	}
	lost := s.Lost()
	if lost != 3000-2048 {
		t.Errorf("%d lost", lost)
	}
	var failures []string
	e := &telemetry.Exporter{Traces: r.endpoint("traces"), Spans: s, Failed: func(_ string, err error) {
		if err != nil {
			failures = append(failures, err.Error())
		}
	}}
	r.answers = []int{http.StatusServiceUnavailable, http.StatusBadRequest}
	exported(t, e)
	if len(failures) != 2 || failures[0] != "it answered with status 503" || failures[1] != "it answered with status 400" {
		t.Errorf("failures %q", failures)
	}
	if got := s.Lost(); got != lost+512 { // what was refused for good, and nothing else
		t.Errorf("%d lost, want %d", got, lost+512)
	}
	if want := (2048 - 512) * 3; len(r.spans) != want {
		t.Errorf("%d spans, want %d", len(r.spans), want)
	}
}

// TestRedirect: what is sent is not sent on to wherever an answer says.
func TestRedirect(t *testing.T) {
	other := newReceiver(t)
	from := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer from.Close()
	e := other.endpoint("traces")
	e.URL = from.URL
	err := e.Post(t.Context(), "text/plain", []byte("secret"))
	var refused *telemetry.SendError
	if !errors.As(err, &refused) || refused.Status != http.StatusTemporaryRedirect || other.asked != 0 {
		t.Errorf("error %v, asked %d times", err, other.asked)
	}
}

// TestExportedMetrics are those of the exposition, in the words of OpenTelemetry.
func TestExportedMetrics(t *testing.T) {
	c := telemetry.NewCalls(0)
	c.Observe(ended("files", "read", codes.OK), 0, nil)
	c.Observe(ended("files", "read", codes.OK), 0, nil)
	r := newReceiver(t)
	exported(t, &telemetry.Exporter{Metrics: r.endpoint("metrics"), Sources: []telemetry.Source{c.Metrics}, Every: time.Hour})
	h := r.metrics["mcp.server.operation.duration"].GetHistogram().GetDataPoints()
	if len(h) != 1 || h[0].Count != 2 || h[0].GetSum() != 0.024 || h[0].BucketCounts[4] != 2 || len(h[0].BucketCounts) != len(h[0].ExplicitBounds)+1 {
		t.Fatalf("duration %v", h)
	}
	attributes := text(h[0].Attributes)
	if len(attributes) != 2 || attributes["mcp.method.name"] != "tools/call" || attributes["gen_ai.tool.name"] != "files__read" || r.metrics["mcp.server.operation.duration"].Unit != "s" {
		t.Errorf("attributes %v", attributes)
	}
	calls := r.metrics["wasmgate.calls"].GetSum()
	if !calls.GetIsMonotonic() || calls.DataPoints[0].GetAsDouble() != 2 || r.metrics["wasmgate.inflight"].GetGauge() == nil {
		t.Errorf("calls %v", calls)
	}
}

// TestSampler follows the parent, or else takes a part.
func TestSampler(t *testing.T) {
	const sampled, not = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
	place := func(s *telemetry.Sampler, meta, header string) tracing.Context {
		c := &gate.Call{Trace: tracing.Context{Header: header}}
		if meta != "" {
			c.Meta = gate.MustDoc(`{"traceparent":"` + meta + `"}`)
		}
		return s.Place(c)
	}
	for _, tt := range []struct {
		ratio        float64
		trust        bool
		meta, header string
		want, known  bool
	}{
		{1, true, "", "", true, true}, {0, true, "", "", false, false}, {0, true, sampled, "", true, true}, {1, true, not, "", false, true},
		{0, true, "", sampled, true, true}, {0, true, not, sampled, false, true}, {0, false, sampled, "", false, true}, {1, false, not, "", true, true},
		{0, true, "00-1", sampled, true, true}, {0, true, "00-1", "x", false, false},
	} {
		got := place(telemetry.NewSampler(tt.ratio, tt.trust), tt.meta, tt.header)
		if got.Sampled != tt.want || (got.ID != [16]byte{}) != tt.known || (got.Server != [8]byte{}) != tt.want {
			t.Errorf("%+v: %+v", tt, got)
		}
	}
	s, n := telemetry.NewSampler(0.2, true), 0
	for range 10_000 {
		if place(s, "", "").Sampled {
			n++
		}
	}
	if n < 1500 || n > 2500 { // 12 standard deviations
		t.Errorf("%d of 10000 sampled, with a ratio of 0.2", n)
	}
	none, c := telemetry.NewSampler(0, true), &gate.Call{Meta: gate.MustDoc(`{"traceparent":"` + not + `"}`)}
	if allocs := testing.AllocsPerRun(100, func() { none.Place(c) }); allocs != 0 {
		t.Errorf("%v allocations for a call that is not sampled", allocs)
	}
	spans, r := telemetry.NewSpans(true), ended("files", "read", codes.OK)
	if allocs := testing.AllocsPerRun(100, func() { spans.Observe(r, nil) }); allocs != 0 {
		t.Errorf("%v allocations for a record that is not sampled", allocs)
	}
}

func BenchmarkPlace(b *testing.B) {
	for name, meta := range map[string]string{"none": `{}`, "unsampled": `{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"}`} {
		b.Run(name, func(b *testing.B) {
			s, c := telemetry.NewSampler(0.0001, true), &gate.Call{Meta: gate.MustDoc(meta)}
			b.ReportAllocs()
			for b.Loop() {
				s.Place(c)
			}
		})
	}
}
