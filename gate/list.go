package gate

import (
	"context"
	"fmt"
	"slices"

	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/internal/panicked"
)

// Tools returns the tools that who may call, or might with the right arguments.
// Those whose definitions are not approved are none.
func (g *Gate) Tools(ctx context.Context, who *Principal) ([]*Tool, error) {
	return g.Features(ctx, who, FeatureTool)
}

// Features returns the tools, or the prompts, resources or templates, that who may
// use, or might with the right arguments. Those whose definitions are not approved
// are none.
func (g *Gate) Features(ctx context.Context, who *Principal, f Feature) ([]*Tool, error) {
	return g.list(ctx, who, func(p *Parts) []*Tool { return withoutAppTools(p.Upstream.Features(ctx, f)) })
}

// Visible returns those of the gate's tools, or of what else its upstream has, that
// Features would return of them. It waits for no server.
func (g *Gate) Visible(ctx context.Context, who *Principal, all []*Tool) ([]*Tool, error) {
	return g.list(ctx, who, func(*Parts) []*Tool { return withoutAppTools(all) })
}

// withoutAppTools leaves out what no model may see.
func withoutAppTools(all []*Tool) []*Tool {
	appOnly := func(t *Tool) bool { return t.AppOnly }
	if !slices.ContainsFunc(all, appOnly) {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), appOnly)
}

func (g *Gate) list(ctx context.Context, who *Principal, from func(*Parts) []*Tool) (tools []*Tool, err error) {
	p := g.parts.Load()
	defer func() {
		if v := recover(); v != nil {
			tools, err = nil, fmt.Errorf("list features: %w", panicked.Error(v))
		}
	}()
	all := who.offered(p.approved(from(p)))
	visible, err := p.Authorizer.Visible(ctx, who, all)
	if err != nil {
		return nil, fmt.Errorf("list features: %w", err)
	}
	if len(visible) != len(all) {
		return nil, fmt.Errorf("list features: %d verdicts for %d of them", len(visible), len(all))
	}
	for i, t := range all {
		if visible[i] {
			tools = append(tools, seenBy(ctx, who, t, p.Authorizer))
		}
	}
	return tools, nil
}

// seenBy returns the tool as who should see it.
func seenBy(ctx context.Context, who *Principal, t *Tool, a Authorizer) *Tool {
	if t.Feature != FeatureTool {
		return t
	}
	d := a.Offer(ctx, who, t)
	if d.Kind() != doc.Object || &d.Raw()[0] == &t.Definition.Raw()[0] {
		return t
	}
	its := *t
	its.Definition = d
	return &its
}

// AppTools returns the tools that servers have only for their apps, and that who may call.
func (g *Gate) AppTools(ctx context.Context, who *Principal) ([]*Tool, error) {
	return g.list(ctx, who, func(p *Parts) []*Tool {
		return slices.DeleteFunc(slices.Clone(p.Upstream.Features(ctx, FeatureTool)), func(t *Tool) bool { return !t.AppOnly })
	})
}
