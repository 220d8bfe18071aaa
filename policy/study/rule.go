package study

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/policy/internal/decision"
	"github.com/wasmgate/wasmgate/policy/internal/engine"
)

type outcome int

const (
	fails outcome = iota
	holds
	isOpen
	breaks // cannot be evaluated
)

// evaluator evaluates rules for one call.
type evaluator struct {
	engine   *engine.Engine
	ctx      context.Context
	input    ast.Value
	unknowns []*ast.Term
	missing  map[string]string
	decision gate.Decision // by the same policy; zero if unknown
	nothing  []string      // the possible reasons if nothing allows
}

func newEvaluator(ctx context.Context, e *engine.Engine, q gate.Query, call Case) (*evaluator, error) {
	c := &evaluator{engine: e, ctx: ctx, input: e.Inputs.Input(q), missing: call.Unknown, unknowns: []*ast.Term{}}
	if call.Decision.Revision == e.Revision {
		c.decision = call.Decision
	}
	for part := range call.Unknown {
		t, err := ast.ParseTerm(part)
		if err != nil {
			return nil, fmt.Errorf("unknown part of the input: %w", err)
		}
		c.unknowns = append(c.unknowns, t)
	}
	c.nothing = c.nothingAllows(q)
	return c, nil
}

// explainSet finds out what comes of the rules of one set: those that hold, and those
// that cannot be evaluated, go into the maps, the others into x.
func (c *evaluator) explainSet(x *Explanation, set string, hold, broken map[string][]Explained) error {
	path := ast.MustParseRef("data.wasmgate." + set)
	indexed, err := c.engine.Compiler.RuleIndex(path).Lookup(c)
	if err != nil {
		return fmt.Errorf("policy: explain: %w", err)
	}
	for _, r := range c.engine.Compiler.GetRulesExact(path) {
		if r.Location.File == declarations {
			continue
		}
		one, outcome, err := c.rule(set, r)
		if err != nil {
			return err
		}
		if outcome == breaks && (!slices.Contains(indexed.Rules, r) || c.evaluates(set)) {
			outcome, one.Condition = fails, c.excluding(r)
		}
		if outcome == isOpen {
			outcome = c.deduce(set, one.Reason)
		}
		switch {
		case outcome == holds:
			if set == string(gate.Deny) {
				one.Holds = one.body
			}
			hold[set] = append(hold[set], one)
		case outcome == isOpen:
			x.Open = append(x.Open, one)
		case outcome == breaks:
			broken[set] = append(broken[set], one)
		case set == string(gate.Allow) && one.held > 0:
			x.Nearly = append(x.Nearly, one)
		}
	}
	return nil
}

// evaluates reports whether a set evaluates as a whole where all is known, so that none of its
// rules breaks: the evaluation does not come to the condition that would.
func (c *evaluator) evaluates(set string) bool {
	if len(c.missing) > 0 {
		return false
	}
	_, err := c.engine.Query(c.ctx, ast.MustParseBody("data.wasmgate."+set), c.input)
	return err == nil
}

// nothingAllows returns what may have been the only reason if nothing allowed a query. Whether a server
// asked for a secret is in it, which is not known without the request.
func (c *evaluator) nothingAllows(q gate.Query) []string {
	reasons := []string{engine.NothingAllows(engine.Subject(q), q.Call.Who.ID)}
	if q.Call.Action == actions.Elicit && q.Call.Args.IsZero() {
		reasons = append(reasons, engine.NothingAllows(engine.SecretSubject(q), q.Call.Who.ID))
	}
	return reasons
}

// deduce returns what came of an open rule, by the decision that was taken.
func (c *evaluator) deduce(set, reason string) outcome {
	d := c.decision
	switch {
	case d.Effect == "":
		return isOpen
	case d.Effect == gate.Deny && len(d.Reasons) == 1 && slices.Contains(c.nothing, d.Reasons[0]),
		d.Effect != gate.Deny && set == string(gate.Deny),
		d.Effect == gate.Allow && set == string(gate.Ask):
		return fails // the set had no member
	case set != string(d.Effect) || reason == "":
		return isOpen
	case slices.Contains(d.Reasons, reason):
		return holds
	default:
		return fails
	}
}

// rule finds out what comes of one rule, condition by condition.
func (c *evaluator) rule(set string, r *ast.Rule) (Explained, outcome, error) {
	one := Explained{Set: set, File: r.Location.File, Line: r.Location.Row, body: c.conditions(r)}
	var firstOpen *Condition
	firstAt := 0
	for n := 1; n <= len(r.Body); n++ {
		result, err := c.evaluate(r, n)
		switch {
		case c.ctx.Err() != nil:
			return one, fails, fmt.Errorf("policy: explain: %w", c.ctx.Err())
		case err != nil:
			one.Condition = c.condition(r, n-1)
			one.Condition.Error = err.Error()
			if firstOpen != nil || c.mayExclude(r) { // it may not come to that
				one.Unknown = slices.Sorted(maps.Values(c.missing))
				return one, isOpen, nil
			}
			return one, breaks, nil
		case result.outcome == fails:
			one.Condition, one.held = c.condition(r, n-1), held(r, n-1)
			return one, fails, nil
		case result.outcome == isOpen && firstOpen == nil:
			firstOpen, firstAt = c.condition(r, n-1), n-1
		}
		if n == len(r.Body) {
			one.Reason, one.Unknown = result.reason, result.unknown
			if result.outcome == isOpen {
				one.Condition, one.held = firstOpen, held(r, firstAt)
				return one, isOpen, nil
			}
		}
	}
	return one, holds, nil
}

// excluding returns the condition by which the rule index passes a rule over that
// would break otherwise. Such conditions stand for themselves.
func (c *evaluator) excluding(r *ast.Rule) *Condition {
	for i, e := range r.Body {
		if x, err := c.solve(ast.NewBody(e.Copy())); err == nil && x.outcome == fails {
			return c.condition(r, i)
		}
	}
	return c.condition(r, 0)
}

// mayExclude reports whether what is not known could let the rule index pass a
// rule over.
func (c *evaluator) mayExclude(r *ast.Rule) (may bool) {
	ast.WalkRefs(r.Body, func(ref ast.Ref) bool {
		_, err := c.Resolve(ref)
		may = may || err != nil && ref[0].Equal(ast.InputRootDocument)
		return false
	})
	return may
}

// Resolve returns a part of the input for the rule index.
func (c *evaluator) Resolve(ref ast.Ref) (ast.Value, error) {
	open := slices.ContainsFunc(c.unknowns, func(u *ast.Term) bool {
		unknown := u.Value.(ast.Ref)
		return ref.HasPrefix(unknown) || unknown.HasPrefix(ref)
	})
	if open || !ref[0].Equal(ast.InputRootDocument) {
		return nil, ast.UnknownValueErr{}
	}
	v, err := c.input.Find(ref[1:])
	if err != nil {
		return nil, nil // it is undefined
	}
	return v, nil
}

// evaluated is what is left of the beginning of a body.
type evaluated struct {
	outcome outcome
	reason  string
	unknown []string // what it depends on
}

// reasonVar is bound to the member that a rule adds.
const reasonVar = ast.Var("reason of the rule")

// evaluate evaluates the first n conditions of a rule.
func (c *evaluator) evaluate(r *ast.Rule, n int) (evaluated, error) {
	body := r.Body[:n:n].Copy()
	if n == len(r.Body) && r.Head.Key != nil {
		body = append(body, ast.Equality.Expr(ast.NewTerm(reasonVar), r.Head.Key.Copy()))
	}
	return c.solve(body)
}

// solve evaluates a body as far as it is known. Partial evaluation would do for
// one that is wholly known, but does not find values that clash.
func (c *evaluator) solve(body ast.Body) (evaluated, error) {
	if len(c.unknowns) == 0 {
		return c.known(body)
	}
	left, err := c.engine.Left(c.ctx, body, c.input, c.unknowns)
	if err != nil {
		return evaluated{}, err
	}
	x := evaluated{outcome: fails}
	for _, body := range left.Queries {
		if engine.All(expressions(body), engine.Constant) {
			return evaluated{outcome: holds, reason: reasonIn(body)}, nil
		}
		x.outcome, x.reason = isOpen, reasonIn(body)
		x.unknown = append(x.unknown, c.missingIn(body)...)
	}
	slices.Sort(x.unknown)
	x.unknown = slices.Compact(x.unknown)
	return x, nil
}

// expressions returns each expression as a body of its own.
func expressions(body ast.Body) []ast.Body {
	var list []ast.Body
	for _, e := range body {
		list = append(list, ast.NewBody(e))
	}
	return list
}

// reasonIn returns the member that a body gives, or "" if it is not known.
func reasonIn(body ast.Body) string {
	for _, e := range body {
		if !e.IsEquality() {
			continue
		}
		for i, side := range e.Operands() {
			if side.Value.Compare(reasonVar) == 0 {
				return decision.Reason(e.Operand(1 - i).Value)
			}
		}
	}
	return ""
}

// missingIn says what is missing for a body to be evaluated.
func (c *evaluator) missingIn(body ast.Body) []string {
	var said []string
	ast.WalkRefs(body, func(ref ast.Ref) bool {
		for part, text := range c.missing {
			if ref.HasPrefix(ast.MustParseRef(part)) {
				said = append(said, text)
			}
		}
		return false
	})
	if said == nil { // within a helper
		said = slices.Collect(maps.Values(c.missing))
	}
	return said
}

// known evaluates a body for which everything is known.
func (c *evaluator) known(body ast.Body) (evaluated, error) {
	for _, x := range body {
		// As a condition, a value that is false fails; as a query it is an answer.
		if t, ok := x.Terms.(*ast.Term); ok && !x.Negated {
			x.Terms = ast.NotEqual.Expr(t, ast.InternedTerm(false)).Terms
		}
	}
	rs, err := c.engine.Query(c.ctx, body, c.input)
	switch {
	case err != nil:
		return evaluated{}, err
	case len(rs) == 0:
		return evaluated{outcome: fails}, nil
	}
	return evaluated{outcome: holds, reason: decision.Reason(rs[0].Bindings[string(reasonVar)])}, nil
}
