package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

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

// atUsers returns problems that the compiler finds between a pack and the user's rules at the
// user's: the pack is not theirs to change.
func (s *source) atUsers(problems []Problem) []Problem {
	for i, p := range problems {
		if isOwn(p.File) || p.File == "" {
			continue
		}
		for file, m := range s.rules {
			for _, r := range m.Rules {
				if name := r.Ref().GroundPrefix().String(); isOwn(file) && slices.Contains(strings.Fields(p.Message), name) {
					problems[i] = Problem{File: file, Line: r.Location.Row, Message: fmt.Sprintf("%s is defined by %s as well; choose another name (%s)", name, p.File, p.Message)}
				}
			}
		}
	}
	sortProblems(problems)
	return problems
}
