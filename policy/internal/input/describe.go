package input

import (
	"fmt"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
)

// Actions returns all that input.action can be, but for methods that MCP does not have.
func Actions() []string {
	var names []string
	for _, f := range all {
		for _, a := range f.actions {
			names = append(names, string(a))
		}
	}
	return names
}

// For returns the shapes that the input has for some actions, or for any. A name that is no
// action says nothing.
func For(names ...string) []*Shape {
	var shapes []*Shape
	for _, f := range all {
		if len(names) == 0 || slices.ContainsFunc(names, f.holds) {
			shapes = append(shapes, f.shape)
		}
	}
	return shapes
}

// holds reports whether the input for an action has the form.
func (f *form) holds(action string) bool {
	if slices.Contains(Actions(), action) {
		return slices.Contains(f.actions, gate.Action(action))
	}
	return f == methodCalls || !actions.IsMethod(gate.Action(action))
}

// schema is the JSON Schema of all inputs.
var schema = merged(For()).closed()

// Schema returns the JSON Schema of the input. It describes inputs of all actions at once.
func Schema() map[string]any { return schema }

// Reference returns the table of all fields, in Markdown.
func Reference() string {
	var b strings.Builder
	b.WriteString("| field | type | what it is | actions |\n| --- | --- | --- | --- |\n")
	type row struct{ path, kind, about string }
	var rows []row
	by := map[row][]string{} // the actions that have it
	for _, f := range all {
		names := []string{f.about}
		if f.about == "" {
			names = nil
			for _, a := range f.actions {
				names = append(names, "`"+string(a)+"`")
			}
		}
		var add func(path string, s *Shape)
		add = func(path string, s *Shape) {
			for _, field := range s.Fields {
				if s.Open && field.Optional {
					continue // a name that MCP has, where others can send any
				}
				one := row{path + field.Name, field.Shape.words(), field.About}
				if by[one] == nil {
					rows = append(rows, one)
				}
				by[one] = append(by[one], names...)
				next, at := field.Shape, one.path
				for next.Each != nil {
					next, at = next.Each, at+"[_]"
				}
				add(at+".", next)
			}
		}
		add("", f.shape)
	}
	slices.SortStableFunc(rows, func(a, b row) int { // each object in one piece, after the fields of its level
		return strings.Compare(strings.SplitN(a.path, ".", 2)[0], strings.SplitN(b.path, ".", 2)[0])
	})
	everything := len(Actions()) + 1
	for _, r := range rows {
		where := strings.Join(by[r], ", ")
		if strings.Contains(r.path, ".") && !strings.HasPrefix(r.path, "request.") {
			where = "" // those of the object
		} else if len(by[r]) == everything {
			where = "all"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.path, r.kind, r.about, where)
	}
	return b.String()
}

// words names what a shape holds.
func (s *Shape) words() string {
	switch {
	case s.Kind == Any:
		return "any value"
	case s.Each != nil:
		kind := map[Kind]string{List: "list", Map: "object"}[s.Kind]
		return kind + " of " + strings.Replace(s.Each.words(), " of ", "s of ", 1) + map[bool]string{true: "", false: "s"}[s.Each.Each != nil]
	case s.Open:
		return "object, open"
	default:
		return string(s.Kind)
	}
}
