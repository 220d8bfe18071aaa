package schema

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// uniqueItems takes the place of the validator's own check, whose hash does not
// tell ["a", "b"] from ["a\u0004b"]: arrays made for it take quadratic time.
type uniqueItems struct{}

// Validate implements [jsonschema.SchemaExt].
func (uniqueItems) Validate(ctx *jsonschema.ValidatorContext, v any) {
	items, ok := v.([]any)
	if !ok || len(items) < 2 {
		return
	}
	seen := make(map[string]int, len(items))
	var key []byte
	for i, item := range items {
		key = appendKey(key[:0], item)
		if first, ok := seen[string(key)]; ok {
			ctx.AddError(&kind.UniqueItems{Duplicates: [2]int{first, i}})
			return
		}
		seen[string(key)] = i
	}
}

// appendKey appends bytes that two values share if and only if they are equal as
// JSON Schema sees it: 1.0 equals 1, and the order of members does not matter.
func appendKey(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, 'n')
	case bool:
		return strconv.AppendBool(b, v)
	case json.Number:
		return appendNumber(b, string(v))
	case string:
		return appendText(b, v)
	case []any:
		b = append(b, '[')
		for _, item := range v {
			b = append(appendKey(b, item), ',')
		}
		return append(b, ']')
	case map[string]any:
		b = append(b, '{')
		for _, name := range slices.Sorted(maps.Keys(v)) {
			b = appendText(b, name)
			b = append(appendKey(b, v[name]), ',')
		}
		return append(b, '}')
	}
	panic("schema: a value that no JSON document has")
}

func appendText(b []byte, s string) []byte {
	b = append(strconv.AppendInt(b, int64(len(s)), 10), ':')
	return append(b, s...)
}

// appendNumber appends a number as its sign, its digits without zeros at either
// end, and a power of ten.
func appendNumber(b []byte, s string) []byte {
	s, negative := strings.CutPrefix(s, "-")
	mantissa, power, _ := strings.Cut(strings.ToLower(s), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	exponent, _ := strconv.Atoi(power) // none is 0; the document's parser bounds it
	exponent -= len(fraction)
	digits := strings.TrimLeft(whole+fraction, "0")
	short := strings.TrimRight(digits, "0")
	if short == "" {
		return append(b, '+', '0')
	}
	sign := byte('+')
	if negative {
		sign = '-'
	}
	b = append(append(b, sign), short...)
	return strconv.AppendInt(append(b, 'e'), int64(exponent+len(digits)-len(short)), 10)
}

// propertyNames takes the place of the validator's own check, which reports
// places that later work overwrites.
type propertyNames struct{ names *jsonschema.Schema }

// Validate implements [jsonschema.SchemaExt].
func (p propertyNames) Validate(ctx *jsonschema.ValidatorContext, v any) {
	object, ok := v.(map[string]any)
	if !ok {
		return
	}
	for name := range object {
		if err := p.names.Validate(name); err != nil {
			ctx.AddErr(&jsonschema.ValidationError{
				SchemaURL:        p.names.Location,
				InstanceLocation: slices.Clone(ctx.ValueLocation()),
				ErrorKind:        &kind.PropertyNames{Property: name},
				Causes:           err.(*jsonschema.ValidationError).Causes,
			})
		}
	}
}
