package local

import (
	"context"

	"github.com/wasmgate/wasmgate/bridge/internal/listing"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
)

// Features are what a local server offers in addition to tools.
type Features struct {
	Prompts, Resources []gate.Doc // definitions, as prompts/list and resources/list have them
	// Call gets a prompt or reads a resource, as [options.LocalTool.Call] calls a tool.
	Call func(ctx context.Context, c *gate.Call, p gate.Permit) (gate.Result, error)
}

// NewWith returns a server of tools and of more than tools. What of that cannot be
// offered is quarantined.
func NewWith(more Features, server string, o options.Tools, tools ...options.LocalTool) (*Server, error) {
	l, err := New(server, o, tools...)
	if err != nil || len(more.Prompts)+len(more.Resources) == 0 {
		return l, err
	}
	o.Vetted = true
	s := &listing.Features{Server: server, Options: o, Offers: map[gate.Feature]bool{
		gate.FeaturePrompt: len(more.Prompts) > 0, gate.FeatureResource: len(more.Resources) > 0,
	}}
	s.Add(gate.FeaturePrompt, more.Prompts)
	s.Add(gate.FeatureResource, more.Resources)
	l.features, l.more = s, more.Call
	return l, nil
}
