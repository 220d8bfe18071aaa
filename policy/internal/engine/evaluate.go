package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/metrics"
	"github.com/open-policy-agent/opa/v1/rego"

	"github.com/wasmgate/wasmgate/gate"
)

// eval returns the value of a query.
func (e *Engine) eval(ctx context.Context, q rego.PreparedEvalQuery, input ast.Value) (ast.Value, error) {
	end := e.deadline(ctx)
	rs, err := q.Eval(ctx, rego.EvalParsedInput(input), rego.EvalExternalCancel(end), rego.EvalMetrics(metrics.NoOp()))
	switch {
	case end.over != nil:
		return nil, e.late(end.over)
	case err != nil:
		return nil, fmt.Errorf("policy: %w", err)
	case len(rs) != 1 || len(rs[0].Expressions) != 1:
		return nil, errors.New("policy: data.wasmgate.decision is undefined")
	}
	v, _ := rs[0].Expressions[0].Value.(ast.Value)
	return v, nil
}

// Query evaluates a body.
func (e *Engine) Query(ctx context.Context, body ast.Body, input ast.Value) (rego.ResultSet, error) {
	q, err := rego.New(e.with(rego.ParsedQuery(body))...).PrepareForEval(ctx)
	if err != nil {
		return nil, err
	}
	end := e.deadline(ctx)
	rs, err := q.Eval(ctx, rego.EvalParsedInput(input), rego.EvalExternalCancel(end))
	if end.over != nil {
		return nil, e.late(end.over)
	}
	return rs, err
}

// Left partially evaluates a body, and returns what is left of it.
func (e *Engine) Left(ctx context.Context, body ast.Body, input ast.Value, unknowns []*ast.Term) (*rego.PartialQueries, error) {
	q, err := rego.New(e.with(rego.ParsedQuery(body), rego.ParsedUnknowns(unknowns))...).PrepareForPartial(ctx)
	if err != nil {
		return nil, err
	}
	return e.remaining(ctx, q, input)
}

// remaining returns what is left of a query.
func (e *Engine) remaining(ctx context.Context, q rego.PreparedPartialQuery, input ast.Value, o ...rego.EvalOption) (*rego.PartialQueries, error) {
	end := e.deadline(ctx)
	o = append(o, rego.EvalParsedInput(input), rego.EvalExternalCancel(end), rego.EvalMetrics(metrics.NoOp()))
	rest, err := q.Partial(ctx, o...)
	if end.over != nil {
		return nil, end.over
	}
	return rest, err
}

// late is the error of a decision that was not reached before its end.
func (e *Engine) late(over error) error {
	switch {
	case errors.Is(over, errSteps):
		return fmt.Errorf("policy: no decision within the %d steps that policy.timeout (%v) allows: %w", e.steps(), e.Timeout, over)
	case errors.Is(over, gate.ErrOverdue):
		return fmt.Errorf("policy: the gateway is too busy: no decision within %v: %w", e.Wall, over)
	}
	return fmt.Errorf("policy: no decision: %w", over)
}

// What bounds a decision is how much work it is, which does not depend on what else the
// machine does: a step takes about a microsecond where there is time. The clock bounds it
// too, but far above, and then it is the gateway that was too slow.
const (
	stepTime = time.Microsecond
	patience = 10 // times the timeout, on the clock
)

func (e *Engine) steps() int { return max(int(e.Timeout/stepTime), 1) }

var errSteps = errors.New("the policy needs too many evaluation steps")

// deadline ends an evaluation. OPA asks it at every step, from one goroutine; it
// looks at the clock itself, which costs less than a timer and a goroutine for
// each decision.
type deadline struct {
	ctx   context.Context
	steps int // that are left
	at    time.Time
	over  error // why the evaluation was ended
}

func (e *Engine) deadline(ctx context.Context) *deadline {
	return &deadline{ctx: ctx, steps: e.steps(), at: time.Now().Add(e.Wall)}
}

// askedBetween is how many steps pass between two looks at the clock.
const askedBetween = 16

// Cancel is not used: the deadline alone ends an evaluation.
func (d *deadline) Cancel() {}

// Cancelled reports whether the evaluation has to end.
func (d *deadline) Cancelled() bool {
	if d.over != nil {
		return true
	}
	if d.steps%askedBetween == 0 {
		if d.over = d.ctx.Err(); d.over == nil && time.Now().After(d.at) {
			d.over = gate.ErrOverdue
		}
	}
	if d.steps--; d.steps < 0 && d.over == nil {
		d.over = errSteps
	}
	return d.over != nil
}
