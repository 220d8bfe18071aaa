package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/agents"
	"github.com/wasmgate/wasmgate/bridge/internal/fleet"
	"github.com/wasmgate/wasmgate/bridge/internal/host"
	"github.com/wasmgate/wasmgate/bridge/internal/recording"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/approval"
	"github.com/wasmgate/wasmgate/internal/drain"
	"github.com/wasmgate/wasmgate/internal/jobs"
	"github.com/wasmgate/wasmgate/internal/lock"
	"github.com/wasmgate/wasmgate/internal/schema"
	"github.com/wasmgate/wasmgate/internal/session"
	"github.com/wasmgate/wasmgate/internal/structure"
	"github.com/wasmgate/wasmgate/internal/web"
	"github.com/wasmgate/wasmgate/policy"
	"github.com/wasmgate/wasmgate/sandbox"
)

// A Gateway is a running gateway. Use it from several goroutines.
type Gateway struct {
	cfg    Config // as it was built; what may change since is in settings
	gate   *gate.Gate
	fleet  *fleet.Fleet
	agents *agents.Agents
	host   *host.Host
	mux    *http.ServeMux
	calls  drain.Counter // those of Do

	draining atomic.Bool
	required atomic.Pointer[[]string] // servers

	broken brokenInputs
	paused pauses
	panics *slog.Logger // of the program's own functions; nil is slog.Default

	journal
	policies
	settings
	cleaning
	locals
	machine
	compiling compiling

	sessions *session.Sessions
	asking   *approval.Queue   // nil without Config.Approvals
	pins     *lock.Pins        // nil without Config.Pins
	player   *recording.Player // nil without Config.Replay
	jobs     *jobs.Runner      // nil without Config.Jobs
	store    JobStore          // of the jobs

	held held // calls that end with their callers' credentials

	life    context.Context // of servers in the sandbox, and of what runs beside calls
	end     context.CancelFunc
	serving sync.WaitGroup
}

// cleaning is what makes the texts and the schemas of servers safe.
type cleaning struct {
	checking
	schemas *schema.Compiler
}

// toolOptions says how the tools of servers in this process are offered.
func (c *cleaning) toolOptions() ToolOptions {
	return ToolOptions{Sanitizer: &c.checking, Schemas: c.schemas}
}

// ChildMain is what this program does as a child of itself: it supervises a server that
// is a command, or compiles a module. It returns if this process is no such child. A
// program that runs a gateway calls it first thing in main.
func ChildMain() {
	wire.ChildMain()
	sandbox.ChildMain()
}

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
	g.schemas, g.settings = schema.NewCompiler(), newSettings(g.cfg)
	recorder, err := g.openAudit(g.hide)
	if err != nil {
		return err
	}
	recorder = observed{gate.Recorders(g.withShadow(recorder), refusals{g.cfg.Log}, &g.broken), g.cfg.Observe}
	if err := g.newPins(); err != nil {
		return err
	}
	if err := g.newJobs(ctx); err != nil {
		return err
	}
	if err := g.newFleet(ctx); err != nil {
		return err
	}
	if err := g.newQueue(recorder); err != nil {
		return err
	}
	g.sessions = session.New(g.cfg.Sessions)
	g.newAgents()
	parts := gate.Parts{
		Approver: g.approver(g.cfg.Approvals), Pins: g.gatePins(), Upstream: upstreams{g.fleet, g.agents, g.player}, Recorder: recorder,
		Structure: structure.Of, Echoes: new(gate.Echoes), Sessions: g.sessions, Limiter: pausing{g.limits, &g.paused},
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
		g.player = recording.NewPlayer(*g.cfg.Replay)
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
	var servers []EndpointConfig
	for _, s := range g.cfg.Servers {
		if !g.player.Stubs(s.Server) {
			servers = append(servers, g.endpoint(ctx, s))
		}
	}
	g.fleet, err = fleet.New(fleet.Config{
		Locals: locals, Servers: servers, HostTools: g.cfg.HostTools, Pins: g.fleetPins(), Groups: g.cfg.Groups, Log: g.cfg.Log,
		Settled: g.compiledAll,
	})
	return err
}

func (g *Gateway) newHost() error {
	var err error
	g.host, err = host.New(host.Config{
		Do: g.do, Tools: g.gate.Tools, Features: g.gate.Features, Shown: g.shown, Offering: g.fleet.Offering, Fresh: g.fleet.Fresh, Lookup: g.fleet.Lookup,
		Instructions: g.fleet.Instructions, Known: g.known, Terms: g.terms(&g.cfg), Log: g.cfg.Log,
		Principal: g.cfg.Principal, Challenge: g.cfg.Challenge, Connect: g.cfg.Connect, Who: g.cfg.Who, Group: g.Operator().HasGroup, Brief: func() bool { return g.catalogMode() == CatalogOnly },
		Seal: g.cfg.Seal,
		Jobs: g.jobs, Recall: g.recall,
		SetLevel: g.fleet.SetLevel, Unsubscribe: g.fleet.Unsubscribe, Clean: g.gate.Tell, PeerChanged: g.fleet.PeerChanged, Ended: g.endSession, Lasted: g.cfg.SessionLasted,
	})
	if err != nil {
		return err
	}
	g.fleet.Watch(func(l fleet.Lists) { g.host.ListsChanged(l.Tools, l.Prompts, l.Resources) })
	g.fleet.Hear(g.host.Hear)
	g.fleet.Watch(func(fleet.Lists) { g.noteServers() })
	g.mux = http.NewServeMux()
	g.handleMCP(g.mux)
	g.HandleHealth(g.mux)
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

// Connect connects the servers and waits until each is ready or faulted, and no module
// is compiled any more.
func (g *Gateway) Connect(ctx context.Context) error {
	err := g.fleet.Connect(ctx)
	if !g.compiledAll(ctx) {
		return ctx.Err()
	}
	return err
}

// Do carries out one call through the gate. After [Gateway.Drain] it does not,
// and the error is [ErrDraining].
func (g *Gateway) Do(ctx context.Context, c gate.Call) (gate.Result, error) {
	if !g.calls.Begin() {
		return gate.Result{}, ErrDraining
	}
	defer g.calls.End()
	return g.do(ctx, c)
}

// Tools returns what a principal is offered.
func (g *Gateway) Tools(ctx context.Context, who *gate.Principal) ([]*gate.Tool, error) {
	return g.gate.Tools(ctx, who)
}

// Features returns what a principal is offered of a feature: prompts, say.
func (g *Gateway) Features(ctx context.Context, who *gate.Principal, f gate.Feature) ([]*gate.Tool, error) {
	return g.gate.Features(ctx, who, f)
}

// known is as Features of the gate, and waits for no server.
func (g *Gateway) known(ctx context.Context, who *gate.Principal, f gate.Feature) ([]*gate.Tool, error) {
	return g.gate.Visible(ctx, who, g.fleet.KnownFeatures(f))
}

// A Fleet is the servers of a gateway as one. [Gateway.SetServer] and [Gateway.RemoveServer]
// change it.
type Fleet interface {
	// Status tells how each server is, in the order of configuration.
	Status() []ServerStatus
	// Declared returns what each server has declared last, in the same order and as it was
	// written: also definitions that are quarantined.
	Declared() []Declaration
	// Tools returns all tools. It waits for servers that are connecting for the first time.
	Tools(context.Context) []*gate.Tool
	// Features is as Tools, of prompts, resources, templates or methods.
	Features(context.Context, gate.Feature) []*gate.Tool
	// KnownFeatures returns what is known now of a feature, such as tools, and waits for nothing.
	KnownFeatures(gate.Feature) []*gate.Tool
	// Settle waits until no server is connecting for the first time, and for listings that must
	// not be kept, for two seconds at most. With the context that it returns nothing waits for
	// servers any more.
	Settle(context.Context) context.Context
	// Reload connects a server anew, with the configuration it has.
	Reload(ctx context.Context, server string) error
	// Watch calls changed whenever something of a server has changed, and says which lists are
	// others now, until stop is called. changed must not block.
	Watch(changed func(Lists)) (stop func())
}

// Fleet returns the servers.
func (g *Gateway) Fleet() Fleet { return g.fleet }

// ServeHTTP serves MCP at /mcp, of one group at /mcp/GROUP, and its health: see [Gateway.HandleHealth].
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	web.BoundBody(w, r, cmp.Or(g.cfg.Limits.BodyTime, web.BodyTime)) // of what no handler reads, too
	g.mux.ServeHTTP(w, r)
}

// Serve serves one client that speaks MCP in lines, until in or ctx ends.
func (g *Gateway) Serve(ctx context.Context, who *gate.Principal, in io.Reader, out io.Writer) error {
	return g.host.Serve(ctx, who, in, out)
}

// Drain refuses new requests and waits for those under way, or for ctx. Calls that
// wait for a person are refused: the answer would come too late. Jobs that still run
// then are cancelled.
func (g *Gateway) Drain(ctx context.Context) error {
	g.draining.Store(true)
	if g.asking != nil {
		g.asking.Close(ctx)
	}
	g.calls.Close()
	var work sync.WaitGroup
	if g.jobs != nil {
		work.Go(func() { g.jobs.Drain(ctx) }) // beside the host, some of whose calls wait for them
	}
	err := errors.Join(g.host.Drain(ctx), g.calls.Drain(ctx))
	work.Wait()
	return err
}

// Close refuses new calls, ends those under way with all servers and sessions, and closes the
// log when each of them has its record, or ctx ends: then the error says how many have none.
// [Gateway.Drain] first lets calls end by themselves. What does not listen goes on beside a
// gateway that is closed. It may be called again, also with a context that has ended.
func (g *Gateway) Close(ctx context.Context) error {
	g.draining.Store(true)
	g.calls.Close()
	g.end()
	var errs []error
	if g.jobs != nil {
		errs = append(errs, g.jobs.Close(ctx))
	}
	if g.fleet != nil {
		errs = append(errs, g.fleet.Close())
	}
	errs = append(errs, g.ended(ctx), g.machine.close(ctx))
	if g.store != nil {
		errs = append(errs, g.store.Close())
	}
	if g.audit != nil {
		errs = append(errs, g.audit.Close())
	}
	return errors.Join(errs...)
}

// endsAtOnce is how long what has nothing to wait for may take to end.
const endsAtOnce = time.Second

// ended waits until nothing is under way, or for ctx.
func (g *Gateway) ended(ctx context.Context) error {
	done := make(chan struct{})
	forever := context.WithoutCancel(ctx)
	go func() { // ends with the last call
		defer close(done)
		if g.asking != nil {
			g.asking.Close(forever)
		}
		if g.host != nil {
			g.host.Close()
			_ = g.host.Drain(forever) // has no other error than that of its context
		}
		_ = g.calls.Drain(forever)
		g.serving.Wait()
		if g.agents != nil {
			g.agents.Wait()
		}
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	if n := g.underWay(); n > 0 {
		return fmt.Errorf("%d calls and requests have not ended, and have no record of it: %w", n, ctx.Err())
	}
	select {
	case <-done:
		return nil
	case <-time.After(endsAtOnce):
		return ctx.Err()
	}
}

// underWay is how many calls and requests of clients have begun and not ended.
func (g *Gateway) underWay() int {
	n := g.calls.Count()
	if g.host != nil {
		n += g.host.UnderWay()
	}
	return n
}

// BrokenInputs returns the tools of which calls were refused because their arguments
// break the input schema, those first of which most were.
func (g operator) BrokenInputs() []BrokenInput {
	g.broken.mu.Lock()
	defer g.broken.mu.Unlock()
	var all []BrokenInput
	for _, one := range g.broken.byTool {
		all = append(all, *one)
	}
	slices.SortFunc(all, func(a, b BrokenInput) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Tool, b.Tool))
	})
	return all
}

// operator is a gateway as the program that runs it for others sees it.
type operator struct{ *Gateway }

// Operator returns what the wasmgate command itself does with a gateway beside what is
// promised here: answers for its console, hooks of agents, reasons for its log. Any of it may
// change with any version.
func (g *Gateway) Operator() operator { return operator{g} }
