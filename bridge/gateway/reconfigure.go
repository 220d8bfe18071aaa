package gateway

import (
	"context"
	"errors"
	"fmt"

	"github.com/wasmgate/wasmgate/bridge/internal/host"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/approval"
	"github.com/wasmgate/wasmgate/internal/product"
)

// check puts other checks in place, and what change says. The caller holds setting.
func (g *Gateway) check(next *checks, change func(*gate.Parts)) error {
	parts := g.gate.Parts()
	next.in(&parts)
	change(&parts)
	if err := g.gate.Swap(parts); err != nil {
		return err
	}
	g.checking.now.Store(next)
	return nil
}

// Reconfigure replaces how calls are checked by what next says, all at once:
//
//   - Name, Version, Description, Sanitize, Inputs, TrustPrompt, Propose, Pins, Origins, Hosts and Drain
//   - Approvals, except what New sets, and whether there are any
//   - Jobs, if there are any, but not where they are kept
//   - the TTL of Sessions, and Limits except those of servers
//   - Snapshot, by which each record names what decided it
//
// If p is not nil, it replaces Policy, and clients are notified. Calls under way end with what they
// began. Everything else in next counts only for New, or has a method of its own. The change is in
// the audit log before it is done. On an error all stays as it was; on an error of the tools of
// jobs, only these stay as they were.
func (g *Gateway) Reconfigure(ctx context.Context, next Config, p *Policy) error {
	g.setting.Lock()
	defer g.setting.Unlock()
	if (next.Approvals == nil) != (g.cfg.Approvals == nil) {
		return errors.New("gateway: approvals cannot be switched on or off while the gateway runs")
	}
	now, err := newChecks(&next, g.cfg.Seal)
	if err != nil {
		return err
	}
	engine := g.policies.engine.Load()
	if p != nil {
		if engine, err = g.policies.load(ctx, *p, &g.journal); err != nil {
			return err
		}
	}
	if err := g.journal.noteSetting("how calls are checked"); err != nil {
		return err
	}
	pinned, err := changePins(g.pins, next.Pins)
	if err != nil {
		return err
	}
	before, tasks := g.checking.now.Load(), g.host.OffersTasks()
	if err := g.check(now, func(parts *gate.Parts) {
		g.policies.decide(parts, engine)
		parts.Approver, parts.Pins = approver(g.asking, next.Approvals), gatePins(g.pins)
	}); err != nil {
		return err
	}
	g.policies.use(ctx, engine)
	if pinned {
		g.fleet.Refresh()
	}
	if next.Approvals != nil {
		g.asking.Change(*next.Approvals)
	}
	g.sessions.SetTTL(next.Sessions.TTL)
	g.settings.setLimits(next.Limits)
	g.host.Change(g.terms(&next))
	if !now.clean.Same(before.clean) {
		if err := g.fleet.Relist(); err != nil {
			g.cfg.Log.Warn("lists were not changed", "error", err)
		}
	}
	if p != nil || tasks != g.host.OffersTasks() { // else nothing of it decides what is offered
		g.host.Changed()
	}
	if err := g.jobs.change(next.Jobs); err != nil {
		return fmt.Errorf("jobs: their tools keep their earlier definitions: %w", err)
	}
	if err := g.locals.setPropose(next.Propose); err != nil {
		return fmt.Errorf("the tool gateway__propose keeps its earlier definition: %w", err)
	}
	return nil
}

// terms are what the host holds clients to.
func (g *Gateway) terms(c *Config) host.Terms {
	return host.Terms{
		Name: c.Name, Version: c.Version, Description: c.Description, MaxBody: c.Limits.Body, Origins: c.Origins, Hosts: c.Hosts, Drain: c.Drain,
		Asks: g.cfg.Approvals != nil && g.asking.Uses(approval.Client), NoTasks: c.Jobs == nil || c.Jobs.NoTasks,
	}
}

// SetGroups puts other groups in the place of Config.Groups, and tells the clients, which
// stay connected, as the servers do.
func (g *Gateway) SetGroups(groups options.Groups) error {
	g.setting.Lock()
	defer g.setting.Unlock()
	if err := g.journal.noteSetting("groups"); err != nil {
		return err
	}
	g.settings.groups.Store(&groups)
	g.fleet.Regroup(groups)
	return nil
}

// SetCatalog puts another mode in the place of Config.Catalog, and tells the clients.
func (g *Gateway) SetCatalog(mode CatalogMode) error {
	g.setting.Lock()
	defer g.setting.Unlock()
	before := g.settings.catalogMode()
	if err := mode.check(); err != nil || mode == before {
		return err
	}
	if err := g.journal.noteSetting("catalog"); err != nil {
		return err
	}
	switch CatalogOff {
	case mode:
		if err := g.fleet.Remove(product.CatalogServer); err != nil {
			return err
		}
	case before:
		if err := g.locals.add(product.CatalogServer, g.catalogTools()); err != nil {
			return err
		}
	}
	g.settings.catalog.Store(&mode)
	g.host.Changed()
	return nil
}

// SetOrder lists the servers in the order of ids, those too that come later; the others,
// as those of functions, come first, as they came. Of two that have one resource, template or method, the first has it.
func (g *Gateway) SetOrder(ids []string) error {
	g.setting.Lock()
	defer g.setting.Unlock()
	if err := g.journal.noteSetting("order of servers"); err != nil {
		return err
	}
	g.fleet.Reorder(ids)
	return nil
}
