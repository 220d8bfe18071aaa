package telemetry

import (
	"encoding/binary"
	"math"
	"math/rand/v2"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/tracing"
)

// A Sampler places calls in traces and chooses those whose spans are exported.
type Sampler struct {
	never       bool
	below       uint64 // of 63 bits of a trace's ID: what is sampled
	trustParent bool
}

// NewSampler returns a Sampler of this part of the calls, from 0 to 1. With trustParent a
// call in a trace of its client's is sampled if that is, and only then.
func NewSampler(ratio float64, trustParent bool) *Sampler {
	return &Sampler{never: ratio <= 0, below: uint64(math.Min(1, ratio) * (1 << 63)), trustParent: trustParent}
}

// Place returns where a call stands: its parent is what its _meta names (MCP 2026-07-28,
// basic, "OpenTelemetry trace context"), else the traceparent of its HTTP request.
func (s *Sampler) Place(c *gate.Call) tracing.Context {
	t, ok := parent(c)
	switch {
	case !ok:
		id := rand.Uint64()
		if s.never || id>>1 >= s.below {
			return tracing.Context{Header: c.Trace.Header}
		}
		binary.BigEndian.PutUint64(t.ID[:8], rand.Uint64())
		binary.BigEndian.PutUint64(t.ID[8:], id)
		t.Sampled = true
	case !s.trustParent:
		t.Sampled = !s.never && binary.BigEndian.Uint64(t.ID[8:])>>1 < s.below
	}
	if t.Sampled {
		tracing.Mint(&t)
	}
	t.Header = c.Trace.Header
	return t
}

// parent returns the trace that a call is in by what came with it.
func parent(c *gate.Call) (tracing.Context, bool) {
	if raw := c.Meta.Get("traceparent").Raw(); len(raw) > 2 && raw[0] == '"' {
		if t, ok := tracing.Parse(raw[1 : len(raw)-1]); ok {
			return t, true
		}
	}
	return tracing.Parse(c.Trace.Header)
}
