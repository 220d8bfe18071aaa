package gateway

import (
	"context"
	"errors"
	"net/http"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/fleet"
	"github.com/wasmgate/wasmgate/bridge/internal/host"
	"github.com/wasmgate/wasmgate/bridge/internal/host/dispatch"
	"github.com/wasmgate/wasmgate/bridge/internal/host/transport"
	"github.com/wasmgate/wasmgate/bridge/internal/local"
	"github.com/wasmgate/wasmgate/bridge/internal/player"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/session"
	"github.com/wasmgate/wasmgate/internal/product"
	"github.com/wasmgate/wasmgate/internal/structure"
	"github.com/wasmgate/wasmgate/policy"
	"github.com/wasmgate/wasmgate/policy/study"
)

// New builds a gateway. No server is connected yet: see [Gateway.Start] and
// [Gateway.Connect]. It must be closed, and lives until then, whatever becomes of ctx.
// [AsError] makes an [*Error] of its error.
func New(ctx context.Context, cfg Config) (*Gateway, error) {
	panics := cfg.Log
	if err := cfg.check(); err != nil {
		return nil, err
	}
	g := &Gateway{cfg: cfg}
	g.life, g.end = context.WithCancel(context.WithoutCancel(ctx))
	if cfg.Replay != nil {
		g.player = player.New(*cfg.Replay)
	}
	g.policies.log = cfg.Log
	g.machine = machine{cfg: &g.cfg, life: g.life, serving: &g.serving}
	g.locals = locals{
		cfg: &g.cfg, journal: &g.journal, checking: &g.checking, machine: &g.machine, player: g.player, panics: panics,
		life: g.life, serving: &g.serving, compiling: compiling{done: make(chan struct{})},
	}
	g.jobs = jobServer{locals: &g.locals, hold: g.held.begin}
	if err := g.build(ctx); err != nil {
		return nil, errors.Join(err, g.Close(ctx))
	}
	modules := g.locals.waiting()
	if len(modules) == 0 {
		close(g.locals.compiling.done)
	}
	g.serving.Go(func() { g.locals.compile(modules) })
	return g, nil
}

func (g *Gateway) build(ctx context.Context) error {
	engine, err := policy.Load(ctx, g.cfg.Policy.Files, g.cfg.Policy.Options)
	if err != nil {
		return err
	}
	g.policies.use(ctx, engine)
	checked, err := newChecks(&g.cfg, g.cfg.Seal)
	if err != nil {
		return err
	}
	g.checking.now.Store(checked)
	g.settings = newSettings(g.cfg)
	if err := g.journal.open(&g.cfg, g.checking.hide); err != nil {
		return err
	}
	g.policies.shadow = study.NewShadow(func(d study.Difference) { g.journal.noteDifference(d, g.gate.Parts().Snapshot) })
	g.serving.Go(func() { g.policies.shadow.Run(g.life) })
	recorder := newRecorders(&g.cfg, g.journal.audit, g.policies.shadow, &g.broken)
	if g.pins, err = newPins(g.cfg.Pins, &g.journal); err != nil {
		return err
	}
	if err := g.jobs.open(ctx, &g.cfg); err != nil {
		return err
	}
	kept := g.cfg.Sessions
	kept.Inherit = !g.cfg.OneSession
	g.sessions.Sessions, g.sessions.one = session.New(kept), g.cfg.OneSession
	g.newAgents()
	if err := g.newFleet(ctx); err != nil {
		return err
	}
	if g.asking, err = newQueue(&g.cfg, recorder); err != nil {
		return err
	}
	parts := gate.Parts{
		Approver: approver(g.asking, g.cfg.Approvals), Pins: gatePins(g.pins), Upstream: g.fleet, Recorder: recorder,
		Structure: structure.Of, Echoes: &g.sessions.echoes, Sessions: g.sessions.Sessions, Limiter: g.settings.limits,
	}
	if kept.Shared != nil {
		parts.Renew = g.sessions.Renew
	}
	checked.in(&parts)
	g.policies.decide(&parts, engine)
	if g.gate, err = gate.New(parts); err != nil {
		return err
	}
	return g.newHost()
}

func (g *Gateway) newFleet(ctx context.Context) error {
	relays := make(map[string][]options.LocalTool)
	if g.cfg.Catalog != CatalogOff {
		relays[product.CatalogServer] = g.catalogTools()
	}
	if g.jobs.offered = g.cfg.Jobs != nil && g.cfg.Jobs.Offer; g.jobs.offered {
		relays[product.JobsServer] = g.jobs.tools()
	}
	if g.locals.proposes = g.cfg.Propose; g.locals.proposes {
		relays[product.GatewayServer] = local.ProposeTools()
	}
	locals, err := g.locals.open(ctx, relays)
	if err != nil {
		return err
	}
	stubs, err := stubs(&g.cfg, g.player, g.checking.toolOptions())
	if err != nil {
		return err
	}
	locals = append(locals, stubs...)
	var servers []options.Endpoint
	for _, s := range g.cfg.Servers {
		if !g.player.Stubs(s.Server) {
			servers = append(servers, g.endpoint(ctx, s))
		}
	}
	g.fleet, err = fleet.New(fleet.Config{
		Locals: locals, Servers: servers, Agents: g.agents, Player: g.player, HostTools: g.cfg.HostTools, Pins: fleetPins(g.pins, g.settings.guests), Groups: g.cfg.Groups, Log: g.cfg.Log,
		Compiled: g.locals.compiling.done, Memory: newMemory(&g.cfg, g.pins),
	})
	g.locals.fleet = g.fleet
	return err
}

func (g *Gateway) newHost() error {
	var err error
	g.host, err = host.New(host.Config{
		Config: dispatch.Config{
			Do:           g.do,
			Tools:        g.gate.Tools,
			Features:     g.gate.Features,
			AppTools:     g.gate.AppTools,
			OpenApps:     g.sessions.openApps,
			LoadedSkills: g.sessions.loadedSkills,
			Shown: func(ctx context.Context, c gate.Call, tools []*gate.Tool) error {
				return g.gate.Shown(ctx, g.sessions.place(c), tools)
			},
			Offering:     g.fleet.Offering,
			Fresh:        g.fleet.Fresh,
			Lookup:       g.fleet.Lookup,
			Instructions: g.fleet.Instructions,
			Known: func(ctx context.Context, who *gate.Principal, f gate.Feature) ([]*gate.Tool, error) {
				return g.gate.Visible(ctx, who, g.fleet.KnownFeatures(f))
			},
			Log:         g.cfg.Log,
			Connect:     g.cfg.Connect,
			Brief:       func() bool { return g.settings.catalogMode() == CatalogOnly },
			Seal:        g.cfg.Seal,
			Jobs:        g.jobs.Runner,
			Recall:      g.recall,
			SetLevel:    g.fleet.Sessions.SetLevel,
			Unsubscribe: g.fleet.Sessions.Unsubscribe,
			Clean:       g.gate.Tell,
			PeerChanged: g.fleet.Sessions.PeerChanged,
			Began:       g.sessions.begin,
			Ended:       g.endSession,
			Lasted:      g.cfg.SessionLasted,
		},
		Access: transport.Access{
			Principal:   g.cfg.Principal,
			Revocations: g.held.revocations,
			Challenge:   g.cfg.Challenge,
			Who:         g.cfg.Who,
			Group:       g.Operator().HasGroup,
		},
		Terms: g.terms(&g.cfg),
	})
	if err != nil {
		return err
	}
	g.fleet.Watch(func(l status.Lists) { g.host.ListsChanged(l.Tools, l.Prompts, l.Resources) })
	g.fleet.Sessions.OnNotice(g.host.Notify)
	g.fleet.Watch(func(status.Lists) { g.journal.noteServers(g.fleet.Status()) })
	g.mux = http.NewServeMux()
	g.mux.Handle("/mcp", g.host)
	g.mux.Handle("/mcp/{"+transport.GroupParam+"}", g.host)
	g.Operator().HandleHealth(g.mux)
	return nil
}
