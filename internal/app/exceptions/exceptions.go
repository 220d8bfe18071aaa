// Package exceptions writes exceptions from what a rule has found into the configuration.
package exceptions

import (
	"context"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/app/operation"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/config/except"
	"github.com/wasmgate/wasmgate/policy"
)

// The operations of exceptions.
var (
	Find  = operation.New[except.Found, except.Offers]("exceptions")
	Write = operation.New[Request, Written]("except")
)

// Gateway is the one that decides who may write exceptions.
type Gateway interface {
	// Admin decides on what someone who runs the gateway would do, and records it if it changes something.
	Admin(ctx context.Context, q policy.AdminQuery, changes bool) error
}

// Exceptions are those of one gateway.
type Exceptions struct {
	Gateway Gateway
	Config  func() *config.Config // in use
}

// Operations adds those of exceptions to a table. The local operator writes.
func (all Exceptions) Operations(t operation.Table) {
	Find.Add(t, func(_ context.Context, f except.Found) (except.Offers, error) { return all.Offers(f) })
	Write.Add(t, func(ctx context.Context, r Request) (Written, error) {
		return all.Write(ctx, policy.AdminQuery{Who: gate.Local(), Operator: true}, r)
	})
}

// Offers are those that could be made from what a rule has found.
func (all Exceptions) Offers(f except.Found) (except.Offers, error) {
	return except.Offered(all.Config(), f)
}

// A Request asks for one of the [Exceptions.Offers], as they were seen.
type Request struct {
	Found except.Found `json:"found"`
	Name  string       `json:"name"`
	Seen  string       `json:"seen"`
}

// Written is where an exception was written.
type Written struct {
	File   string `json:"file"`
	Line   string `json:"line"`
	Advice string `json:"advice,omitempty"` // what to do so that other gateways have it, too
}

// Write writes an exception into the configuration. What it is is decided on, and recorded, before.
func (all Exceptions) Write(ctx context.Context, by policy.AdminQuery, r Request) (Written, error) {
	cfg := all.Config()
	e, err := except.Named(cfg, r.Found, r.Name)
	if err != nil {
		return Written{}, err
	}
	by.Action, by.Op, by.Object = "admin/grant", "exceptions.write", e.String()
	if err := all.Gateway.Admin(ctx, by, true); err != nil {
		return Written{}, err
	}
	line, err := except.Write(cfg.File, r.Seen, e)
	return Written{cfg.File, line, cfg.Store.Advice(cfg.File)}, err
}
