package schema

import (
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

// Limits of a schema's text, which bound the work of the compiler. Of a thousand
// tools of public servers none has an input schema of 2 KB.
const (
	maxBytes   = 256 << 10
	maxDepth   = 128 // arrays and objects within each other
	maxObjects = 5000
	maxValues  = 20000
	// The compiler looks at every object for each name that can be referred to
	// and, in bad cases, for each reference.
	maxLookups = 2 << 20
)

// finding is what compiling needs to know of a schema's text.
type finding struct {
	values, objects int
	names           map[string]struct{} // references and identifiers
	anchors         []string            // pointers of what a dynamic reference may lead to
	path            []string
}

// examine checks what has to be known before the compiler sees a schema.
func examine(raw gate.Doc) (*finding, error) {
	if size := len(raw.Raw()); size > maxBytes {
		return nil, at("", "the schema has %d bytes; at most %d are allowed", size, maxBytes)
	}
	if dialect := raw.Get("$schema"); !dialect.IsZero() && !knownDialect(dialect.Text()) {
		return nil, keywordError([]string{"$schema"}, "%s is not one of the drafts 4, 6, 7, 2019-09 and 2020-12", quote(dialect.Text()))
	}
	f := &finding{names: make(map[string]struct{})}
	if err := f.walk(raw); err != nil {
		return nil, err
	}
	if len(f.names)*f.objects > maxLookups {
		return nil, at("", "the schema is too large: it has %d objects with %d references and identifiers", f.objects, len(f.names))
	}
	return f, nil
}

func knownDialect(uri string) bool {
	uri = strings.TrimSuffix(uri, "#")
	rest, ok := strings.CutPrefix(uri, "https://")
	if !ok {
		rest, ok = strings.CutPrefix(uri, "http://")
	}
	return ok && dialects[rest]
}

// walk looks at every value, schema or not: what is data costs the same.
func (f *finding) walk(d gate.Doc) error {
	if len(f.path) > maxDepth {
		return at("", "the schema has more than %d levels", maxDepth)
	}
	if f.values++; f.values > maxValues {
		return at("", "the schema has more than %d values", maxValues)
	}
	switch d.Kind() {
	case doc.Object, doc.Bool:
		if f.objects++; f.objects > maxObjects {
			return at("", "the schema has more than %d objects", maxObjects)
		}
	}
	for name, v := range d.Members() {
		if err := f.descend(name, v); err != nil {
			return err
		}
	}
	i := 0
	for v := range d.Elements() {
		if err := f.descend(strconv.Itoa(i), v); err != nil {
			return err
		}
		i++
	}
	return nil
}

func (f *finding) descend(name string, v gate.Doc) error {
	switch {
	case v.Kind() == doc.String && (references[name] || name == "$id" || name == "id"):
		f.names[v.Text()] = struct{}{}
	case name == "$dynamicAnchor" || name == "$recursiveAnchor":
		anchor := pointerTo(f.path)
		f.anchors = append(f.anchors, anchor)
		f.names["#"+anchor] = struct{}{}
	case v.Kind() == doc.Number && counts[name] && !isInt64(v.String()):
		return keywordError(append(slices.Clone(f.path), name), "a bound is not a whole number from 0")
	}
	f.path = append(f.path, name)
	err := f.walk(v)
	f.path = f.path[:len(f.path)-1]
	return err
}

func isInt64(number string) bool {
	r, ok := new(big.Rat).SetString(number)
	return ok && r.IsInt() && r.Num().IsInt64()
}
