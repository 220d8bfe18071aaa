package app

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/app/naming"
	"github.com/wasmgate/wasmgate/internal/background"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/config/except"
	"github.com/wasmgate/wasmgate/internal/config/policydata"
	"github.com/wasmgate/wasmgate/internal/lock"
	"github.com/wasmgate/wasmgate/internal/web"
	"github.com/wasmgate/wasmgate/policy"
)

// Admin decides on what somebody who runs the gateway would do: see [gateway.Gateway.Admin].
func (a *App) Admin(ctx context.Context, q policy.AdminQuery, changes bool) error {
	return a.gateway.Operator().Admin(ctx, q, changes)
}

// Asks reports whether people are asked about calls.
func (a *App) Asks() bool { return a.gateway.Approvals() != nil }

// AuditPath is where the audit log is.
func (a *App) AuditPath() string { return a.cfg.Audit.Path }

// IndexPath is the folder of the index over it.
func (a *App) IndexPath() string { return filepath.Join(a.cfg.State, "index") }

// PolicyFiles says where the policy in use comes from.
func (a *App) PolicyFiles() config.Policy { return a.policy.Load().Policy }

// Config is the configuration in use.
func (a *App) Config() *config.Config { return a.config.Load().cfg }

// Principal returns who has a name in it; "" is the local one.
func (a *App) Principal(id string) (*gate.Principal, error) { return naming.Principal(a.Config(), id) }

// Documents is [beside.Documents] of the log of this gateway.
func (a *App) Documents(wanted map[string]bool, most int64) (map[string][]byte, error) {
	return background.Documents(a.cfg, wanted, most)
}

// Grants returns those that can be changed, and what names their state.
func (a *App) Grants(ctx context.Context) ([]policydata.Grant, string, error) {
	return policydata.SeeGrants(ctx, grantsOf(a))
}

// SetGrants puts grants in the place of those that were seen. If the policy is refused with
// they are kept nevertheless, and the policy before holds: see [policydata.SetGrants].
func (a *App) SetGrants(ctx context.Context, seen string, next []policydata.Grant) error {
	if err := policydata.SetGrants(ctx, grantsOf(a), seen, next); err != nil {
		return err
	}
	if err := a.reloadPolicy(ctx); err != nil {
		return fmt.Errorf("the grants are written, but the policy does not load with them: %w", err)
	}
	return nil
}

// Exceptions are those that could be made from what a rule has found.
func (a *App) Exceptions(_ context.Context, f except.Found) (except.Offers, error) {
	return except.Offered(a.Config(), f)
}

// An ExceptRequest asks for one of the [App.Exceptions], as they were seen.
type ExceptRequest struct {
	Found except.Found `json:"found"`
	Name  string       `json:"name"`
	Seen  string       `json:"seen"`
}

// Excepted is where an exception was written.
type Excepted struct {
	File string `json:"file"`
	Line string `json:"line"`
}

// Except writes an exception into the configuration for the local operator.
func (a *App) Except(ctx context.Context, r ExceptRequest) (Excepted, error) {
	return a.ExceptBy(ctx, policy.AdminQuery{Who: gate.Local(), Operator: true}, r)
}

// ExceptBy writes an exception into the configuration. What it is is decided on, and recorded, before.
func (a *App) ExceptBy(ctx context.Context, by policy.AdminQuery, r ExceptRequest) (Excepted, error) {
	cfg := a.Config()
	e, err := except.Named(cfg, r.Found, r.Name)
	if err != nil {
		return Excepted{}, err
	}
	by.Action, by.Op, by.Object = "admin/grant", "exceptions.write", e.String()
	if err := a.Admin(ctx, by, true); err != nil {
		return Excepted{}, err
	}
	line, err := except.Write(cfg.File, r.Seen, e)
	return Excepted{cfg.File, line}, err
}

// Exceptions does what [App.Exceptions] does.
func (r *Remote) Exceptions(ctx context.Context, f except.Found) (except.Offers, error) {
	return asked[except.Offers](ctx, r, methodExceptions, f)
}

// Except does what [App.Except] does.
func (r *Remote) Except(ctx context.Context, q ExceptRequest) (Excepted, error) {
	return asked[Excepted](ctx, r, methodExcept, q)
}

// ApprovePins writes approved definitions into the lockfile, or where gateways share them, and returns
// those that were not there. By is who approves.
func (a *App) ApprovePins(ctx context.Context, pins []lock.Pin, by string) ([]lock.Pin, error) {
	a.reloading.Lock() // so that no call follows before by is known
	defer a.reloading.Unlock()
	approve := func(pins []lock.Pin) ([]lock.Pin, error) { return lock.Approve(a.Config().Pins.Lockfile, pins) }
	if a.shared.Store != nil {
		of, err := a.gateway.Operator().Pins()
		if err != nil {
			return nil, err
		}
		approve = func(pins []lock.Pin) ([]lock.Pin, error) { return of.Approve(ctx, pins) }
	}
	added, err := approve(pins)
	if err != nil {
		return nil, err
	}
	return added, a.takePins(by)
}

// listenConsole listens for those who run the gateway. A port that somebody has is no reason
// for the gateway not to run.
func (a *App) listenConsole(ctx context.Context, f Front) net.Listener {
	if f.Desk == nil || f.Console == "" {
		return nil
	}
	ln, err := web.Listen(ctx, f.Console, "console.listen in the configuration")
	if err != nil {
		a.log.Info("no console", "error", err)
		a.noConsole = fmt.Sprintf("its address is taken: %v", err)
		return nil
	}
	a.console = "http://" + ln.Addr().String()
	return ln
}

// openDesk serves those who run the gateway: at ln, if that is not nil, and over the control
// socket. Without a console what a desk does beside requests begins with the first of these.
func (a *App) openDesk(life context.Context, g *errgroup.Group, f Front, ln net.Listener) {
	if f.Desk == nil {
		return
	}
	a.desk = f.Desk(a)
	run := sync.OnceFunc(func() {
		g.Go(func() error { a.desk.Run(life); return nil })
	})
	api := a.desk.OverSocket()
	a.api = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		run()
		api.ServeHTTP(w, r)
	})
	a.shared.peers.Answer("POST "+callsPath, a.answerCalls)
	if ln != nil {
		run()
		g.Go(func() error { return web.Serve(life, a.newConsole(life), ln) })
	}
}

// PeerName is the name of this gateway among those that forward to each other; "" without others.
func (a *App) PeerName() string {
	if a.shared.peers == nil {
		return ""
	}
	return a.shared.peers.Node()
}

// ForwardPage has another gateway answer a request of the console, and reports whether it did: not if that
// is this one, or there is none of that name.
func (a *App) ForwardPage(w http.ResponseWriter, r *http.Request, node string) bool {
	return a.shared.peers.Page(w, r, node)
}

// ConsolePath reports whether a request is for pages or the API of the console.
func ConsolePath(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, "/ui/") || strings.HasPrefix(r.URL.Path, "/api/")
}

// forwarded answers what other gateways forward: what browsers ask the console, and what clients send.
func (a *App) forwarded(clients http.Handler) http.Handler {
	if a.console == "" {
		return clients
	}
	console := web.Bounded(a.bodyTime, a.desk)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ConsolePath(r) {
			console.ServeHTTP(w, r)
			return
		}
		clients.ServeHTTP(w, r)
	})
}

// newConsole returns what serves the console, to requests that end with life.
func (a *App) newConsole(life context.Context) *http.Server {
	return &http.Server{
		Handler: web.Bounded(a.bodyTime, a.desk), ReadHeaderTimeout: web.HeaderTime, IdleTimeout: web.IdleTime,
		BaseContext: func(net.Listener) context.Context { return life },
	}
}

// SignIn makes a link and a code by which a browser signs in to the console.
func (a *App) SignIn() (SignIn, error) {
	switch {
	case a.console != "":
		return a.desk.SignIn(a.console), nil
	case a.noConsole != "":
		return SignIn{}, fmt.Errorf("the gateway has no console: %s; set another console.listen or stop the program that uses the address, then restart the gateway", a.noConsole)
	default:
		return SignIn{}, fmt.Errorf("the gateway has no console: set console.listen, then restart the gateway")
	}
}

// SignIn does what [App.SignIn] does.
func (r *Remote) SignIn(ctx context.Context) (SignIn, error) {
	var s SignIn
	err := r.call(ctx, methodSignIn, nil, &s)
	return s, err
}

// page returns the link to a page of the console; "" without one.
func (a *App) page(name string) string {
	if a.console == "" {
		return ""
	}
	return a.desk.URL(a.console) + "/ui/" + name
}

// ConsoleAddress is where the console is: with HTTP at its usual address, unless the
// configuration sets another; "" is nowhere.
func ConsoleAddress(cfg *config.Config, stdio bool) string {
	switch {
	case cfg.Console.Listen == "off":
		return ""
	case cfg.Console.Listen != "" || stdio:
		return cfg.Console.Listen
	default:
		return config.DefaultConsole
	}
}
