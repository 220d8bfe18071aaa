package bridge

import (
	"context"

	"github.com/wasmgate/wasmgate/gate"
)

// LocalFeatures are what a local server offers beside tools.
type LocalFeatures struct {
	Prompts, Resources []gate.Doc // definitions, as prompts/list and resources/list have them
	// Call gets a prompt or reads a resource, as [LocalTool.Call] calls a tool.
	Call func(ctx context.Context, c *gate.Call, p gate.Permit) (gate.Result, error)
}

// NewLocalWith returns a server of tools and of more than tools. What of that cannot be
// offered is quarantined.
func NewLocalWith(more LocalFeatures, server string, o ToolOptions, tools ...LocalTool) (*Local, error) {
	l, err := NewLocal(server, o, tools...)
	if err != nil || len(more.Prompts)+len(more.Resources) == 0 {
		return l, err
	}
	s := &serverFeatures{server: server, options: o, offers: map[gate.Feature]bool{
		gate.FeaturePrompt: len(more.Prompts) > 0, gate.FeatureResource: len(more.Resources) > 0,
	}}
	s.add(gate.FeaturePrompt, more.Prompts)
	s.add(gate.FeatureResource, more.Resources)
	l.features, l.more = s, more.Call
	return l, nil
}
