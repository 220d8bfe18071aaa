package gateway

import (
	"cmp"
	"context"
	"fmt"

	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/gate/codes"
)

// SetServer connects one more server, or replaces the one that has its id, and returns when it is
// ready or faulted, with the fault as the error. Clients stay connected and are notified of the
// tools; calls under way end where they were made. A configuration that is the server's already
// changes nothing. The change is in the audit log before it is done.
func (g *Gateway) SetServer(ctx context.Context, s Server) error {
	if g.player.Stubs(s.Server) {
		return fmt.Errorf("server %s: a recording answers for it, and nothing else", s.Server)
	}
	if s.Guest != nil && g.runtime == nil {
		return fmt.Errorf("server %s: this gateway was built without modules, and runs none", s.Server)
	}
	if err := g.now.Load().clean.Knows(s.Sanitize); err != nil {
		return fmt.Errorf("server %s: %w", s.Server, err)
	}
	if err := g.noteChange(s.Server, "configuration: set"); err != nil {
		return err
	}
	if err := g.checkServer(s); err != nil {
		return err
	}
	g.atOnce.set(s.Server, s.Concurrent)
	g.guests.set(s.Server, s.Guest)
	return g.fleet.Add(ctx, g.endpoint(ctx, s.Endpoint))
}

// RestartServer connects a server anew, with the configuration it has, and returns when it is ready
// or faulted, with the fault as the error. Calls in progress end where they were made. by names the
// requester, for the audit log, which has it first.
func (g operator) RestartServer(ctx context.Context, id, by string) error {
	if err := g.noteChange(id, "restarted by "+by); err != nil {
		return err
	}
	return g.fleet.Reload(ctx, id)
}

// checkServer has calls checked by the settings of a server.
func (g *Gateway) checkServer(s Server) error {
	g.setting.Lock()
	defer g.setting.Unlock()
	return g.check(g.now.Load().of(s), func(*gate.Parts) {})
}

// RemoveServer forgets a server. It is an error if no server has the id. Calls under way there go
// on, and their results are sanitized by the server's profile, which is kept.
func (g *Gateway) RemoveServer(id string) error {
	if err := g.noteChange(id, "configuration: removed"); err != nil {
		return err
	}
	err := g.fleet.Remove(id)
	g.atOnce.set(id, 0)
	g.guests.set(id, nil)
	return err
}

// noteChange records what the operator has done to a server. Its phase is recorded
// anew after that.
func (g *Gateway) noteChange(id, what string) error {
	if err := g.note(audit.Entry{Event: audit.Server, Server: id, Code: codes.OK, Reasons: []string{what}}); err != nil {
		return fmt.Errorf("server %s was not changed: %w", id, err)
	}
	g.phases.forget(id)
	return nil
}

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
	if guest, ok := g.guests.get(s.Server); ok {
		said = append(said, sum(guest.WASM), guest.Config.Limits)
		if s.Declared == "" {
			said = append(said, guest.Args, guest.Config.Args)
		}
		g.guest(&s, *guest)
	}
	s.Tools.Config = configOf(said...)
	return s
}

// ConfigRefused records why a configuration could not be read. The one in use stays.
func (g operator) ConfigRefused(err error) error {
	return g.note(audit.Entry{Event: audit.Server, Code: "failed", Error: err.Error(), Reasons: []string{"configuration: refused"}})
}
