package gateway

import (
	"context"

	"github.com/wasmgate/wasmgate/gate"
)

// Tools returns the tools that a principal is offered.
func (g operator) Tools(ctx context.Context, who *gate.Principal) ([]*gate.Tool, error) {
	return g.gate.Tools(ctx, who)
}

// Features returns what a principal is offered of a feature: prompts, say.
func (g operator) Features(ctx context.Context, who *gate.Principal, f gate.Feature) ([]*gate.Tool, error) {
	return g.gate.Features(ctx, who, f)
}

// openApps names the servers with an app that is open in a session.
func (g *Gateway) openApps(ctx context.Context, k gate.SessionKey) ([]string, error) {
	s, err := g.sessions.View(ctx, g.session(k))
	return s.OpenApps(), err
}

// loadedSkills names the skills that a session has loaded.
func (g *Gateway) loadedSkills(ctx context.Context, k gate.SessionKey) ([]string, error) {
	s, err := g.sessions.View(ctx, g.session(k))
	return s.LoadedSkills(), err
}

// known is as Features of the gate, and waits for no server.
func (g *Gateway) known(ctx context.Context, who *gate.Principal, f gate.Feature) ([]*gate.Tool, error) {
	return g.gate.Visible(ctx, who, g.fleet.KnownFeatures(f))
}

// Revoked ends what principals have under way whose credentials were revoked: calls, also
// those that wait for their clients, outlive their requests, or are still arriving. Whose is kept, and asked again. Streams of notifications end
// with their requests, which are their host's to end; later requests are for
// Config.Principal to refuse.
func (g operator) Revoked(whose func(*gate.Principal) bool) {
	g.held.revoke(whose)
}
