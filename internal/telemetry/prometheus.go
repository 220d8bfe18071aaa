package telemetry

import (
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// A Source returns metrics as they are now.
type Source func() []Metric

// Handler serves what the sources have to Prometheus, with what its library tells of the
// process and of Go.
func Handler(sources ...Source) http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), exposed(sources))
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{EnableOpenMetrics: true, MaxRequestsInFlight: 4})
}

// exposed is a collector of what the sources have.
type exposed []Source

// Describe implements [prometheus.Collector]: what there is is known only when it is
// collected.
func (exposed) Describe(chan<- *prometheus.Desc) {}

// Collect implements [prometheus.Collector].
func (e exposed) Collect(to chan<- prometheus.Metric) {
	for _, source := range e {
		for _, m := range source() {
			expose(m, to)
		}
	}
}

func expose(m Metric, to chan<- prometheus.Metric) {
	desc := prometheus.NewDesc(m.PrometheusName(), m.Help, underscored(m.Labels), nil)
	for _, p := range m.Points {
		switch m.Kind {
		case Histogram:
			buckets, sum := make(map[float64]uint64), uint64(0)
			for i, bound := range m.Bounds {
				sum += p.Counts[i]
				buckets[bound] = sum
			}
			to <- prometheus.MustNewConstHistogram(desc, p.Count(), p.Sum, buckets, p.Labels...)
		case Counter:
			to <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, p.Value, p.Labels...)
		default:
			to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, p.Value, p.Labels...)
		}
	}
}

// PrometheusName is the metric's name as Prometheus has it: with the unit, and _total for
// what only rises (OpenTelemetry, Prometheus compatibility).
func (m Metric) PrometheusName() string {
	name := strings.ReplaceAll(m.Name, ".", "_")
	switch m.Unit {
	case "s":
		name += "_seconds"
	case "By":
		name += "_bytes"
	}
	if m.Kind == Counter {
		name += "_total"
	}
	return name
}

func underscored(names []string) []string {
	all := make([]string, len(names))
	for i, n := range names {
		all[i] = strings.ReplaceAll(n, ".", "_")
	}
	return all
}
