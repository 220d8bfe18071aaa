package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/wasmgate/wasmgate/bridge/postgres"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/app/desks"
	"github.com/wasmgate/wasmgate/internal/app/naming"
	"github.com/wasmgate/wasmgate/internal/app/settings"
	"github.com/wasmgate/wasmgate/internal/background"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/control"
	"github.com/wasmgate/wasmgate/internal/files/watch"
	"github.com/wasmgate/wasmgate/internal/web"
)

const (
	// closeTime bounds the end of all servers; each ends within its own grace.
	closeTime = 15 * time.Second
	// flushTime is how long the answers of drained calls may take to be written.
	flushTime = 2 * time.Second
)

// Front says how clients reach a gateway that runs.
type Front struct {
	// Listen are the addresses for HTTP, host:port or unix:PATH; none for no HTTP.
	Listen []string
	// Stdio serves one client on In and Out, as the principal As.
	Stdio bool
	As    string
	// Groups restrict what is offered to clients over HTTP, and to the one on In: only what is in one
	// of these groups. None restricts nothing.
	Groups []string
	In     io.Reader
	Out    io.Writer
	// Owner is the command of a process that owns the gateway in the place of this one, so that the
	// end of a client's process ends nothing of other clients; nil if this process may own it. What
	// that process reports goes to Err.
	Owner func() *exec.Cmd
	Err   io.Writer
	// Shared serves clients of other processes only, and ends when the last of them has gone.
	Shared bool
	// Ready is called once clients can come; Run waits for it. Its ctx ends with
	// the gateway.
	Ready func(ctx context.Context, a *App, url string)
	// Console is the address of the console, which Desk makes; "" for none: the API is on the
	// control socket all the same.
	Console string
	Desk    func(*App) desks.Desk
	// Reloaded, if not nil, is called whenever the configuration, or a module of it, was read again;
	// err says which parts of it are not in use.
	Reloaded func(ctx context.Context, a *App, err error)
}

// Run serves until ctx ends. Without HTTP it also ends when the client on In has gone and nothing else
// is left; relayed clients and commands are served to their end. Then it drains: calls under way may
// end. If it cannot begin to serve, the error is a [*naming.PrincipalError], or says why it cannot
// listen.
func (a *App) Run(ctx context.Context, f Front) error {
	who, err := naming.Offered(a.cfg, f.As, f.Groups)
	if err != nil {
		return err
	}
	a.Overview.Running = true
	a.gateway.Operator().Offer(f.Groups)
	if f.Reloaded != nil {
		a.Settings.Reloaded = func(ctx context.Context, err error) { f.Reloaded(ctx, a, err) }
	}
	on, socket, err := a.listen(ctx, f)
	if err != nil {
		return err
	}
	defer control.Remove(a.cfg.State)
	var console net.Listener
	if f.Desk != nil && f.Console != "" {
		console = a.Desk.Listen(ctx, f.Console)
	}

	// Everything that serves lives until the drain is over, not until ctx ends.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	leave, gone := context.WithCancel(ctx) // also when the last client has gone
	defer gone()
	a.clients.last = func() {}
	if len(on) == 0 && (f.Stdio || f.Shared) {
		a.clients.last = gone
	}
	a.clients.came = func() {}
	if f.Shared { // the first client has this long to come
		a.clients.came = sync.OnceFunc(a.clients.enter())
		defer time.AfterFunc(startTime, a.clients.came).Stop()
	}
	g, life := errgroup.WithContext(life)
	a.gateway.Start(life)
	server := a.newServer(life)
	if f.Desk != nil {
		a.Desk.Serve(life, g, f.Desk(a), console)
		a.shared.peers.Answer("POST "+callsPath, a.Nodes.answerCalls)
	}
	a.shared.peers.Answer("POST "+destinationsPath, a.Nodes.answerDestinations)
	a.serve(life, g, server, on, socket)
	if f.Stdio {
		a.serveStdio(life, g, who, f)
	}
	a.watch(life, g)
	g.Go(func() error {
		a.beside.Run(life, background.Source{Gateway: a.gateway, Gauges: a.Overview.Gauges, Conditions: a.Overview.Conditions, Reports: a.shared.reports})
		return nil
	})
	g.Go(func() error {
		select {
		case <-leave.Done():
			if a.shared.peers != nil {
				a.shared.homes.Linger(life, a.Settings.Config().Cluster.Lingers())
			}
			a.drain(life, server)
		case <-life.Done():
		}
		end()
		return nil
	})
	g.Go(func() error { a.reportAlive(life); return nil })
	if a.shared.Store != nil {
		g.Go(func() error {
			a.shared.Run(life, a.sign, func() time.Duration { return a.Settings.Config().Sessions.TTL })
			return nil
		})
	}
	if a.shared.peers != nil {
		g.Go(func() error { a.shared.homes.Run(life); return nil })
	}
	g.Go(func() error { f.Ready(life, a, a.url()); return nil })
	return g.Wait()
}

// listen listens for clients, on no address if they do not come over HTTP, and for
// commands and further processes.
func (a *App) listen(ctx context.Context, f Front) (on []net.Listener, socket net.Listener, err error) {
	defer func() {
		for _, ln := range on {
			if err != nil {
				err = errors.Join(err, ln.Close())
			}
		}
	}()
	speaks := func(ln net.Listener) net.Listener { return ln }
	if t := a.cfg.TLS; t.Cert != "" && len(f.Listen) > 0 {
		if a.Settings.TLS, err = web.NewTLS(settings.TLSFiles(t), func(err error) { a.log.Error(err.Error()) }); err != nil {
			return nil, nil, err
		}
		speaks = a.Settings.TLS.Over
	}
	a.Settings.Listens = f.Listen
	if p := a.cfg.Auth.Proxy; p != nil && p.Unix != "" && len(f.Listen) > 0 {
		a.Settings.Listens = append(slices.Clip(f.Listen), web.UnixPrefix+p.Unix)
	}
	for i, addr := range a.Settings.Listens {
		setting := "--listen"
		if i >= len(f.Listen) {
			setting = "auth.proxy.unix in the configuration"
		}
		ln, err := web.Listen(ctx, addr, setting)
		if err != nil {
			return on, nil, err
		}
		if ln.Addr().Network() == "tcp" {
			ln = speaks(ln)
		}
		on = append(on, ln)
	}
	if len(on) > 0 {
		a.front = on[0]
	}
	socket, err = control.Listen(ctx, a.cfg.State)
	return on, socket, err
}

// url is how clients name the first address for HTTP; "" if there is none.
func (a *App) url() string {
	if a.front == nil {
		return ""
	}
	at, scheme := a.front.Addr(), "http://"
	if a.Settings.TLS != nil {
		scheme = "https://"
	}
	switch {
	case at.Network() == "unix":
		return web.UnixPrefix + at.String()
	case !config.Loopback(at.String()):
		return a.Callers.Public() + "/mcp"
	}
	return scheme + at.String() + "/mcp"
}

// serve serves who comes over HTTP, from other gateways, and over the control socket.
func (a *App) serve(ctx context.Context, g *errgroup.Group, server *http.Server, on []net.Listener, socket net.Listener) {
	g.Go(func() error { return control.Serve(ctx, socket, backend{a}, a.Desk.API, 0) })
	g.Go(func() error { return a.shared.peers.Serve(ctx, a.Desk.Forwarded(server.Handler)) })
	for _, ln := range on {
		g.Go(func() error { return web.Serve(ctx, server, ln) })
	}
}

// serveStdio serves the client on standard input, until it has gone.
func (a *App) serveStdio(ctx context.Context, g *errgroup.Group, who *gate.Principal, f Front) {
	leave := a.clients.enter()
	g.Go(func() error {
		defer leave()
		err := a.gateway.Serve(ctx, who, f.In, f.Out)
		if err != nil && ctx.Err() == nil && !errors.Is(err, io.EOF) {
			a.log.Info("client ended", "error", err)
		}
		return nil
	})
}

// watch looks for what the operator has changed: policies, the configuration, pins, API keys,
// and bundles far away.
func (a *App) watch(ctx context.Context, g *errgroup.Group) {
	hangup, stop := hangups()
	looks := []func(){a.Policies.Watch(ctx), a.Pins.Watch(), a.Callers.WatchKeys(ctx), func() { a.Policies.PollBundles(ctx) }}
	if a.shared.Store != nil {
		looks = append(looks, func() { a.shared.catchUp(ctx) }, func() {
			_ = a.gateway.Operator().Cluster().ReturnRates(ctx) // the next look puts back what this one could not
		})
	}
	if a.cfg.Replay.File == "" { // what a recording answers for does not come and go
		looks = append(looks, a.Settings.Watch(ctx, hangup))
	}
	every := watch.Every
	if a.cfg.Dev != "" {
		every = watch.Every / 5 // who edits waits
	}
	g.Go(func() error {
		defer stop()
		watch.Together(ctx, every, looks...)
		return nil
	})
	g.Go(func() error { a.Callers.FoldDenials(ctx); return nil })
}

// newServer returns what serves MCP over HTTP, to requests that end with life.
func (a *App) newServer(life context.Context) *http.Server {
	s := &http.Server{
		Handler: a.handler(), ConnContext: a.Callers.ConnContext, ReadHeaderTimeout: web.HeaderTime, IdleTimeout: web.IdleTime,
		BaseContext: func(net.Listener) context.Context { return life },
	}
	new(web.Conns[gate.SessionKey]).Bound(s)
	return s
}

// drain lets calls under way end and their answers be written, for as long as
// that may take.
func (a *App) drain(ctx context.Context, s *http.Server) {
	within := a.Settings.Config().Drain
	calls, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	began := time.Now()
	a.log.Info("draining: calls under way may end, new ones are refused", "within", within)
	if err := a.told(calls, within, a.gateway.Drain); err != nil {
		a.log.Warn("calls cut off at shutdown", "number", a.gateway.Operator().UnderWay())
	}
	a.log.Info("drained", "took", time.Since(began).Round(time.Millisecond))
	if a.shared.peers != nil {
		a.shared.homes.Release(ctx)
	}
	answers, cancel := context.WithTimeout(ctx, flushTime)
	defer cancel()
	_ = s.Shutdown(answers) // what is busy after this is cut off
	a.shared.peers.Shutdown(answers)
}

// configured identifies the files that gateways of a database should have alike: a snapshot of the configuration, and the lockfile
// if there is one.
func configured(snapshot, lockfile string) string {
	pins, err := os.ReadFile(lockfile)
	if err != nil {
		return snapshot
	}
	sum := sha256.Sum256(append([]byte(snapshot), pins...))
	return hex.EncodeToString(sum[:])[:len(snapshot)]
}

// sign returns what the gateway publishes about itself to the others.
func (a *App) sign() postgres.Sign {
	o := a.gateway.Operator()
	head := o.AuditHead()
	return postgres.Sign{Config: configured(o.Snapshot(), a.Settings.Config().Pins.Lockfile), Policy: o.Policy().Revision(), AuditSeq: head.Seq, AuditHead: head.Hash, Busy: o.UnderWay()}
}
