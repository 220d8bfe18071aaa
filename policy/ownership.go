package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/wasmgate/wasmgate/policy/internal/owned"
)

// isOwn reports whether a file is none of the gateway's packs.
func isOwn(file string) bool { return !strings.HasPrefix(file, owned.PackFolder) }

// sets are what a decision is made of, each with an example of how rules add to it.
var setExamples = map[string]string{
	"allow":       `allow contains "reason" if { ... }`,
	"ask":         `ask contains "reason" if { ... }`,
	"deny":        `deny contains "reason" if { ... }`,
	"obligations": `obligations contains {"type": "timeout", "after": "5s"} if { ... }`,
	"labels":      `labels contains "untrusted" if { ... }`,
}

// checkOwnership finds what only the gateway may define: the decision, and the
// data that it provides.
func checkOwnership(m *ast.Module) []Problem {
	var problems []Problem
	add := func(loc *ast.Location, message string) {
		problems = append(problems, Problem{File: loc.File, Line: loc.Row, Message: message})
	}
	pkg := stringsOf(m.Package.Path[1:])
	if slices.Contains(owned.Data, pkg[0]) {
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
