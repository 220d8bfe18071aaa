package study

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/policy/internal/engine"
)

// partKey is what a decision on a partly known call can depend on: the tool, what
// the session has read, and which parts are not known. Whose call it is, the session says.
type partKey struct {
	tool    *gate.Tool
	labels  string
	top     bool
	unknown string
}

// partial is a decision on a call that is partly known.
type partial struct {
	decision gate.Decision // without an effect if it depends on that
	missing  []string      // what it depends on
}

// authorizePartly decides on the call under way, as far as that does not depend on what is
// not known of it.
func (p *player) authorizePartly(ctx context.Context, q gate.Query) (gate.Decision, error) {
	key := partKey{q.Tool, strings.Join(q.Session.Labels, " "), q.Session.Top, strings.Join(slices.Sorted(maps.Keys(p.call.Unknown)), " ")}
	part, known := p.partly[key]
	if !known {
		var err error
		if part, err = partly(ctx, p.engine, q, p.call.Unknown); err != nil {
			return gate.Decision{}, err
		}
		p.partly[key] = part
	}
	if part.decision.Effect != "" {
		return p.decide(part.decision), nil
	}
	p.decided = gate.Decision{Reasons: part.missing}
	d := gate.Decision{Effect: gate.Deny, Reasons: part.missing}
	if p.call.passed() {
		d = gate.Decision{Effect: gate.Allow, Labels: part.decision.Labels}
	}
	return d, nil
}

// partly decides on a query without the parts in unknown. If a rule that gives labels needs them,
// the labels are all that the policy names.
func partly(ctx context.Context, e *engine.Engine, q gate.Query, unknown map[string]string) (partial, error) {
	q, err := e.Checked(q)
	if err != nil {
		return partial{}, err
	}
	x, err := explain(ctx, e, Case{Query: q, Unknown: unknown})
	if err != nil {
		return partial{}, err
	}
	part := partial{decision: gate.Decision{Effect: x.Effect, Revision: e.Revision}}
	for _, one := range x.Decided {
		part.decision.Reasons = append(part.decision.Reasons, one.Reason)
	}
	for _, one := range x.Open {
		part.missing = append(part.missing, one.Unknown...)
	}
	if x.Effect == gate.Deny {
		if x.Error != "" {
			part.decision.Reasons = []string{x.Error}
		} else if x.Decided == nil {
			part.decision.Reasons = []string{engine.NothingAllows(engine.Subject(q), q.Call.Who.ID)}
		}
		return part, nil
	}
	input, unknowns, err := partInput(e, q, unknown)
	if err != nil {
		return partial{}, err
	}
	approves, err := e.Left(ctx, ast.MustParseBody(`data.wasmgate.obligations[x]; object.get(x, "approve", false)`), input, unknowns)
	switch {
	case ctx.Err() != nil:
		return partial{}, fmt.Errorf("policy: replay: %w", ctx.Err())
	case x.Effect != gate.Allow:
	case err == nil && len(approves.Queries) == 0:
	case err == nil && slices.ContainsFunc(approves.Queries, func(b ast.Body) bool { return engine.All(expressions(b), engine.Constant) }):
		part.decision.Effect = gate.Ask
	default: // whether a person is asked depends on it
		part.decision.Effect, part.missing = "", append(part.missing, slices.Collect(maps.Values(unknown))...)
	}
	slices.Sort(part.missing)
	part.missing = slices.Compact(part.missing)
	part.decision.Labels = labelsPartly(ctx, e, input, unknowns)
	return part, nil
}

// partInput returns the input of a query, and the parts of it that are not known.
func partInput(e *engine.Engine, q gate.Query, unknown map[string]string) (ast.Value, []*ast.Term, error) {
	unknowns := []*ast.Term{}
	for part := range unknown {
		t, err := ast.ParseTerm(part)
		if err != nil {
			return nil, nil, fmt.Errorf("unknown part of the input: %w", err)
		}
		unknowns = append(unknowns, t)
	}
	return e.Inputs.Input(q), unknowns, nil
}

// labelsPartly returns the labels that a call gives, whatever is not known.
func labelsPartly(ctx context.Context, e *engine.Engine, input ast.Value, unknowns []*ast.Term) gate.Labels {
	const label = "x"
	left, err := e.Left(ctx, ast.MustParseBody("data.wasmgate.labels["+label+"]"), input, unknowns)
	if err != nil {
		return e.Every
	}
	var labels gate.Labels
	for _, body := range left.Queries {
		name, ok := labelIn(body)
		if !ok {
			return e.Every
		}
		labels = labels.Join(gate.NewLabels(name))
	}
	return labels
}

// labelIn returns the label that what is left of a rule gives in any case.
func labelIn(body ast.Body) (string, bool) {
	if !engine.Constant(body) || len(body) == 0 {
		return "", false
	}
	for _, side := range body[0].Operands() {
		if text, ok := side.Value.(ast.String); ok {
			return string(text), true
		}
	}
	if t, ok := body[0].Terms.(*ast.Term); ok {
		text, ok := t.Value.(ast.String)
		return string(text), ok
	}
	return "", false
}
