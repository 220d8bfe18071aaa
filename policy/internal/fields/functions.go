package fields

import (
	"slices"
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/wasmgate/wasmgate/policy/internal/input"
)

// call follows a call of a function: the function, its arguments, and what takes the result,
// if anything does.
func (f *frame) call(terms []*ast.Term) value {
	ref, ok := terms[0].Value.(ast.Ref)
	if !ok {
		return anything
	}
	args := terms[1:]
	values := make([]value, len(args))
	for i, a := range args {
		values[i] = f.term(a)
	}
	var result value
	var arity int
	if ref[0].Equal(ast.DefaultRootDocument) {
		rules, _ := f.rulesOf(ref)
		result, arity = anything, len(args)
		if rules != nil {
			result, arity = value{}, min(len(rules[0].Head.Args), len(args))
			for _, r := range rules {
				result = join(result, f.checker.rule(r, values[:arity]).value)
			}
		}
	} else {
		name := ref.String()
		arity = f.arity(name, len(args))
		result = anything
		if len(args) >= arity {
			result = f.builtin(name, args[:arity], values[:arity])
		}
	}
	if len(args) > arity {
		out := args[arity]
		f.compare(result, values[arity], out, out)
		f.bind(out, result)
	}
	return result
}

// builtin follows a built-in function by which parts of the input, or names of fields, come from
// arguments into the result. That of others can be anything.
func (f *frame) builtin(name string, args []*ast.Term, values []value) value {
	switch name {
	case ast.Member.Name:
		elements := values[1].elements()
		f.compare(values[0], elements, args[0], args[1])
		f.bind(args[0], elements)
	case ast.MemberWithKey.Name:
		elements := values[2].elements()
		f.sel(values[2], args[0], place{args[0], 0})
		f.compare(values[1], elements, args[1], args[2])
		f.bind(args[1], elements)
	case ast.Equal.Name, ast.NotEqual.Name, ast.ObjectSubset.Name:
		f.compare(values[0], values[1], args[0], args[1])
	case ast.StartsWith.Name:
		f.compareTexts(values[0], values[1], args[1], true)
	case ast.WalkBuiltin.Name:
		return walked(values[0])
	case ast.ObjectGet.Name:
		return join(f.along(values[0], values[1], args[1]), values[2])
	case ast.ObjectKeys.Name:
		return collection(f.namesOf(values[0]))
	case ast.ObjectFilter.Name, ast.ObjectRemove.Name:
		return f.picked(args, values)
	case ast.JSONFilter.Name, ast.JSONRemove.Name:
		for _, path := range each(values[1]) {
			f.along(values[0], path, args[1])
		}
		return values[0]
	case ast.JSONPatch.Name:
		return f.patched(args, values)
	case ast.ObjectUnion.Name, ast.ArrayConcat.Name, ast.Or.Name:
		return join(values[0], values[1])
	case ast.ObjectUnionN.Name, ast.Union.Name:
		return values[0].elements()
	case ast.ArrayReverse.Name, ast.ArraySlice.Name, ast.Sort.Name, ast.And.Name, ast.Minus.Name:
		return collection(values[0].elements()) // maybe at other places
	}
	return anything
}

// walked returns what walk gives: paths into a value, and what they lead to, which can be
// anything.
func walked(v value) value {
	paths := value{unknown: v.unknown || v.made != nil, paths: v.parts}
	m := &made{array: true}
	for i, one := range []value{paths, anything} {
		key := ast.InternedTerm(i).Value
		m.put(key.String(), member{key: key, value: one})
	}
	return value{made: m}
}

// picked follows functions that take an object and names of its members.
func (f *frame) picked(args []*ast.Term, values []value) value {
	names := values[1].elements()
	if m := values[1].made; m != nil && !m.set && !m.array { // an object: its keys count
		for _, one := range m.fields {
			names = join(names, value{texts: []ast.Value{one.key}})
		}
	}
	found, missing := f.selected(values[0], names)
	f.met(place{args[1], 0}, names, found, missing, args[1], values[0].parts)
	return values[0]
}

// patched follows json.patch: the document, and what the patch puts into it.
func (f *frame) patched(args []*ast.Term, values []value) value {
	result := values[0]
	for _, patch := range each(values[1]) {
		if patch.made == nil {
			return anything
		}
		op, path := patch.made.fields[`"op"`].value, patch.made.fields[`"path"`].value
		put, is := patch.made.fields[`"value"`]
		if !is || len(op.texts) != 1 || !op.texts[0].(ast.String).Equal(ast.String("add")) {
			f.along(values[0], path, args[1])
		}
		if is {
			result = join(result, built(steps(path), put.value, args[1].Location))
		}
	}
	return result
}

// built returns the object in which a path leads to a value.
func built(path []value, v value, at *ast.Location) value {
	if len(path) == 0 {
		return v
	}
	m := &made{}
	rest := built(path[1:], v, at)
	for _, key := range path[0].texts {
		m.put(key.String(), member{key, at, rest})
	}
	return value{made: m}
}

// each returns the members of a collection one by one, as far as they are known.
func each(v value) []value {
	var all []value
	if v.made != nil {
		for _, m := range v.made.fields {
			all = append(all, m.value)
		}
		if v.made.others != nil {
			all = append(all, *v.made.others)
		}
	}
	return all
}

// steps returns the keys of a path: an array, or a text with / between them.
func steps(path value) []value {
	var all []value
	if path.made != nil && !path.made.set {
		for i := range len(path.made.fields) {
			one, ok := path.made.fields[ast.InternedTerm(i).Value.String()]
			if !ok {
				return nil
			}
			all = append(all, one.value)
		}
		return all
	}
	if texts := textsOf(path); len(texts) > 0 {
		for part := range strings.SplitSeq(strings.TrimPrefix(texts[0], "/"), "/") {
			key := ast.Value(ast.String(strings.NewReplacer("~1", "/", "~0", "~").Replace(part)))
			if n, err := strconv.Atoi(part); err == nil {
				key = ast.InternedTerm(n).Value
			}
			all = append(all, value{texts: []ast.Value{key}})
		}
		return all
	}
	return nil
}

// along follows a path, which may be a single key, into a value.
func (f *frame) along(v, path value, at *ast.Term) value {
	keys := []value{path}
	if path.made != nil || isPointer(path) {
		keys = steps(path)
	}
	if path.unknown || len(path.parts)+len(path.keys) > 0 && len(path.texts) == 0 {
		return v.elements()
	}
	for i, key := range keys {
		if len(key.texts) == 0 {
			v = v.elements()
			continue
		}
		found, missing := f.selected(v, key)
		f.met(place{at, i}, key, found, missing, at, v.parts)
		v = found
	}
	return v
}

func isPointer(path value) bool {
	for _, text := range textsOf(path) {
		if strings.Contains(text, "/") {
			return true
		}
	}
	return false
}

// compare checks what two terms that are compared say of each other.
func (f *frame) compare(a, b value, at, other *ast.Term) {
	f.compareOne(a, b, other)
	f.compareOne(b, a, at)
}

// compareOne checks names in b by the parts of the input in a.
func (f *frame) compareOne(a, b value, at *ast.Term) {
	f.compareTexts(a, b, at, false)
	if len(a.keys) > 0 && !a.unknown {
		for _, key := range b.texts {
			f.name(a.keys, key, at)
		}
	}
	if b.made == nil {
		return
	}
	if len(a.paths) > 0 && !b.made.set && b.made.others == nil {
		f.along(value{parts: a.paths}, b, at)
	}
	if a.made == nil && len(b.parts) == 0 {
		f.literal(a.parts, b)
	}
	if a.made != nil {
		for name, m := range b.made.fields {
			if other, ok := a.made.fields[name]; ok {
				f.compareOne(other.value, m.value, at)
			}
		}
	}
}

// name checks that a text is the name of a member.
func (f *frame) name(parts []part, key ast.Value, at *ast.Term) {
	here := false
	for _, p := range parts {
		_, ok := p.member(key)
		here = here || ok
	}
	var missing []ast.Value
	if !here {
		missing = []ast.Value{key}
	}
	f.met(place{at, 0}, value{texts: []ast.Value{key}}, value{unknown: here}, missing, at, parts)
}

// literal checks the names of an object that the policy builds by the parts of the input that it
// stands for, or is compared with.
func (f *frame) literal(parts []part, v value) { f.checkLiteral(parts, parts, v) }

// checkLiteral checks an object by what the input has there for its action. What it has there
// for another action is misplaced, not misspelt: a test may ask what becomes of it.
func (f *frame) checkLiteral(parts, others []part, v value) {
	if v.made == nil || len(parts) == 0 || !f.report {
		return
	}
	if isInput(parts[0]) {
		if action, ok := v.made.fields[`"action"`]; ok && !action.value.unknown && len(action.value.texts) > 0 {
			parts = nil
			for _, s := range input.For(textsOf(action.value)...) {
				parts = append(parts, part{s, "input"})
			}
		}
	}
	for _, m := range v.made.fields {
		var here, there value
		for _, p := range parts {
			if one, ok := p.member(m.key); ok {
				here = join(here, one)
			}
		}
		for _, p := range others {
			if one, ok := p.member(m.key); ok && !p.shape.Open {
				there = join(there, one)
			}
		}
		if here.bottom() {
			here = there
		}
		if here.bottom() && m.at != nil && !(v.made.joined && f.isField(m.key)) {
			f.fault(m.at, f.missing(parts, m.key))
		}
		if !here.unknown {
			f.checkLiteral(here.parts, there.parts, m.value)
		}
	}
	if v.made.others != nil {
		for _, p := range parts {
			if each := p.members(); !each.unknown {
				f.literal(each.parts, *v.made.others)
			}
		}
	}
}

// isField reports whether the input has a field of this name anywhere.
func (f *frame) isField(key ast.Value) bool {
	return slices.ContainsFunc(below(f.root), func(p part) bool {
		_, ok := p.member(key)
		return ok && p.shape.Kind == input.Object && !p.shape.Open
	})
}

// replaced checks modifiers: what they replace, and what they put there.
func (f *frame) replaced(modifiers []*ast.With) {
	var about []string // the actions that they set
	for _, w := range modifiers {
		if w.Target.Equal(inputAction) {
			about = textsOf(f.term(w.Value))
		}
	}
	before := f.actions
	f.actions = about
	for _, w := range modifiers {
		v := f.term(w.Value)
		target, ok := w.Target.Value.(ast.Ref)
		if !ok || !target[0].Equal(ast.InputRootDocument) {
			continue
		}
		there := f.input()
		if len(target) == 1 {
			there = value{parts: f.root}
		}
		for i, key := range target[1:] {
			there = f.sel(there, key, place{w.Target, i})
		}
		if !there.unknown {
			f.literal(there.parts, v)
		}
	}
	f.actions = before
}

var inputAction = ast.NewTerm(ast.Ref{ast.InputRootDocument, ast.StringTerm("action")})
