package policy

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/internal/spelling"
	"github.com/wasmgate/wasmgate/policy/internal/engine"
	"github.com/wasmgate/wasmgate/policy/internal/input"
	"github.com/wasmgate/wasmgate/policy/internal/owned"
	"github.com/wasmgate/wasmgate/policy/internal/tables"
)

// Check returns what is wrong with the policies: all for which [Load] would
// refuse them, what is wrong with their tests, and, as warnings, rules that
// nothing comes of, that ask about what nothing allows, that cost more than they have
// to, or that compare the action with what is none. The error says that they could not be read at all.
func Check(fsys fs.FS, o Options) ([]Problem, error) {
	src, problems, err := read(fsys, &o)
	if err != nil || problems != nil {
		return problems, err
	}
	compiler, problems := src.compile()
	if problems != nil {
		return problems, nil
	}
	if _, problems := src.compileTests(src.rules, src.tests); problems != nil {
		return problems, nil
	}
	return src.warnings(compiler, o), nil
}

// warnings returns what is doubtful in rules that compile.
func (s *source) warnings(c *ast.Compiler, o Options) []Problem {
	problems := slices.Concat(idle(c), s.idleAsks(c, o))
	for file, m := range s.rules {
		if strings.HasPrefix(file, owned.PackFolder) {
			continue
		}
		problems = append(problems, readsAllGrants(m)...)
		problems = append(problems, beginnings(m)...)
	}
	problems = slices.Concat(problems, unindexed(c), unsuited(c), s.doubts, s.noActions())
	sortProblems(problems)
	return problems
}

// noActions warns of comparisons of the action with what is no action.
func (s *source) noActions() []Problem {
	var problems []Problem
	known := input.Actions()
	for _, c := range s.compared {
		if c.Path == "input.action" && !c.Beginning && !slices.Contains(known, c.Text) && (!actions.IsMethod(gate.Action(c.Text)) || meant(c.Text, known) != "") {
			problems = append(problems, warn(c.At, "there is no action %q, so input.action is never that%s", c.Text, meant(c.Text, known)))
		}
	}
	return problems
}

// meant suggests the known name that is spelt most alike, if one is.
func meant(name string, known []string) string {
	const alike = 3 // letters that differ
	best, least := "", alike+1
	for _, action := range known {
		if d := spelling.Distance(strings.ToLower(name), strings.ToLower(action)); d < least {
			best, least = action, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// readsAllGrants warns of rules that go through data.grants one by one, which
// with a thousand grants costs more than all other rules together. As an argument
// of the function that has an index of them they cost nothing.
func readsAllGrants(m *ast.Module) []Problem {
	var problems []Problem
	ast.WalkRules(m, func(r *ast.Rule) bool {
		found := false
		ast.WalkNodes(r, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Expr:
				return n.IsCall() && looksUp(n.Operator().String())
			case *ast.Term:
				switch v := n.Value.(type) {
				case ast.Call:
					return looksUp(v[0].String())
				case ast.Ref:
					found = found || v.HasPrefix(grantsRef)
				}
			}
			return false
		})
		if found {
			problems = append(problems, warn(r.Location,
				"%s goes through all grants for each call; ask %s(data.grants, \"tools\", input.tool.name, input.principal.id, input.principal.roles) instead",
				r.Head.Ref(), tables.Granted.Decl.Name))
		}
		return true
	})
	return problems
}

// looksUp reports whether a function looks into the grants by their index.
func looksUp(function string) bool {
	return slices.ContainsFunc(tables.Grants, func(l tables.Lookup) bool { return l.Decl.Name == function })
}

var grantsRef = ast.MustParseRef("data.grants")

// other resolves an input in which nothing is as any rule wants it: no argument
// is there, and all else is something that no rule names.
type other struct{}

// Resolve returns a part of the input.
func (other) Resolve(ref ast.Ref) (ast.Value, error) {
	if slices.ContainsFunc(engine.Unknowns, func(u *ast.Term) bool { return ref.HasPrefix(u.Value.(ast.Ref)) }) {
		return nil, nil
	}
	return ast.String("\x00"), nil
}

// unindexed warns of the user's rules that are evaluated for each call, whatever
// it is, because the rule index has nothing by which to pass them over. Rules
// that hold for everything cost nothing and are left out.
func unindexed(c *ast.Compiler) []Problem {
	var problems []Problem
	for _, set := range owned.Sets {
		index := c.RuleIndex(ast.MustParseRef("data.wasmgate." + set))
		if index == nil {
			continue
		}
		found, err := index.Lookup(other{})
		if err != nil {
			continue
		}
		for _, r := range found.Rules {
			if strings.HasPrefix(r.Location.File, owned.PackFolder) || unconditional(r) {
				continue
			}
			problems = append(problems, warn(r.Location,
				"%s is evaluated for every call, because the rule index cannot skip it; begin it with a condition, such as input.action == \"tools/call\" or input.tool.name == \"server__tool\"", set))
		}
	}
	return problems
}

// unconditional reports whether a rule has no condition on anything.
func unconditional(r *ast.Rule) bool {
	return !slices.ContainsFunc(r.Body, func(e *ast.Expr) bool {
		t, ok := e.Terms.(*ast.Term)
		return !ok || !engine.ConstantTerm(t)
	})
}
