package gateway

import (
	"context"

	"github.com/wasmgate/wasmgate/bridge/internal/clean"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/session"
	"github.com/wasmgate/wasmgate/internal/schema"
)

// An Endpoint is the connection to one server. It connects when it is told to, and again by
// itself whenever it is faulted. It is a [gate.Upstream] of that server's tools alone. Use it
// from several goroutines.
type Endpoint struct{ of *upstream.Endpoint }

var _ gate.Upstream = (*Endpoint)(nil)

// NewEndpoint returns an endpoint in phase [Idle]. It starts nothing. Texts of definitions
// are made safe as those of a gateway are unless cfg.Tools.Sanitizer says otherwise, and
// cfg.Tools.Schemas is made if it is nil.
func NewEndpoint(cfg EndpointConfig) (*Endpoint, error) {
	if cfg.Tools.Sanitizer == nil {
		texts, err := clean.NewTexts(Sanitize{})
		if err != nil {
			return nil, err
		}
		cfg.Tools.Sanitizer = texts
	}
	if cfg.Tools.Schemas == nil {
		cfg.Tools.Schemas = schema.NewCompiler()
	}
	of, err := upstream.New(cfg)
	if err != nil {
		return nil, err
	}
	return &Endpoint{of}, nil
}

// NewSessions returns sessions as a gateway keeps them, in memory, for a [gate.Gate] that a program
// builds itself.
func NewSessions() gate.Sessions { return session.New(session.Options{}) }

// NewSanitizer returns a gateway's sanitizer for such a gate.
func NewSanitizer(o Sanitize) (gate.Sanitizer, error) { return clean.NewTexts(o) }

// Connect connects unless the endpoint is ready. Concurrent callers share one attempt, and one
// that leaves does not end it. The error is a [*Fault] or wraps ctx.Err().
func (e *Endpoint) Connect(ctx context.Context) error { return e.of.Connect(ctx) }

// Phase returns where the endpoint is in its life.
func (e *Endpoint) Phase() Phase { return e.of.Phase() }

// Status tells how the endpoint is.
func (e *Endpoint) Status() ServerStatus { return e.of.Status() }

// Declared returns what the server has declared last, as it was written.
func (e *Endpoint) Declared() Declaration { return e.of.Declared() }

// Close ends the connection and the server's process, and waits for both. It may be called more
// than once.
func (e *Endpoint) Close() error { return e.of.Close() }

// Lookup implements [gate.Upstream].
func (e *Endpoint) Lookup(ctx context.Context, action gate.Action, name string) (*gate.Tool, error) {
	return e.of.Lookup(ctx, action, name)
}

// Features implements [gate.Upstream].
func (e *Endpoint) Features(ctx context.Context, one gate.Feature) []*gate.Tool {
	return e.of.Features(ctx, one)
}

// Invoke implements [gate.Upstream].
func (e *Endpoint) Invoke(ctx context.Context, p gate.Permit) (gate.Result, error) {
	return e.of.Invoke(ctx, p)
}
