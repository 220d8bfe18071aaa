package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/metrics"
	"github.com/open-policy-agent/opa/v1/rego"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/policy/internal/recent"
)

// unknowns are the parts of the input that are not known before a call is made.
// What a client says of itself is one of them: whoever lists may be another
// client of the same principal than the one that calls.
var unknowns = []*ast.Term{
	ast.MustParseTerm("input.arguments"), ast.MustParseTerm("input.session"), ast.MustParseTerm("input.provenance"), ast.MustParseTerm("input.carried"), ast.MustParseTerm("input.values"),
	ast.MustParseTerm("input.principal.client.name"), ast.MustParseTerm("input.principal.client.version"), ast.MustParseTerm("input.app"),
}

// keptVerdicts is half of how many verdicts are kept: 32 listers with 1,000
// tools, at about 100 bytes a verdict.
const keptVerdicts = 16_384

// keptPrincipals is half of how many principals something is kept of.
const keptPrincipals = 512

// listTime bounds the listing of all tools for one principal. It is far above
// what a policy takes that decides within its timeout.
const listTime = 10 * time.Second

// listing answers whether any call of a tool could pass, by partial evaluation
// of the sets of which decisions are made. Of the decision itself nothing could
// be told, because it depends on all of them at once.
type listing struct {
	sets     map[string]rego.PreparedPartialQuery // as far as there are rules
	verdicts *recent.Cache[pairing, listed]       // by [lister]
	listers  *recent.Cache[*gate.Principal, lister]
}

func newListing(ctx context.Context, c *ast.Compiler, options []func(*rego.Rego)) (*listing, error) {
	l := &listing{sets: map[string]rego.PreparedPartialQuery{}, verdicts: recent.New[pairing, listed](keptVerdicts), listers: recent.New[*gate.Principal, lister](keptPrincipals)}
	for _, set := range sets {
		// One rule is the declaration that the set exists.
		if len(c.GetRulesExact(ast.MustParseRef("data.wasmgate."+set))) <= 1 {
			continue
		}
		o := append(options[:len(options):len(options)], rego.Query("data.wasmgate."+set+"[_]"), rego.ParsedUnknowns(unknowns))
		q, err := rego.New(o...).PrepareForPartial(ctx)
		if err != nil {
			return nil, fmt.Errorf("prepare policy for listing: %w", err)
		}
		l.sets[set] = q
	}
	return l, nil
}

// Visible returns, for each tool, whether any call of it by who could pass:
// false if nothing allows it, or something denies, whatever the arguments,
// the session and the client's name are. A tool is visible if that cannot be
// told. Verdicts are kept, so listing again costs little.
func (e *Engine) Visible(ctx context.Context, who *gate.Principal, tools []*gate.Tool) (visible []bool, err error) {
	defer recoverTo(&err, func() { visible = nil })
	if who == nil {
		return nil, errors.New("policy: a listing needs a principal")
	}
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	as := e.lister(who)
	var term *ast.Term
	visible = make([]bool, len(tools))
	for i, tool := range tools {
		k := pairing{as.key, tool}
		v, known := e.listing.verdicts.Get(k)
		if !known {
			if term == nil {
				term = e.inputs.Principal(as.who)
			}
			var bodies []ast.Body
			if v.visible, bodies, known = e.visible(ctx, e.listingInput(term, tool), unknownOf(tool)...); known {
				if tool.Feature == gate.FeatureTool {
					v.definition = narrowed(tool.Definition, bodies)
				}
				e.listing.verdicts.Put(k, v)
			}
		}
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("policy: list tools: %w", err)
		}
		visible[i] = v.visible
	}
	return visible, nil
}

// listed is what is known of a tool and a principal.
type listed struct {
	visible    bool
	definition gate.Doc // as it is offered; absent if it is the tool's own
}

// visible returns the verdict on one tool, the ways in which a call can pass, and
// whether the verdict is more than a guess.
func (e *Engine) visible(ctx context.Context, input ast.Value, o ...rego.EvalOption) (visible bool, ways []ast.Body, known bool) {
	denied, err := e.partial(ctx, "deny", input, nil, o...)
	if err != nil {
		return true, nil, false
	}
	if slices.ContainsFunc(denied.Queries, func(b ast.Body) bool { return constant(b) && !lifted(b) }) {
		return false, nil, true
	}
	allowed, err := e.partial(ctx, "allow", input, nil, o...)
	switch {
	case err != nil:
		return true, nil, false
	case slices.ContainsFunc(allowed.Queries, constant):
		return true, nil, true
	}
	return len(allowed.Queries) > 0, allowed.Queries, true
}

// partial returns what is left of the rules of a set: one body for each way in
// which it can have a member. A nil risk is not looked for.
func (e *Engine) partial(ctx context.Context, set string, input ast.Value, r *risk, o ...rego.EvalOption) (*rego.PartialQueries, error) {
	q, ok := e.listing.sets[set]
	if !ok {
		return &rego.PartialQueries{}, nil
	}
	if r == nil {
		return e.remaining(ctx, q, input, o...)
	}
	return e.remaining(ctx, q, input, append(o, rego.EvalQueryTracer(r))...)
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

// constant reports whether what is left of a rule is true whatever the unknowns
// are. What is left then is the reason, or a variable that is given it; anything
// else counts as a condition.
func constant(body ast.Body) bool {
	if len(body) == 0 {
		return true
	}
	expr := body[0]
	if len(body) > 1 || expr.Negated || len(expr.With) > 0 {
		return false
	}
	if t, ok := expr.Terms.(*ast.Term); ok {
		_, boolean := t.Value.(ast.Boolean)
		return !boolean && constantTerm(t)
	}
	return expr.IsEquality() && (assigns(expr.Operand(0), expr.Operand(1)) || assigns(expr.Operand(1), expr.Operand(0)))
}

// lifted reports whether what is left of a rule of deny, and constant, is a denial that other
// scopes would lift: what it denies is not hidden, or nobody would ask for them.
func lifted(body ast.Body) bool {
	found := false
	ast.WalkTerms(body, func(t *ast.Term) bool {
		_, ok := t.Value.(ast.Object)
		found = found || ok
		return found
	})
	return found
}

// assigns reports whether a = b gives the variable a the value b.
func assigns(a, b *ast.Term) bool {
	_, ok := a.Value.(ast.Var)
	return ok && constantTerm(b)
}
