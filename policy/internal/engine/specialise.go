package engine

import (
	"context"
	"crypto/sha256"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/policy/internal/input"
)

// A decision is fixed if nothing that is known only when the call is made can
// change it: not the arguments, the session, the provenance or the client's
// name. It is then taken once, in full, for each principal and tool, and kept.
// It is guarded if only the rules of deny can change it: then they alone are
// evaluated for each call.
//
// That is proved by partial evaluation of the sets that make a decision. A
// set is fixed if only constants are left of it, and if no expression that could
// not be evaluated could have failed: to_number of an argument that is no number
// is an error, whatever the rest of its rule says. What cannot be proved is
// evaluated in full for each call.

// keptDecisions is half of how many fixed decisions are kept, at about 300 bytes
// each: 8 principals with 1,000 tools, or many with those that they use.
const keptDecisions = 8192

// specialised says what is known of the calls that a pairing makes.
type specialised struct {
	state    state
	taken    bool          // whether decision is
	decision gate.Decision // if the state is fixed; or is guarded, and no rule of deny holds
}

type state int

const (
	unknown state = iota // not met before
	met                  // once: most that are met once are not met again, and to prove costs ten decisions
	open                 // it may depend on the call in any way
	guarded
	fixed
)

// key returns the key of a principal, which is hashed once for its address.
func (e *Engine) key(who *gate.Principal) principalKey {
	if k, ok := e.keys.Get(who); ok {
		return k
	}
	k := principalKey(sha256.Sum256([]byte(e.Inputs.Principal(who).String())))
	e.keys.Put(who, k)
	return k
}

// specialise decides, and evaluates only what can differ from other decisions
// for the same principal and tool.
func (e *Engine) specialise(ctx context.Context, q gate.Query) (gate.Decision, error) {
	p := pairing{e.key(q.Call.Who), q.Tool}
	s, _ := e.decisions.Get(p)
	switch s.state {
	case unknown:
		e.decisions.Put(p, specialised{state: met})
		return e.Full(ctx, q)
	case met:
		if s.state = e.prove(ctx, q); s.state == unknown {
			return e.Full(ctx, q)
		}
		e.decisions.Put(p, s)
	}
	if s.state == open {
		return e.Full(ctx, q)
	}
	if s.state == guarded {
		if d, denied, err := e.denied(ctx, q); denied || err != nil {
			return d, err
		}
	}
	if s.taken {
		if err := ctx.Err(); err != nil {
			return gate.Decision{}, e.late(err)
		}
		return s.decision, nil
	}
	d, err := e.Full(ctx, q)
	if err == nil { // an error is not kept
		e.decisions.Put(p, specialised{s.state, true, shared(d)})
	}
	return d, err
}

// denied evaluates the rules of deny alone, and decides if one holds.
func (e *Engine) denied(ctx context.Context, q gate.Query) (gate.Decision, bool, error) {
	v, err := e.eval(ctx, e.deny, e.Inputs.Input(q))
	if err != nil {
		return gate.Decision{}, false, err
	}
	if reasons, ok := v.(ast.Set); ok && reasons.Len() == 0 {
		return gate.Decision{}, false, nil
	}
	none := ast.SetTerm()
	d, err := e.decode(ast.NewObject(
		input.Pair("effect", ast.InternedTerm("deny")), input.Pair("reasons", ast.NewTerm(v)), input.Pair("obligations", none), input.Pair("labels", none)))
	if err != nil {
		return gate.Decision{}, false, err
	}
	return e.complete(ctx, q, d), true, nil
}

// shared returns the decision so that who appends to its lists changes a copy.
func shared(d gate.Decision) gate.Decision {
	d.Reasons, d.Scopes, d.Obligations, d.Labels = slices.Clip(d.Reasons), slices.Clip(d.Scopes), slices.Clip(d.Obligations), slices.Clip(d.Labels)
	return d
}

// prove returns fixed, guarded or open, or unknown if ctx ended before that was
// known.
func (e *Engine) prove(ctx context.Context, q gate.Query) state {
	r := remains{
		engine: e, ctx: ctx, state: fixed,
		input: e.ListingInput(e.Inputs.Principal(q.Call.Who), q.Tool),
	}
	denied := r.of("deny") > 0
	best := fixed
	if r.state == open {
		r.state, best = fixed, guarded
	}
	// As in decision.rego, what has no say is not looked at.
	if !denied && r.of("allow") > 0 {
		r.of("ask")
		r.of("obligations")
		r.of("labels")
	}
	return min(r.state, best)
}

// remains looks at what is left of one set after another, until one is open.
type remains struct {
	engine *Engine
	ctx    context.Context
	input  ast.Value
	state  state
}

// of returns how many members a set has, whatever the unknowns are.
func (r *remains) of(set string) int {
	if r.state != fixed {
		return 0
	}
	var risk risk
	rest, err := r.engine.Partial(r.ctx, set, r.input, rego.EvalQueryTracer(&risk))
	switch {
	case r.ctx.Err() != nil:
		r.state = unknown
		return 0
	case err != nil, risk.taken, !All(rest.Queries, Constant):
		r.state = open
		return 0
	}
	return len(rest.Queries)
}

// risk watches a partial evaluation for expressions that were not evaluated and
// could fail in a call, which would be no decision. What can neither fail nor
// clash with another value is a plain comparison in the body of a member of a set.
type risk struct {
	members map[uint64]bool // queries that are such bodies
	taken   bool
}

func (*risk) Enabled() bool               { return true }
func (*risk) Config() topdown.TraceConfig { return topdown.TraceConfig{} }

// TraceEvent is called by OPA for each step.
func (r *risk) TraceEvent(e topdown.Event) {
	switch e.Op {
	case topdown.EnterOp:
		if rule, ok := e.Node.(*ast.Rule); ok && rule.Head.RuleKind() == ast.MultiValue && len(rule.Head.Ref()) == 1 {
			if r.members == nil {
				r.members = map[uint64]bool{}
			}
			r.members[e.QueryID] = true
		}
	case topdown.SaveOp:
		expr, ok := e.Node.(*ast.Expr)
		r.taken = r.taken || !ok || !r.members[e.QueryID] || !plainExpr(expr)
	}
}

// comparisons are the built-in functions that take any values and never fail.
var comparisons = map[string]bool{
	ast.Equality.Name: true, ast.Equal.Name: true, ast.NotEqual.Name: true,
	ast.LessThan.Name: true, ast.LessThanEq.Name: true, ast.GreaterThan.Name: true, ast.GreaterThanEq.Name: true,
	ast.Member.Name: true,
}

// plainExpr reports whether an expression compares parts of the input with each
// other or with constants, and does nothing else.
func plainExpr(expr *ast.Expr) bool {
	if expr.Negated || len(expr.With) > 0 {
		return false
	}
	switch terms := expr.Terms.(type) {
	case *ast.Term:
		return plainTerm(terms)
	case []*ast.Term:
		return comparisons[expr.Operator().String()] && !slices.ContainsFunc(terms[1:], func(t *ast.Term) bool { return !plainTerm(t) })
	default:
		return false
	}
}

// plainTerm reports whether a term is a constant, a variable, or a part of the
// input or of a variable's value.
func plainTerm(t *ast.Term) bool {
	switch v := t.Value.(type) {
	case ast.Null, ast.Boolean, ast.Number, ast.String, ast.Var:
		return true
	case ast.Ref:
		if v[0].Equal(ast.DefaultRootDocument) {
			return false
		}
		return !slices.ContainsFunc(v, func(t *ast.Term) bool { return !plainTerm(t) })
	default:
		return ConstantTerm(t)
	}
}

// Kept returns how many decisions are kept that nothing can change, and that only rules of deny
// can change.
func (e *Engine) Kept() (fixedOnes, guardedOnes int) {
	for _, s := range e.decisions.All() {
		switch {
		case s.taken && s.state == fixed:
			fixedOnes++
		case s.taken && s.state == guarded:
			guardedOnes++
		}
	}
	return fixedOnes, guardedOnes
}
