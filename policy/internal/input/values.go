package input

import (
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/gate/provenance"
)

// sources returns input.provenance, the sources of each value of the arguments by its JSON
// Pointer, and input.carried, the sources of each address that is in a text, by the text's
// JSON Pointer.
func (q *query) sources() (values, carried *ast.Term) {
	if !q.Provenance {
		return emptyObject, emptyObject
	}
	if q.met != nil {
		return q.met, q.carried
	}
	var v, c [][2]*ast.Term
	for a := range q.Session.Values.Arguments(q.Tool.Definition, q.Call.Args) {
		at := ast.StringTerm(a.Pointer)
		if a.Near {
			a.Source |= provenance.FromPrompt
		}
		v = append(v, [2]*ast.Term{at, Texts(a.Source.Names())})
		if a.Kind != doc.String {
			continue
		}
		found := q.Session.Values.Carried(a.Text)
		if len(found) == 0 {
			continue
		}
		var addresses [][2]*ast.Term
		for _, address := range slices.Sorted(maps.Keys(found)) {
			addresses = append(addresses, [2]*ast.Term{ast.StringTerm(address), Texts(found[address].Names())})
		}
		c = append(c, [2]*ast.Term{at, ast.ObjectTerm(addresses...)})
	}
	q.met, q.carried = ast.ObjectTerm(v...), ast.ObjectTerm(c...)
	return q.met, q.carried
}

var metMembers = members[provenance.Origin]{
	has("source", text, "`prompt`, `trusted`, `untrusted` or `approved`", func(o provenance.Origin) *ast.Term { return ast.StringTerm(o.Source) }),
	has("server", text, "of the call whose result had the value", func(o provenance.Origin) *ast.Term { return ast.StringTerm(o.Server) }),
	has("tool", text, "of that call", func(o provenance.Origin) *ast.Term { return ast.StringTerm(o.Tool) }),
	has("pointer", text, "the place in the result", func(o provenance.Origin) *ast.Term { return ast.StringTerm(o.Pointer) }),
	has("call", text, "the id of that call", func(o provenance.Origin) *ast.Term { return ast.StringTerm(o.Call) }),
	has("label", text, "`identity` or the kind of ids", func(o provenance.Origin) *ast.Term { return ast.StringTerm(o.Label) }),
}

// A value is one of a call's arguments.
type value struct {
	provenance.Argument
	of     *query
	leaves bool // whether the call can hand on what is private, and the session has read such
}

var valueMembers = members[value]{
	has("met", listOf(metMembers.shape()), "up to four places in which the value was met, the newest first", func(v value) *ast.Term {
		met := []*ast.Term{}
		for _, o := range v.of.Session.Values.Origins(v.Argument) {
			met = append(met, metMembers.term(o))
		}
		return ast.ArrayTerm(met...)
	}),
	has("listed", truth, "whether this server has listed the value as an id of that kind", func(v value) *ast.Term { return ast.BooleanTerm(v.Listed) }),
	has("kind", text, "the kind of ids that the argument takes", func(v value) *ast.Term { return ast.StringTerm(v.Takes) }),
	has("own", truth, "whether it is one of the principal's `identities`", func(v value) *ast.Term { return ast.BooleanTerm(v.Own) }),
	has("copied", truth, "whether it was met in untrusted content only, and not by chance", func(v value) *ast.Term { return ast.BooleanTerm(v.Copied) }),
	has("private", truth, "whether it holds what a private result was the first to say; an id that this server has listed does not", func(v value) *ast.Term {
		return ast.BooleanTerm(v.leaves && v.Kind == doc.String && !v.Listed && v.of.Session.Values.Private(v.Text))
	}),
}

// values returns input.values, by JSON Pointers; nil if no rule can look at it.
func values(q *query) *ast.Term {
	if !q.Values {
		return nil
	}
	var all [][2]*ast.Term
	leaves := q.leaves()
	for a := range q.Session.Values.Arguments(q.Tool.Definition, q.Call.Args) {
		all = append(all, [2]*ast.Term{ast.StringTerm(a.Pointer), valueMembers.term(value{a, q, leaves})})
	}
	return ast.ObjectTerm(all...)
}

// leaves reports whether what a call says can leave, and the session has read what is not
// for everybody.
func (q *query) leaves() bool {
	if !q.Session.Top && !slices.Contains(q.Session.Labels, provenance.Private) {
		return false
	}
	labels, ok := q.labels(q.Tool)
	return !ok || slices.ContainsFunc(labels.Effects, func(e provenance.ToolEffect) bool {
		return e == provenance.EffectExternal || e == provenance.EffectEgress
	})
}
