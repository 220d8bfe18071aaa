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
	"github.com/wasmgate/wasmgate/bridge/internal/player"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/session"
	"github.com/wasmgate/wasmgate/internal/structure"
	"github.com/wasmgate/wasmgate/policy"
)

// New builds a gateway. No server is connected yet: see [Gateway.Start] and
// [Gateway.Connect]. It must be closed, and lives until then, whatever becomes of ctx.
// [AsError] makes an [*Error] of its error.
func New(ctx context.Context, cfg Config) (*Gateway, error) {
	panics := cfg.Log
	if err := cfg.check(); err != nil {
		return nil, err
	}
	g := &Gateway{cfg: cfg, panics: panics}
	g.compiling.done = make(chan struct{})
	g.life, g.end = context.WithCancel(context.WithoutCancel(ctx))
	if err := g.build(ctx); err != nil {
		return nil, errors.Join(err, g.Close(ctx))
	}
	modules := g.waiting()
	if len(modules) == 0 {
		close(g.compiling.done)
	}
	g.serving.Go(func() { g.compile(modules) })
	return g, nil
}

func (g *Gateway) build(ctx context.Context) error {
	engine, err := policy.Load(ctx, g.cfg.Policy.Files, g.cfg.Policy.Options)
	if err != nil {
		return err
	}
	g.use(ctx, engine)
	checked, err := newChecks(&g.cfg, g.cfg.Seal)
	if err != nil {
		return err
	}
	g.now.Store(checked)
	g.settings = newSettings(g.cfg)
	if err := g.openAudit(g.hide); err != nil {
		return err
	}
	g.startShadow()
	recorder := g.recorders()
	if err := g.newPins(); err != nil {
		return err
	}
	if err := g.newJobs(ctx); err != nil {
		return err
	}
	kept := g.cfg.Sessions
	kept.Inherit = !g.cfg.OneSession
	g.sessions = session.New(kept)
	g.newAgents()
	if err := g.newFleet(ctx); err != nil {
		return err
	}
	if err := g.newQueue(recorder); err != nil {
		return err
	}
	parts := gate.Parts{
		Approver: g.approver(g.cfg.Approvals), Pins: g.gatePins(), Upstream: g.fleet, Recorder: recorder,
		Structure: structure.Of, Echoes: &g.echoes, Sessions: g.sessions, Limiter: g.limits,
	}
	if kept.Shared != nil {
		parts.Renew = g.sessions.Renew
	}
	checked.in(&parts)
	g.decide(&parts, engine)
	if g.gate, err = gate.New(parts); err != nil {
		return err
	}
	return g.newHost()
}

func (g *Gateway) newFleet(ctx context.Context) error {
	if g.cfg.Replay != nil {
		g.player = player.New(*g.cfg.Replay)
	}
	locals, err := g.newLocals(ctx)
	if err != nil {
		return err
	}
	stubs, err := g.stubs(g.toolOptions())
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
		Locals: locals, Servers: servers, Agents: g.agents, Player: g.player, HostTools: g.cfg.HostTools, Pins: g.fleetPins(), Groups: g.cfg.Groups, Log: g.cfg.Log,
		Compiled: g.compiling.done, Memory: g.memory(),
	})
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
			OpenApps:     g.openApps,
			LoadedSkills: g.loadedSkills,
			Shown:        g.shown,
			Offering:     g.fleet.Offering,
			Fresh:        g.fleet.Fresh,
			Lookup:       g.fleet.Lookup,
			Instructions: g.fleet.Instructions,
			Known:        g.known,
			Log:          g.cfg.Log,
			Connect:      g.cfg.Connect,
			Brief:        func() bool { return g.catalogMode() == CatalogOnly },
			Seal:         g.cfg.Seal,
			Jobs:         g.jobs,
			Recall:       g.recall,
			SetLevel:     g.fleet.Sessions.SetLevel,
			Unsubscribe:  g.fleet.Sessions.Unsubscribe,
			Clean:        g.gate.Tell,
			PeerChanged:  g.fleet.Sessions.PeerChanged,
			Began:        g.beginSession,
			Ended:        g.endSession,
			Lasted:       g.cfg.SessionLasted,
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
	g.fleet.Watch(func(status.Lists) { g.noteServers() })
	g.mux = http.NewServeMux()
	g.handleMCP(g.mux)
	g.Operator().HandleHealth(g.mux)
	return nil
}
