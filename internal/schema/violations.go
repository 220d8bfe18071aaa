package schema

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

// Limits of the description of violations. They suit a model that is to fix its call, and a log.
const (
	maxViolations = 50
	maxPointer    = 1024  // bytes; what is longer, or does not print, is cut off and leaves the ancestor
	maxListed     = 10    // names or values in one message
	maxCollected  = 10000 // violations; the leftmost of these are reported
)

// A flaw is a violation on the way from the validator's tree to a message.
type flaw struct {
	path   []string
	kind   jsonschema.ErrorKind
	prefix string // which alternatives led here
	causes []*jsonschema.ValidationError
}

// violations describes what broke found in d.
func violations(d gate.Doc, broke *jsonschema.ValidationError) doc.Violations {
	var flaws flaws
	flaws.collect(broke, "")
	var out doc.Violations
	flaws.inOrder(d, 0, func(here []flaw) bool {
		var found doc.Violations
		for _, f := range here {
			found = append(found, doc.Violation{Pointer: boundedPointer(f.path), Message: f.message()})
		}
		// The validator iterates over maps.
		slices.SortStableFunc(found, func(a, b doc.Violation) int { return strings.Compare(a.Message, b.Message) })
		out = append(out, slices.Compact(found)...)
		return len(out) < maxViolations
	})
	if len(out) == 0 {
		return doc.Violations{{Message: "breaks the schema"}}
	}
	return out[:min(len(out), maxViolations)]
}

// brokenSchema describes what broke found in the schema at base.
func brokenSchema(raw gate.Doc, base []string, broke *jsonschema.ValidationError) error {
	var flaws flaws
	flaws.collect(broke, "")
	slices.SortStableFunc(flaws, func(a, b flaw) int { return slices.Compare(a.path, b.path) })
	if len(flaws) == 0 {
		return keywordError(base, "not a valid schema")
	}
	f := flaws[0]
	message := f.message()
	if format, ok := f.kind.(*kind.Format); ok {
		message = fmt.Sprintf("%.*q is not a valid %s: %v", maxName, format.Got, format.Want, format.Err)
	}
	if name, ok := f.kind.(*kind.PropertyNames); ok {
		message = fmt.Sprintf("%s cannot be a name here", quote(name.Property))
		if _, err := (make(patterns)).compile(name.Property); err != nil {
			message = fmt.Sprintf("%s is not a valid regex: %v", quote(name.Property), err)
		}
		holder := findMember(raw, func(keyword string, v gate.Doc) bool {
			return keyword == "patternProperties" && !v.Get(name.Property).IsZero()
		})
		return keywordError(append(holder, name.Property), "%s", printable(message, maxMessage)) // the path of the flaw may be overwritten by now
	}
	return keywordError(append(base, f.path...), "%s", printable(message, maxMessage))
}

type flaws []flaw

// collect adds the leaves of the tree e. Nodes that only group others are left out.
func (f *flaws) collect(e *jsonschema.ValidationError, prefix string) {
	if len(*f) >= maxCollected {
		return
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.Reference, *kind.AllOf:
		for _, cause := range e.Causes {
			f.collect(cause, prefix)
		}
		return
	case *kind.AnyOf:
		if f.collectAlternatives(e, prefix) {
			return
		}
	case *kind.OneOf:
		if k.Subschemas == nil && f.collectAlternatives(e, prefix) {
			return
		}
	}
	*f = append(*f, flaw{e.InstanceLocation, e.ErrorKind, prefix, e.Causes})
}

// collectAlternatives adds the causes of an anyOf or oneOf without a matching alternative. If the
// causes are only wrong types, it adds one flaw that names all types, and reports true.
func (f *flaws) collectAlternatives(e *jsonschema.ValidationError, prefix string) bool {
	types := kind.Type{}
	for _, cause := range e.Causes {
		k, ok := cause.ErrorKind.(*kind.Type)
		if !ok || len(cause.InstanceLocation) != len(e.InstanceLocation) {
			for i, cause := range e.Causes {
				f.collect(cause, fmt.Sprintf("%salternative %d: ", prefix, i))
			}
			return false
		}
		types.Got = k.Got
		types.Want = append(types.Want, k.Want...)
	}
	*f = append(*f, flaw{e.InstanceLocation, &types, prefix, nil})
	return true
}

// inOrder calls yield with the flaws of each place, in the order of the
// document, until it returns false.
func (f flaws) inOrder(d gate.Doc, depth int, yield func([]flaw) bool) bool {
	var here flaws
	below := make(map[string]flaws)
	for _, x := range f {
		if len(x.path) <= depth {
			here = append(here, x)
		} else {
			below[x.path[depth]] = append(below[x.path[depth]], x)
		}
	}
	if len(here) > 0 && !yield(here) {
		return false
	}
	if len(below) == 0 {
		return true
	}
	for name, v := range d.Members() {
		if x := below[name]; x != nil && !x.inOrder(v, depth+1, yield) {
			return false
		}
	}
	i := 0
	for v := range d.Elements() {
		if x := below[strconv.Itoa(i)]; x != nil && !x.inOrder(v, depth+1, yield) {
			return false
		}
		i++
	}
	return true
}

// message says what is wrong in words that hold no value of the document.
func (f flaw) message() string {
	text := describe(f.kind)
	if _, ok := f.kind.(*kind.PropertyNames); ok && len(f.causes) > 0 {
		var causes flaws
		causes.collect(f.causes[0], "")
		text += ": " + causes[0].message()
	}
	return printable(f.prefix+text, maxMessage)
}

func describe(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		return fmt.Sprintf("expected %s, found %s", strings.Join(slices.Compact(slices.Clone(k.Want)), " or "), k.Got)
	case *kind.Enum:
		return "must be one of " + list(k.Want, value)
	case *kind.Const:
		return "must be " + value(k.Want)
	case *kind.Required:
		return "missing " + list(k.Missing, quote)
	case *kind.Dependency:
		return fmt.Sprintf("missing %s, which %s requires", list(k.Missing, quote), quote(k.Prop))
	case *kind.DependentRequired:
		return fmt.Sprintf("missing %s, which %s requires", list(k.Missing, quote), quote(k.Prop))
	case *kind.AdditionalProperties:
		return "unexpected " + list(slices.Sorted(slices.Values(k.Properties)), quote)
	case *kind.PropertyNames:
		return fmt.Sprintf("the name %s is not allowed", quote(k.Property))
	case *kind.FalseSchema:
		return "nothing is allowed here"
	case *kind.Pattern:
		return "must match the pattern " + quote(k.Want)
	case *kind.UniqueItems:
		return fmt.Sprintf("items %d and %d are equal", k.Duplicates[0], k.Duplicates[1])
	case *kind.Not:
		return "is what the keyword not rules out"
	case *kind.AnyOf:
		return "fits no alternative of anyOf"
	case *kind.OneOf:
		if len(k.Subschemas) < 2 {
			return "fits no alternative of oneOf"
		}
		return fmt.Sprintf("fits alternatives %d and %d of oneOf, and may fit only one", k.Subschemas[0], k.Subschemas[1])
	default:
		return describeLimit(k)
	}
}

func describeLimit(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Minimum:
		return "must be at least " + number(k.Want)
	case *kind.Maximum:
		return "must be at most " + number(k.Want)
	case *kind.ExclusiveMinimum:
		return "must be more than " + number(k.Want)
	case *kind.ExclusiveMaximum:
		return "must be less than " + number(k.Want)
	case *kind.MultipleOf:
		return "must be a multiple of " + number(k.Want)
	case *kind.MinLength:
		return fmt.Sprintf("must be at least %d characters long", k.Want)
	case *kind.MaxLength:
		return fmt.Sprintf("must be at most %d characters long", k.Want)
	case *kind.MinItems:
		return fmt.Sprintf("must have at least %d items", k.Want)
	case *kind.MaxItems:
		return fmt.Sprintf("must have at most %d items", k.Want)
	case *kind.AdditionalItems:
		return fmt.Sprintf("has %d items too many", k.Count)
	case *kind.MinProperties:
		return fmt.Sprintf("must have at least %d members", k.Want)
	case *kind.MaxProperties:
		return fmt.Sprintf("must have at most %d members", k.Want)
	case *kind.Contains:
		return "no item is what the keyword contains asks for"
	case *kind.MinContains:
		return fmt.Sprintf("at least %d items must match the schema under contains", k.Want)
	case *kind.MaxContains:
		return fmt.Sprintf("at most %d items may match the schema under contains", k.Want)
	default:
		return "breaks the schema"
	}
}

// list joins what is listed, up to a number.
func list[T any](all []T, show func(T) string) string {
	var b strings.Builder
	for i, x := range all {
		if i == maxListed {
			fmt.Fprintf(&b, " and %d more", len(all)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(show(x))
	}
	return b.String()
}

// value shows a value of a schema.
func value(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return "a certain value"
	}
	return cut(string(b), maxName)
}

func number(r *big.Rat) string {
	if f, exact := r.Float64(); exact || !r.IsInt() {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return cut(r.Num().String(), maxName)
}

func boundedPointer(path []string) string {
	size := 0
	for i, token := range path {
		if size += 1 + len(token); size > maxPointer || printable(token, maxPointer) != token {
			return pointerTo(path[:i])
		}
	}
	return pointerTo(path)
}
