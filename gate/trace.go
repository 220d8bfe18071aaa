package gate

import "github.com/wasmgate/wasmgate/gate/tracing"

// within places a call that is made for the client of one in t.
func within(t tracing.Context) tracing.Context {
	if !t.Sampled {
		return t
	}
	t.Parent = t.Client
	tracing.Mint(&t)
	return t
}
