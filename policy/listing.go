package policy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/metrics"
	"github.com/open-policy-agent/opa/v1/rego"

	"github.com/wasmgate/wasmgate/gate"
)

// unknowns are the parts of the input that are not known before a call is made.
// What a client says of itself is one of them: whoever lists may be another
// client of the same principal than the one that calls.
var unknowns = []*ast.Term{
	ast.MustParseTerm("input.arguments"), ast.MustParseTerm("input.session"), ast.MustParseTerm("input.provenance"),
	ast.MustParseTerm("input.principal.client.name"), ast.MustParseTerm("input.principal.client.version"),
}

// keptVerdicts is half of how many verdicts are kept: 32 principals with 1,000
// tools, at about 100 bytes a verdict.
const keptVerdicts = 16_384

// listTime bounds the listing of all tools for one principal. It is far above
// what a policy takes that decides within its timeout.
const listTime = 10 * time.Second

// listing answers whether any call of a tool could pass, by partial evaluation
// of the sets of which decisions are made. Of the decision itself nothing could
// be told, because it depends on all of them at once.
type listing struct {
	pass     []rego.PreparedPartialQuery // allow and ask, as far as there are rules
	deny     []rego.PreparedPartialQuery // at most one
	verdicts *cache[verdictKey, bool]
}

type verdictKey struct {
	who  string
	tool *gate.Tool
}

func newListing(ctx context.Context, c *ast.Compiler, options []func(*rego.Rego)) (*listing, error) {
	l := &listing{verdicts: newCache[verdictKey, bool](keptVerdicts)}
	for _, set := range []string{"allow", "ask", "deny"} {
		// One rule is the declaration that the set exists.
		if len(c.GetRulesExact(ast.MustParseRef("data.wasmgate."+set))) <= 1 {
			continue
		}
		o := append(options[:len(options):len(options)], rego.Query("data.wasmgate."+set+"[_]"), rego.ParsedUnknowns(unknowns))
		q, err := rego.New(o...).PrepareForPartial(ctx)
		if err != nil {
			return nil, fmt.Errorf("prepare policy for listing: %w", err)
		}
		if set == "deny" {
			l.deny = append(l.deny, q)
		} else {
			l.pass = append(l.pass, q)
		}
	}
	return l, nil
}

// Visible returns, for each tool, whether any call of it by who could pass:
// false if nothing allows or asks, or something denies, whatever the arguments,
// the session and the client's name are. A tool is visible if that cannot be
// told. Verdicts are kept, so listing again costs little.
func (e *Engine) Visible(ctx context.Context, who *gate.Principal, tools []*gate.Tool) (visible []bool, err error) {
	defer recoverTo(&err, func() { visible = nil })
	if who == nil {
		return nil, errors.New("policy: tools are listed for nobody")
	}
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	key := principalKey(who)
	var term *ast.Term
	visible = make([]bool, len(tools))
	for i, tool := range tools {
		k := verdictKey{key, tool}
		v, known := e.listing.verdicts.get(k)
		if !known {
			if term == nil {
				term = e.terms.principal(claimant{who: who})
			}
			if v, known = e.visible(ctx, e.terms.listing(term, tool)); known {
				e.listing.verdicts.put(k, v)
			}
		}
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("policy: list tools: %w", err)
		}
		visible[i] = v
	}
	return visible, nil
}

// principalKey tells principals apart by what policies see of them. Equal ones
// share verdicts, whatever their addresses.
func principalKey(p *gate.Principal) string {
	var b strings.Builder
	for _, s := range []string{p.ID, p.Tenant, p.Auth, p.Client, p.Claims.Digest()} {
		fmt.Fprintf(&b, "%q", s)
	}
	fmt.Fprintf(&b, "%q", p.Roles)
	return b.String()
}

// visible returns the verdict on one tool, and whether it is more than a guess.
func (e *Engine) visible(ctx context.Context, input ast.Value) (visible, known bool) {
	for _, q := range e.listing.deny {
		rest, err := e.partial(ctx, q, input)
		if err != nil {
			return true, false
		}
		for _, body := range rest.Queries {
			if constant(body) {
				return false, true
			}
		}
	}
	for _, q := range e.listing.pass {
		rest, err := e.partial(ctx, q, input)
		if err != nil {
			return true, false
		}
		if len(rest.Queries) > 0 {
			return true, true
		}
	}
	return false, true
}

func (e *Engine) partial(ctx context.Context, q rego.PreparedPartialQuery, input ast.Value) (*rego.PartialQueries, error) {
	end := &deadline{ctx: ctx, at: time.Now().Add(e.timeout)}
	rest, err := q.Partial(ctx, rego.EvalParsedInput(input), rego.EvalExternalCancel(end), rego.EvalMetrics(metrics.NoOp()))
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
		_, reason := t.Value.(ast.String)
		return reason
	}
	return expr.IsEquality() && (assigns(expr.Operand(0), expr.Operand(1)) || assigns(expr.Operand(1), expr.Operand(0)))
}

// assigns reports whether a = b gives the variable a the ground value b.
func assigns(a, b *ast.Term) bool {
	_, ok := a.Value.(ast.Var)
	_, ref := b.Value.(ast.Ref)
	return ok && !ref && b.IsGround()
}
