package app

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/confine"
	"github.com/wasmgate/wasmgate/internal/app/naming"
	"github.com/wasmgate/wasmgate/internal/app/translation"
	"github.com/wasmgate/wasmgate/internal/background"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/control"
	"github.com/wasmgate/wasmgate/internal/files/state"
	"github.com/wasmgate/wasmgate/internal/modules"
	"github.com/wasmgate/wasmgate/internal/policyfiles"
	"github.com/wasmgate/wasmgate/internal/web"
)

// New builds the gateway of a configuration. The error wraps [control.ErrHeld]
// if another process has it already. Only, if it is not empty, names the only
// server that is needed.
func New(ctx context.Context, cfg *config.Config, log *slog.Logger, only string) (*App, error) {
	return newApp(ctx, cfg, log, only, nil)
}

// newApp is New, with somebody to be told what the only server uses, if not nil.
func newApp(ctx context.Context, cfg *config.Config, log *slog.Logger, only string, learn func(confine.Access)) (_ *App, err error) {
	a := &App{cfg: cfg, log: log, bodyTime: web.BodyTime, lookAgain: lookAgain, servers: &translation.Servers{Modules: modules.Reader{Dir: translation.Kept(cfg), Log: log}, Learn: learn}}
	a.policy.Store(policyfiles.New(cfg))
	a.shadow.Store(policyfiles.Shadow(cfg))
	a.bundles.Store(new(policyfiles.Bundles(nil).Renewed(cfg)))
	a.config.Store(&configState{read: time.Now(), cfg: cfg, files: configFiles(cfg)}) // before anything takes its time
	a.beside = background.New(cfg, log)
	if a.lock, err = control.Acquire(cfg.State); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			a.lock.Release()
		}
	}()
	if w := a.openState(); w != "" {
		log.Warn(w)
	}
	a.records = recordsOf(cfg)
	if err = a.openShared(ctx); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.closeShared(ctx))
		}
	}()
	if _, err = readGrants(ctx, a); err != nil {
		return nil, err
	}
	if a.senders, err = newSenders(ctx, cfg, a.records); err != nil {
		return nil, err
	}
	if err := a.newLogins(cfg); err != nil {
		return nil, err
	}

	gc, err := a.translate(ctx, only)
	if err != nil {
		return nil, err
	}
	if gc.Policy, err = a.firstPolicy(ctx); err != nil {
		return nil, err
	}
	if a.shared.Store != nil {
		gc.Sessions.Shared, gc.Sessions.Reader = a.shared.Sessions(), a.shared.Reader()
		gc.Limits.Rates = a.shared.Rates()
		if gc.KV, err = a.shared.ModuleValues(); err != nil {
			return nil, err
		}
		if gc.Approvals.Store, err = a.shared.Approvals(); err != nil {
			return nil, err
		}
		gc.Jobs.Open = func(context.Context) (gateway.JobStore, error) { return a.shared.Jobs() }
		gc.Sessions.Follow, gc.Sessions.Followed = a.follow, a.shared.followed.Load
	}
	gc.Observe, gc.Trace, gc.Baggage = a.beside.Observe, a.beside.Place, a.beside.Baggage
	if a.gateway, err = gateway.New(ctx, gc); err != nil {
		return nil, err
	}
	if a.shared.Store != nil {
		if err := a.gateway.Operator().SharePins(a.shared.document); err != nil {
			return nil, errors.Join(err, a.gateway.Close(ctx))
		}
	}
	if a.shared.peers != nil {
		a.shared.homes.Gateway = a.gateway.Operator()
		a.gateway.Operator().Share(a.shared.peers)
	}
	a.gateway.Operator().SetRequired(translation.Required(cfg))
	if err := errors.Join(a.stayPaused(ctx), a.noteBundles()); err != nil {
		return nil, errors.Join(err, a.gateway.Close(ctx))
	}
	a.reloadShadow(ctx)
	a.logLeftOut()
	return a, nil
}

// Close ends the servers and gives the state folder back. The end of ctx does
// not keep it from that. It may be called again.
func (a *App) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	return errors.Join(a.gateway.Close(ctx), a.closeShared(ctx), a.lock.Release())
}

// translate makes a gateway's configuration of a file's. Only, if it is not empty, names
// the only server that is needed.
func (a *App) translate(ctx context.Context, only string) (gateway.Config, error) {
	gc, err := a.translateGate()
	if err != nil {
		return gateway.Config{}, err
	}
	a.translateServers(ctx, only, &gc)
	gc.Groups, gc.Catalog = a.cfg.AllGroups(), translation.CatalogModes[a.cfg.Catalog.Mode]
	gc.Embedded, gc.Modules, gc.LeaveOut = a.cfg.EmbeddedTools(), a.servers.Modules.All(ctx, a.cfg), true
	if gc.Secrets, err = modules.Secrets(a.cfg); err != nil {
		return gateway.Config{}, err
	}
	return gc, translation.Replay(ctx, a.cfg, &gc)
}

// translateGate says who comes, what is checked, and what is kept.
func (a *App) translateGate() (gateway.Config, error) {
	c := a.cfg
	node, err := state.Node(c.State, c.Store.Node)
	if err != nil {
		return gateway.Config{}, err
	}
	seal, err := sealOf(c)
	if err != nil {
		return gateway.Config{}, err
	}
	who, err := naming.Principal(c, "")
	if err != nil {
		return gateway.Config{}, err
	}
	gc := a.checks(c, node)
	gc.Who, gc.Agents, gc.Principal, gc.Challenge = who, translation.AgentRules(c), a.sender, a.lacking
	gc.Connect = a.connect.Offer
	gc.Audit, gc.AuditOptions, gc.Seal = c.Audit.Path, a.beside.WithDocuments(translation.AuditOptions(c, node)), seal
	gc.SessionLasted = a.beside.SessionLasted
	gc.OneSession = translation.OnePerPrincipal(c)
	gc.CacheDir, gc.KVDir, gc.Log = filepath.Join(translation.Kept(c), "wasm"), filepath.Join(c.State, "kv"), a.log
	return gc, nil
}

// translateServers adds the servers that are enabled, and what is said of each.
func (a *App) translateServers(ctx context.Context, only string, gc *gateway.Config) {
	gc.Guests = make(map[string]gateway.Guest)
	for _, s := range translation.Enabled(a.cfg.Servers) {
		if only != "" && only != s.ID {
			continue
		}
		one := a.servers.Server(ctx, a.cfg, s)
		gc.Servers = append(gc.Servers, one.Endpoint)
		if one.Guest != nil {
			gc.Guests[s.ID] = *one.Guest
		}
	}
}

// checks says how calls are checked.
func (a *App) checks(c *config.Config, node string) gateway.Config {
	to := translation.Checks(c, node)
	to.Approvals = a.approvalOptions(c.Approvals, node)
	return to
}
