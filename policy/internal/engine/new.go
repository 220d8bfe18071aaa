package engine

import (
	"context"
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/policy/internal/recent"
)

// New makes the queries of an engine.
func New(ctx context.Context, c Config) (*Engine, error) {
	e := &Engine{
		Config:  c,
		Wall:    patience * c.Timeout,
		persons: personsOf(c.Compiler.Modules, c.Packs, c.Granted),
		options: []func(*rego.Rego){
			rego.Compiler(c.Compiler), rego.Store(c.Store), c.Functions,
			rego.StrictBuiltinErrors(true), rego.SetRegoVersion(ast.RegoV1),
			// Results stay values of Rego; package decision reads them.
			rego.GenerateJSON(func(t *ast.Term, _ *rego.EvalContext) (any, error) { return t.Value, nil }),
		},
		keys:      recent.New[*gate.Principal, principalKey](keptPrincipals),
		decisions: recent.New[pairing, specialised](keptDecisions),
	}
	if c.Print != nil {
		e.options = append(e.options, rego.PrintHook(topdown.NewPrintHook(c.Print)))
	}
	for name, q := range map[string]*rego.PreparedEvalQuery{"decision": &e.decision, "deny": &e.deny} {
		var err error
		if *q, err = rego.New(e.with(rego.Query("data.wasmgate." + name))...).PrepareForEval(ctx); err != nil {
			return nil, fmt.Errorf("prepare policy: %w", err)
		}
	}
	var err error
	e.listing, err = e.newListing(ctx)
	return e, err
}
