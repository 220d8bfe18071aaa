package policy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/wasmgate/wasmgate/policies"
)

// A Problem is one thing that is wrong with the policies.
type Problem struct {
	File    string `json:"file"` // in the user's tree, pack://NAME.rego, or bundle://NAME/FILE; "" if it is in no .rego file
	Line    int    `json:"line"` // from 1; 0 if unknown
	Message string `json:"message"`
	// Warning says that the policies load all the same.
	Warning bool `json:"warning"`
}

// String returns file:line: message.
func (p Problem) String() string {
	s := p.Message
	if p.Warning {
		s = "warning: " + s
	}
	if p.File != "" {
		s = fmt.Sprintf("%s:%d: %s", p.File, p.Line, s)
	}
	return s
}

// A CompileError says all that is wrong with policies that do not load.
type CompileError struct{ Problems []Problem }

// Error returns one line for each problem.
func (e *CompileError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// problemsOf takes an error of OPA apart.
func problemsOf(file string, err error) []Problem {
	var list ast.Errors
	if !errors.As(err, &list) {
		var one *ast.Error
		if !errors.As(err, &one) {
			return []Problem{{File: file, Message: err.Error()}}
		}
		list = ast.Errors{one}
	}
	problems := make([]Problem, len(list))
	for i, e := range list {
		message := strings.Join(strings.Fields(e.Message), " ")
		problems[i] = Problem{File: file, Message: message + packOf(message)}
		if e.Location != nil {
			problems[i].File, problems[i].Line = e.Location.File, e.Location.Row
		}
	}
	sortProblems(problems)
	return problems
}

// packOf says which pack has the function that a message calls undefined; "" if none has it.
func packOf(message string) string {
	name, ok := strings.CutPrefix(message, "undefined function data.wasmgate.")
	pack, function, _ := strings.Cut(name, ".")
	rules, _, err := policies.Pack(pack)
	if !ok || err != nil || !strings.Contains(string(rules), "\n"+function+"(") {
		return ""
	}
	return fmt.Sprintf("; it is in the pack %s: add it to policy.packs, or write --pack %s", pack, pack)
}

func sortProblems(problems []Problem) {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
}

func warn(loc *ast.Location, format string, args ...any) Problem {
	return Problem{File: loc.File, Line: loc.Row, Warning: true, Message: fmt.Sprintf(format, args...)}
}
