package fields

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/wasmgate/wasmgate/policy/internal/input"
)

// outcome is what comes of a rule: its value, and the actions for which it can hold, nil if it
// does not say.
type outcome struct {
	value   value
	actions []string
}

// A frame follows one rule, or one way to call one function.
type frame struct {
	*checker
	vars    map[ast.Var]value
	actions []string // that the rule is about; nil if it does not say
	changed bool
	report  bool
	peeking bool // no variable gets a value
}

// rule returns the outcome of a rule and its else branches. Arguments are none for rules that are
// no functions, and for functions without a call that was met.
func (c *checker) rule(r *ast.Rule, args []value) outcome {
	id := visit{r, ""}
	for _, a := range args {
		id.args += a.String() + "|"
	}
	if done, ok := c.done[id]; ok {
		return done
	}
	c.done[id] = outcome{value: anything} // of a rule that would need itself
	c.called[r] = true
	if len(c.done) > maxVisits {
		return c.done[id]
	}
	var all outcome
	open := false
	for branch := r; branch != nil; branch = branch.Else {
		f := &frame{checker: c, vars: map[ast.Var]value{}}
		one := f.follow(branch, args)
		all.value = join(all.value, one.value)
		if branch.Default && branch.Head.Value != nil && branch.Head.Value.Equal(falsehood) {
			continue // holds for no action
		}
		open = open || one.actions == nil
		all.actions = append(all.actions, one.actions...)
	}
	if open {
		all.actions = nil
	}
	c.done[id] = all
	return all
}

var falsehood = ast.BooleanTerm(false)

// maxRounds bounds how often a body is followed until nothing new is known of its variables.
const maxRounds = 12

func (f *frame) follow(r *ast.Rule, args []value) outcome {
	for round := 0; ; round++ {
		f.changed = false
		f.report = round == maxRounds
		f.actions = f.narrowed(r.Body)
		for i, term := range r.Head.Args {
			if i < len(args) {
				f.bind(term, args[i])
			}
		}
		f.body(r.Body)
		v := f.head(r)
		if f.report {
			return outcome{v, f.actions}
		}
		if !f.changed {
			round = maxRounds - 1
		}
	}
}

// head returns the value of a rule.
func (f *frame) head(r *ast.Rule) value {
	if r.Head.RuleKind() == ast.MultiValue {
		return collection(f.term(r.Head.Key))
	}
	v := value{texts: []ast.Value{ast.Boolean(true)}}
	if r.Head.Value != nil {
		v = f.term(r.Head.Value)
	}
	// A rule such as by[k] := v defines an object.
	ref := r.Head.Ref()
	for i := len(ref) - 1; i >= len(ref.GroundPrefix()); i-- {
		f.term(ref[i])
		m := &made{}
		m.add(v)
		v = value{made: m}
	}
	return v
}

func (f *frame) body(body ast.Body) {
	for _, e := range body {
		f.expr(e)
	}
}

// inner follows the body of a comprehension, or of every.
func (f *frame) inner(body ast.Body) {
	before := f.actions
	if more := f.narrowed(body); more != nil {
		f.actions = intersect(before, more)
	}
	f.body(body)
	f.actions = before
}

func (f *frame) expr(e *ast.Expr) {
	f.replaced(e.With)
	switch terms := e.Terms.(type) {
	case *ast.Not:
		if len(terms.Body) == 1 && f.hasForSome(terms.Body[0]) {
			return // the rule itself says that the action has no such field
		}
		f.inner(terms.Body)
	case *ast.Term:
		f.term(terms)
	case *ast.Every:
		domain := f.term(terms.Domain)
		if terms.Key != nil {
			f.bind(terms.Key, f.namesOf(domain))
		}
		f.bind(terms.Value, domain.elements())
		f.inner(terms.Body)
	case []*ast.Term:
		if e.IsEquality() {
			f.unify(terms[1], terms[2], e.Negated)
			return
		}
		f.call(terms)
	}
}

// hasForSome reports whether an expression is a field that the input has for some action.
func (f *frame) hasForSome(e *ast.Expr) bool {
	t, ok := e.Terms.(*ast.Term)
	if !ok {
		return false
	}
	ref, ok := t.Value.(ast.Ref)
	if !ok || len(ref) != 2 || !ref[0].Equal(ast.InputRootDocument) {
		return false
	}
	return slices.ContainsFunc(f.root, func(p part) bool { _, has := p.member(ref[1].Value); return has })
}

// unify follows an equality. Within not, no variable gets a value by it.
func (f *frame) unify(a, b *ast.Term, negated bool) {
	va, vb := f.term(a), f.term(b)
	f.compare(va, vb, a, b)
	if !negated {
		f.bind(a, vb)
		f.bind(b, va)
	}
}

// bind gives the variables of a pattern what they can be.
func (f *frame) bind(pattern *ast.Term, v value) {
	switch p := pattern.Value.(type) {
	case ast.Var:
		if f.peeking {
			return
		}
		had := f.vars[p]
		now := join(had, v)
		if now.String() != had.String() {
			f.vars[p], f.changed = now, true
		}
	case *ast.Array:
		for i := range p.Len() {
			if v.made != nil {
				if m, ok := v.made.fields[ast.InternedTerm(i).Value.String()]; ok {
					f.bind(p.Elem(i), m.value)
					continue
				}
			}
			if len(v.paths) > 0 {
				f.bind(p.Elem(i), value{keys: below(v.paths)})
			}
			f.bind(p.Elem(i), value{unknown: v.unknown, parts: v.parts, made: v.made}.elements())
		}
	case ast.Object:
		p.Foreach(func(k, t *ast.Term) {
			by := f.term(k)
			found, missing := f.selected(v, by)
			f.met(place{k, 0}, by, found, missing, k, v.parts)
			f.bind(t, found)
		})
	}
}

// term returns what a term can be.
func (f *frame) term(t *ast.Term) value {
	switch v := t.Value.(type) {
	case ast.String, ast.Number, ast.Boolean, ast.Null:
		return value{texts: []ast.Value{v}}
	case ast.Var:
		return f.narrow(f.vars[v])
	case ast.Ref:
		return f.narrow(f.ref(t, v))
	case *ast.Array:
		m := &made{array: true}
		for i := range v.Len() {
			key := ast.InternedTerm(i).Value
			m.put(key.String(), member{key, v.Elem(i).Location, f.term(v.Elem(i))})
		}
		return value{made: m}
	case ast.Set:
		m := &made{set: true}
		v.Foreach(func(e *ast.Term) { m.add(f.term(e)) })
		return value{made: m}
	case ast.Object:
		m := &made{}
		v.Foreach(func(k, e *ast.Term) {
			one := f.term(e)
			keys := f.term(k)
			for _, key := range keys.texts {
				m.put(key.String(), member{key, at(k, t), one})
			}
			if len(keys.texts) == 0 {
				m.add(one)
			}
		})
		return value{made: m}
	case *ast.ArrayComprehension:
		f.inner(v.Body)
		return collection(f.term(v.Term))
	case *ast.SetComprehension:
		f.inner(v.Body)
		return collection(f.term(v.Term))
	case *ast.ObjectComprehension:
		f.inner(v.Body)
		f.term(v.Key)
		m := &made{}
		m.add(f.term(v.Value))
		return value{made: m}
	case ast.Call:
		return f.call(v)
	}
	return anything
}

func at(t, within *ast.Term) *ast.Location {
	if t.Location != nil {
		return t.Location
	}
	return within.Location
}

// ref returns what a reference leads to.
func (f *frame) ref(t *ast.Term, ref ast.Ref) value {
	var v value
	rest := ref[1:]
	switch {
	case ref[0].Equal(ast.InputRootDocument):
		v = f.input()
	case ref[0].Equal(ast.DefaultRootDocument):
		var rules []*ast.Rule
		if rules, rest = f.rulesOf(ref); rules == nil {
			v, rest = anything, ref[1:]
		}
		for _, r := range rules {
			v = join(v, f.checker.rule(r, nil).value)
		}
	default:
		v = f.term(ref[0])
	}
	for i, key := range rest {
		v = f.sel(v, key, place{t, i})
	}
	return v
}

// sel returns the members under a key, which may be a variable that takes the names of all.
func (f *frame) sel(v value, key *ast.Term, where place) value {
	by := f.term(key)
	if name, ok := key.Value.(ast.Var); ok && len(by.texts) == 0 {
		f.bind(key, f.namesOf(v))
		if v.made != nil && v.made.set && v.made.others != nil {
			f.bind(key, *v.made.others)
		}
		_ = name
		return v.elements()
	}
	if v.made != nil && v.made.set { // a member of a set is its own key
		f.compare(v.elements(), by, key, key)
		return v.elements()
	}
	found, missing := f.selected(v, by)
	f.met(where, by, found, missing, key, v.parts)
	if len(by.texts) == 0 {
		return v.elements()
	}
	return found
}

// selected returns the members of a value under the texts of a key, and the texts under which
// there is none though the value has parts of the input.
func (f *frame) selected(v, by value) (found value, missing []ast.Value) {
	if v.unknown || by.unknown && len(by.texts) == 0 {
		return anything, nil
	}
	for _, key := range by.texts {
		var here value
		for _, p := range v.parts {
			if one, ok := p.member(key); ok {
				here = join(here, one)
			}
		}
		if len(v.paths) > 0 {
			here = join(here, f.step(v.paths, key))
		}
		if v.made != nil {
			if m, ok := v.made.fields[key.String()]; ok {
				here = join(here, m.value)
			}
			if v.made.others != nil {
				here = join(here, *v.made.others)
			}
		}
		if here.bottom() && len(v.parts) > 0 {
			missing = append(missing, key)
		}
		found = join(found, here)
	}
	return found, missing
}

// step returns the names that an array, as walk has it, can hold at an index.
func (f *frame) step(paths []part, index ast.Value) value {
	n, ok := index.(ast.Number)
	depth, whole := n.Int()
	if !ok || !whole {
		return value{keys: below(paths)}
	}
	for range depth {
		var next value
		for _, p := range paths {
			next = join(next, p.members())
		}
		if next.unknown {
			return anything
		}
		paths = next.parts
	}
	return value{keys: paths}
}

// namesOf returns the keys of a value.
func (f *frame) namesOf(v value) value {
	if v.unknown || v.bottom() {
		return value{unknown: v.unknown}
	}
	names := value{keys: v.parts}
	if v.made != nil && !v.made.set {
		for _, m := range v.made.fields {
			names = join(names, value{texts: []ast.Value{m.key}})
		}
		if v.made.others != nil {
			names = join(names, anything)
		}
	}
	return names
}

// input returns the input for the actions that the rule is about.
func (f *frame) input() value { return f.narrow(value{parts: f.root}) }

// narrow leaves out inputs of actions that the rule is not about.
func (f *frame) narrow(v value) value {
	if f.actions == nil || !slices.ContainsFunc(v.parts, isInput) {
		return v
	}
	allowed := input.For(f.actions...)
	v.parts = slices.DeleteFunc(slices.Clone(v.parts), func(p part) bool { return isInput(p) && !slices.Contains(allowed, p.shape) })
	return v
}

func isInput(p part) bool { return p.path == "input" }

// narrowed returns the actions that a body is about, nil if it does not say.
func (f *frame) narrowed(body ast.Body) (about []string) {
	before, report, peeking := f.actions, f.report, f.peeking
	f.actions, f.report, f.peeking = nil, false, true
	defer func() { f.actions, f.report, f.peeking = before, report, peeking }()
	for _, e := range body {
		if e.Negated || len(e.With) > 0 {
			continue
		}
		if only := f.about(e); only != nil {
			about = intersect(about, only)
		}
	}
	return about
}

// about returns the actions that an expression is about, nil if it does not say.
func (f *frame) about(e *ast.Expr) []string {
	terms, ok := e.Terms.([]*ast.Term)
	if !ok {
		if t, ok := e.Terms.(*ast.Term); ok {
			return f.holds(t, nil)
		}
		return nil
	}
	if rules, rest := f.rulesOf(terms[0].Value.(ast.Ref)); rules != nil && len(rest) == 0 && len(terms)-1 == len(rules[0].Head.Args) {
		return f.holds(terms[0], terms[1:])
	}
	if len(terms) != 3 {
		return nil
	}
	a, b := f.term(terms[1]), f.term(terms[2])
	switch e.Operator().String() {
	case ast.Equality.Name, ast.Equal.Name:
		if len(b.texts) == 0 {
			a, b = b, a
		}
		return actionsAmong(a, b)
	case ast.Member.Name:
		return actionsAmong(a, b.elements())
	case ast.StartsWith.Name:
		if !isAction(a) || len(b.texts) == 0 || b.unknown {
			return nil
		}
		var about []string
		for _, prefix := range textsOf(b) {
			for _, action := range input.Actions() {
				if strings.HasPrefix(action, prefix) {
					about = append(about, action)
				}
			}
		}
		return about
	}
	return nil
}

// holds returns the actions for which a rule, or a function with these arguments, holds.
func (f *frame) holds(t *ast.Term, args []*ast.Term) []string {
	ref, ok := t.Value.(ast.Ref)
	if !ok || !ref[0].Equal(ast.DefaultRootDocument) {
		return nil
	}
	rules, rest := f.rulesOf(ref)
	if len(rest) > 0 {
		return nil
	}
	var values []value
	for _, a := range args {
		values = append(values, f.term(a))
	}
	var about []string
	for _, r := range rules {
		if r.Default {
			continue
		}
		one := f.checker.rule(r, values)
		if one.actions == nil || r.Head.RuleKind() == ast.MultiValue {
			return nil
		}
		about = append(about, one.actions...)
	}
	return about
}

func isAction(v value) bool {
	return len(v.parts) == 1 && v.parts[0].path == "input.action" && !v.unknown && v.made == nil
}

// actionsAmong returns the texts that the action is compared with, nil if it is not the action
// or not known which.
func actionsAmong(action, texts value) []string {
	// A variable that is compared with the action is the action as well.
	if !isAction(action) || texts.unknown || len(texts.texts) == 0 || len(texts.parts) > 0 && !isAction(texts) || len(texts.keys) > 0 {
		return nil
	}
	return textsOf(texts)
}

func textsOf(v value) []string {
	var list []string
	for _, t := range v.texts {
		if s, ok := t.(ast.String); ok {
			list = append(list, string(s))
		}
	}
	return list
}

// intersect returns what is in both lists; nil means all.
func intersect(a, b []string) []string {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	both := []string{}
	for _, s := range a {
		if slices.Contains(b, s) {
			both = append(both, s)
		}
	}
	return both
}
