package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/policy/internal/input"
)

// maxOverlooked is how many tools a warning names.
const maxOverlooked = 3

// Overlooked warns of the user's rules of allow and deny that look at one argument of a
// tool that has others like it: a rule about path says nothing of a call that names its
// files by paths.
func Overlooked(e *Engine, tools []*gate.Tool) []Problem {
	var problems []Problem
	for _, set := range []string{"allow", "deny"} {
		for _, r := range usersRules(e.engine.Compiler, set) {
			looked, all := e.argumentsOf(r)
			if all || len(looked) == 0 {
				continue
			}
			var said []string
			for _, t := range tools {
				if other := others(t, looked); len(other) > 0 && isAbout(e.engine.WrittenBody(r), t) {
					said = append(said, t.Name.String()+" has "+strings.Join(other, ", "))
				}
			}
			if len(said) == 0 {
				continue
			}
			slices.Sort(said)
			if more := len(said) - maxOverlooked; more > 0 {
				said = append(said[:maxOverlooked], fmt.Sprintf("and so on for %d more", more))
			}
			problems = append(problems, warn(r.Location, "this rule reads only %s; %s: let it read these too, or limit it to other tools",
				strings.Join(slices.Sorted(maps.Keys(looked)), ", "), strings.Join(said, "; ")))
		}
	}
	sortProblems(problems)
	return problems
}

// argumentsOf returns the names of the arguments that a rule, or one that it follows from,
// looks at; all if it looks at them whole, or by names that it computes.
func (e *Engine) argumentsOf(r *ast.Rule) (names map[string]bool, all bool) {
	names = map[string]bool{}
	seen := map[*ast.Rule]bool{}
	var follow func(r *ast.Rule)
	follow = func(r *ast.Rule) {
		if r == nil || seen[r] {
			return
		}
		seen[r] = true
		ast.WalkRefs(r, func(ref ast.Ref) bool {
			if !ref.HasPrefix(input.ArgumentsRef) {
				return false
			}
			if len(ref) > 2 {
				if name, ok := ref[2].Value.(ast.String); ok {
					names[string(name)] = true
					return false
				}
			}
			all = true
			return false
		})
		follow(r.Else)
		for dep := range e.engine.Compiler.Graph.Dependencies(r) {
			if dep, ok := dep.(*ast.Rule); ok {
				follow(dep)
			}
		}
	}
	follow(r)
	return names, all
}

// others returns the arguments of a tool that are of the same kind as one of those that
// are looked at, and are none of them.
func others(t *gate.Tool, looked map[string]bool) []string {
	var found []string
	for name := range t.Definition.At("/inputSchema/properties").Members() {
		if kind := kindOf(name); kind != "" && !looked[name] && slices.ContainsFunc(slices.Collect(maps.Keys(looked)), func(l string) bool { return kindOf(l) == kind }) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

// isAbout reports whether a rule of this body can hold for a tool, by its plain conditions on the tool's
// names.
func isAbout(body ast.Body, t *gate.Tool) bool {
	is := map[string]string{"input.tool.name": t.Name.String(), "input.tool.server": t.Name.Server, "input.tool.local_name": t.Local}
	return !slices.ContainsFunc(body, func(e *ast.Expr) bool {
		terms, ok := e.Terms.([]*ast.Term)
		if !ok || e.Negated || len(e.With) > 0 || len(terms) != 3 {
			return false
		}
		value, named := is[terms[1].String()]
		wanted := terms[2]
		if !named {
			value, named = is[terms[2].String()]
			wanted = terms[1]
		}
		texts := textsIn(wanted)
		if !named || len(texts) == 0 {
			return false
		}
		switch terms[0].String() {
		case ast.Equality.Name, ast.Equal.Name, ast.Member.Name:
			return !slices.Contains(texts, value)
		case ast.StartsWith.Name:
			return !strings.HasPrefix(value, texts[0])
		case ast.EndsWith.Name:
			return !strings.HasSuffix(value, texts[0])
		case ast.Contains.Name:
			return !strings.Contains(value, texts[0])
		}
		return false
	})
}

// textsIn returns a term that is a string, or the strings that a list or set
// holds.
func textsIn(t *ast.Term) []string {
	var texts []string
	add := func(t *ast.Term) {
		if s, ok := t.Value.(ast.String); ok {
			texts = append(texts, string(s))
		}
	}
	switch v := t.Value.(type) {
	case ast.String:
		add(t)
	case *ast.Array:
		v.Foreach(add)
	case ast.Set:
		v.Foreach(add)
	}
	return texts
}
