package schema

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

// maxCoerce bounds the steps of one coercion: values looked at and changes tried.
const maxCoerce = 10_000

var _ gate.Coercer = (*Schema)(nil)

// Coerce returns d with its values converted to what the schema says, as far as that loses nothing, and
// the places of the changes. Text that is a number or a boolean in JSON's grammar becomes that number
// or boolean, one value becomes a list of it, and a required member that is missing and has a default
// gets that default.
//
// A value is changed only if it is not as its schema says, if that schema is reached only by properties
// and items, and if exactly one change makes it so. Text never becomes an object, a list of several
// values, or null. A document that is as the schema says is returned as it is, and so is one that takes
// more than 10,000 steps. The result need not be valid.
func (s *Schema) Coerce(d gate.Doc) (out gate.Doc, changed []string) {
	defer func() {
		if v := recover(); v != nil {
			out, changed = d, nil
		}
	}()
	if d.IsZero() || s.Validate(d) == nil {
		return d, nil
	}
	c := coercion{left: maxCoerce, meter: meter{left: maxUnits}}
	raw := c.value(s.root, d, nil)
	if raw == nil || c.left < 0 {
		return d, nil
	}
	out, err := gate.ParseDoc(raw)
	if err != nil {
		return d, nil
	}
	return out, c.changed
}

// coercion is one coercion under way.
type coercion struct {
	left    int   // steps
	meter   meter // of the validation of what is tried
	changed []string
}

// value returns what d becomes under p, or nil if it stays.
func (c *coercion) value(p *part, d gate.Doc, path []string) []byte {
	if c.left--; c.left < 0 || p == nil || p.of.Bool != nil || p.of.Ref != nil || p.of.DynamicRef != nil || p.of.RecursiveRef != nil {
		return nil
	}
	if p.of.Types != nil && !slices.ContainsFunc(p.of.Types.ToStrings(), func(t string) bool { return hasType(d, t) }) {
		return c.exchange(p, d, path)
	}
	switch d.Kind() {
	case doc.Object:
		return c.object(p, d, path)
	case doc.Array:
		return c.array(p, d, path)
	}
	return nil
}

// exchange returns the one value of another type that d can become, or nil.
func (c *coercion) exchange(p *part, d gate.Doc, path []string) []byte {
	var fits []byte
	for _, raw := range candidates(p, d) {
		if c.left--; c.left < 0 || !c.valid(p, raw) {
			continue
		}
		if fits != nil {
			return nil
		}
		fits = raw
	}
	if fits != nil {
		c.changed = append(c.changed, boundedPointer(path))
	}
	return fits
}

// candidates returns what d could become under p without a loss.
func candidates(p *part, d gate.Doc) (all [][]byte) {
	types := p.of.Types.ToStrings()
	if text := d.Text(); d.Kind() == doc.String {
		number := isNumber(text) && (slices.Contains(types, "number") || slices.Contains(types, "integer"))
		boolean := (text == "true" || text == "false") && slices.Contains(types, "boolean")
		if number || boolean {
			all = append(all, []byte(text))
		}
	}
	if slices.Contains(types, "array") && d.Kind() != doc.Null && p.each != nil && p.each.of.Types != nil {
		if slices.ContainsFunc(p.each.of.Types.ToStrings(), func(t string) bool { return hasType(d, t) }) {
			all = append(all, slices.Concat([]byte{'['}, d.Raw(), []byte{']'}))
		}
	}
	return all
}

// isNumber reports whether a text is a number in JSON's grammar and nothing else.
func isNumber(text string) bool {
	d, err := gate.ParseDoc([]byte(text))
	return err == nil && d.Kind() == doc.Number && len(d.Raw()) == len(text)
}

// valid reports whether a value is as p says, if that can be found out with the work
// that is left.
func (c *coercion) valid(p *part, raw []byte) bool {
	d, err := gate.ParseDoc(raw)
	if err != nil || !c.meter.visit(p, d.Value()) {
		return false
	}
	return p.of.Validate(d.Value()) == nil
}

// object returns an object whose members are coerced, and those added that are required
// and have a default.
func (c *coercion) object(p *part, d gate.Doc, path []string) []byte {
	out, some := []byte{'{'}, false
	add := func(name string, raw []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		quoted, _ := json.Marshal(name) // a text has no other error than none
		out = append(append(append(out, quoted...), ':'), raw...)
	}
	has := make(map[string]bool)
	for name, v := range d.Members() {
		has[name] = true
		raw := v.Raw()
		if q := p.properties[name]; q != nil {
			if changed := c.value(q, v, append(path, name)); changed != nil {
				raw, some = changed, true
			}
		}
		add(name, raw)
	}
	for _, name := range p.of.Required {
		q := p.properties[name]
		if c.left--; c.left < 0 || has[name] || q == nil || q.of.Default == nil {
			continue
		}
		raw, err := json.Marshal(*q.of.Default)
		if err == nil && c.valid(q, raw) {
			add(name, raw)
			c.changed, some = append(c.changed, boundedPointer(append(path, name))), true
		}
	}
	if !some {
		return nil
	}
	return append(out, '}')
}

// array returns a list whose elements are coerced.
func (c *coercion) array(p *part, d gate.Doc, path []string) []byte {
	if p.each == nil {
		return nil
	}
	out, some, i := []byte{'['}, false, 0
	for v := range d.Elements() {
		if i > 0 {
			out = append(out, ',')
		}
		raw := v.Raw()
		if changed := c.value(p.each, v, append(path, strconv.Itoa(i))); changed != nil {
			raw, some = changed, true
		}
		out = append(out, raw...)
		i++
	}
	if !some {
		return nil
	}
	return append(out, ']')
}

// Limits of what a schema is said to take.
const (
	maxTakes     = 1 << 10 // bytes
	maxTakesDeep = 2       // objects within each other
)

// Takes shows what would be valid, such as {path: string, head?: integer, mode?: "a" | "b"}:
// the members that the schema names, those with ? may be missing. It is "" if the schema
// names none.
func (s *Schema) Takes() string {
	if len(s.root.properties) == 0 {
		return ""
	}
	return printable(s.root.takes(0), maxTakes)
}

func (p *part) takes(depth int) string {
	of := p.of
	switch {
	case of.Const != nil:
		return value(*of.Const)
	case of.Enum != nil:
		return listed(of.Enum.Values)
	case of.Types == nil && len(of.AnyOf)+len(of.OneOf) > 0 && depth <= maxTakesDeep:
		var all []string
		for _, q := range p.inPlace {
			if slices.Contains(of.AnyOf, q.of) || slices.Contains(of.OneOf, q.of) {
				all = append(all, q.takes(depth+1))
			}
		}
		return strings.Join(all, " | ")
	case of.Types == nil && len(p.properties) == 0:
		return "any"
	}
	types := []string{"object"}
	if of.Types != nil {
		types = of.Types.ToStrings()
	}
	for i, t := range types {
		switch {
		case t == "object" && len(p.properties) > 0 && depth < maxTakesDeep:
			types[i] = p.takesMembers(depth)
		case t == "array" && p.each != nil && depth < maxTakesDeep:
			types[i] = "list of " + p.each.takes(depth+1)
		}
	}
	return strings.Join(types, " | ")
}

// takesMembers shows the members of an object, those first that it must have.
func (p *part) takesMembers(depth int) string {
	names := slices.Sorted(maps.Keys(p.properties))
	for _, name := range p.of.Required { // also if nothing describes it
		if p.properties[name] == nil && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	order := func(name string) int {
		if i := slices.Index(p.of.Required, name); i >= 0 {
			return i
		}
		return len(p.of.Required)
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(order(a), order(b)) })
	var b strings.Builder
	for i, name := range names {
		if b.Len() > maxTakes {
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(cut(name, maxName))
		if !slices.Contains(p.of.Required, name) {
			b.WriteByte('?')
		}
		if of := p.properties[name]; of != nil {
			b.WriteString(": " + of.takes(depth+1))
		} else {
			b.WriteString(": any")
		}
	}
	return "{" + b.String() + "}"
}

// listed shows the values that are allowed.
func listed(all []any) string {
	var b strings.Builder
	for i, v := range all {
		if i == maxListed {
			fmt.Fprintf(&b, " | %d more", len(all)-i)
			break
		}
		if i > 0 {
			b.WriteString(" | ")
		}
		b.WriteString(value(v))
	}
	return b.String()
}
