package policy

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
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

func sortProblems(problems []Problem) {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
}

// gatewayData is the data that the gateway provides, or OPA itself; data.wasmgate is the
// rules'.
var gatewayData = []string{"grants", "labels", "ratelimit", "system"}

// checkOwnership finds what only the gateway may define: the decision, and the
// data that it provides.
func checkOwnership(m *ast.Module) []Problem {
	var problems []Problem
	add := func(loc *ast.Location, message string) {
		problems = append(problems, Problem{File: loc.File, Line: loc.Row, Message: message})
	}
	pkg := stringsOf(m.Package.Path[1:])
	if slices.Contains(gatewayData, pkg[0]) {
		add(m.Package.Location, fmt.Sprintf("package %s: data.%s belongs to the gateway; choose another name", strings.Join(pkg, "."), pkg[0]))
	}
	if len(pkg) >= 2 && pkg[0] == "wasmgate" && (pkg[1] == "paths" || pkg[1] == "urls") {
		add(m.Package.Location, fmt.Sprintf("package %s belongs to the pack %s; choose another name", strings.Join(pkg, "."), pkg[1]))
	}
	for _, r := range m.Rules {
		full := append(slices.Clone(pkg), stringsOf(r.Head.Ref())...)
		if len(pkg) == 1 && len(full) > 2 && full[0] == "wasmgate" && (full[1] == "paths" || full[1] == "urls") {
			add(r.Location, full[1]+" belongs to the pack of that name; choose another name")
		}
		if len(full) >= 2 && full[0] == "wasmgate" && setExamples[full[1]] != "" && (len(full) > 2 || r.Head.RuleKind() != ast.MultiValue) {
			add(r.Location, fmt.Sprintf("%s is a set to which all rules add, and is empty by default; write %s", full[1], setExamples[full[1]]))
		}
		if len(full) >= 2 && full[0] == "wasmgate" && full[1] == "decision" {
			add(r.Location, "decision belongs to the gateway; add to allow, ask or deny instead")
		}
	}
	return problems
}

// stringsOf returns the names in the ground part of a reference.
func stringsOf(ref ast.Ref) []string {
	var names []string
	for i, t := range ref {
		switch v := t.Value.(type) {
		case ast.String:
			names = append(names, string(v))
		case ast.Var:
			if i > 0 {
				return names
			}
			names = append(names, string(v))
		default:
			return names
		}
	}
	return names
}

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
			if used[r] || strings.HasPrefix(file, packFolder) || said[file+name] {
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
