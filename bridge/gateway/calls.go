package gateway

import (
	"context"

	"github.com/wasmgate/wasmgate/gate"
)

// Tools returns the tools that a principal is offered.
func (g Operator) Tools(ctx context.Context, who *gate.Principal) ([]*gate.Tool, error) {
	return g.gate.Tools(ctx, who)
}

// Features returns what a principal is offered of a feature: prompts, say.
func (g Operator) Features(ctx context.Context, who *gate.Principal, f gate.Feature) ([]*gate.Tool, error) {
	return g.gate.Features(ctx, who, f)
}

// Revoked ends what principals have under way whose credentials were revoked: calls, also
// those that wait for their clients, outlive their requests, or are still arriving. Whose is kept, and asked again. Streams of notifications end
// with their requests, which are their host's to end; later requests are for
// Config.Principal to refuse.
func (g Operator) Revoked(whose func(*gate.Principal) bool) {
	g.held.revoke(whose)
}
