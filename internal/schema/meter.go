package schema

import (
	"encoding/json"
	"strconv"
	"strings"
)

// maxUnits bounds the work of one check. A unit is a schema that meets a value,
// 0.4 microseconds and, if they do not fit, 170 bytes until the answer is
// written.
const maxUnits = 1_000_000

// What else takes the time of a unit.
const (
	unitSteps  = 40   // steps of an expression
	unitBytes  = 1024 // of a string
	unitDigits = 10   // of a number
	unitScopes = 8    // schemas that a dynamic reference looks through
	unitValues = 8    // values looked at in passing
	unitNames  = 4    // members looked up
	unitItems  = 2    // values compared with all others
)

// A meter goes the way of the validator through schema and document, without
// checking anything and without the short cuts, to find out how much work it
// would be. A recursive schema that takes two ways to each level takes 2^n on a
// document n levels deep; no property of the schema alone tells that from a
// harmless one.
type meter struct {
	left  int // units
	depth int // schemas under way
}

// visit reports whether there is work left after p has met v.
func (m *meter) visit(p *part, v any) bool {
	m.left -= p.units
	m.depth++
	if p.dynamic {
		m.left -= m.depth / unitScopes
	}
	ok := m.left >= 0
	for i := 0; ok && i < len(p.inPlace); i++ {
		ok = m.visit(p.inPlace[i], v)
	}
	if ok {
		switch v := v.(type) {
		case map[string]any:
			ok = m.visitObject(p, v)
		case []any:
			ok = m.visitArray(p, v)
		case string:
			m.left -= len(v)/unitBytes + p.steps*len(v)/unitSteps
		case json.Number:
			m.compare(p, digits(v))
		}
	}
	m.depth--
	return ok && m.left >= 0
}

func (m *meter) visitObject(p *part, object map[string]any) bool {
	m.left -= len(object) / unitNames
	m.compareParts(p, object)
	if p.properties == nil && p.patterns == nil && p.members == nil && p.names == nil {
		return m.left >= 0
	}
	for name, v := range object {
		if q := p.properties[name]; q != nil && !m.visit(q, v) {
			return false
		}
		for _, pp := range p.patterns {
			m.left -= pp.steps * len(name) / unitSteps
			if !m.visit(pp.part, v) {
				return false
			}
		}
		for _, q := range p.members {
			if !m.visit(q, v) {
				return false
			}
		}
		if p.names != nil && !m.visit(p.names, name) {
			return false
		}
	}
	return m.left >= 0
}

func (m *meter) visitArray(p *part, array []any) bool {
	m.left -= len(array) / unitValues
	m.compareParts(p, array)
	if p.unique {
		m.left -= measure(array, new(comparison)) / unitItems
	}
	if p.prefix == nil && p.items == nil {
		return m.left >= 0
	}
	for i, v := range array {
		if q := p.prefix[i]; q != nil && !m.visit(q, v) {
			return false
		}
		for _, q := range p.items {
			if !m.visit(q, v) {
				return false
			}
		}
	}
	return m.left >= 0
}

// compare takes the work of comparing a number with all that p compares it with.
func (m *meter) compare(p *part, digits int) {
	m.left -= digits/unitDigits + 2*p.numbers.n + (p.numbers.digits+p.numbers.n*digits)/unitDigits
}

// compareParts does the same for the numbers within v, which enum and const may
// hold as well. Each of theirs is compared with one of v's at most.
func (m *meter) compareParts(p *part, v any) {
	if p.numbers.n > 0 {
		var within comparison
		m.left -= measure(v, &within) / unitValues
		m.compare(p, within.digits)
	}
}

// measure returns the number of values in v, with strings counted by length,
// and adds up its numbers.
func measure(v any, numbers *comparison) int {
	n := 1
	switch v := v.(type) {
	case map[string]any:
		for name, x := range v {
			n += len(name)/unitBytes + measure(x, numbers)
		}
	case []any:
		for _, x := range v {
			n += measure(x, numbers)
		}
	case string:
		n += len(v) / (unitBytes / unitValues)
	case json.Number:
		numbers.n++
		numbers.digits += digits(v)
	}
	return n
}

// digits returns about how many digits n has when it is written out.
func digits(n json.Number) int {
	if i := strings.IndexAny(string(n), "eE"); i >= 0 {
		power, _ := strconv.Atoi(string(n[i+1:])) // bounded by the document's parser
		return i + max(power, -power)
	}
	return len(n)
}
