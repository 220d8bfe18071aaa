package gateway

import (
	"context"
	"fmt"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
)

// A Server is an MCP server that comes, or changes, while the gateway runs.
type Server struct {
	EndpointConfig
	// Guest is the WASM module that the server is, if it is one; nothing else says
	// then how it is reached.
	Guest *Guest
	// Sanitize is the profile for its texts; "" leaves that to [Config.Sanitize].
	Sanitize string
	// Input says how arguments are held against its schemas; nil coerces.
	Input *InputRules
	// Concurrent is how many calls may be under way there; zero or less sets no limit
	// of its own.
	Concurrent int
}

// SetServer connects one more server, or another in the place of the one that has its
// id, and returns when it is ready or faulted, with the fault as the error. Clients
// stay connected and are told of the tools; calls under way end where they were made.
// See [Fleet.Add]. The audit log has it before it is done.
func (g *Gateway) SetServer(ctx context.Context, s Server) error {
	if g.player.stubs(s.Server) {
		return fmt.Errorf("server %s: a recording answers for it, and nothing else", s.Server)
	}
	if s.Guest != nil && g.runtime == nil {
		return fmt.Errorf("server %s: this gateway was built without modules, and runs none", s.Server)
	}
	if err := g.clean.check(s.Sanitize); err != nil {
		return fmt.Errorf("server %s: %w", s.Server, err)
	}
	if err := g.noteChange(s.Server, "set"); err != nil {
		return err
	}
	g.clean.servers.set(s.Server, s.Sanitize)
	g.inputs.set(s.Server, s.Input)
	g.atOnce.set(s.Server, s.Concurrent)
	g.guests.set(s.Server, s.Guest)
	return g.fleet.Add(ctx, g.endpoint(ctx, s.EndpointConfig))
}

// RemoveServer forgets a server: see [Fleet.Remove]. Calls under way there go on,
// and what comes of them is sanitized by the server's profile, which is kept.
func (g *Gateway) RemoveServer(id string) error {
	if err := g.noteChange(id, "removed"); err != nil {
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
	if err := g.note(audit.Entry{Event: audit.Server, Server: id, Code: gate.CodeOK, Reasons: []string{"configuration: " + what}}); err != nil {
		return fmt.Errorf("server %s stays as it was: %w", id, err)
	}
	g.phases.forget(id)
	return nil
}

// endpoint completes the configuration of a server with what is the gateway's.
func (g *Gateway) endpoint(ctx context.Context, s EndpointConfig) EndpointConfig {
	s.Tools.Sanitizer, s.Tools.Schemas = g.clean, g.schemas
	if s.MaxMessage == 0 {
		s.MaxMessage = g.cfg.Limits.Result
	}
	if guest, ok := g.guests.get(s.Server); ok {
		g.guest(&s, *guest)
	}
	return s
}

// ConfigRefused records why a configuration could not be read. The one in use stays.
func (g *Gateway) ConfigRefused(err error) error {
	return g.note(audit.Entry{Event: audit.Server, Code: "failed", Error: err.Error(), Reasons: []string{"configuration: refused"}})
}
