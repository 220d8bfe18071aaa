// Package telemetry reports to monitoring systems how a gateway does: it counts calls by the
// names of OpenTelemetry's conventions for MCP, and exports the counts.
//
// [Calls] counts on the way of a call, with atomics of its own and nothing else: no
// library is called there, and a series that exists already costs no allocation. What is
// counted becomes [Metric] values only when an exporter asks: [Handler] for Prometheus.
//
// No label holds a principal, a session, a URI or an argument, and names that a client
// made up are counted as [Other]. A budget bounds all series together: see [NewCalls].
//
// Records come from internal/background, which also says where exports go.
//
//	calls.go       counts records; family.go has the series and their budget, metric.go what they become
//	sampler.go     places a call in a trace, and says whether it is exported
//	spans.go       keeps the records of sampled calls until they are exported; span.go makes the spans
//	prometheus.go  answers a scrape
//	export.go      sends metrics and spans; otlp.go is OTLP over HTTP, which internal/background/ship sends logs by
package telemetry
