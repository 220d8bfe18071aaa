package policy

import (
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/spelling"
	"github.com/wasmgate/wasmgate/policy/internal/fields"
)

// Names are what a configuration has, and tools what is known of its servers.
type Names struct {
	Servers, Roles []string
	Tools          []*gate.Tool
}

// Doubts returns warnings of fields and actions in the user's rules that may be misspelt.
func Doubts(e *Engine) []Problem { return e.doubts }

// Unconfigured warns of servers, tools and roles in the user's rules that the configuration does
// not have.
func Unconfigured(e *Engine, known Names) []Problem {
	var problems []Problem
	for _, c := range e.compared {
		if said := known.lacks(c); said != "" {
			problems = append(problems, warn(c.At, "%s is compared with %q: %s", c.Path, c.Text, said))
		}
	}
	sortProblems(problems)
	return problems
}

// lacks says what the configuration does not have of what a rule names; "" if it has it, or if
// that is not known.
func (n Names) lacks(c fields.Comparison) string {
	switch c.Path {
	case "input.tool.server", "input.prompt.server", "input.resource.server", "input.method.server", "input.server":
		return lacks("server", c.Text, c.Beginning, n.Servers)
	case "input.principal.roles[_]":
		return lacks("role", c.Text, c.Beginning, n.Roles)
	case "input.tool.name", "input.prompt.name", "input.method.name":
		server, name, whole := strings.Cut(c.Text, "__")
		if !whole && !c.Beginning {
			return "such a name begins with its server, as in server__tool"
		}
		if said := lacks("server", server, !whole, n.Servers); said != "" || c.Path != "input.tool.name" {
			return said
		}
		var tools []string
		for _, t := range n.Tools {
			if t.Name.Server == server {
				tools = append(tools, t.Name.Tool)
			}
		}
		if whole && tools != nil {
			return lacks("tool of this server", name, c.Beginning, tools)
		}
	}
	return ""
}

// lacks says that a name, or all that begin with it, is none of the known ones.
func lacks(what, name string, beginning bool, known []string) string {
	if slices.ContainsFunc(known, func(k string) bool { return k == name || beginning && strings.HasPrefix(k, name) }) {
		return ""
	}
	return "there is no such " + what + spelling.Suggest(name, known)
}
