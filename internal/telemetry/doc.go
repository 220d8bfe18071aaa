// Package telemetry tells monitoring systems how a gateway does: it counts calls by the
// names of OpenTelemetry's conventions for MCP, and exports the counts.
//
// [Calls] counts on the way of a call, with atomics of its own and nothing else: no
// library is called there, and a series that exists already costs no allocation. What is
// counted becomes [Metric] values only when an exporter asks: [Handler] for Prometheus.
//
// No label holds a principal, a session, a URI or an argument, and names that a client
// made up are counted as [Other]. A budget bounds all series together: see [NewCalls].
package telemetry
