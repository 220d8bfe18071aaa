package gate

import "github.com/wasmgate/wasmgate/gate/tracing"

// A Trace says where a call stands in a trace over several programs (W3C Trace Context).
// The gate carries it, and decides nothing by it. The zero Trace is in none.
type Trace = tracing.Context

// within places a call that is made for the client of one in t.
func within(t Trace) Trace {
	if !t.Sampled {
		return t
	}
	t.Parent = t.Client
	tracing.Mint(&t)
	return t
}
