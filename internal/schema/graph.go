package schema

import (
	"cmp"
	"encoding/hex"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Limits of what meets one place in a document. Real schemas stay below 50 and
// 10; the validator's stack grows with the second.
const (
	maxInPlace      = 10000 // schemas, in all
	maxInPlaceDepth = 64    // schemas within each other
)

// A graph is made of a compiled schema. The compiler has resolved all
// references but dynamic ones; of those every possible target is taken.
type graph struct {
	parts   map[*jsonschema.Schema]*part
	order   []*jsonschema.Schema
	entries []*jsonschema.Schema // where a resource can be entered
	reaches map[*part]reach
	named   map[*part]*jsonschema.Schema
}

// reach is how many schemas apply to a value to which one does, that one
// included, and how many of them lead to each other. It is zero while it is
// being found out.
type reach struct{ all, depth int }

// newGraph returns the part of root. It is an error if a reference cycle or the
// number of schemas that meet one value is such that checking would not end. It
// changes the compiled schemas where the package's promises differ from the
// validator's.
func newGraph(c *jsonschema.Compiler, root *jsonschema.Schema, anchors []string) (*part, error) {
	g := &graph{
		parts:   make(map[*jsonschema.Schema]*part),
		entries: []*jsonschema.Schema{root},
		reaches: make(map[*part]reach),
		named:   make(map[*part]*jsonschema.Schema),
	}
	p := g.part(root)
	var anchored []*jsonschema.Schema
	for _, pointer := range anchors {
		// An error means that this is data and no schema.
		if s, err := c.Compile(location + "#" + strings.ReplaceAll(pointer, "%", "%25")); err == nil {
			anchored = append(anchored, s)
			g.part(s)
		}
	}
	for _, s := range g.order { // complete, since part follows dynamic references as written
		g.linkDynamic(s, anchored)
	}
	for _, s := range g.order {
		if _, err := g.reach(g.parts[s]); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// linkDynamic adds what a dynamic reference may lead to: any schema with the
// anchor that it names. A $recursiveRef leads to where its resource was entered.
func (g *graph) linkDynamic(s *jsonschema.Schema, anchored []*jsonschema.Schema) {
	p := g.parts[s]
	if d := s.DynamicRef; d != nil {
		targets := []*jsonschema.Schema{d.Ref}
		for _, a := range anchored {
			if a != d.Ref && a.DynamicAnchor == d.Anchor && d.Ref.DynamicAnchor == d.Anchor && d.Anchor != "" {
				targets = append(targets, a)
			}
		}
		p.inPlace = append(p.inPlace, g.all(targets)...)
	}
	if target := s.RecursiveRef; target != nil {
		p.inPlace = append(p.inPlace, g.part(target))
		if !target.RecursiveAnchor || target == g.entries[0] && len(g.entries) == 1 {
			return
		}
		for _, e := range slices.Concat(g.entries, anchored) {
			if q := g.part(e); !slices.Contains(p.inPlace, q) {
				p.inPlace = append(p.inPlace, q)
			}
		}
	}
}

// part returns the part of s, made once. s may be nil.
func (g *graph) part(s *jsonschema.Schema) *part {
	if s == nil {
		return nil
	}
	if p, ok := g.parts[s]; ok {
		return p
	}
	p := &part{work: weigh(s), of: s}
	g.parts[s], g.named[p] = p, s
	g.order = append(g.order, s)
	s.Format = nil
	if s.UniqueItems {
		s.UniqueItems = false
		s.Extensions = append(s.Extensions, uniqueItems{})
	}
	if s.PropertyNames != nil {
		g.enter(s.PropertyNames)
		p.names = g.part(s.PropertyNames)
		s.Extensions = append(s.Extensions, propertyNames{s.PropertyNames})
		s.PropertyNames = nil
	}
	g.linkInPlace(p, s)
	g.linkMembers(p, s)
	g.linkItems(p, s)
	return p
}

// enter notes that checking can jump to s, which may be nil.
func (g *graph) enter(s *jsonschema.Schema) {
	if s != nil && !slices.Contains(g.entries, s) {
		g.entries = append(g.entries, s)
		g.part(s)
	}
}

func (g *graph) all(schemas []*jsonschema.Schema) (parts []*part) {
	for _, s := range schemas {
		if s != nil {
			parts = append(parts, g.part(s))
		}
	}
	return parts
}

func (g *graph) linkInPlace(p *part, s *jsonschema.Schema) {
	g.enter(s.Ref)
	g.enter(s.RecursiveRef)
	if s.DynamicRef != nil {
		g.enter(s.DynamicRef.Ref)
	}
	in := []*jsonschema.Schema{s.Ref, s.Not, s.If, s.Then, s.Else}
	in = slices.Concat(in, s.AllOf, s.AnyOf, s.OneOf)
	for _, name := range slices.Sorted(maps.Keys(s.DependentSchemas)) {
		in = append(in, s.DependentSchemas[name])
	}
	for _, name := range slices.Sorted(maps.Keys(s.Dependencies)) {
		if d, ok := s.Dependencies[name].(*jsonschema.Schema); ok {
			in = append(in, d)
		}
	}
	p.inPlace = g.all(in)
}

func (g *graph) linkMembers(p *part, s *jsonschema.Schema) {
	if len(s.Properties) > 0 {
		p.properties = make(map[string]*part, len(s.Properties))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p.properties[name] = g.part(s.Properties[name])
	}
	byText := func(a, b jsonschema.Regexp) int { return strings.Compare(a.String(), b.String()) }
	for _, re := range slices.SortedFunc(maps.Keys(s.PatternProperties), byText) {
		p.patterns = append(p.patterns, patternPart{stepsOf(re), g.part(s.PatternProperties[re])})
	}
	additional, _ := s.AdditionalProperties.(*jsonschema.Schema)
	p.members = g.all([]*jsonschema.Schema{additional, s.UnevaluatedProperties})
}

func (g *graph) linkItems(p *part, s *jsonschema.Schema) {
	one, _ := s.Items.(*jsonschema.Schema)
	tuple, _ := s.Items.([]*jsonschema.Schema)
	additional, _ := s.AdditionalItems.(*jsonschema.Schema)
	for i, t := range append(tuple, s.PrefixItems...) {
		if p.prefix == nil {
			p.prefix = make(map[int]*part)
		}
		p.prefix[i] = g.part(t)
	}
	p.items = g.all([]*jsonschema.Schema{one, additional, s.Items2020, s.Contains, s.UnevaluatedItems})
	if p.prefix == nil {
		p.each = g.part(cmp.Or(one, s.Items2020))
	}
}

// weigh returns what the keywords of s cost by themselves.
func weigh(s *jsonschema.Schema) work {
	w := work{unique: s.UniqueItems, dynamic: s.DynamicRef != nil || s.RecursiveRef != nil}
	names := len(s.Required) + len(s.Dependencies) + len(s.DependentRequired)
	for _, required := range s.DependentRequired {
		names += len(required)
	}
	for _, d := range s.Dependencies {
		required, _ := d.([]string)
		names += len(required)
	}
	values := 0
	if s.Enum != nil {
		values = measure(s.Enum.Values, &w.numbers)
	}
	if s.Const != nil {
		values += measure(*s.Const, &w.numbers)
	}
	for _, limit := range []*big.Rat{s.MultipleOf, s.Minimum, s.Maximum, s.ExclusiveMinimum, s.ExclusiveMaximum} {
		if limit != nil {
			w.numbers.n++
			w.numbers.digits += (limit.Num().BitLen() + limit.Denom().BitLen()) / 3
		}
	}
	w.units = 1 + names/unitValues + values/unitValues
	if s.Pattern != nil {
		w.steps = stepsOf(s.Pattern)
	}
	return w
}

func stepsOf(re jsonschema.Regexp) int {
	if p, ok := re.(*pattern); ok {
		return p.steps
	}
	return maxSteps
}

// reach returns the reach of p.
func (g *graph) reach(p *part) (reach, error) {
	if r, ok := g.reaches[p]; r.all > 0 {
		return r, nil
	} else if ok {
		return r, at(fragment(g.named[p].Location), "the schema refers to itself without an end")
	}
	g.reaches[p] = reach{}
	r := reach{all: 1}
	for _, q := range p.inPlace {
		below, err := g.reach(q)
		if err != nil {
			return r, err
		}
		r.all += below.all
		r.depth = max(r.depth, below.depth)
		if r.all > maxInPlace {
			return r, at(fragment(g.named[p].Location), "more than %d schemas apply to one value", maxInPlace)
		}
	}
	if r.depth++; r.depth > maxInPlaceDepth {
		return r, at(fragment(g.named[p].Location), "more than %d schemas that apply to one value lead to each other", maxInPlaceDepth)
	}
	g.reaches[p] = r
	return r, nil
}

// fragment returns the JSON Pointer in the address of a schema.
func fragment(address string) string {
	_, s, _ := strings.Cut(address, "#")
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if c, err := hex.DecodeString(s[i+1 : i+3]); err == nil {
				b.Write(c)
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// location is what the validator takes for the address of every schema. It has
// a hierarchy, so that a relative reference leads to another document rather
// than back into this one.
const (
	base     = "wasmgate:///"
	location = base + "schema"
)
