package fields

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/wasmgate/wasmgate/policy/internal/input"
)

// A part is a part of the input, with where it is.
type part struct {
	shape *input.Shape
	path  string
}

// A value is what is known of a term: all that it can be. The zero value is that of a term about
// which nothing is known yet.
type value struct {
	unknown bool        // it can be anything
	parts   []part      // parts of the input
	keys    []part      // names of members of these
	paths   []part      // arrays that lead into these, as walk has them
	texts   []ast.Value // scalars that the policy names
	made    *made       // arrays, sets and objects that the policy builds
}

// made is what is known of the arrays, sets and objects that a term can be.
type made struct {
	fields map[string]member // by the text of their key
	others *value            // members under keys that are computed; of sets all; nil for none
	set    bool              // whether it can be a set, whose members are their own keys
	array  bool              // whether it can be an array, whose keys are numbers
	joined bool              // whether it can be several, so that not all fields are in each
}

type member struct {
	key   ast.Value
	at    *ast.Location
	value value
}

var anything = value{unknown: true}

func (v value) bottom() bool {
	return !v.unknown && len(v.parts)+len(v.keys)+len(v.paths)+len(v.texts) == 0 && v.made == nil
}

// join returns what is a or b.
func join(a, b value) value {
	switch {
	case a.bottom():
		return b
	case b.bottom():
		return a
	}
	v := value{unknown: a.unknown || b.unknown, made: a.made}
	v.parts, v.keys, v.paths = joinParts(a.parts, b.parts), joinParts(a.keys, b.keys), joinParts(a.paths, b.paths)
	v.texts = slices.Clip(a.texts)
	for _, t := range b.texts {
		if !slices.ContainsFunc(v.texts, func(have ast.Value) bool { return have.Compare(t) == 0 }) {
			v.texts = append(v.texts, t)
		}
	}
	switch {
	case v.made == nil:
		v.made = b.made
	case b.made != nil:
		v.made = &made{maps.Clone(a.made.fields), a.made.others, a.made.set || b.made.set, a.made.array || b.made.array, true}
		for name, m := range b.made.fields {
			v.made.put(name, m)
		}
		if b.made.others != nil {
			v.made.add(*b.made.others)
		}
	}
	return v
}

func joinParts(a, b []part) []part {
	all := slices.Clip(a)
	for _, p := range b {
		if !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	return all
}

// put adds what a member can be.
func (m *made) put(name string, one member) {
	if m.fields == nil {
		m.fields = map[string]member{}
	}
	if have, ok := m.fields[name]; ok {
		one = member{have.key, have.at, join(have.value, one.value)}
	}
	m.fields[name] = one
}

// add adds what members under computed keys can be.
func (m *made) add(v value) {
	if m.others != nil {
		v = join(*m.others, v)
	}
	m.others = &v
}

// collection is an array or a set of elements.
func collection(elements value) value { return value{made: &made{others: &elements, set: true}} }

// String identifies what is known, so that calls with the same arguments are followed once.
func (v value) String() string {
	if v.unknown {
		return "?"
	}
	var b strings.Builder
	for _, list := range [][]part{v.parts, v.keys, v.paths} {
		for _, p := range list {
			fmt.Fprintf(&b, "%p%s,", p.shape, p.path)
		}
		b.WriteByte(';')
	}
	for _, t := range v.texts {
		b.WriteString(t.String() + ",")
	}
	if v.made != nil {
		b.WriteByte('{')
		for _, name := range slices.Sorted(maps.Keys(v.made.fields)) {
			b.WriteString(name + ":" + v.made.fields[name].value.String() + ",")
		}
		if v.made.others != nil {
			b.WriteString("_:" + v.made.others.String())
		}
		b.WriteByte('}')
	}
	return b.String()
}

// elements returns what the members of a collection can be.
func (v value) elements() value {
	if v.unknown {
		return anything
	}
	var all value
	for _, p := range v.parts {
		all = join(all, p.members())
	}
	if len(v.paths) > 0 {
		all = join(all, value{keys: below(v.paths)})
	}
	if v.made != nil {
		for _, m := range v.made.fields {
			all = join(all, m.value)
		}
		if v.made.others != nil {
			all = join(all, *v.made.others)
		}
	}
	return all
}

// members returns what the members of a part can be.
func (p part) members() value {
	switch p.shape.Kind {
	case input.Any:
		return anything
	case input.List, input.Map:
		return value{parts: []part{p.each()}}
	}
	if p.shape.Open {
		return anything
	}
	var v value
	for _, f := range p.shape.Fields {
		v = join(v, p.field(f))
	}
	return v
}

func (p part) each() part { return part{p.shape.Each, p.path + "[_]"} }

func (p part) field(f input.Field) value {
	if f.Shape.Kind == input.Any {
		return anything
	}
	return value{parts: []part{{f.Shape, p.path + "." + f.Name}}}
}

// member returns what the member under a key can be; false if there is no such member.
func (p part) member(key ast.Value) (value, bool) {
	name, isText := key.(ast.String)
	switch p.shape.Kind {
	case input.Any:
		return anything, true
	case input.Map:
		return value{parts: []part{p.each()}}, isText
	case input.List:
		_, isNumber := key.(ast.Number)
		return value{parts: []part{p.each()}}, isNumber
	}
	for _, f := range p.shape.Fields {
		if isText && f.Name == string(name) {
			return p.field(f), true
		}
	}
	return anything, p.shape.Open
}

// below returns the parts and all that is below them.
func below(parts []part) []part {
	all := slices.Clone(parts)
	for i := 0; i < len(all); i++ {
		all = joinParts(all, all[i].members().parts)
	}
	return all
}
