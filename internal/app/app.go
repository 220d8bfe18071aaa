package app

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/approval"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/confine"
	"github.com/wasmgate/wasmgate/internal/control"
	"github.com/wasmgate/wasmgate/internal/dial"
	"github.com/wasmgate/wasmgate/internal/login"
	"github.com/wasmgate/wasmgate/internal/match"
	"github.com/wasmgate/wasmgate/internal/modules"
	"github.com/wasmgate/wasmgate/internal/policyfiles"
)

// An App is the one gateway that runs on a configuration. It holds the lock of
// the state folder from [New] to [App.Close].
type App struct {
	cfg     *config.Config
	log     *slog.Logger
	lock    *control.Lock
	gateway *gateway.Gateway
	policy  atomic.Pointer[policyfiles.Files] // that in use
	shadow  *policyfiles.Files                // nil without a shadow policy
	bundles policyfiles.Bundles
	clients clients
	learn   func(confine.Access) // nil unless a server is run to learn from
	passing bool                 // it was started for one command: see [App.Answer]
	beside  *beside
	senders *senders
	logins  *login.Logins
	listens []string // addresses for HTTP
	url     string   // the first of them, as clients name it; "" if there is none

	desk      Desk   // nil without a console
	console   string // its URL
	noConsole string // why it has none though it should

	reloaded func(context.Context, *App, error) // is told of each reading of the configuration; may be nil

	config      atomic.Pointer[configState]
	guests      modules.Digests
	policyError atomic.Pointer[outcome]
	pinError    atomic.Pointer[outcome]
	shadowError atomic.Pointer[outcome]
	pausing     sync.Mutex     // held over pausing and keeping that, so that what is kept is what holds
	glass       approval.Glass // broken in an emergency: see BreakGlass
	reloading   sync.Mutex     // held over reading and setting a policy, so that the newest is set last
}

// New builds the gateway of a configuration. The error wraps [control.ErrHeld]
// if another process has it already. Only, if it is not empty, names the only
// server that is needed.
func New(ctx context.Context, cfg *config.Config, log *slog.Logger, only string) (*App, error) {
	return newApp(ctx, cfg, log, only, nil)
}

// newApp is New, with somebody to be told what the only server uses, if not nil.
func newApp(ctx context.Context, cfg *config.Config, log *slog.Logger, only string, learn func(confine.Access)) (_ *App, err error) {
	a := &App{learn: learn, cfg: cfg, log: log, shadow: policyfiles.Shadow(cfg), bundles: policyfiles.NewBundles(cfg)}
	a.policy.Store(policyfiles.New(cfg))
	a.config.Store(&configState{read: time.Now(), cfg: cfg, files: configFiles(cfg)}) // before anything takes its time
	a.beside = newBeside(a)
	if a.lock, err = control.Acquire(cfg.State); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			a.lock.Release()
		}
	}()
	if a.senders, err = newSenders(cfg); err != nil {
		return nil, err
	}
	a.newLogins(cfg)
	gc, err := a.translate(ctx, only)
	if err != nil {
		return nil, err
	}
	if gc.Policy, err = a.firstPolicy(ctx); err != nil {
		return nil, err
	}
	gc.Shadow = a.shadow != nil
	gc.Observe, gc.Trace, gc.Baggage = a.beside.observe, a.beside.place, a.beside.baggage.Load
	if a.gateway, err = gateway.New(ctx, gc); err != nil {
		return nil, err
	}
	a.gateway.SetRequired(required(cfg))
	if err := errors.Join(a.stayPaused(), a.noteBundles()); err != nil {
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
	return errors.Join(a.gateway.Close(ctx), a.lock.Release())
}

// translate makes a gateway's configuration of a file's. Only, if it is not empty, names
// the only server that is needed.
func (a *App) translate(ctx context.Context, only string) (gateway.Config, error) {
	gc, err := a.translateGate()
	if err != nil {
		return gateway.Config{}, err
	}
	a.translateServers(ctx, only, &gc)
	gc.Groups, gc.Catalog = a.cfg.AllGroups(), catalogModes[a.cfg.Catalog.Mode]
	gc.Embedded, gc.Modules, gc.LeaveOut = true, a.modules().All(ctx, a.cfg), true
	if gc.Secrets, err = modules.Secrets(a.cfg); err != nil {
		return gateway.Config{}, err
	}
	return gc, a.replay(ctx, &gc)
}

// translateGate says who comes, what is checked, and what is kept.
func (a *App) translateGate() (gateway.Config, error) {
	c := a.cfg
	node, err := nodeName(c.State)
	if err != nil {
		return gateway.Config{}, err
	}
	seal, err := sealingSecret(c.State)
	if err != nil {
		return gateway.Config{}, err
	}
	who, err := principal(c, "")
	if err != nil {
		return gateway.Config{}, err
	}
	gc := a.checks(c, node)
	gc.Who, gc.Agents, gc.Principal, gc.Challenge = who, agentRules(c), a.sender, a.lacking
	gc.Audit, gc.AuditOptions, gc.Seal = c.Audit.Path, a.beside.withDocuments(auditOptions(c, node)), seal
	gc.SessionLasted = func(d time.Duration) { a.beside.counts.Load().Session(d) }
	gc.Pins, gc.Jobs, gc.Sessions, gc.OneSession = pinOptions(c), jobOptions(c, node), sessionOptions(c), onePerPrincipal(c)
	gc.CacheDir, gc.KVDir, gc.Log = filepath.Join(kept(c), "wasm"), filepath.Join(c.State, "kv"), a.log
	return gc, nil
}

// checks puts what a configuration says of how calls are checked into the words of a
// gateway, for [gateway.New] and [gateway.Gateway.Reconfigure].
func (a *App) checks(c *config.Config, node string) gateway.Config {
	to := gateway.Config{
		Origins: c.HTTP.Origins, Hosts: hosts(c),
		Sanitize: gateway.Sanitize{
			Profile: c.Sanitize.Profile, Tools: rules(c.Sanitize.Tools), MIME: rules(c.Sanitize.MIME), Links: c.Sanitize.Links,
			Secrets: secretRules(c.Sanitize.Secrets), Servers: make(map[string]string),
		},
		Inputs: make(map[string]*gateway.InputRules), Limits: callLimits(c), Approvals: a.approvalOptions(c.Approvals, node),
		TrustPrompt: c.Sessions.TrustPrompt, Snapshot: snapshot(c),
	}
	for _, s := range enabled(c.Servers) {
		checkedAs(s, &to)
	}
	return to
}

// checkedAs adds what is said of a server.
func checkedAs(s config.Server, to *gateway.Config) {
	if s.Sanitize != "" {
		to.Sanitize.Servers[s.ID] = s.Sanitize
	}
	if rules := inputRules(s); rules != nil {
		to.Inputs[s.ID] = rules
	}
	if s.Concurrent > 0 {
		to.Limits.Servers[s.ID] = s.Concurrent
	}
}

func auditOptions(c *config.Config, node string) audit.Options {
	o := audit.Options{
		Node: node, MaxSize: c.Audit.MaxSize, Record: c.Audit.Record, Sync: c.Audit.Sync,
		Keep: c.Audit.Keep, Hold: c.Audit.Hold, HardMax: c.Audit.HardMax, Strict: c.Audit.Strict,
		Rotate: c.Audit.Rotate, MaxAge: c.Audit.MaxAge, Compress: c.Audit.Compress,
	}
	if o.Hold == 0 {
		o.Hold = -1
	}
	return o
}

// translateServers adds the servers that are enabled, and what is said of each.
func (a *App) translateServers(ctx context.Context, only string, gc *gateway.Config) {
	gc.Guests = make(map[string]gateway.Guest)
	for _, s := range enabled(a.cfg.Servers) {
		if only != "" && only != s.ID {
			continue
		}
		one := a.server(ctx, a.cfg, s)
		gc.Servers = append(gc.Servers, one.EndpointConfig)
		if one.Guest != nil {
			gc.Guests[s.ID] = *one.Guest
		}
	}
}

func endpoint(s config.Server) gateway.EndpointConfig {
	e := gateway.EndpointConfig{
		Server: s.ID, Dir: s.Cwd, Transport: s.Transport, Protocol: s.Protocol, ConnectTimeout: s.StartTime(), CallTimeout: s.Timeout,
		Sessions: s.Sessions, Retry: s.Retry, Health: s.Health, Methods: s.Methods,
		Tools: gateway.ToolOptions{Bare: !s.Prefix, Normalize: s.Schema == "normalized", OutputWarn: s.Output == "warn", Vetted: s.Lists == "trusted", Groups: groupsOf(s)},
	}
	for _, t := range s.Timeouts {
		e.CallTimeouts = append(e.CallTimeouts, gateway.ToolTimeout(t))
	}
	switch {
	case s.Fault != "":
		e.Broken = s.Fault
	case s.Command != "":
		env := map[string]string{}
		if s.Confine == nil {
			env = confine.Network(os.LookupEnv)
		}
		for k, v := range s.Env {
			env[k] = string(v)
		}
		e.Command, e.Args, e.Env = s.Command, s.Args, confine.Environ(env, os.LookupEnv)
		e.Confine = confined(s.Confine)
	case s.URL != "":
		e.URL, e.Headers = s.URL, make(http.Header)
		e.DialContext = dial.New(dial.Options{}).Dialer(s.Private)
		for k, v := range s.Headers {
			e.Headers.Set(k, string(v))
		}
	}
	return e
}

// inputRules says how arguments of a server's tools are held against their schemas.
func inputRules(s config.Server) *gateway.InputRules {
	if s.Input == "" && s.Inputs == nil {
		return nil
	}
	to := &gateway.InputRules{Mode: gate.InputMode(s.Input)}
	for _, t := range s.Inputs {
		to.Tools = append(to.Tools, gateway.InputRule{Pattern: t.Pattern, Mode: gate.InputMode(t.Mode)})
	}
	return to
}

func rules(from []config.Rule) []gateway.Rule {
	var to []gateway.Rule
	for _, r := range from {
		to = append(to, gateway.Rule(r))
	}
	return to
}

// A PrincipalError says that a command or a client named a principal that the
// configuration does not.
type PrincipalError struct {
	ID    string   `json:"id"`
	Known []string `json:"known"`
}

func (e *PrincipalError) Error() string {
	return fmt.Sprintf("no principal %q; list it under principals in the configuration (there: %s)", e.ID, strings.Join(e.Known, ", "))
}

// principal returns the principal that a command or a stdio client names; ""
// is the local one, which need not be listed.
func principal(c *config.Config, id string) (*gate.Principal, error) {
	p := gate.Local()
	if id == "" {
		id = p.ID
	}
	known := []string{p.ID}
	for _, listed := range c.Principals {
		owner := gate.Owner{Tenant: listed.Tenant, ID: listed.ID}
		if match.Name(listed.Tenant, listed.ID) == id {
			p.Owner, p.Roles, p.Groups, p.Identities = owner, listed.Roles, gate.Groups(nil).Within(listed.Groups), listed.Identities
			return p, nil
		}
		if owner != p.Owner {
			known = append(known, match.Name(listed.Tenant, listed.ID))
		}
	}
	if id == p.ID {
		return p, nil
	}
	return nil, &PrincipalError{id, known}
}

// Knows reports whether a configuration lists a principal; local needs no
// listing.
func Knows(c *config.Config, id string) bool {
	_, err := principal(c, id)
	return err == nil
}

// nodeName returns the name of this gateway in the audit log, made once and
// kept in the state folder.
func nodeName(state string) (string, error) {
	path := filepath.Join(state, "node")
	b, err := os.ReadFile(path)
	if err == nil && len(strings.TrimSpace(string(b))) > 0 {
		return strings.TrimSpace(string(b)), nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	name := strings.ToLower(rand.Text()[:8])
	return name, os.WriteFile(path, []byte(name+"\n"), 0o600)
}

// snapshot is a hash of what the configuration says. Secrets are in it as far as
// they are part of the file, and cannot be told from it.
func snapshot(c *config.Config) string {
	h := sha256.New()
	for _, path := range []string{c.File, c.Project} {
		if b, err := os.ReadFile(path); path != "" && err == nil {
			fmt.Fprintf(h, "%d\n%s", len(b), b)
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}
