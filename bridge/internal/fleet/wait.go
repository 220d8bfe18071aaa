package fleet

import (
	"context"
	"slices"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/product"
)

// No request waits for a server that it does not name, with one exception: all listings
// together wait this long for a server that starts and was never listed. The longer time holds
// while there is nothing else to list: some clients list once, and cannot use an empty list.
const (
	briefWait = time.Second
	longWait  = 8 * time.Second
)

// Tools returns all tools. It waits as [Fleet.Settle] does.
func (f *Fleet) Tools(ctx context.Context) []*gate.Tool { return f.Features(ctx, gate.FeatureTool) }

// Features implements [gate.Upstream]. It waits as [Fleet.Settle] does, but for methods, which
// are not listed.
func (f *Fleet) Features(ctx context.Context, one gate.Feature) []*gate.Tool {
	if one != gate.FeatureMethod {
		f.refresh(ctx, one)
		f.settle(ctx)
	}
	return f.KnownFeatures(one)
}

// KnownFeatures returns what is known now of a feature, such as tools, and waits for nothing.
func (f *Fleet) KnownFeatures(one gate.Feature) []*gate.Tool { return f.catalog.Load().known(one) }

func (c *catalog) known(one gate.Feature) []*gate.Tool {
	if one == gate.FeatureTool {
		return c.tools
	}
	return c.more.list(one)
}

// Skills returns all skills, also those that are quarantined, and waits for nothing.
func (f *Fleet) Skills() []*gate.Tool { return f.catalog.Load().more.skills.all }

// Settle waits as a listing does: for servers that start and were never listed, and for
// listings that must not be kept, for a few seconds at most. With the context that it returns
// nothing waits for servers any more.
func (f *Fleet) Settle(ctx context.Context) context.Context {
	f.refresh(ctx, gate.FeatureTool)
	f.settle(ctx)
	return context.WithValue(ctx, settledKey{}, true)
}

// Offering returns what any server offers, also while it lists none. It waits as a listing does,
// until ctx ends at most. What is not known then counts as offered, because a client hears only
// once what there is, and asks for nothing else.
func (f *Fleet) Offering(ctx context.Context) mcp.Offering {
	if !f.settle(ctx) {
		return mcp.AllOffered
	}
	more := f.catalog.Load().more
	return mcp.Offering{
		Prompts: more.offers[gate.FeaturePrompt], Resources: more.offers[gate.FeatureResource] || len(more.pages) > 0 || more.skills.has, Completions: more.completes,
		Logging: more.logs, Updates: more.updates, Apps: more.apps, Skills: more.skills.has,
	}
}

// Started waits, within ctx, until no server starts for the first time, whatever is known of it
// already, and all modules are compiled.
func (f *Fleet) Started(ctx context.Context) {
	for _, m := range f.snapshot() {
		if m.endpoint != nil {
			m.endpoint.Started(ctx)
		}
	}
	if f.cfg.Compiled != nil {
		select {
		case <-f.cfg.Compiled:
		case <-ctx.Done():
		}
	}
}

// settle waits until all servers are listed, or the time for that is over, and reports whether
// they are. Servers that are faulted are not waited for: watchers hear of their tools.
func (f *Fleet) settle(ctx context.Context) bool {
	for {
		waits := ctx.Value(settledKey{}) == nil && ctx.Err() == nil
		turn, starts := f.unlisted(waits)
		if len(starts) == 0 || !waits {
			return len(starts) == 0
		}
		wait := longWait
		if f.catalog.Load().lists(f.cfg.Pins) {
			wait = briefWait
		}
		i := slices.IndexFunc(starts, func(s start) bool { return time.Since(s.since) < wait })
		if i < 0 {
			return false
		}
		timer := time.NewTimer(wait - time.Since(starts[i].since))
		select {
		case <-starts[i].over:
		case <-turn:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// A start is that of a server that was never listed, or of the modules.
type start struct {
	over  <-chan struct{}
	since time.Time // since when listings wait for it
}

// unlisted returns the starts that are under way, and what is closed with the next change.
// waits says that the caller waits for them.
func (f *Fleet) unlisted(waits bool) (turn <-chan struct{}, all []start) {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-f.cfg.Compiled:
	default:
		if waits && f.compiling.IsZero() {
			f.compiling = time.Now()
		}
		if f.cfg.Compiled != nil {
			all = append(all, start{f.cfg.Compiled, f.compiling})
		}
	}
	for _, m := range f.roster.members {
		if m.endpoint == nil {
			continue
		}
		if over, since := m.endpoint.Unlisted(waits); over != nil {
			all = append(all, start{over, since})
		}
	}
	return f.turn, all
}

// lists reports whether anything can be listed, apart from the gateway's own tools. Nil pins approve of
// all.
func (c *catalog) lists(pins Pins) bool {
	own := []string{product.CatalogServer, product.JobsServer, product.GatewayServer, product.LocalServer}
	for _, one := range []gate.Feature{gate.FeatureTool, gate.FeaturePrompt, gate.FeatureResource, gate.FeatureTemplate} {
		if slices.ContainsFunc(c.known(one), func(t *gate.Tool) bool {
			return !slices.Contains(own, t.Name.Server) && (pins == nil || one == gate.FeatureResource || pins.Check(t) == nil)
		}) {
			return true
		}
	}
	return false
}
