package study

import (
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// condition describes the condition at index i of a rule, as it was written. The
// compiler makes several expressions of one, each with its place in the file.
func (c *evaluator) condition(r *ast.Rule, i int) *Condition {
	at := r.Location // the head: its key is computed
	if loc := r.Body[i].Location; loc != nil {
		for _, e := range c.engine.WrittenBody(r) {
			if e.Location.Offset <= loc.Offset {
				at = e.Location
			}
		}
	}
	one := conditionAt(at)
	if at == r.Location {
		one.Text, _, _ = strings.Cut(one.Text, " if ")
	}
	return &one
}

// conditions describes the conditions of a rule, as they were written.
func (c *evaluator) conditions(r *ast.Rule) []Condition {
	var all []Condition
	for _, e := range c.engine.WrittenBody(r) {
		if one := conditionAt(e.Location); one.Text != "true" && one.Line > 0 {
			all = append(all, one)
		}
	}
	return all
}

func conditionAt(at *ast.Location) Condition {
	text := strings.Join(strings.Fields(string(at.Text)), " ")
	if len(text) > maxConditionText {
		text = strings.ToValidUTF8(text[:maxConditionText], "") + " ..."
	}
	return Condition{File: at.File, Line: at.Row, Text: text}
}

// maxConditionText bounds the text of a condition, in bytes; those that people
// write take a line.
const maxConditionText = 400

// held counts the conditions among the first n of a rule, without those that say
// which action it is about.
func held(r *ast.Rule, n int) int {
	count := 0
	for _, e := range r.Body[:n] {
		about := 0
		ast.WalkRefs(e, func(ref ast.Ref) bool {
			if ref.HasPrefix(ast.InputRootRef) && !ref.HasPrefix(inputAction) {
				about++
			}
			return false
		})
		count += min(about, 1)
	}
	return count
}

var inputAction = ast.MustParseRef("input.action")
