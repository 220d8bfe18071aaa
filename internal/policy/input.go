package policy

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/policy/input"
	"github.com/wasmgate/wasmgate/internal/policy/internal/fields"
)

// listingInput returns what is known of a use of t before it is made.
func (e *Engine) listingInput(who *ast.Term, t *gate.Tool) ast.Value {
	return e.inputs.Listing(actionsFor(t)[0], who, t)
}

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
	if slices.ContainsFunc(c.Errors, func(e *ast.Error) bool { return e.Code != ast.TypeErr }) {
		return problemsOf("", c.Errors), nil, nil // it has come to no check of types
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
		if isField(e) && lines[Problem{File: one.File, Line: one.Line}] {
			continue // said already, with the field that is meant
		}
		if e.Details != nil {
			one.Message += ": " + strings.Join(strings.Fields(strings.Join(e.Details.Lines(), " ")), " ")
		}
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
