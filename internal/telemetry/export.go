package telemetry

import (
	"context"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
)

const (
	// batchSpans is how many calls are exported at once, batchAfter how long the first of
	// them waits for others.
	batchSpans = 512
	batchAfter = 2 * time.Second
	// giveUpAfter is how long a batch of calls is tried.
	giveUpAfter = time.Minute
	// lastTime is what the last export may take when the gateway ends.
	lastTime = 5 * time.Second
)

// scope is what says which program measured.
const scope = "github.com/wasmgate/wasmgate"

// An Attribute is one of a resource, with a value of text.
type Attribute struct{ Name, Value string }

// An Exporter sends metrics and spans by OTLP until its context ends. Failed is called with the name of
// the signal and the error after a failure, and with nil when sending works.
type Exporter struct {
	Resource []Attribute
	Traces   *Endpoint // nil exports no spans
	Spans    *Spans
	Metrics  *Endpoint // nil exports no metrics
	Sources  []Source
	Every    time.Duration // between two exports of metrics
	Failed   func(signal string, err error)

	began time.Time
}

// ExportMetrics sends the metrics as often as Every says, and once more at the end.
func (e *Exporter) ExportMetrics(ctx context.Context) {
	e.began = time.Now()
	tick := time.NewTicker(e.Every)
	defer tick.Stop()
	for going := true; going; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			going = false
		}
		to, cancel := lasting(ctx, e.Every)
		e.Failed("metrics", e.Metrics.Send(to, e.metrics())) // the next ones hold what these did
		cancel()
	}
}

// lasting returns a context of d, or if ctx has ended of a last moment.
func lasting(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if ctx.Err() == nil {
		return context.WithTimeout(ctx, d)
	}
	return context.WithTimeout(context.WithoutCancel(ctx), lastTime)
}

// ExportSpans sends the spans of calls soon after they came, and what is left at the end.
func (e *Exporter) ExportSpans(ctx context.Context) {
	for {
		batch := e.Spans.batch(ctx)
		if len(batch) == 0 {
			return
		}
		to, cancel := lasting(ctx, giveUpAfter)
		m := e.spans(batch)
		err := Deliver(to, func(ctx context.Context) error { return e.Traces.Send(ctx, m) }, func(err error) { e.Failed("traces", err) })
		cancel()
		if err != nil {
			e.Spans.lost.Add(uint64(len(batch)))
		}
		e.Failed("traces", err)
	}
}

// batch waits for calls. It is empty when ctx has ended and none are left.
func (s *Spans) batch(ctx context.Context) (all []ended) {
	var full <-chan time.Time
	over := ctx.Done()
	for len(all) < batchSpans {
		select {
		case e := <-s.queue:
			all = append(all, e)
			if full == nil {
				full = time.After(batchAfter)
			}
			continue
		default:
		}
		if over == nil {
			return all
		}
		select {
		case e := <-s.queue:
			all = append(all, e)
			if full == nil {
				full = time.After(batchAfter)
			}
		case <-full:
			return all
		case <-over:
			over = nil // what is there is taken
		}
	}
	return all
}

func (e *Exporter) resource() *resource.Resource { return ResourceOf(e.Resource) }

// ResourceOf puts attributes into the words of OTLP.
func ResourceOf(all []Attribute) *resource.Resource {
	r := &resource.Resource{}
	for _, a := range all {
		r.Attributes = append(r.Attributes, Text(a.Name, a.Value))
	}
	return r
}

// Text is an attribute in the words of OTLP.
func Text(name, value string) *common.KeyValue {
	return &common.KeyValue{Key: name, Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: value}}}
}

// attributes returns those that have a value.
func attributes(pairs ...string) (all []*common.KeyValue) {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			all = append(all, Text(pairs[i], pairs[i+1]))
		}
	}
	return all
}

// Scope names this program as what has measured.
func Scope(version string) *common.InstrumentationScope {
	return &common.InstrumentationScope{Name: scope, Version: version}
}

func (e *Exporter) version() string {
	for _, a := range e.Resource {
		if a.Name == "service.version" {
			return a.Value
		}
	}
	return ""
}

// metrics returns what the sources have. It is an ExportMetricsServiceRequest, too, which
// has the same form on the wire.
func (e *Exporter) metrics() *metrics.MetricsData {
	scoped := &metrics.ScopeMetrics{Scope: Scope(e.version())}
	now := uint64(time.Now().UnixNano())
	for _, source := range e.Sources {
		for _, m := range source() {
			if len(m.Points) > 0 {
				scoped.Metrics = append(scoped.Metrics, m.proto(uint64(e.began.UnixNano()), now))
			}
		}
	}
	return &metrics.MetricsData{ResourceMetrics: []*metrics.ResourceMetrics{{Resource: e.resource(), ScopeMetrics: []*metrics.ScopeMetrics{scoped}}}}
}

func (m Metric) proto(began, now uint64) *metrics.Metric {
	to := &metrics.Metric{Name: m.Name, Description: m.Help, Unit: m.Unit}
	if to.Unit == "" {
		to.Unit = "1"
	}
	const cumulative = metrics.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE
	if m.Kind == Histogram {
		h := &metrics.Histogram{AggregationTemporality: cumulative}
		for _, p := range m.Points {
			h.DataPoints = append(h.DataPoints, &metrics.HistogramDataPoint{
				Attributes: m.attributes(p), StartTimeUnixNano: began, TimeUnixNano: now,
				Count: p.Count(), Sum: proto64(p.Sum), BucketCounts: p.Counts, ExplicitBounds: m.Bounds,
			})
		}
		to.Data = &metrics.Metric_Histogram{Histogram: h}
		return to
	}
	var points []*metrics.NumberDataPoint
	for _, p := range m.Points {
		points = append(points, &metrics.NumberDataPoint{
			Attributes: m.attributes(p), StartTimeUnixNano: began, TimeUnixNano: now, Value: &metrics.NumberDataPoint_AsDouble{AsDouble: p.Value},
		})
	}
	if m.Kind == Counter {
		to.Data = &metrics.Metric_Sum{Sum: &metrics.Sum{DataPoints: points, IsMonotonic: true, AggregationTemporality: cumulative}}
	} else {
		to.Data = &metrics.Metric_Gauge{Gauge: &metrics.Gauge{DataPoints: points}}
	}
	return to
}

func proto64(f float64) *float64 { return &f }

func (m Metric) attributes(p Point) (all []*common.KeyValue) {
	for i, name := range m.Labels {
		if p.Labels[i] != "" { // an attribute that does not apply is absent
			all = append(all, Text(name, p.Labels[i]))
		}
	}
	return all
}

// spans returns those of ended calls. It is an ExportTraceServiceRequest, too.
func (e *Exporter) spans(batch []ended) *trace.TracesData {
	scoped := &trace.ScopeSpans{Scope: Scope(e.version())}
	for i := range batch {
		scoped.Spans = append(scoped.Spans, batch[i].spans()...)
	}
	return &trace.TracesData{ResourceSpans: []*trace.ResourceSpans{{Resource: e.resource(), ScopeSpans: []*trace.ScopeSpans{scoped}}}}
}
