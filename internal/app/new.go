package app

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/confine"
	"github.com/wasmgate/wasmgate/internal/app/approvals"
	"github.com/wasmgate/wasmgate/internal/app/callers"
	"github.com/wasmgate/wasmgate/internal/app/calls"
	"github.com/wasmgate/wasmgate/internal/app/desks"
	"github.com/wasmgate/wasmgate/internal/app/exceptions"
	"github.com/wasmgate/wasmgate/internal/app/inventory"
	"github.com/wasmgate/wasmgate/internal/app/logins"
	"github.com/wasmgate/wasmgate/internal/app/naming"
	"github.com/wasmgate/wasmgate/internal/app/overview"
	"github.com/wasmgate/wasmgate/internal/app/paused"
	"github.com/wasmgate/wasmgate/internal/app/pins"
	"github.com/wasmgate/wasmgate/internal/app/policies"
	"github.com/wasmgate/wasmgate/internal/app/sessions"
	"github.com/wasmgate/wasmgate/internal/app/settings"
	"github.com/wasmgate/wasmgate/internal/app/translation"
	"github.com/wasmgate/wasmgate/internal/background"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/config/policydata"
	"github.com/wasmgate/wasmgate/internal/control"
	"github.com/wasmgate/wasmgate/internal/files/state"
	"github.com/wasmgate/wasmgate/internal/lock"
	"github.com/wasmgate/wasmgate/internal/login"
	"github.com/wasmgate/wasmgate/internal/modules"
	"github.com/wasmgate/wasmgate/internal/reference"
	"github.com/wasmgate/wasmgate/internal/scan/report"
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
	a := &App{cfg: cfg, log: log, bodyTime: web.BodyTime, servers: &translation.Servers{Modules: modules.Reader{Dir: translation.Kept(cfg), Log: log}, Learn: learn}}
	a.Settings = settings.New(cfg, log) // before anything takes its time
	a.beside = background.New(cfg, log)
	if a.lock, err = control.Acquire(cfg.State); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = a.lock.Release()
		}
	}()
	if w := overview.OpenState(cfg.State); w != "" {
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
	if err = a.begin(ctx); err != nil {
		return nil, err
	}

	gc, err := a.translate(ctx, only)
	if err != nil {
		return nil, err
	}
	if gc.Policy, err = a.Policies.First(ctx); err != nil {
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
	a.assemble()
	if a.shared.Store != nil {
		if err := a.gateway.Operator().Cluster().SharePins(func(name string) options.Document { return a.shared.document(name) }); err != nil {
			return nil, errors.Join(err, a.gateway.Close(ctx))
		}
	}
	if a.shared.peers != nil {
		a.shared.homes.Gateway = a.gateway.Operator().Cluster()
		a.gateway.Operator().Cluster().Share(a.shared.peers)
	}
	a.gateway.Operator().SetRequired(translation.Required(cfg))
	if err := errors.Join(a.Pauses.Restore(ctx), a.Policies.NoteBundles()); err != nil {
		return nil, errors.Join(err, a.gateway.Close(ctx))
	}
	a.Policies.LoadShadow(ctx)
	a.Settings.LogLeftOut()
	return a, nil
}

// begin makes the parts that a gateway needs before it is there.
func (a *App) begin(ctx context.Context) (err error) {
	a.Policies = policies.New(a.cfg)
	a.Policies.Config, a.Policies.Log = a.Settings.Config, a.log
	if a.Callers, err = callers.New(ctx, a.cfg, a.records.keys, a.records.revoked); err != nil {
		return err
	}
	a.Callers.Config, a.Callers.Later, a.Callers.Log = a.Settings.Config, a.shared.refusedTooSoon, a.log
	a.Approvals = &approvals.Approvals{Config: a.Settings.Config, Policies: a.Policies, Identify: a.Callers.Identify, Log: a.log}
	if a.shared.Store != nil {
		a.Policies.Shared, a.Approvals.Shared = a.shared.document(policydata.GrantsName), a.shared.document(glassName)
	}
	kept := logins.Vault(a.cfg)
	o := login.Options{Vault: kept}
	if err := a.shared.logins(a.cfg, &o); err != nil {
		return err
	}
	a.Logins = logins.New(a.cfg, o, a.Callers, a.Settings.Config, a.log)
	a.Callers.Logins = a.Logins.Kept
	a.Desk = desks.New(a.log)
	a.Nodes = &Nodes{&a.shared, a.Desk, a.Approvals}
	a.Approvals.Others = a.Nodes
	a.Settings.Servers, a.Settings.Approvals, a.Settings.Callers = a.servers, a.Approvals, a.Callers
	a.Settings.Logins, a.Settings.Policies, a.Settings.Background = a.Logins, a.Policies, a.beside
	a.servers.Reveal, a.servers.Authorize = reference.New(kept).Resolve, a.Logins.Authorize
	return nil
}

// assemble gives the parts their gateway.
func (a *App) assemble() {
	g := a.gateway.Operator()
	a.Policies.Gateway, a.Callers.Gateway, a.Approvals.Gateway, a.Logins.Gateway = g, g, g, g
	a.Calls = &calls.Calls{Gateway: g, Config: a.Settings.Config}
	a.Exceptions = exceptions.Exceptions{Gateway: g, Config: a.Settings.Config}
	a.Inventory = &inventory.Inventory{Gateway: g, Config: a.Settings.Config, Scan: func(ctx context.Context, server string) (*report.Report, error) {
		return report.Servers(ctx, a.gateway, server)
	}}
	a.Pins = &pins.Pins{Gateway: g, Config: a.Settings.Config, Shared: a.shared.Store != nil, Look: func() (lock.Look, error) { return report.Look(a.gateway) }, Log: a.log}
	a.Pauses = &paused.Pauses{Gateway: g, Document: a.records.paused, CatchUp: a.shared.catchUp}
	a.Sessions = sessions.Sessions{Gateway: g.Sessions()}
	a.Settings.Gateway = a.gateway
	a.Overview = &overview.Overview{
		Gateway: a.gateway, Start: a.cfg, Settings: a.Settings, Approvals: a.Approvals, Pins: a.Pins, Policies: a.Policies,
		Background: a.beside, Desk: a.Desk, URL: a.url,
	}
	if a.shared.Store != nil {
		a.Overview.Cluster = &a.shared
	}
	a.operations = a.table()
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
	gc := a.Settings.Checks(c, node)
	gc.Who, gc.Agents, gc.Principal, gc.Challenge = who, translation.AgentRules(c), a.Callers.Caller, a.Callers.Challenge
	gc.Connect = a.Logins.Connect.Offer
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

// Connect connects the servers and waits until each is ready or faulted.
func (a *App) Connect(ctx context.Context) error { return a.gateway.Connect(ctx) }
