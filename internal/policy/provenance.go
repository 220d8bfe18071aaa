package policy

import (
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/doc"
	"github.com/wasmgate/wasmgate/internal/provenance"
)

// valueSources returns what policies see of where the arguments of a call came
// from: input.provenance, the sources of each value by its JSON Pointer, and
// input.carried, those of each address that stands within a text.
func valueSources(q gate.Query) (values, carried *ast.Term) {
	var v, c [][2]*ast.Term
	for a := range q.Session.Values.Arguments(q.Tool.Definition, q.Call.Args) {
		at := ast.StringTerm(a.Pointer)
		if a.Near {
			a.Source |= provenance.FromPrompt
		}
		v = append(v, [2]*ast.Term{at, stringArray(a.Source.Names())})
		if a.Kind != doc.String {
			continue
		}
		found := q.Session.Values.Carried(a.Text)
		if len(found) == 0 {
			continue
		}
		var within [][2]*ast.Term
		for _, address := range slices.Sorted(maps.Keys(found)) {
			within = append(within, [2]*ast.Term{ast.StringTerm(address), stringArray(found[address].Names())})
		}
		c = append(c, [2]*ast.Term{at, ast.ObjectTerm(within...)})
	}
	return ast.ObjectTerm(v...), ast.ObjectTerm(c...)
}

// values returns what policies see of the arguments beside their sources: input.values, by
// JSON Pointers.
func (t *terms) values(q gate.Query) *ast.Term {
	var all [][2]*ast.Term
	leaves := t.leaves(q)
	for a := range q.Session.Values.Arguments(q.Tool.Definition, q.Call.Args) {
		met := []*ast.Term{}
		for _, o := range q.Session.Values.Origins(a) {
			met = append(met, ast.ObjectTerm(
				pair("source", ast.StringTerm(o.Source)), pair("server", ast.StringTerm(o.Server)), pair("tool", ast.StringTerm(o.Tool)),
				pair("pointer", ast.StringTerm(o.Pointer)), pair("call", ast.StringTerm(o.Call)), pair("label", ast.StringTerm(o.Label))))
		}
		all = append(all, [2]*ast.Term{ast.StringTerm(a.Pointer), ast.ObjectTerm(
			pair("met", ast.ArrayTerm(met...)), pair("listed", ast.BooleanTerm(a.Listed)), pair("kind", ast.StringTerm(a.Takes)), pair("own", ast.BooleanTerm(a.Own)), pair("copied", ast.BooleanTerm(a.Copied)),
			pair("private", ast.BooleanTerm(leaves && a.Kind == doc.String && q.Session.Values.Private(a.Text))))})
	}
	return ast.ObjectTerm(all...)
}

// leaves reports whether what a call says can leave, and the session has read what is not
// for everybody.
func (t *terms) leaves(q gate.Query) bool {
	if !q.Session.Top && !slices.Contains(q.Session.Labels, provenance.Private) {
		return false
	}
	labels, ok := t.labels.of(q.Tool)
	return !ok || slices.ContainsFunc(labels.Effects, func(e gate.ToolEffect) bool { return e == provenance.EffectExternal || e == provenance.EffectEgress })
}

// Tracks reports whether a rule may look at where values came from, so that sessions have to
// keep that, and at input.values, so that they have to keep by which calls values came.
func (e *Engine) Tracks() (values, origins bool) { return e.terms.tracks, e.terms.origins }

// tracks reports whether a rule may look at where values came from: whether one
// mentions input.provenance, input.carried or input.values, or the input as a whole; and
// whether one may look at input.values.
func (s *source) tracks() (values, origins bool) {
	for _, m := range s.rules {
		v, o := mentions(m, "provenance", "carried", "values"), mentions(m, "values")
		values, origins = values || v, origins || o
	}
	return values, origins
}

// mentions reports whether rules look at one of the named parts of the input, or at the
// input as a whole.
func mentions(x any, names ...string) (found bool) {
	ast.WalkTerms(x, func(t *ast.Term) bool {
		switch v := t.Value.(type) {
		case ast.Var:
			found = found || v.Equal(ast.InputRootDocument.Value)
		case ast.Ref:
			for _, part := range v[1:] {
				found = found || mentions(part, names...)
			}
			if v[0].Equal(ast.InputRootDocument) {
				name := ast.String("")
				if len(v) > 1 {
					name, _ = v[1].Value.(ast.String)
				}
				found = found || name == "" || slices.Contains(names, string(name))
			}
			return true
		}
		return found
	})
	return found
}
