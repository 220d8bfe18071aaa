package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/internal/schema"
)

const closed = `{"type":"object","properties":{}}`

func TestNormalize(t *testing.T) {
	tests := map[string]struct{ in, want string }{
		"keywords that no provider resolves, or that do not constrain, go": {
			`{"$schema":"http://json-schema.org/draft-07/schema#","$id":"x","type":"object","$comment":"c",
			  "properties":{"a":{"type":"string","default":"/tmp","examples":["b"],"deprecated":true,"readOnly":true,
			  "writeOnly":true,"contentEncoding":"base64","contentMediaType":"text/plain","minLength":1}},"definitions":{"d":{}},"$defs":{}}`,
			`{"type":"object","properties":{"a":{"type":"string","minLength":1}}}`},
		"members keep their order, and other keywords their bytes": {
			`{"title":"T","type":"object","additionalProperties":false,"properties":{"z":{"maximum":1.50,"type":"number"},"a":{"type":"null"}},"x-y":[ 1 ]}`,
			`{"title":"T","type":"object","additionalProperties":false,"properties":{"z":{"maximum":1.50,"type":"number"},"a":{"type":"null"}},"x-y":[ 1 ]}`},
		"required names only what is declared": {
			`{"type":"object","properties":{"path":{"type":"string"}},"required":["path","missing",7]}`,
			`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`},
		"required that names nothing goes": {
			`{"type":"object","properties":{},"required":["missing"]}`, closed},
		"an object without properties gets them": {`{"type":"object"}`, closed},
		"a tuple becomes its first item": {
			`{"type":"array","items":[{"type":"string","default":"x"},{"type":"number"}],"additionalItems":false}`,
			`{"type":"array","items":{"type":"string"}}`},
		"a tuple of 2020-12 becomes its first item": {
			`{"type":"array","items":false,"prefixItems":[{"type":"string"},{"type":"number"}]}`,
			`{"type":"array","items":{"type":"string"}}`},
		"an empty tuple goes":                       {`{"type":"array","items":[]}`, `{"type":"array"}`},
		"additionalProperties that is a flag stays": {`{"type":"object","properties":{},"additionalProperties":true}`, `{"type":"object","properties":{},"additionalProperties":true}`},
		"additionalProperties that is a schema is normalized": {
			`{"type":"object","properties":{},"additionalProperties":{"type":"string","default":""}}`,
			`{"type":"object","properties":{},"additionalProperties":{"type":"string"}}`},
		"no type":                   {`{"description":"d","minLength":1}`, closed},
		"an unknown type":           {`{"type":"banana","enum":[1]}`, closed},
		"a type that is not a name": {`{"type":7}`, closed},
		"a boolean":                 {`true`, closed},
		"an array":                  {`[1]`, closed},
		"a property that is not a schema": {
			`{"type":"object","properties":{"a":7,"b":true,"c":{}}}`,
			`{"type":"object","properties":{"a":` + closed + `,"b":` + closed + `,"c":` + closed + `}}`},
		"several types stay":               {`{"type":["string","null"],"default":null}`, `{"type":["string","null"]}`},
		"unknown ones of several types go": {`{"type":["string","banana"]}`, `{"type":["string"]}`},
		"alternatives stay, with what makes sense only beside them": {
			`{"type":"object","properties":{"a":{"anyOf":[{"type":"string","default":""},{"type":"null"}],"default":null}},"oneOf":[{"required":["a"]},{"required":["b"]}]}`,
			`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]}},"oneOf":[{"required":["a"]},{"required":["b"]}]}`},
		"a bare enum or const stays, and what is in it": {
			`{"type":"object","properties":{"a":{"enum":["x",{"$ref":"#","default":1}]},"b":{"const":{"$id":1}}}}`,
			`{"type":"object","properties":{"a":{"enum":["x",{"$ref":"#","default":1}]},"b":{"const":{"$id":1}}}}`},
		"properties with the names of keywords stay": {
			`{"type":"object","properties":{"$ref":{"type":"string"},"default":{"type":"string"},"properties":{"type":"string"},"required":{"type":"string"}},"required":["default","$ref"]}`,
			`{"type":"object","properties":{"$ref":{"type":"string"},"default":{"type":"string"},"properties":{"type":"string"},"required":{"type":"string"}},"required":["default","$ref"]}`},
		"a local reference is replaced": {
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/A~1%25"}},"$defs":{"A/%":{"type":"object","properties":{"b":{"$ref":"#/$defs/B"}}},"B":{"type":"string"}}}`,
			`{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"string"}}}}}`},
		"what describes a reference wins over what describes its target": {
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/A","description":"mine"}},"$defs":{"A":{"description":"its","type":"string"}}}`,
			`{"type":"object","properties":{"a":{"description":"mine","type":"string"}}}`},
		"constraints of a reference and its target both hold": {
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/A","minLength":2}},"$defs":{"A":{"type":"string","minLength":1}}}`,
			`{"type":"object","properties":{"a":{"minLength":2,"allOf":[{"type":"string","minLength":1}]}}}`},
		"a recursive reference keeps its type": {
			`{"type":"object","properties":{"tree":{"$ref":"#/$defs/node"}},"$defs":{"node":{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#/$defs/node"}}}}}}`,
			`{"type":"object","properties":{"tree":{"type":"object","properties":{"kids":{"type":"array","items":` + closed + `}}}}}`},
		"a recursive reference without a type becomes anything": {
			`{"type":"object","properties":{"v":{"$ref":"#/$defs/json"}},"$defs":{"json":{"anyOf":[{"type":"string"},{"type":"array","items":{"$ref":"#/$defs/json"}}]}}}`,
			`{"type":"object","properties":{"v":{"anyOf":[{"type":"string"},{"type":"array","items":{"type":["object","array","string","number","boolean","null"],"properties":{}}}]}}}`},
		"a reference to itself": {`{"$ref":"#"}`, `{"type":["object","array","string","number","boolean","null"],"properties":{}}`},
		"references in a circle": {`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`,
			`{"type":["object","array","string","number","boolean","null"],"properties":{}}`},
		"a reference to nowhere or to another document goes": {
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/none"},"b":{"$ref":"https://example.com/x","type":"string"}}}`,
			`{"type":"object","properties":{"a":` + closed + `,"b":{"type":"string"}}}`},
		"references deep in other keywords are replaced": {
			`{"type":"object","properties":{"a":{"type":"string","not":{"$ref":"#/$defs/A"}}},"patternProperties":{"^x":{"$ref":"#/$defs/A"}},"$defs":{"A":{"const":"q"}},"dependencies":{"a":["b"]}}`,
			`{"type":"object","properties":{"a":{"type":"string","not":{"const":"q"}}},"patternProperties":{"^x":{"const":"q"}},"dependencies":{"a":["b"]}}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			in := gate.MustDoc(tt.in)
			got := schema.Normalize(in)
			if diff := cmp.Diff(tt.want, got.String()); diff != "" {
				t.Errorf("normalized (-want +got):\n%s", diff)
			}
			if in.String() != tt.in {
				t.Errorf("the input has changed to %s", in)
			}
			checkNormalized(t, in, got)
		})
	}
}

// checkNormalized holds a result against what Normalize promises of all.
func checkNormalized(t *testing.T, in, got gate.Doc) {
	t.Helper()
	if got.Kind() != doc.Object {
		t.Errorf("%.200s became %.200s, which is not an object", in, got)
	}
	if again := schema.Normalize(got); again.String() != got.String() {
		t.Errorf("not idempotent:\n%.500s\n%.500s", got, again)
	}
	if n, limit := len(got.Raw()), len(in.Raw())+1<<20; n > limit {
		t.Errorf("%d bytes became %d", len(in.Raw()), n)
	}
}

func TestNormalizeAbsent(t *testing.T) {
	if got := schema.Normalize(gate.Doc{}).String(); got != closed {
		t.Errorf("an absent schema became %s", got)
	}
}

// TestNormalizeBounds uses schemas whose references blow up.
func TestNormalizeBounds(t *testing.T) {
	wide := `{"type":"object","properties":{"a":{"$ref":"#/$defs/d"}},"$defs":{"d":{"type":"object","description":"` +
		strings.Repeat("x", 100<<10) + `","properties":{`
	for i := range 1000 {
		wide += fmt.Sprintf(`"p%d":{"$ref":"#/$defs/e%d"},`, i, i)
	}
	wide += `"last":{}}}`
	for i := range 1000 {
		wide += fmt.Sprintf(`,"e%d":{"$ref":"#/$defs/d"}`, i)
	}
	wide += `}}`
	for name, text := range map[string]string{
		"doubling with each definition": doubling(60, "properties"),
		"a large definition everywhere": wide,
		"as deep as a document goes":    strings.Repeat(`{"type":"array","items":`, 200) + `{}` + strings.Repeat(`}`, 200),
		"deep values moved deeper": `{"type":"array","items":{"$ref":"#/$defs/a"},"$defs":{"a":{"type":"array","items":{"const":` +
			strings.Repeat(`[`, 249) + strings.Repeat(`]`, 249) + `}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			in := gate.MustDoc(text)
			checkNormalized(t, in, schema.Normalize(in))
		})
	}
}

// doubling returns a schema in which each of n definitions refers twice to the
// next one.
func doubling(n int, keyword string) string {
	var b strings.Builder
	b.WriteString(`{"type":"object","properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{`)
	for i := range n {
		next := fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, i+1)
		if keyword == "properties" {
			fmt.Fprintf(&b, `"d%d":{"type":"object","properties":{"x":%s,"y":%s}},`, i, next, next)
		} else {
			fmt.Fprintf(&b, `"d%d":{"%s":[%s,%s]},`, i, keyword, next, next)
		}
	}
	fmt.Fprintf(&b, `"d%d":{"type":"string"}}}`, n)
	return b.String()
}

func FuzzNormalize(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		in, err := gate.ParseDoc(b)
		if err != nil {
			return
		}
		checkNormalized(t, in, schema.Normalize(in))
	})
}

func TestRepair(t *testing.T) {
	tests := map[string]struct {
		in, want string
		repaired bool
	}{
		"nothing":                 {``, `{"type":"object"}`, true},
		"null":                    {`null`, `{"type":"object"}`, true},
		"no type":                 {`{"properties":{}}`, `{"properties":{},"type":"object"}`, true},
		"as it should be":         {`{"type":"object"}`, `{"type":"object"}`, false},
		"another type":            {`{"type":"string"}`, `{"type":"string"}`, false},
		"what cannot be a schema": {`"no"`, `"no"`, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var in gate.Doc
			if tt.in != "" {
				in = gate.MustDoc(tt.in)
			}
			got, added := schema.Repair(in)
			if got.String() != tt.want || (added != "") != tt.repaired {
				t.Errorf("got %s, %q", got, added)
			}
		})
	}
}
