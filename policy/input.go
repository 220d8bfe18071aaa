package policy

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/spelling"
	"github.com/wasmgate/wasmgate/policy/internal/fields"
	"github.com/wasmgate/wasmgate/policy/internal/input"
)

// inputSchemas has the type checker know the input.
var inputSchemas = func() *ast.SchemaSet {
	set := ast.NewSchemaSet()
	set.Put(ast.SchemaRootRef, input.Schema())
	return set
}()

// failures returns why the modules that c has compiled do not load: the compiler's errors, and
// fields that the input does not have. It also returns warnings of fields that open parts of the
// input may not have, and the texts that the modules compare with parts of it.
func (s *source) failures(c *ast.Compiler) (failures, doubts []Problem, compared []fields.Comparison) {
	if c.Failed() && !slices.ContainsFunc(c.Errors, func(e *ast.Error) bool { return e.Details != nil }) {
		return s.atUsers(problemsOf("", c.Errors)), nil, nil // it has come to no check of types
	}
	lines := map[Problem]bool{}
	findings, compared := fields.Check(c.Modules, s.capabilities.Builtins, isOwn)
	for _, f := range findings {
		one := Problem{File: f.At.File, Line: f.At.Row, Message: f.Message, Warning: f.Warning}
		if f.Warning {
			doubts = append(doubts, one)
			continue
		}
		lines[Problem{File: one.File, Line: one.Line}] = true
		failures = append(failures, one)
	}
	for _, e := range c.Errors {
		one := problemsOf("", e)[0]
		if e.Details == nil || isField(e) && lines[Problem{File: one.File, Line: one.Line}] {
			continue // it follows from another error, or is said already with the field that is meant
		}
		one.Message += ": " + strings.Join(strings.Fields(strings.Join(e.Details.Lines(), " ")), " ")
		failures = append(failures, one)
	}
	sortProblems(failures)
	return failures, doubts, compared
}

// isField reports whether an error is of a reference that leads nowhere.
func isField(e *ast.Error) bool {
	switch e.Details.(type) {
	case *ast.RefErrInvalidDetail, *ast.RefErrUnsupportedDetail:
		return true
	}
	return false
}

// isOwn reports whether a file is none of the gateway's packs.
func isOwn(file string) bool { return !strings.HasPrefix(file, packFolder) }

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
