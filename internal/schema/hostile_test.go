package schema_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/internal/schema"
)

// repeat joins n results of f with commas.
func repeat(n int, f func(i int) string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = f(i)
	}
	return strings.Join(parts, ",")
}

// TestCompileRefuses holds hostile and broken schemas against what is said of
// them.
func TestCompileRefuses(t *testing.T) {
	tests := map[string]struct{ schema, want string }{
		"a reference to itself":            {`{"$ref":"#"}`, "the schema refers to itself"},
		"references to each other":         {`{"properties":{"x":{"$ref":"#/$defs/a"}},"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`, "/$defs/a: the schema refers to itself"},
		"a cycle through allOf":            {`{"$defs":{"a b":{"anyOf":[{"type":"string"},{"not":{"$ref":"#/$defs/a%20b"}}]}},"$ref":"#/$defs/a%20b"}`, "/$defs/a b: the schema refers to itself"},
		"a cycle through an anchor":        {`{"items":{"$anchor":"x","if":{"$ref":"#x"}}}`, "/items: the schema refers to itself"},
		"a cycle through an id":            {`{"$id":"https://example.com/a","items":{"$id":"b","allOf":[{"$ref":"https://example.com/b"}]}}`, "/items: the schema refers to itself"},
		"a cycle through dependentSchemas": {`{"dependentSchemas":{"a":{"$ref":"#"}}}`, "refers to itself"},
		"a cycle through dependencies":     {`{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":{"$ref":"#"}}}`, "refers to itself"},
		"a cycle through $recursiveRef":    {`{"$schema":"https://json-schema.org/draft/2019-09/schema","allOf":[{"$recursiveRef":"#"}]}`, "refers to itself"},
		"a cycle through $recursiveRef and $recursiveAnchor": {
			`{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveAnchor":true,"allOf":[{"$ref":"i"}],
			  "$defs":{"i":{"$id":"i","$recursiveAnchor":true,"anyOf":[{"type":"null"},{"$recursiveRef":"#"}]}}}`, "refers to itself"},
		"a cycle through $dynamicRef": {`{"$dynamicAnchor":"a","anyOf":[{"$dynamicRef":"#a"}]}`, "refers to itself"},
		"a cycle through a $dynamicRef that is led astray": {
			`{"$id":"https://example.com/r","$ref":"list","$defs":{"mine":{"$dynamicAnchor":"x","$ref":"list"},
			  "list":{"$id":"list","$dynamicRef":"#x","$defs":{"x":{"$dynamicAnchor":"x"}}}}}`, "refers to itself"},
		"doubling with each definition": {doubling(40, "allOf"), "schemas apply to one value"},
		"doubling through anyOf":        {doubling(40, "anyOf"), "schemas apply to one value"},
		"a long chain of references": {`{"$ref":"#/$defs/d0","$defs":{` + repeat(100, func(i int) string {
			return fmt.Sprintf(`"d%d":{"$ref":"#/$defs/d%d"}`, i, i+1)
		}) + `,"d100":{}}}`, "more than 64 schemas"},
		"another document":                           {`{"properties":{"a":{"$ref":"http://127.0.0.1:9/x.json#/a"}}}`, `/properties/a/$ref: the schema refers to another document, "http://127.0.0.1:9/x.json"`},
		"a file":                                     {`{"items":[{"$ref":"file:///etc/passwd"}],"$schema":"http://json-schema.org/draft-07/schema#"}`, `/items/0/$ref: the schema refers to another document, "file:///etc/passwd"`},
		"a relative reference":                       {`{"$ref":"item.json"}`, "/$ref: the schema refers to another document, \"item.json\""},
		"a dynamic one":                              {`{"$dynamicRef":"http://127.0.0.1:9/x#a"}`, "/$dynamicRef: the schema refers to another document"},
		"a reference to nowhere":                     {`{"$ref":"#/$defs/none"}`, "/$defs/none"},
		"an anchor that is not there":                {`{"$ref":"#none"}`, "none"},
		"another dialect":                            {`{"$schema":"https://example.com/dialect"}`, `/$schema: "https://example.com/dialect" is not one of the drafts`},
		"a dialect without validation":               {`{"$schema":"https://json-schema.org/draft/2020-12/meta/core"}`, "is not one of the drafts"},
		"a dialect that is not a string":             {`{"$schema":7}`, "is not one of the drafts"},
		"another dialect within":                     {`{"items":{"$id":"https://example.com/i","$schema":"https://example.com/dialect"}}`, `/items/$schema: the schema refers to another document, "https://example.com/dialect"`},
		"lookahead":                                  {`{"properties":{"a":{"pattern":"^(?!x)"}}}`, "/properties/a/pattern: \"^(?!x)\" is not a valid regex: error parsing regexp: invalid or unsupported Perl syntax: `(?!`"},
		"lookahead in a definition that is not used": {`{"$defs":{"a":{"pattern":"(?=x)"}}}`, "/$defs/a/pattern:"},
		"lookahead in the name of a pattern":         {`{"patternProperties":{"(?<=x)":{}}}`, "/patternProperties/(?<=x): \"(?<=x)\" is not a valid regex"},
		"a pattern beyond what RE2 takes":            {`{"pattern":"(a{1000}){1000}"}`, "/pattern:"},
		"a pattern that is slow":                     {`{"pattern":"` + strings.Repeat("(a?){999}", 100) + `"}`, "steps per character"},
		"a pattern that is long":                     {`{"pattern":"` + strings.Repeat("a", 9000) + `"}`, "a pattern has 9000 bytes"},
		"many patterns that are slow": {`{"allOf":[` + repeat(20, func(i int) string {
			return fmt.Sprintf(`{"pattern":"%d(a{1000}){1}(b{1000}){1}(c{1000}){1}(d{1000}){1}(e{1000}){1}(f{1000}){1}"}`, i)
		}) + `]}`, "steps per character"},
		"many properties":     {`{"properties":{` + repeat(100_000, func(i int) string { return fmt.Sprintf(`"p%d":{}`, i) }) + `}}`, "the schema has 1188906 bytes"},
		"many small ones":     {`{"properties":{` + repeat(10_000, func(i int) string { return fmt.Sprintf(`"p%d":{}`, i) }) + `}}`, "more than 5000 objects"},
		"many allowed values": {`{"enum":[` + repeat(30_000, func(i int) string { return fmt.Sprint(i) }) + `]}`, "more than 20000 values"},
		"many strange references": {`{"properties":{` + repeat(1500, func(i int) string { return fmt.Sprintf(`"p%d":{"$ref":"#/x/p%d"}`, i, i) }) + `},"x":{` +
			repeat(1500, func(i int) string { return fmt.Sprintf(`"p%d":{}`, i) }) + `}}`, "references and identifiers"},
		"deep nesting":                         {strings.Repeat(`{"items":`, 200) + `{}` + strings.Repeat(`}`, 200), "more than 128 levels"},
		"an unknown type":                      {`{"properties":{"a":{"type":"objekt"}}}`, "/properties/a/type:"},
		"a keyword of the wrong type":          {`{"required":"a"}`, "/required: expected array, found string"},
		"a count that is none":                 {`{"minLength":1e30}`, "/minLength: a bound is not a whole number from 0"},
		"a count that is huge":                 {`{"items":{"maxItems":1e1000}}`, "/items/maxItems: a bound is not a whole number from 0"},
		"a number":                             {`1`, "a schema is an object or a boolean"},
		"an identifier that is not an address": {`{"$id":"http://[::1"}`, "id"},
		"an anchor twice":                      {`{"$defs":{"a":{"$anchor":"x"},"b":{"$anchor":"x"}}}`, "duplicate anchor"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := schema.Compile(gate.MustDoc(tt.schema))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("error %v, want %q in it", err, tt.want)
			}
			if len(err.Error()) > 600 || strings.ContainsAny(err.Error(), "\n\x1b") || strings.Contains(err.Error(), "wasmgate:") {
				t.Errorf("error %q", err)
			}
		})
	}
}

func TestCompileNothing(t *testing.T) {
	if _, err := schema.Compile(gate.Doc{}); err == nil {
		t.Error("an absent schema was compiled")
	}
	if err := mustCompile(t, "{}").Validate(gate.Doc{}); err == nil {
		t.Error("an absent document is as the schema says")
	}
}

// colliding returns n arrays, all different, which a hash over their strings
// without lengths takes for one.
func colliding(n int) string {
	return `[` + repeat(n, func(i int) string {
		var b strings.Builder
		b.WriteString(`["x`)
		for bit := 1; bit < n; bit *= 2 {
			if i&bit == 0 {
				b.WriteString(`\u0004`)
			} else {
				b.WriteString(`","`)
			}
			b.WriteString("x")
		}
		return b.String() + `"]`
	}) + `]`
}

// TestValidateCost holds pairs of schema and document that each are harmless
// against the bound on the work that both make together.
func TestValidateCost(t *testing.T) {
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	numbers := func(n int) string {
		return `[` + repeat(n, func(i int) string { return fmt.Sprintf("0.%d%s", 10000+i, strings.Repeat("7", 1000)) }) + `]`
	}
	tests := map[string]struct {
		schema, doc string
		tooLarge    bool
	}{
		"two ways to each level, and 100 levels": {
			`{"allOf":[{"items":{"$ref":"#"}},{"items":{"$ref":"#"}}]}`, nested(100), true},
		"the same with levels few enough": {
			`{"allOf":[{"items":{"$ref":"#"}},{"items":{"$ref":"#"}}]}`, nested(10), false},
		"one way to each level": {`{"items":{"$ref":"#"}}`, nested(250), false},
		"all that may nest, at every level": {
			strings.Repeat(`{"allOf":[`, 60) + `{"items":{"$ref":"#"}}` + strings.Repeat(`]}`, 60), nested(250), false},
		"definitions that double on the way down": {
			`{"$ref":"#/$defs/d0","$defs":{` + repeat(30, func(i int) string {
				next := fmt.Sprintf(`{"additionalProperties":{"$ref":"#/$defs/d%d"}}`, i+1)
				return fmt.Sprintf(`"d%d":{"allOf":[%s,%s]}`, i, next, next)
			}) + `,"d30":{}}}`,
			strings.Repeat(`{"a":`, 30) + `{}` + strings.Repeat(`}`, 30), true},
		"a slow pattern and a long text": {
			`{"items":{"pattern":"` + strings.Repeat("(a?){900}", 2) + `"}}`, `["` + strings.Repeat("a", 1<<20) + `"]`, true},
		"a usual pattern and a long text": {`{"items":{"pattern":"^/[^\\x00]*$"}}`, `["/` + strings.Repeat("a", 1<<20) + `"]`, false},
		"slow patterns for names": {
			`{"patternProperties":{"` + strings.Repeat("(a?){900}", 2) + `":{}}}`, `{"` + strings.Repeat("a", 1<<20) + `":1}`, true},
		"long numbers, of which each is compared with each": {`{"items":{"enum":` + numbers(100) + `}}`, numbers(500), true},
		"long numbers within values":                        {`{"items":{"enum":[` + numbers(100) + `]}}`, `[` + repeat(500, func(int) string { return numbers(2) }) + `]`, true},
		"a small step and a large number":                   {`{"multipleOf":1e-1000}`, "1e1000", false},
		"20,000 unique objects": {
			`{"uniqueItems":true}`, `[` + repeat(20_000, func(i int) string { return fmt.Sprintf(`{"a":%d}`, i) }) + `]`, false},
		"items made to collide": {`{"uniqueItems":true}`, colliding(1 << 14), false},
		"200,000 items of the wrong type": {
			`{"items":{"type":"string"}}`, `[` + repeat(200_000, func(int) string { return "1" }) + `]`, false},
		"more items than are checked": {
			`{"items":{"type":"number"}}`, `[` + repeat(1_100_000, func(int) string { return "1" }) + `]`, true},
		"required members for many objects": {
			`{"items":{"required":[` + repeat(9000, func(i int) string { return fmt.Sprintf(`"m%d"`, i) }) + `]}}`,
			`[` + repeat(10_000, func(int) string { return "{}" }) + `]`, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := mustCompile(t, tt.schema).Validate(gate.MustDoc(tt.doc))
			if got := err != nil && strings.Contains(err.Error(), "too large to be checked"); got != tt.tooLarge {
				t.Errorf("error %.300v", err)
			}
			if v := doc.Violations(nil); tt.tooLarge && errors.As(err, &v) {
				t.Errorf("a document that was not checked has violations: %.300v", v)
			}
		})
	}
}
