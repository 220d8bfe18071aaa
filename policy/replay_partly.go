package policy

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/wasmgate/wasmgate/gate"
)

// partKey is what a decision can depend on of which something is not known: the tool, what
// the session has read, and which parts are not known. Whose call it is, the session says.
type partKey struct {
	tool    *gate.Tool
	labels  string
	top     bool
	unknown string
}

// partial is a decision on a call of which something is not known.
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
		if part, err = p.engine.partly(ctx, q, p.call.Unknown); err != nil {
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

// partly decides on a query of which the parts in unknown are not known. Labels that a
// rule gives which needs them are all those of which the policy speaks.
func (e *Engine) partly(ctx context.Context, q gate.Query, unknown map[string]string) (partial, error) {
	q, err := e.checked(q)
	if err != nil {
		return partial{}, err
	}
	x, err := Explain(ctx, e, Case{Query: q, Unknown: unknown})
	if err != nil {
		return partial{}, err
	}
	part := partial{decision: gate.Decision{Effect: x.Effect, Revision: e.revision}}
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
			part.decision.Reasons = []string{nothingAllows(what(q), q.Call.Who.ID)}
		}
		return part, nil
	}
	input, unknowns, err := e.partInput(q, unknown)
	if err != nil {
		return partial{}, err
	}
	approves, err := e.left(ctx, ast.MustParseBody(`data.wasmgate.obligations[x]; object.get(x, "approve", false)`), input, unknowns)
	switch {
	case ctx.Err() != nil:
		return partial{}, fmt.Errorf("policy: replay: %w", ctx.Err())
	case x.Effect != gate.Allow:
	case err == nil && len(approves.Queries) == 0:
	case err == nil && slices.ContainsFunc(approves.Queries, func(b ast.Body) bool { return all(expressions(b), constant) }):
		part.decision.Effect = gate.Ask
	default: // whether a person is asked depends on it
		part.decision.Effect, part.missing = "", append(part.missing, slices.Collect(maps.Values(unknown))...)
	}
	slices.Sort(part.missing)
	part.missing = slices.Compact(part.missing)
	part.decision.Labels = e.labelsPartly(ctx, input, unknowns)
	return part, nil
}

// partInput returns the input of a query, and the parts of it that are not known.
func (e *Engine) partInput(q gate.Query, unknown map[string]string) (ast.Value, []*ast.Term, error) {
	unknowns := []*ast.Term{}
	for part := range unknown {
		t, err := ast.ParseTerm(part)
		if err != nil {
			return nil, nil, fmt.Errorf("unknown part of the input: %w", err)
		}
		unknowns = append(unknowns, t)
	}
	return e.inputs.Input(q), unknowns, nil
}

// labelsPartly returns the labels that a call gives, whatever is not known.
func (e *Engine) labelsPartly(ctx context.Context, input ast.Value, unknowns []*ast.Term) gate.Labels {
	const label = "x"
	left, err := e.left(ctx, ast.MustParseBody("data.wasmgate.labels["+label+"]"), input, unknowns)
	if err != nil {
		return e.every
	}
	var labels gate.Labels
	for _, body := range left.Queries {
		name, ok := labelIn(body)
		if !ok {
			return e.every
		}
		labels = labels.Join(gate.NewLabels(name))
	}
	return labels
}

// labelIn returns the label that what is left of a rule gives in any case.
func labelIn(body ast.Body) (string, bool) {
	if !constant(body) || len(body) == 0 {
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
