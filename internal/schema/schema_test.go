package schema_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/internal/schema"
)

// toolSchema is typical of what file servers declare.
const toolSchema = `{"type":"object","properties":{
 "path":{"type":"string","minLength":1,"maxLength":4096,"pattern":"^/[^\\x00]*$"},
 "content":{"type":"string"},
 "mode":{"enum":["overwrite","append","create"]},
 "lines":{"type":"array","maxItems":1000,"items":{"type":"object","properties":{"n":{"type":"integer","minimum":0},"text":{"type":"string"}},"required":["n","text"],"additionalProperties":false}},
 "options":{"type":"object","properties":{"encoding":{"type":"string","default":"utf-8"},"dryRun":{"type":"boolean"},"limit":{"type":["integer","null"],"minimum":1,"maximum":10000}},"additionalProperties":false},
 "when":{"type":"string","format":"date-time"}},
 "required":["path","content"],"additionalProperties":false}`

const goodArgs = `{"path":"/srv/data/file.txt","content":"hello world hello world","mode":"append","lines":[{"n":1,"text":"a"},{"n":2,"text":"b"},{"n":3,"text":"c"}],"options":{"encoding":"utf-8","dryRun":true,"limit":10},"when":"2026-01-01T00:00:00Z"}`

const badArgs = `{"path":"relative","content":5,"mode":"x","lines":[{"n":-1,"text":"a","zz":1}],"extra":true}`

// seeds are where fuzzing starts.
var seeds = []string{
	toolSchema, `true`, `{}`, `{"$ref":"#"}`, doubling(8, "allOf"), doubling(8, "properties"),
	`{"$schema":"http://json-schema.org/draft-04/schema#","type":"number","exclusiveMinimum":true,"minimum":3}`,
	`{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveAnchor":true,"properties":{"a":{"$recursiveRef":"#"}}}`,
	`{"$id":"https://example.com/x","$dynamicAnchor":"n","items":{"$dynamicRef":"#n"},"$defs":{"y":{"$id":"y","$anchor":"q"}}}`,
	`{"type":["string","null"],"anyOf":[{"pattern":"^a+$"},{"const":1e3}],"uniqueItems":true,"propertyNames":{"maxLength":2}}`,
	`{"prefixItems":[{"enum":[1,"a",null]}],"items":false,"unevaluatedProperties":false,"dependentSchemas":{"a":{"required":["b"]}}}`,
}

func mustCompile(t testing.TB, text string) *schema.Schema {
	t.Helper()
	s, err := schema.Compile(gate.MustDoc(text))
	if err != nil {
		t.Fatalf("%.200s: %v", text, err)
	}
	return s
}

// pairs are violations, each with its pointer and its message.
type pairs [][2]string

func TestValidate(t *testing.T) {
	tests := map[string]struct {
		schema, doc string
		want        pairs
	}{
		"as the schema says": {toolSchema, goodArgs, nil},
		"every violation, from left to right": {toolSchema, badArgs, pairs{
			{"", `unexpected "extra"`},
			{"/path", `must match the pattern "^/[^\\x00]*$"`},
			{"/content", "expected string, found number"},
			{"/mode", `must be one of "overwrite", "append", "create"`},
			{"/lines/0", `unexpected "zz"`},
			{"/lines/0/n", "must be at least 0"},
		}},
		"the order is that of the document": {
			`{"additionalProperties":{"type":"null"}}`, `{"z":1,"b":{"x":1},"a":2}`, pairs{
				{"/z", "expected null, found number"}, {"/b", "expected null, found object"}, {"/a", "expected null, found number"},
			}},
		"missing members are named": {
			`{"required":["a\u001b[0m","b"]}`, `{}`, pairs{{"", `missing "a\x1b[0m", "b"`}}},
		"alternatives by type are one": {
			`{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]}}}`, `{"a":1}`,
			pairs{{"/a", "expected string or null, found number"}}},
		"other alternatives are told apart": {
			`{"oneOf":[{"required":["a"]},{"properties":{"b":{"const":1}}}]}`, `{"b":2}`, pairs{
				{"", `alternative 0: missing "a"`}, {"", "fits no alternative of oneOf"}, {"/b", "alternative 1: must be 1"},
			}},
		"names of members": {
			`{"properties":{"x":{"propertyNames":{"pattern":"^a"}},"y":{"type":"null"}}}`, `{"x":{"bcd":1,"a":1},"y":{"z":1}}`, pairs{
				{"/x", `the name "bcd" is not allowed: must match the pattern "^a"`}, {"/y", "expected null, found object"},
			}},
		"equal items": {
			`{"uniqueItems":true}`, `[{"a":1,"b":[2]},"x",{"b":[2.0],"a":10e-1}]`, pairs{{"", "items 0 and 2 are equal"}}},
		"items that only look equal": {
			`{"uniqueItems":true}`, `[["a","b"],["a\u0004b"],"1",1,true,"true",null,"null",0.1,{"a":1},{"a":-1},[[]],[[],[]],{}]`, nil},
		"zeros are equal": {
			`{"uniqueItems":true}`, `[0.10,-0,1e-2,0e7]`, pairs{{"", "items 1 and 3 are equal"}}},
		"integers are exact":            {`{"const":12345678901234567890}`, `12345678901234567891`, pairs{{"", "must be 12345678901234567890"}}},
		"a fraction that is an integer": {`{"type":"integer"}`, `1.0e2`, nil},
		"formats assert nothing":        {`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"format":"email"},{"format":"regex"}]}`, `["no","("]`, nil},
		"a pointer is escaped":          {`{"additionalProperties":false}`, `{"a/b":1}`, pairs{{"", `unexpected "a/b"`}}},
		"a place that does not print is named by its parent": {
			`{"additionalProperties":{"type":"null"}}`, `{"a\u202eb":1}`, pairs{{"", "expected null, found number"}}},
		"recursion that goes deeper": {
			`{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"c":{"type":"array","items":{"$ref":"#/$defs/n"}}}}}}`,
			`{"c":[{"c":[]},{"c":[{"c":1}]}]}`, pairs{{"/c/1/c/0/c", "expected array, found number"}}},
		"limits": {
			`{"items":{"maximum":2.5,"multipleOf":0.5,"minLength":2,"minItems":1,"maxProperties":1}}`, `[3,0.3,"x",[],{"a":1,"b":2}]`, pairs{
				{"/0", "must be at most 2.5"}, {"/1", "must be a multiple of 0.5"}, {"/2", "must be at least 2 characters long"},
				{"/3", "must have at least 1 items"}, {"/4", "must have at most 1 members"},
			}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := mustCompile(t, tt.schema).Validate(gate.MustDoc(tt.doc))
			var got doc.Violations
			if err != nil && !errors.As(err, &got) {
				t.Fatal(err)
			}
			var pairs pairs
			for _, v := range got {
				pairs = append(pairs, [2]string{v.Pointer, v.Message})
			}
			if diff := cmp.Diff(tt.want, pairs); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}

// TestViolationsKeepSecrets breaks every keyword with a value that must not be
// in any message.
func TestViolationsKeepSecrets(t *testing.T) {
	const secret = "hunter2"
	for _, keyword := range []string{
		`"type":"null"`, `"const":1`, `"enum":[1,2]`, `"pattern":"^x$"`, `"minLength":99`, `"maxLength":1`, `"not":{}`,
		`"anyOf":[{"const":1},{"pattern":"^x$"}]`, `"oneOf":[{},{}]`, `"allOf":[{"enum":[1]}]`, `"$ref":"#/$defs/x"`,
	} {
		s := mustCompile(t, `{"properties":{"a":{`+keyword+`}},"$defs":{"x":{"const":1}}}`)
		err := s.Validate(gate.MustDoc(`{"a":"` + secret + `"}`))
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", keyword, err)
		}
	}
}

func TestViolationsAreBounded(t *testing.T) {
	long := strings.Repeat("n", 5000)
	s := mustCompile(t, `{"additionalProperties":{"enum":["`+long+`"]},"required":["`+long+`"]}`)
	var in strings.Builder
	in.WriteString(`{"` + long + `2":1`)
	for i := range 200 {
		fmt.Fprintf(&in, `,"m%03d":1`, i)
	}
	in.WriteString("}")
	var got doc.Violations
	if err := s.Validate(gate.MustDoc(in.String())); !errors.As(err, &got) {
		t.Fatal(err)
	}
	if len(got) != 50 || got[2].Pointer != "/m000" || got[49].Pointer != "/m047" {
		t.Errorf("%d violations, from %s to %s", len(got), got[0].Pointer, got[len(got)-1].Pointer)
	}
	for _, v := range got {
		if len(v.Pointer) > 1024 || len(v.Message) > 300 {
			t.Errorf("a pointer of %d bytes and a message of %d", len(v.Pointer), len(v.Message))
		}
	}
}

// TestTools compiles what real servers declare.
func TestTools(t *testing.T) {
	tools := readTools(t, corpus(t, "corpora", "tools", "benign.jsonl"))
	c := schema.NewCompiler()
	for _, tool := range tools {
		input, _ := schema.Repair(tool.Get("inputSchema"))
		if _, err := c.Compile(input); err != nil {
			t.Errorf("%s: %v", tool.Get("name"), err)
		}
		checkNormalized(t, input, schema.Normalize(input))
	}
	t.Logf("%d schemas", len(tools))
}

func TestCompilerKeepsSchemas(t *testing.T) {
	c := schema.NewCompiler()
	compile := func(text string) (*schema.Schema, error) { return c.Compile(gate.MustDoc(text)) }
	a, err := compile(`{"type":"object","maxProperties":1}`)
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := compile(`{ "maxProperties": 1.0, "type": "object" }`); a != b {
		t.Error("the same schema in other words was compiled again")
	}
	if b, _ := compile(`{"type":"object","maxProperties":2}`); a == b {
		t.Error("two schemas were taken for one")
	}
	_, first := compile(`{"type":"objekt"}`)
	if _, second := compile(`{"type":"objekt"}`); first == nil || first != second {
		t.Errorf("errors %v and %v, want the same one", first, second)
	}
	for i := range 5000 {
		if _, err := compile(fmt.Sprintf(`{"const":%d}`, i)); err != nil {
			t.Fatal(err)
		}
	}
	if b, _ := compile(`{"type":"object","maxProperties":1}`); a == b {
		t.Error("a compiler that is asked for ever more forgets nothing")
	}
}

func FuzzCompile(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s), []byte(goodArgs))
		f.Add([]byte(s), []byte(`[{"a":[1,1.0,"b"]},null]`))
	}
	f.Fuzz(func(t *testing.T, text, args []byte) {
		raw, err := gate.ParseDoc(text)
		if err != nil {
			return
		}
		d, err := gate.ParseDoc(args)
		if err != nil {
			return
		}
		s, err := schema.Compile(raw)
		if err != nil {
			if strings.Contains(err.Error(), "panic") || len(err.Error()) > 1000 {
				t.Error(err)
			}
			return
		}
		err = s.Validate(d)
		if v, ok := err.(doc.Violations); err != nil && !ok && !strings.Contains(err.Error(), "too large") || ok && len(v) == 0 {
			t.Error(err)
		}
	})
}

func BenchmarkCompile(b *testing.B) {
	raw := gate.MustDoc(toolSchema)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := schema.Compile(raw); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkValidate measures the check of typical arguments, which the policy has already decoded.
func BenchmarkValidate(b *testing.B) {
	s := mustCompile(b, toolSchema)
	for name, doc := range map[string]string{"good": goodArgs, "bad": badArgs} {
		d := gate.MustDoc(doc)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := s.Validate(d); (err == nil) != (name == "good") {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkNormalize(b *testing.B) {
	raw := gate.MustDoc(toolSchema)
	b.ReportAllocs()
	for b.Loop() {
		schema.Normalize(raw)
	}
}
