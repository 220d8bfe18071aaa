package gateway

import (
	"context"

	"github.com/wasmgate/wasmgate/bridge/clean"
	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
)

// An Endpoint is the connection to one server. It connects on request, and again by itself whenever
// it is faulted. It is a [gate.Upstream] of only that server's tools. Use it from several
// goroutines.
type Endpoint struct{ of *upstream.Endpoint }

var _ gate.Upstream = (*Endpoint)(nil)

// NewEndpoint returns an endpoint in phase [status.Idle]. It starts nothing. Texts of definitions
// are sanitized as those of a gateway are unless cfg.Tools.Sanitizer says otherwise.
func NewEndpoint(cfg options.Endpoint) (*Endpoint, error) {
	if cfg.Tools.Sanitizer == nil {
		texts, err := clean.NewTexts(clean.Sanitize{})
		if err != nil {
			return nil, err
		}
		cfg.Tools.Sanitizer = texts
	}
	of, err := upstream.New(cfg)
	if err != nil {
		return nil, err
	}
	return &Endpoint{of}, nil
}

// Connect connects unless the endpoint is ready. Concurrent callers share one attempt, and one
// that leaves does not end it. The error is a [*fault.Fault] or wraps ctx.Err().
func (e *Endpoint) Connect(ctx context.Context) error { return e.of.Connect(ctx) }

// Phase returns where the endpoint is in its life.
func (e *Endpoint) Phase() status.Phase { return e.of.Phase() }

// Status tells how the endpoint is.
func (e *Endpoint) Status() status.Server { return e.of.Status() }

// Declared returns what the server has declared last, as it was written.
func (e *Endpoint) Declared() status.Declaration { return e.of.Declared() }

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
