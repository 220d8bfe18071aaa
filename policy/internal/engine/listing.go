package engine

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/policy/internal/input"
	"github.com/wasmgate/wasmgate/policy/internal/owned"
	"github.com/wasmgate/wasmgate/policy/internal/recent"
)

// keptVerdicts is half of how many verdicts are kept: 32 listers with 1,000
// tools, at about 100 bytes a verdict.
const keptVerdicts = 16_384

// keptPrincipals is half of how many principals something is kept of.
const keptPrincipals = 512

// listTime bounds the listing of all tools for one principal. It is far above
// what a policy takes that decides within its timeout.
const listTime = 10 * time.Second

// listing answers whether any call of a tool could pass, by partial evaluation
// of the sets that make a decision. Of the decision itself nothing could
// be told, because it depends on all of them at once.
type listing struct {
	sets     map[string]rego.PreparedPartialQuery // as far as there are rules
	verdicts *recent.Cache[pairing, listed]       // by [lister]
	listers  *recent.Cache[*gate.Principal, lister]
}

func (e *Engine) newListing(ctx context.Context) (*listing, error) {
	l := &listing{sets: map[string]rego.PreparedPartialQuery{}, verdicts: recent.New[pairing, listed](keptVerdicts), listers: recent.New[*gate.Principal, lister](keptPrincipals)}
	for _, set := range owned.Sets {
		// One rule is the declaration that the set exists.
		if len(e.Compiler.GetRulesExact(ast.MustParseRef("data.wasmgate."+set))) <= 1 {
			continue
		}
		q, err := rego.New(e.with(rego.Query("data.wasmgate."+set+"[_]"), rego.ParsedUnknowns(Unknowns))...).PrepareForPartial(ctx)
		if err != nil {
			return nil, fmt.Errorf("prepare policy for listing: %w", err)
		}
		l.sets[set] = q
	}
	return l, nil
}

// Visible implements [gate.Authorizer]: it reports that a tool is visible if it cannot tell.
func (e *Engine) Visible(ctx context.Context, who *gate.Principal, tools []*gate.Tool) (visible []bool, err error) {
	defer Recover(&err, func() { visible = nil })
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
				term = e.Inputs.Principal(as.who)
			}
			var bodies []ast.Body
			if v.visible, bodies, known = e.visible(ctx, e.ListingInput(term, tool), UnknownOf(tool)...); known {
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
	denied, err := e.Partial(ctx, "deny", input, o...)
	if err != nil {
		return true, nil, false
	}
	if slices.ContainsFunc(denied.Queries, func(b ast.Body) bool { return Constant(b) && !Lifted(b) }) {
		return false, nil, true
	}
	allowed, err := e.Partial(ctx, "allow", input, o...)
	switch {
	case err != nil:
		return true, nil, false
	case slices.ContainsFunc(allowed.Queries, Constant):
		return true, nil, true
	}
	return len(allowed.Queries) > 0, allowed.Queries, true
}

// Partial returns what is left of the rules of a set: one body for each way in
// which it can have a member.
func (e *Engine) Partial(ctx context.Context, set string, input ast.Value, o ...rego.EvalOption) (*rego.PartialQueries, error) {
	q, ok := e.listing.sets[set]
	if !ok {
		return &rego.PartialQueries{}, nil
	}
	return e.remaining(ctx, q, input, o...)
}

// Offer implements [gate.Authorizer]. It knows what [Engine.Visible] has found out.
func (e *Engine) Offer(_ context.Context, who *gate.Principal, tool *gate.Tool) gate.Doc {
	if who != nil && tool != nil {
		if l, ok := e.listing.verdicts.Get(pairing{e.lister(who).key, tool}); ok && !l.definition.IsZero() {
			return l.definition
		}
	}
	return tool.Definition
}

// A lister is somebody as lists know them.
type lister struct {
	who *gate.Principal // as of [persons.same]
	key principalKey
}

// lister returns as whom a principal lists.
func (e *Engine) lister(who *gate.Principal) lister {
	if l, ok := e.listing.listers.Get(who); ok {
		return l
	}
	same := e.persons.same(who)
	l := lister{same, sha256.Sum256([]byte(input.Principal(same).String()))}
	e.listing.listers.Put(who, l)
	return l
}

// ListTogether reports whether two principals have one list.
func (e *Engine) ListTogether(a, b *gate.Principal) bool { return e.lister(a).key == e.lister(b).key }
