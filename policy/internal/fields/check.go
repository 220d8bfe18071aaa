package fields

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/wasmgate/wasmgate/internal/spelling"
	"github.com/wasmgate/wasmgate/policy/internal/input"
)

// A Finding is a name that the input does not have.
type Finding struct {
	At      *ast.Location
	Message string
	Warning bool // whether it may be there all the same
}

// A Comparison is a text that a policy compares with a part of the input, whole or with its
// beginning.
type Comparison struct {
	At         *ast.Location
	Path, Text string // such as input.tool.name; [_] stands for the elements of a list
	Beginning  bool
}

// maxVisits bounds how many rules, and ways to call functions, are followed.
const maxVisits = 50_000

type checker struct {
	root   []part // the input, for each kind of action
	rules  map[string][]*ast.Rule
	arity  func(function string, otherwise int) int
	done   map[visit]outcome
	called map[*ast.Rule]bool

	places      map[place]*state
	findings    []Finding
	comparisons []Comparison
	said        map[string]bool
}

// A visit is a rule with arguments.
type visit struct {
	rule *ast.Rule
	args string
}

// A place is where a policy names a member: a term, and which of the keys in it.
type place struct {
	term *ast.Term
	key  int
}

// state is what is known of a place: a name that one call of a function does not find may be
// there for another call.
type state struct {
	found   map[string]bool
	missing map[string]Finding
	order   []string
}

// Check follows the rules of modules that a compiler has compiled, as far as the check of types,
// and returns what is wrong with the fields that they name. Only modules for which own holds are
// checked; the others are followed where these use them. builtins are all that modules may call.
func Check(modules map[string]*ast.Module, builtins []*ast.Builtin, own func(file string) bool) ([]Finding, []Comparison) {
	arities := map[string]int{}
	for _, b := range builtins {
		arities[b.Name] = b.Decl.Arity()
	}
	c := &checker{
		rules: map[string][]*ast.Rule{}, done: map[visit]outcome{}, called: map[*ast.Rule]bool{}, places: map[place]*state{}, said: map[string]bool{},
		arity: func(name string, otherwise int) int {
			if n, ok := arities[name]; ok {
				return n
			}
			return otherwise
		},
	}
	for _, s := range input.For() {
		c.root = append(c.root, part{s, "input"})
	}
	var roots []*ast.Rule
	files := make([]string, 0, len(modules))
	for file := range modules {
		files = append(files, file)
	}
	slices.Sort(files)
	for _, file := range files {
		for _, r := range modules[file].Rules {
			name := r.Ref().GroundPrefix().String()
			c.rules[name] = append(c.rules[name], r)
			if own(file) {
				roots = append(roots, r)
			}
		}
	}
	for _, functions := range []bool{false, true} { // functions that nothing calls come last
		for _, r := range roots {
			if (len(r.Head.Args) > 0) == functions && !(functions && c.called[r]) {
				c.rule(r, nil)
			}
		}
	}
	for _, s := range c.places {
		for _, name := range s.order {
			if !s.found[name] {
				c.add(s.missing[name])
			}
		}
	}
	c.findings = slices.DeleteFunc(c.findings, func(f Finding) bool { return !own(f.At.File) })
	c.comparisons = slices.DeleteFunc(c.comparisons, func(f Comparison) bool { return !own(f.At.File) })
	return c.findings, c.comparisons
}

// rulesOf returns the rules that a reference into data begins with, and the rest of it.
func (c *checker) rulesOf(ref ast.Ref) (rules []*ast.Rule, rest ast.Ref) {
	ground := ref.GroundPrefix()
	for i := len(ground); i > 1; i-- {
		if rules := c.rules[ground[:i].String()]; rules != nil {
			return rules, ref[i:]
		}
	}
	return nil, nil
}

func (c *checker) fault(at *ast.Location, message string) { c.add(Finding{At: at, Message: message}) }

func (c *checker) add(f Finding) {
	if id := f.At.String() + f.Message; !c.said[id] {
		c.said[id] = true
		c.findings = append(c.findings, f)
	}
}

// met notes which of the keys are there, and which are not.
func (f *frame) met(where place, by, found value, missing []ast.Value, at *ast.Term, parts []part) {
	if !f.report || at.Location == nil && where.term.Location == nil {
		return
	}
	s := f.places[where]
	if s == nil {
		s = &state{found: map[string]bool{}, missing: map[string]Finding{}}
		f.places[where] = s
	}
	for _, key := range by.texts {
		name := key.String()
		switch {
		case slices.ContainsFunc(missing, func(m ast.Value) bool { return m.Compare(key) == 0 }):
			s.miss(name, Finding{At: f.at(at, where.term), Message: f.missing(parts, key)})
		case len(parts) > 0 && f.doubtful(parts, key) != "":
			s.miss(name, Finding{f.at(at, where.term), f.doubtful(parts, key), true})
		case !found.bottom():
			s.found[name] = true
		}
	}
}

func (s *state) miss(name string, finding Finding) {
	if _, ok := s.missing[name]; !ok {
		s.missing[name] = finding
		s.order = append(s.order, name)
	}
}

// doubtful returns what is said of a name that open parts may have, if it is nearly one that
// they are known to have; "" otherwise.
func (f *frame) doubtful(parts []part, key ast.Value) string {
	name, ok := key.(ast.String)
	known := knownFields(parts)
	if !ok || len(known) == 0 || slices.Contains(known, string(name)) || slices.ContainsFunc(parts, func(p part) bool { return p.shape.Kind != input.Object }) {
		return ""
	}
	meant := spelling.Suggest(string(name), known)
	if meant == "" {
		return ""
	}
	return fmt.Sprintf("%s has no field %q that wasmgate knows%s", parts[0].path, string(name), meant)
}

// at returns the line of a term, or of what it is in: some terms that the compiler makes have
// none.
func (f *frame) at(t, within *ast.Term) *ast.Location {
	if t.Location != nil && t.Location.File != "" {
		return t.Location
	}
	return within.Location
}

// compareTexts notes texts that are compared with a part of the input.
func (f *frame) compareTexts(a, b value, at *ast.Term, beginning bool) {
	if !f.report || at.Location == nil {
		return
	}
	for _, p := range a.parts {
		for _, text := range textsOf(b) {
			c := Comparison{at.Location, p.path, text, beginning}
			if id := fmt.Sprint("compared ", c); p.shape.Kind == input.Text && !f.said[id] {
				f.said[id] = true
				f.comparisons = append(f.comparisons, c)
			}
		}
	}
}

// knownFields returns the names of the members that parts are known to have.
func knownFields(parts []part) []string {
	var known []string
	for _, p := range parts {
		for _, field := range p.shape.Fields {
			if !slices.Contains(known, field.Name) {
				known = append(known, field.Name)
			}
		}
	}
	slices.Sort(known)
	return known
}

// missing says that parts of the input have no such member, and which one may be meant.
func (f *frame) missing(parts []part, key ast.Value) string {
	path, kind := parts[0].path, parts[0].shape.Kind
	name := strings.Trim(key.String(), `"`)
	switch kind {
	case input.List:
		return fmt.Sprintf("%s is a list and has no field %q; to look for an element, write %q in %s", path, name, name, path)
	case input.Object, input.Map:
	default:
		return fmt.Sprintf("%s is a %s and has no field %q", path, kind, name)
	}
	said := fmt.Sprintf("%s has no field %q", path, name)
	known := knownFields(parts)
	if len(f.actions) > 0 && (path == "input" || path == "input.request") {
		quoted := make([]string, len(f.actions))
		for i, a := range f.actions {
			quoted[i] = strconv.Quote(a)
		}
		said += " where input.action is " + strings.Join(quoted, " or ")
		if path == "input" && slices.Contains(knownFields(f.root), name) { // misplaced, not misspelt
			return said + "; it has " + strings.Join(known, ", ")
		}
	}
	if meant := nearest(name, known); len(meant) > 0 {
		return said + "; did you mean " + strings.Join(meant, " or ") + "?"
	}
	return said + "; it has " + strings.Join(known, ", ")
}

// nearest returns the known names to which a name is nearest, quoted, or none if it is near to
// none: by edits, or else by how they begin.
func nearest(name string, known []string) []string {
	const begin = 3 // letters by which an abbreviation is known
	least := 2      // edits are a slip, more are another word
	var best, alike []string
	for _, k := range known {
		d := spelling.Distance(strings.ToLower(name), strings.ToLower(k))
		switch {
		case 2*d > len(k) || d > least:
			if len(name) >= begin && strings.HasPrefix(k, name[:begin]) {
				alike = append(alike, strconv.Quote(k))
			}
		case d < least:
			least, best = d, []string{strconv.Quote(k)}
		case d == least:
			best = append(best, strconv.Quote(k))
		}
	}
	if best == nil {
		return alike
	}
	return best
}
