package study

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/policy"
	"github.com/wasmgate/wasmgate/policy/internal/engine"
)

// A Verdict says which calls of a tool could pass.
type Verdict string

// The verdicts.
const (
	Always      Verdict = "always" // every call passes, or is asked
	Conditional Verdict = "conditional"
	Never       Verdict = "never"
)

// VerdictOf returns which calls of a tool by who could pass, and on what that
// depends, in words; "" if on nothing. It is never if and only if [policy.Engine.Visible]
// hides the tool.
func VerdictOf(ctx context.Context, p *policy.Engine, who *gate.Principal, tool *gate.Tool) (v Verdict, condition string, err error) {
	defer engine.Recover(&err, func() { v, condition = "", "" })
	if who == nil || tool == nil {
		return "", "", errors.New("policy: VerdictOf needs a principal and a tool")
	}
	e := engine.Of(p)
	input := e.ListingInput(e.Inputs.Principal(who), tool)
	left := map[string]clause{}
	for _, set := range []string{"deny", "ask", "allow"} {
		rest, err := e.Partial(ctx, set, input, engine.UnknownOf(tool)...)
		switch {
		case ctx.Err() != nil:
			return "", "", fmt.Errorf("policy: verdict: %w", ctx.Err())
		case err != nil:
			return Conditional, "the policy cannot be evaluated without a call: " + err.Error(), nil
		}
		left[set] = newClause(rest)
	}
	deny, ask, allow := left["deny"], left["ask"], left["allow"]
	switch {
	case deny.always, !allow.may():
		return Never, "", nil
	case allow.always && !deny.may():
		v = Always
	default:
		v = Conditional
	}
	asked := ask.words("a person is asked if ")
	if ask.always {
		asked = "a person is asked"
	}
	return v, joined(allow.words("if "), asked, deny.words("not if ")), nil
}

func joined(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}

// clause is what is left of a set: whether it has a member in any case, or the
// conditions under which it has one.
type clause struct {
	always bool
	either []string
}

func newClause(rest *rego.PartialQueries) clause {
	var c clause
	for _, body := range rest.Queries {
		if engine.Constant(body) && engine.Lifted(body) {
			c.either = append(c.either, "the token lacks a scope")
			continue
		}
		if engine.Constant(body) {
			return clause{always: true}
		}
		c.either = append(c.either, wording{rest.Support}.body(body))
	}
	slices.Sort(c.either)
	c.either = slices.Compact(c.either)
	return c
}

func (c clause) may() bool { return c.always || len(c.either) > 0 }

// maxWords bounds how many alternatives are said.
const maxWords = 5

func (c clause) words(before string) string {
	if len(c.either) == 0 {
		return ""
	}
	said := c.either
	if more := len(said) - maxWords; more > 0 {
		said = append(said[:maxWords:maxWords], fmt.Sprintf("in %d more cases", more))
	}
	return before + strings.Join(said, ", or ")
}

// wording puts conditions into words, where they are simple.
type wording struct{ support []*ast.Module }

// verbs are the words for a comparison, and for its contrary.
var verbs = map[string][2]string{
	ast.Equality.Name: {"is", "is not"}, ast.Equal.Name: {"is", "is not"}, ast.NotEqual.Name: {"is not", "is"},
	ast.LessThan.Name: {"is less than", "is not less than"}, ast.LessThanEq.Name: {"is at most", "is not at most"},
	ast.GreaterThan.Name: {"is greater than", "is not greater than"}, ast.GreaterThanEq.Name: {"is at least", "is not at least"},
	ast.StartsWith.Name: {"begins with", "does not begin with"}, ast.EndsWith.Name: {"ends with", "does not end with"},
	ast.Contains.Name: {"contains", "does not contain"}, ast.Member.Name: {"is one of", "is not one of"},
}

// mirrored are the comparisons that can be turned round.
var mirrored = map[string]string{
	ast.Equality.Name: ast.Equality.Name, ast.Equal.Name: ast.Equal.Name, ast.NotEqual.Name: ast.NotEqual.Name,
	ast.LessThan.Name: ast.GreaterThan.Name, ast.LessThanEq.Name: ast.GreaterThanEq.Name,
	ast.GreaterThan.Name: ast.LessThan.Name, ast.GreaterThanEq.Name: ast.LessThanEq.Name,
}

// body says all conditions of a body, or what they are about if one is not simple.
func (w wording) body(body ast.Body) string {
	var said []string
	for _, expr := range body {
		if engine.Constant(ast.NewBody(expr)) {
			continue // the reason
		}
		s, ok := w.expr(expr, false)
		if !ok {
			return w.about(body)
		}
		said = append(said, s)
	}
	return strings.Join(said, " and ")
}

func (w wording) expr(e *ast.Expr, not bool) (string, bool) {
	if len(e.With) > 0 {
		return "", false
	}
	not = not != e.Negated
	switch terms := e.Terms.(type) {
	case *ast.Not:
		return w.negated(terms.Body, not)
	case *ast.Term:
		if name, ok := part(terms); ok {
			return name + map[bool]string{false: " is set", true: " is not set"}[not], true
		}
	case []*ast.Term:
		if len(terms) == 3 {
			return comparison(terms[0].String(), terms[1], terms[2], not)
		}
	}
	return "", false
}

// negated says the contrary of a body of one condition. A part that is not there
// makes it true, too: the words for the contrary cover that.
func (w wording) negated(body ast.Body, not bool) (string, bool) {
	if len(body) != 1 {
		return "", false
	}
	if t, ok := body[0].Terms.(*ast.Term); ok {
		if rules := w.rules(t); len(rules) == 1 && len(rules[0].Body) == 1 {
			return w.expr(rules[0].Body[0], !not)
		} else if rules != nil {
			return "", false
		}
	}
	return w.expr(body[0], !not)
}

// rules returns the rules that partial evaluation made for a part of a condition.
func (w wording) rules(t *ast.Term) []*ast.Rule {
	ref, ok := t.Value.(ast.Ref)
	if !ok {
		return nil
	}
	var rules []*ast.Rule
	for _, m := range w.support {
		for _, r := range m.Rules {
			if head := m.Package.Path.Extend(r.Head.Ref()); head.Equal(ref) || head.GroundPrefix().Equal(ref) {
				rules = append(rules, r)
			}
		}
	}
	return rules
}

func comparison(op string, a, b *ast.Term, not bool) (string, bool) {
	verb, known := verbs[op]
	turned := mirrored[op]
	name, ok := part(a)
	value := b
	if !ok && turned != "" {
		verb, value = verbs[turned], a
		name, ok = part(b)
	}
	if op == ast.Member.Name && !ok { // a constant in a part
		verb, value = verbs[ast.Contains.Name], a
		name, ok = part(b)
	}
	if !known || !ok || !engine.ConstantTerm(value) {
		return "", false
	}
	word := verb[0]
	if not {
		word = verb[1]
	}
	return name + " " + word + " " + literal(value), true
}

// part names a part of the input.
func part(t *ast.Term) (string, bool) {
	ref, ok := t.Value.(ast.Ref)
	if !ok || !ref.HasPrefix(ast.InputRootRef) || len(ref) < 2 {
		return "", false
	}
	var names []string
	for _, p := range ref[1:] {
		switch v := p.Value.(type) {
		case ast.String:
			names = append(names, string(v))
		case ast.Number:
			names = append(names, v.String())
		default:
			return "", false
		}
	}
	if names[0] != "arguments" {
		return strings.Join(names, "."), true
	}
	if len(names) == 1 {
		return "the arguments", true
	}
	return "argument " + strings.Join(names[1:], "."), true
}

func literal(t *ast.Term) string {
	set, ok := t.Value.(ast.Set)
	if !ok {
		return t.String()
	}
	var list []string
	for _, e := range set.Slice() {
		list = append(list, e.String())
	}
	return strings.Join(list, ", ")
}

// subjects are what conditions that are not simple are about.
var subjects = []struct {
	ref   ast.Ref
	words string
}{
	{ast.MustParseRef("input.arguments"), "the arguments"},
	{ast.MustParseRef("input.session"), "what the session has read"},
	{ast.MustParseRef("input.provenance"), "where the arguments come from"},
	{ast.MustParseRef("input.carried"), "where the arguments come from"},
	{ast.MustParseRef("input.values"), "where the arguments come from"},
	{ast.MustParseRef("input.principal.client"), "the client"},
	{ast.MustParseRef("input.app"), "which apps are open"},
	{ast.MustParseRef("input.resource.uri"), "the URI"},
}

// about says what a body depends on.
func (w wording) about(body ast.Body) string {
	var said []string
	look := func(x any) {
		ast.WalkRefs(x, func(ref ast.Ref) bool {
			for _, s := range subjects {
				if ref.HasPrefix(s.ref) && !slices.Contains(said, s.words) {
					said = append(said, s.words)
				}
			}
			return false
		})
	}
	look(body)
	for _, m := range w.support {
		look(m)
	}
	if said == nil {
		return "conditions of the rules hold"
	}
	return "conditions on " + strings.Join(said, " and ") + " hold"
}
