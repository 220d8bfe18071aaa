package schema_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/schema"
)

func compiled(t testing.TB, raw string) *schema.Schema {
	t.Helper()
	s, err := schema.Compile(gate.MustDoc(raw))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCoerce(t *testing.T) {
	object := func(properties string) string { return `{"type":"object","properties":{` + properties + `}}` }
	tests := map[string]struct{ schema, doc, want, changed string }{
		"a number":                       {object(`"a":{"type":"integer"}`), `{"a":"2"}`, `{"a":2}`, "/a"},
		"a number keeps its digits":      {object(`"a":{"type":"number"}`), `{"a":"12345678901234567890.10"}`, `{"a":12345678901234567890.10}`, "/a"},
		"a boolean":                      {object(`"a":{"type":"boolean"}`), `{"a":"true"}`, `{"a":true}`, "/a"},
		"a list of one":                  {object(`"a":{"type":"array","items":{"type":"string"}}`), `{"a":"x"}`, `{"a":["x"]}`, "/a"},
		"an object in a list":            {object(`"a":{"type":"array","items":{"type":"object"}}`), `{"a":{"b":1}}`, `{"a":[{"b":1}]}`, "/a"},
		"below":                          {object(`"a":` + object(`"b":{"type":"array","items":{"type":"integer"}}`)), `{"a":{"b":[1,"2",3]}}`, `{"a":{"b":[1,2,3]}}`, "/a/b/1"},
		"several, all else in its order": {object(`"a":{"type":"integer"},"b":{"type":"boolean"}`), `{"z":1.0,"b":"false","y":"\u0041","a":"7"}`, `{"z":1.0,"b":false,"y":"\u0041","a":7}`, "/b /a"},
		"a default":                      {`{"type":"object","properties":{"a":{"default":"css"},"b":{"default":1e2}},"required":["b","a"]}`, `{}`, `{"b":1e2,"a":"css"}`, "/b /a"},
		"a default below":                {object(`"o":{"properties":{"a":{"default":[1]}},"required":["a"]}`), `{"o":{}}`, `{"o":{"a":[1]}}`, "/o/a"},
		"a limit holds for the number":   {object(`"a":{"type":"integer","maximum":5}`), `{"a":"5"}`, `{"a":5}`, "/a"},
		"an older draft":                 {`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"type":"array","items":{"type":"integer"}}}}`, `{"a":["1"]}`, `{"a":[1]}`, "/a/0"},

		"valid as it is":                     {object(`"a":{"type":["integer","string"]}`), `{"a":"2"}`, "", ""},
		"a default that is not required":     {object(`"a":{"default":1}`), `{}`, "", ""},
		"a default that breaks its schema":   {`{"properties":{"a":{"type":"string","default":1}},"required":["a"]}`, `{}`, "", ""},
		"two changes that would do":          {object(`"a":{"type":["integer","array"],"items":{"type":"string"}}`), `{"a":"2"}`, "", ""},
		"a number over its limit":            {object(`"a":{"type":"integer","maximum":5}`), `{"a":"6"}`, "", ""},
		"no whole number":                    {object(`"a":{"type":"integer"}`), `{"a":"2.5"}`, "", ""},
		"not JSON's grammar: plus":           {object(`"a":{"type":"integer"}`), `{"a":"+2"}`, "", ""},
		"not JSON's grammar: zero":           {object(`"a":{"type":"integer"}`), `{"a":"02"}`, "", ""},
		"not JSON's grammar: space":          {object(`"a":{"type":"integer"}`), `{"a":" 2"}`, "", ""},
		"not JSON's grammar: hexadecimal":    {object(`"a":{"type":"integer"}`), `{"a":"0x2"}`, "", ""},
		"not JSON's grammar: NaN":            {object(`"a":{"type":"number"}`), `{"a":"NaN"}`, "", ""},
		"not JSON's grammar: True":           {object(`"a":{"type":"boolean"}`), `{"a":"True"}`, "", ""},
		"one is not a boolean":               {object(`"a":{"type":"boolean"}`), `{"a":1}`, "", ""},
		"text to object":                     {object(`"a":{"type":"object"}`), `{"a":"{\"b\":1}"}`, "", ""},
		"text to a list of several":          {object(`"a":{"type":"array","items":{"type":"integer"}}`), `{"a":"[1,2]"}`, "", ""},
		"text to null":                       {object(`"a":{"type":"null"}`), `{"a":"null"}`, "", ""},
		"a list whose items are another":     {object(`"a":{"type":"array","items":{"type":"integer"}}`), `{"a":"x"}`, "", ""},
		"two changes in a row":               {object(`"a":{"type":"array","items":{"type":"integer"}}`), `{"a":"2"}`, "", ""},
		"a list of anything":                 {object(`"a":{"type":"array"}`), `{"a":"x"}`, "", ""},
		"number to text":                     {object(`"a":{"type":"string"}`), `{"a":2}`, "", ""},
		"through a reference":                {`{"properties":{"a":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"integer"}}}`, `{"a":"2"}`, "", ""},
		"through anyOf":                      {object(`"a":{"anyOf":[{"type":"integer"},{"type":"null"}]}`), `{"a":"2"}`, "", ""},
		"through oneOf":                      {object(`"a":{"oneOf":[{"type":"integer"}]}`), `{"a":"2"}`, "", ""},
		"through not":                        {object(`"a":{"not":{"type":"string"}}`), `{"a":"2"}`, "", ""},
		"additional members":                 {`{"additionalProperties":{"type":"integer"}}`, `{"a":"2"}`, "", ""},
		"a tuple":                            {object(`"a":{"type":"array","prefixItems":[{"type":"integer"}],"items":{"type":"integer"}}`), `{"a":["2"]}`, "", ""},
		"a list whose items are too few":     {object(`"a":{"type":"array","items":{"type":"string"},"minItems":2}`), `{"a":"x"}`, "", ""},
		"a schema that allows nothing there": {object(`"a":false`), `{"a":"2"}`, "", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if tt.want == "" {
				tt.want = tt.doc
			}
			s := compiled(t, tt.schema)
			got, changed := s.Coerce(gate.MustDoc(tt.doc))
			if got.String() != tt.want || strings.Join(changed, " ") != tt.changed {
				t.Errorf("got %s %q, want %s %q", got, changed, tt.want, tt.changed)
			}
			if again, changed := s.Coerce(got); again.String() != got.String() || changed != nil {
				t.Errorf("coerced again it is %s", again)
			}
			if tt.changed != "" && s.Validate(got) != nil {
				t.Errorf("coerced it is not valid: %v", s.Validate(got))
			}
		})
	}
}

// What would take more than the steps that it may is left as it came, and the work of
// trying is bounded like that of checking.
func TestCoerceIsBounded(t *testing.T) {
	list := compiled(t, `{"type":"array","items":{"type":"integer"}}`)
	numbers := func(n int) gate.Doc { return gate.MustDoc(`["1"` + strings.Repeat(`,"1"`, n-1) + `]`) }
	if _, changed := list.Coerce(numbers(4000)); len(changed) != 4000 {
		t.Errorf("%d of 4000 changed", len(changed))
	}
	if d := numbers(6000); true {
		if got, changed := list.Coerce(d); changed != nil || got.String() != d.String() {
			t.Errorf("%d changed", len(changed))
		}
	}
	var required []string
	for i := range 12_000 {
		required = append(required, fmt.Sprintf("%q", fmt.Sprint("m", i)))
	}
	many := compiled(t, `{"properties":{"m11999":{"default":1}},"required":[`+strings.Join(required, ",")+`]}`)
	if got, changed := many.Coerce(gate.MustDoc(`{}`)); changed != nil || got.String() != `{}` {
		t.Errorf("%q changed", changed)
	}
	nested := `{"type":"integer"}`
	doc := `"1"`
	for range 30 {
		nested, doc = `{"type":"array","items":`+nested+`}`, `[`+doc+`]`
	}
	if got, changed := compiled(t, nested).Coerce(gate.MustDoc(doc)); !slices.Equal(changed, []string{strings.Repeat("/0", 30)}) {
		t.Errorf("got %s, %q", got, changed)
	}
}

func FuzzCoerce(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"type":"integer"}}}`, `{"a":"2"}`)
	f.Add(`{"type":"array","items":{"type":["boolean","array"],"items":{"type":"string"}}}`, `["true","x"]`)
	f.Add(`{"properties":{"a":{"default":{"b":1}}},"required":["a"]}`, `{}`)
	f.Fuzz(func(t *testing.T, raw, text string) {
		r, err := gate.ParseDoc([]byte(raw))
		if err != nil {
			t.Skip("the schema is not JSON")
		}
		d, err := gate.ParseDoc([]byte(text))
		if err != nil {
			t.Skip("the value is not JSON")
		}
		s, err := schema.Compile(r)
		if err != nil {
			t.Skip("it is not a schema")
		}
		got, changed := s.Coerce(d)
		if (len(changed) == 0) != (got.String() == d.String()) {
			t.Errorf("%d changes, %s became %s", len(changed), d, got)
		}
		if s.Validate(d) == nil && len(changed) > 0 {
			t.Errorf("what was valid became %s", got)
		}
	})
}
