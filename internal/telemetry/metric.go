package telemetry

import "time"

// Other is the label of everything that has no series of its own: a name that the gateway does not
// know, or one beyond the budget.
const Other = "_other"

// A Kind is what the values of a [Metric] do.
type Kind int

// The kinds of metrics.
const (
	Gauge     Kind = iota // goes up and down
	Counter               // only rises, from the start of the gateway on
	Histogram             // counts values by their size
)

// A Metric is the state of an instrument at one moment, for any exporter.
type Metric struct {
	Name   string // as OpenTelemetry writes it, such as mcp.server.operation.duration
	Help   string
	Unit   string // of UCUM: s, By, or what is counted, such as {call}
	Kind   Kind
	Labels []string  // names of attributes, as OpenTelemetry writes them
	Bounds []float64 // of a histogram: the upper bounds of its buckets, in Unit
	Points []Point
}

// A Point is the value of a [Metric] for one set of labels.
type Point struct {
	Labels []string // values, in the order of Metric.Labels
	Value  float64  // of a gauge or a counter
	Counts []uint64 // of a histogram: values in each bucket, and in one beyond the last bound
	Sum    float64  // of a histogram, in Metric.Unit
}

// Count is how many values a point of a histogram has.
func (p Point) Count() (n uint64) {
	for _, c := range p.Counts {
		n += c
	}
	return n
}

// NewGauge returns a gauge without labels.
func NewGauge(name, help, unit string, value float64) Metric {
	return Metric{Name: name, Help: help, Unit: unit, Points: []Point{{Value: value}}}
}

// One is the only point of a metric, or one with its labels.
func One(value float64, labels ...string) []Point {
	return []Point{{Labels: labels, Value: value}}
}

// Places are the gauges of places for calls: taken, waited for, and all.
func Places(taken, waiting, most int64) []Metric {
	return []Metric{
		NewGauge("wasmgate.places.taken", "Calls that have a slot at servers (limits.concurrent).", "{call}", float64(taken)),
		NewGauge("wasmgate.places.waiting", "Calls that wait for a slot.", "{call}", float64(waiting)),
		NewGauge("wasmgate.places", "Slots for calls at servers.", "{call}", float64(most)),
	}
}

// Truth is 1 for true and 0 for false, as gauges say it.
func Truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// operationBounds are those of the conventions for operations of MCP, and three below
// them, since most calls to a server on this machine take less.
var operationBounds = []float64{.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30, 60, 120, 300}

// ownBounds are those of what the gateway itself takes.
var ownBounds = []float64{.00002, .00005, .0001, .0002, .0005, .001, .002, .005, .01, .05, .25}

// sessionBounds are those of how long a client stays connected.
var sessionBounds = []float64{1, 10, 60, 300, 900, 3600, 4 * 3600, 24 * 3600}

// waitBounds are those of what a person takes.
var waitBounds = []float64{1, 5, 15, 60, 300, 900, 3600}

// memoryBounds are those of the memory of a module, in bytes.
var memoryBounds = []float64{1 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20, 1 << 30}

// perSecond makes seconds of the nanoseconds in which durations are summed up.
const perSecond = float64(time.Second)
