package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/wasmgate/wasmgate/bridge"
	"github.com/wasmgate/wasmgate/bridge/dial"
	"github.com/wasmgate/wasmgate/bridge/lock"
	"github.com/wasmgate/wasmgate/bridge/schema"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/approval"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/gate/jobs"
	"github.com/wasmgate/wasmgate/gate/session"
	"github.com/wasmgate/wasmgate/gate/store"
	"github.com/wasmgate/wasmgate/policy"
	"github.com/wasmgate/wasmgate/sandbox"
	"github.com/wasmgate/wasmgate/sandbox/kv"
)

// A Gateway is a running gateway. Use it from several goroutines.
type Gateway struct {
	cfg       Config
	gate      *gate.Gate
	fleet     *bridge.Fleet
	host      *bridge.Host
	runtime   *sandbox.Runtime
	dial      *dial.Client
	kv        *kv.Store
	life      context.Context // of servers in the sandbox
	end       context.CancelFunc
	serving   sync.WaitGroup
	audit     *audit.Log      // nil without Config.Audit
	asking    *approval.Queue // nil without Config.Approvals
	pins      *lock.Pins      // nil without Config.Pins
	phases    phases
	mux       *http.ServeMux
	sessions  *session.Sessions
	calls     calls // those of Do
	clean     *sanitizers
	schemas   *schema.Compiler
	player    *player // nil without Config.Replay
	published published
	atOnce    *perServer[int] // calls at a server
	jobs      *jobs.Runner    // nil without Config.Jobs
	store     *store.DB       // of the jobs
	engine    atomic.Pointer[policy.Engine]
	setting   sync.Mutex     // held over SetPolicy: one at a time
	shadow    *policy.Shadow // nil without Config.Shadow
}

// New builds a gateway. No server is connected yet: see [Gateway.Start]. It
// must be closed.
func New(ctx context.Context, cfg Config) (*Gateway, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	g := &Gateway{cfg: cfg}
	g.life, g.end = context.WithCancel(context.WithoutCancel(ctx))
	if err := g.build(ctx); err != nil {
		return nil, errors.Join(err, g.Close(ctx))
	}
	return g, nil
}

func (g *Gateway) build(ctx context.Context) error {
	engine, err := policy.Load(ctx, g.cfg.Policy.Files, g.cfg.Policy.Options)
	if err != nil {
		return err
	}
	g.engine.Store(engine)
	clean, err := newSanitizers(g.cfg.Sanitize)
	if err != nil {
		return err
	}
	g.clean, g.schemas, g.atOnce = clean, schema.NewCompiler(), newPerServer(g.cfg.Limits.Servers)
	secrets, hide, err := newSecretScan(g.cfg.Sanitize.Secrets, g.cfg.Seal)
	if err != nil {
		return err
	}
	recorder, err := g.openAudit(hide)
	if err != nil {
		return err
	}
	recorder = gate.Recorders(g.withShadow(recorder), refusals{g.cfg.Log})
	if err := g.newPins(); err != nil {
		return err
	}
	if err := g.newJobs(ctx); err != nil {
		return err
	}
	if err := g.newFleet(ctx, bridge.ToolOptions{Sanitizer: clean, Schemas: g.schemas, Groups: g.cfg.Groups}); err != nil {
		return err
	}
	approver, err := g.newApprover(recorder)
	if err != nil {
		return err
	}
	g.sessions = session.New(g.cfg.Sessions)
	g.gate, err = gate.New(gate.Parts{
		Approver: approver, Pins: g.gatePins(),
		Upstream: g.fleet, Authorizer: engine, Labeler: engine, Sanitizer: clean, ContentChecker: clean, Secrets: secrets, Recorder: recorder,
		TrackValues: g.tracksValues(engine), TrustPrompt: g.cfg.TrustPrompt,
		Sessions: g.sessions,
		Limiter:  g.newLimits(),
		Snapshot: g.cfg.Snapshot,
	})
	if err != nil {
		return err
	}
	return g.newHost()
}

// openAudit opens the audit log, into which nothing comes that hide takes out.
func (g *Gateway) openAudit(hide func(string) string) (gate.Recorder, error) {
	if g.cfg.Audit == "" {
		return g.cfg.Recorder, nil
	}
	o := g.cfg.AuditOptions
	o.Hide = hide
	if o.Version == "" {
		o.Version = bridge.Version()
	}
	if o.Snapshot == "" {
		o.Snapshot = g.cfg.Snapshot
	}
	if o.Log == nil {
		o.Log = g.cfg.Log
	}
	var err error
	if g.audit, err = audit.Open(g.cfg.Audit, o); err != nil {
		return nil, err
	}
	if g.cfg.Recorder == nil {
		return g.audit, nil
	}
	return gate.Recorders(g.audit, g.cfg.Recorder), nil
}

func (g *Gateway) newFleet(ctx context.Context, o bridge.ToolOptions) error {
	if g.cfg.Replay != nil {
		g.player = newPlayer(*g.cfg.Replay)
	}
	locals, err := g.locals(ctx, o)
	if err != nil {
		return err
	}
	stubs, err := g.stubs(o)
	if err != nil {
		return err
	}
	locals = append(locals, stubs...)
	var servers []bridge.EndpointConfig
	for _, s := range g.cfg.Servers {
		if !g.player.stubs(s.Server) {
			servers = append(servers, g.endpoint(ctx, s, g.cfg.Guests))
		}
	}
	g.fleet, err = bridge.NewFleet(bridge.FleetConfig{Locals: locals, Servers: servers, HostTools: g.cfg.HostTools, Pins: g.fleetPins(), Log: g.cfg.Log})
	return err
}

func (g *Gateway) newHost() error {
	var err error
	g.host, err = bridge.NewHost(bridge.HostConfig{
		Do: g.do, Tools: g.gate.Tools, Features: g.gate.Features, Offering: g.fleet.Offering, Lookup: g.fleet.Lookup, Instructions: g.fleet.Instructions, MaxBody: g.cfg.Limits.Body,
		Origins: g.cfg.Origins, Hosts: g.cfg.Hosts, Log: g.cfg.Log,
		Who: g.cfg.Who, Group: g.HasGroup, Brief: g.cfg.Catalog == CatalogOnly,
		Asks: g.asking != nil && g.asking.Uses(approval.Client), Seal: g.cfg.Seal,
		Jobs: g.taskRunner(), Recall: g.recall,
		SetLevel: g.fleet.SetLevel, Unsubscribe: g.fleet.Unsubscribe, Clean: g.gate.Tell, PeerChanged: g.fleet.PeerChanged, Ended: g.fleet.EndSession,
	})
	if err != nil {
		return err
	}
	g.fleet.Watch(g.host.Changed)
	g.fleet.Hear(g.host.Hear)
	g.fleet.Watch(g.noteServers)
	g.mux = http.NewServeMux()
	g.handleMCP(g.mux)
	g.mux.HandleFunc("GET /healthz", g.healthz)
	return nil
}

// Start begins to connect the servers, and does not wait for them: a listing
// does, for a while.
func (g *Gateway) Start(ctx context.Context) {
	g.fleet.Start(ctx)
	if g.jobs != nil {
		g.serving.Go(func() { g.jobs.Run(g.life) })
	}
	if g.asking != nil {
		g.serving.Go(func() { g.asking.Run(g.life) })
	}
}

// Connect connects the servers and waits until each is ready or faulted.
func (g *Gateway) Connect(ctx context.Context) error { return g.fleet.Connect(ctx) }

// Do carries out one call through the gate. After [Gateway.Drain] it does not,
// and the error is [ErrDraining].
func (g *Gateway) Do(ctx context.Context, c gate.Call) (gate.Result, error) {
	if !g.calls.begin() {
		return gate.Result{}, ErrDraining
	}
	defer g.calls.end()
	return g.do(ctx, c)
}

// Tools returns what a principal is offered.
func (g *Gateway) Tools(ctx context.Context, who *gate.Principal) ([]*gate.Tool, error) {
	return g.gate.Tools(ctx, who)
}

// Fleet returns the servers, to be added, removed and asked for their status.
func (g *Gateway) Fleet() *bridge.Fleet { return g.fleet }

// Policy returns the policy in use.
func (g *Gateway) Policy() *policy.Engine { return g.engine.Load() }

// ServeHTTP serves MCP at /mcp, of one group at /mcp/GROUP, and liveness at /healthz.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) { g.mux.ServeHTTP(w, r) }

// Serve serves one client that speaks MCP in lines, until in or ctx ends.
func (g *Gateway) Serve(ctx context.Context, who *gate.Principal, in io.Reader, out io.Writer) error {
	return g.host.Serve(ctx, who, in, out)
}

// SetPolicy puts another policy in the place of the one in use, whole, and tells
// the clients. If it does not load the old one stays, and the error says why;
// the audit log keeps either.
func (g *Gateway) SetPolicy(ctx context.Context, p Policy) error {
	g.setting.Lock()
	defer g.setting.Unlock()
	old := g.engine.Load()
	engine, err := policy.Load(ctx, p.Files, p.Options)
	entry := audit.Entry{Event: audit.Policy, Code: gate.CodeOK}
	if err != nil {
		entry.Code, entry.Error, entry.PolicyRevision = "failed", err.Error(), old.Revision()
		return errors.Join(err, g.note(entry))
	}
	if engine.Revision() == old.Revision() {
		return nil
	}
	entry.PolicyRevision = engine.Revision()
	if err := g.note(entry); err != nil {
		return fmt.Errorf("the policy stays as it was: %w", err)
	}
	parts := g.gate.Parts()
	parts.Authorizer, parts.Labeler, parts.TrackValues = engine, engine, g.tracksValues(engine)
	if err := g.gate.Swap(parts); err != nil {
		return err
	}
	g.engine.Store(engine)
	g.host.Changed()
	return nil
}

// PolicyRefused records, as an event of the policy, why one could not even be read.
// The one in use stays.
func (g *Gateway) PolicyRefused(err error) error {
	return g.note(audit.Entry{Event: audit.Policy, Code: "failed", Error: err.Error(), PolicyRevision: g.Policy().Revision()})
}

func (g *Gateway) note(e audit.Entry) error {
	if g.audit == nil {
		return nil
	}
	return g.audit.Append(e)
}

// Healthy returns why no call would pass now, or nil.
func (g *Gateway) Healthy() error {
	if g.audit == nil {
		return nil
	}
	return g.audit.Healthy()
}

func (g *Gateway) healthz(w http.ResponseWriter, _ *http.Request) {
	answer := map[string]string{"status": "ok", "version": bridge.Version()}
	w.Header().Set("Content-Type", "application/json")
	if err := g.Healthy(); err != nil {
		answer["status"], answer["error"] = "failing", err.Error()
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// Drain refuses new requests and waits for those under way, or for ctx. Calls that
// wait for a person are refused: the answer would come too late. Jobs that still run
// then are cancelled.
func (g *Gateway) Drain(ctx context.Context) error {
	if g.asking != nil {
		g.asking.Close(ctx)
	}
	g.calls.refuse()
	var work sync.WaitGroup
	if g.jobs != nil {
		work.Go(func() { g.jobs.Drain(ctx) }) // beside the host, some of whose calls wait for them
	}
	err := errors.Join(g.host.Drain(ctx), g.calls.wait(ctx))
	work.Wait()
	return err
}

// Close ends all servers and closes the log, in this order, so that calls which
// it cuts off can still be recorded. [Gateway.Drain] first lets them end.
func (g *Gateway) Close(ctx context.Context) error {
	var errs []error
	if g.jobs != nil {
		g.jobs.Close()
	}
	if g.fleet != nil {
		errs = append(errs, g.fleet.Close())
	}
	if g.asking != nil {
		g.asking.Close(ctx)
	}
	g.end()
	g.serving.Wait()
	if g.runtime != nil {
		errs = append(errs, g.runtime.Close(ctx))
	}
	if g.kv != nil {
		errs = append(errs, g.kv.Close())
	}
	if g.store != nil {
		errs = append(errs, g.store.Close())
	}
	if g.audit != nil {
		errs = append(errs, g.audit.Close())
	}
	return errors.Join(errs...)
}
