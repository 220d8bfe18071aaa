package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/wasmgate/wasmgate/internal/match"
	"github.com/wasmgate/wasmgate/policy/internal/owned"
)

// idle warns of the user's rules from which the decision does not follow, such
// as those of another package that no rule refers to, or misspelt ones.
func idle(c *ast.Compiler) []Problem {
	used := map[*ast.Rule]bool{}
	var follow func(r *ast.Rule)
	follow = func(r *ast.Rule) {
		if r == nil || used[r] {
			return
		}
		used[r] = true
		follow(r.Else)
		for dep := range c.Graph.Dependencies(r) {
			if dep, ok := dep.(*ast.Rule); ok {
				follow(dep)
			}
		}
	}
	for _, r := range c.GetRules(ast.MustParseRef("data.wasmgate.decision")) {
		follow(r)
	}
	var problems []Problem
	said := map[string]bool{}
	for file, m := range c.Modules {
		for _, r := range m.Rules {
			name := m.Package.Path.String() + "." + r.Head.Ref().GroundPrefix().String()
			if used[r] || strings.HasPrefix(file, owned.PackFolder) || said[file+name] {
				continue
			}
			said[file+name] = true
			problems = append(problems, Problem{
				File: file, Line: r.Location.Row, Warning: true,
				Message: name + " has no effect: no decision follows from it; add to allow, ask, deny, obligations or labels of package wasmgate",
			})
		}
	}
	sortProblems(problems)
	return problems
}

// idleAsks warns of rules of ask, and of packs that ask, about what nothing allows: the
// call is denied, and no one is asked. It is found out of what the files say, so that a
// rule which does not say what tools it allows keeps it silent.
func (s *source) idleAsks(c *ast.Compiler, o Options) []Problem {
	granting := slices.Contains(o.Packs, packGrants)
	var grants []Grant
	if granting {
		grants = slices.Clone(o.Grants)
	}
	for _, r := range usersRules(c, "allow") { // as if they were grants
		about := toolsOf(r)
		if about == "" {
			return nil
		}
		grants = append(grants, Grant{Tools: []string{about}})
	}
	var problems []Problem
	for _, pack := range []string{"approve", "flow-ask"} {
		if slices.Contains(o.Packs, pack) && !granting && len(grants) == 0 {
			problems = append(problems, Problem{Warning: true, Message: fmt.Sprintf(
				"pack %s asks about what something allows, and without the pack grants nothing does, so all calls are denied; write policy: {packs: [%s]}, and grant what it may ask about, such as - {to: [\"*\"], tools: [\"*\"]}",
				pack, strings.Join(append([]string{packGrants}, o.Packs...), ", "))})
		}
	}
	for _, r := range usersRules(c, "ask") {
		switch about := toolsOf(r); {
		case len(grants) == 0:
			problems = append(problems, warn(r.Location, "no rule allows what this rule asks about, so it is denied. A question only narrows what is allowed; grant it, or write: %s", allowing(r)))
		case about != "" && !mayGrant(grants, match.Pattern(about)):
			problems = append(problems, warn(r.Location, "no rule allows %s, so it is denied, and this rule never asks. A question only narrows what is allowed; write: wasmgate grant %s --to NAME", about, quoted(about)))
		}
	}
	sortProblems(problems)
	return problems
}

// usersRules returns the rules of a set but for those of packs.
func usersRules(c *ast.Compiler, set string) []*ast.Rule {
	return slices.DeleteFunc(slices.Clone(c.GetRulesExact(ast.MustParseRef("data.wasmgate."+set))), func(r *ast.Rule) bool {
		return strings.HasPrefix(r.Location.File, owned.PackFolder)
	})
}

func quoted(pattern string) string {
	if strings.HasSuffix(pattern, "*") {
		return "'" + pattern + "'"
	}
	return pattern
}

// allowing returns the rule that allows what a rule asks about, as it is to be written.
func allowing(r *ast.Rule) string {
	text := string(r.Location.Text)
	if strings.Contains(text, "\n") || !strings.HasPrefix(text, "ask ") {
		return "the same rule with allow in the place of ask"
	}
	return "allow" + strings.TrimPrefix(text, "ask")
}

// computes is the server of modules that say nothing else. Those without capabilities
// are allowed to everybody, and need no grant.
const computes = "local"

// toolsOf returns the tool, or all tools of the server, that a rule is about by its
// own words, as a grant's pattern; "" if it does not say.
func toolsOf(r *ast.Rule) string {
	for _, e := range r.Body {
		terms, ok := e.Terms.([]*ast.Term)
		if !ok || e.Negated || len(e.With) > 0 || len(terms) != 3 || !e.IsEquality() && terms[0].String() != ast.Equal.Name {
			continue
		}
		for i, t := range terms[1:] {
			name, text := terms[2-i].Value.(ast.String)
			if !text || strings.HasPrefix(string(name)+"__", computes+"__") {
				continue
			}
			switch t.String() {
			case "input.tool.name":
				return string(name)
			case "input.tool.server":
				return string(name) + "__*"
			}
		}
	}
	return ""
}

// mayGrant reports whether a grant may grant somebody one of the tools that a pattern
// stands for. What is in a group cannot be known here.
func mayGrant(grants []Grant, tools match.Pattern) bool {
	server, _, _ := strings.Cut(string(tools), "__")
	return slices.ContainsFunc(grants, func(g Grant) bool {
		return len(g.Groups) > 0 || slices.Contains(g.Servers, server) || slices.ContainsFunc(g.Tools, func(granted string) bool { return tools.Overlaps(match.Pattern(granted)) })
	})
}
