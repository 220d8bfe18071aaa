package gateway

import (
	"cmp"
	"context"
	"fmt"

	"github.com/wasmgate/wasmgate/bridge/dial"
	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
)

// SetServer connects one more server, or replaces the one that has its id, and returns when it is
// ready or faulted, with the fault as the error. Clients stay connected and are notified of the
// tools; calls under way end where they were made. A configuration that is the server's already
// changes nothing. The change is in the audit log before it is done.
func (g *Gateway) SetServer(ctx context.Context, s Server) error {
	if g.player.Stubs(s.Server) {
		return fmt.Errorf("server %s: a recording answers for it, and nothing else", s.Server)
	}
	if s.Guest != nil && g.machine.runtime == nil {
		return fmt.Errorf("server %s: this gateway was built without modules, and runs none", s.Server)
	}
	if err := g.checking.now.Load().clean.Knows(s.Sanitize); err != nil {
		return fmt.Errorf("server %s: %w", s.Server, err)
	}
	if err := g.journal.noteChange(s.Server, "configuration: set"); err != nil {
		return err
	}
	g.setting.Lock()
	err := g.check(g.checking.now.Load().of(s), func(*gate.Parts) {})
	g.setting.Unlock()
	if err != nil {
		return err
	}
	g.settings.atOnce.set(s.Server, s.Concurrent)
	g.settings.guests.set(s.Server, s.Guest)
	return g.fleet.Add(ctx, g.endpoint(ctx, s.Endpoint))
}

// RestartServer connects a server anew, with the configuration it has, and returns when it is ready
// or faulted, with the fault as the error. Calls in progress end where they were made. by names the
// requester, for the audit log, which has it first.
func (g Operator) RestartServer(ctx context.Context, id, by string) error {
	if err := g.journal.noteChange(id, "restarted by "+by); err != nil {
		return err
	}
	return g.fleet.Reload(ctx, id)
}

// RemoveServer forgets a server. It is an error if no server has the id. Calls under way there go
// on, and their results are sanitized by the server's profile, which is kept.
func (g *Gateway) RemoveServer(id string) error {
	if err := g.journal.noteChange(id, "configuration: removed"); err != nil {
		return err
	}
	err := g.fleet.Remove(id)
	g.settings.atOnce.set(id, 0)
	g.settings.guests.set(id, nil)
	return err
}

// SetModules puts other modules in the place of Config.Modules, which can be granted
// these secrets, and tells the clients. A module that stays as it is goes on as it is;
// calls under way of one that is replaced or removed go on to their end. One that cannot
// be used is left out, unless nothing but its file has changed, and no digest names the
// one that is meant: it stays as it was then. [Gateway.Modules] says why, and the error
// joins a [*ModuleError] for each. The audit log has a change before it is
// made.
func (g *Gateway) SetModules(ctx context.Context, modules []Module, secrets []dial.Secret) error {
	return g.locals.setModules(ctx, modules, secrets)
}

// SetEmbedded offers the tools that the gateway brings along, or takes them away, and tells the
// clients. It returns an error if Config.Functions has tools on the same server.
func (g *Gateway) SetEmbedded(on bool) error { return g.locals.setEmbedded(on) }

// Modules tells how each module is, in the order of the configuration.
func (g *Gateway) Modules() []status.Module { return g.locals.status() }

// endpoint completes the configuration of a server with what is the gateway's.
func (g *Gateway) endpoint(ctx context.Context, s options.Endpoint) options.Endpoint {
	s.Tools.Sanitizer = &g.checking
	s.ClientName, s.ClientVersion = cmp.Or(s.ClientName, g.cfg.Name), cmp.Or(s.ClientVersion, g.cfg.Version)
	if s.MaxMessage == 0 {
		s.MaxMessage = g.cfg.Limits.Result
	}
	said := []any{s.Declared, s.Methods, s.Tools.Normalize, s.Tools.OutputWarn, s.Tools.Vetted}
	if s.Declared == "" {
		said = append(said, s.Command, s.Args, s.Env, s.Dir, s.Confine, s.URL, s.Headers)
	}
	if guest, ok := g.settings.guests.get(s.Server); ok {
		said = append(said, sum(guest.WASM), guest.Config.Limits)
		if s.Declared == "" {
			said = append(said, guest.Args, guest.Config.Args)
		}
		g.machine.guest(&s, *guest)
	}
	s.Tools.Config = configOf(said...)
	return s
}

// ConfigRefused records why a configuration could not be read. The one in use stays.
func (g Operator) ConfigRefused(err error) error {
	return g.journal.note(audit.Entry{Event: audit.Server, Code: "failed", Error: err.Error(), Reasons: []string{"configuration: refused"}})
}
