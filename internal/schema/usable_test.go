package schema_test

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/schema"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
	"github.com/wasmgate/wasmgate/internal/testing/toolchain"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// TestUsableLeavesOut: a keyword that cannot be judged is left out, and the rest judges.
func TestUsableLeavesOut(t *testing.T) {
	const n = `"n":{"type":"number"}`
	for name, tt := range map[string]struct{ schema, offered, left string }{
		"nothing":                         {`{"properties":{` + n + `}}`, `{"properties":{` + n + `}}`, ""},
		"a pattern that looks around":     {`{"properties":{"a":{"type":"string","pattern":"^P(?:(\\d+W)|(?!.*W)\\d+Y)$"},` + n + `}}`, `{"properties":{"a":{"type":"string"},` + n + `}}`, "/properties/a/pattern"},
		"a back-reference":                {`{"properties":{"a":{"pattern":"(a)\\1"},` + n + `}}`, `{"properties":{"a":{},` + n + `}}`, "/properties/a/pattern"},
		"the name of a pattern":           {`{"patternProperties":{"(?<=x)":{},"^y":{}},"properties":{` + n + `}}`, `{"patternProperties":{"^y":{}},"properties":{` + n + `}}`, "/patternProperties/(?<=x)"},
		"properties as PHP writes them":   {`{"properties":[]}`, `{}`, "/properties"},
		"properties of null":              {`{"properties":null,"required":null,"additionalProperties":null,"$defs":[],"description":null}`, `{}`, "/required"},
		"null within":                     {`{"properties":{"a":{"enum":null,"title":null,"default":null,"examples":[null]},` + n + `}}`, `{"properties":{"a":{"default":null,"examples":[null]},` + n + `}}`, "/properties/a/enum"},
		"a property that is not a schema": {`{"properties":{"a":"string",` + n + `},"additionalProperties":false}`, `{"properties":{"a":{},` + n + `},"additionalProperties":false}`, "/properties/a"},
		"draft 3's required":              {`{"properties":{"a":{"required":true},` + n + `}}`, `{"properties":{"a":{},` + n + `}}`, "/properties/a/required"},
		"draft 4's exclusive bound":       {`{"properties":{"a":{"minimum":1,"exclusiveMinimum":true},` + n + `}}`, `{"properties":{"a":{"minimum":1},` + n + `}}`, "/properties/a/exclusiveMinimum"},
		"a type that there is not":        {`{"properties":{"a":{"type":"any"},` + n + `}}`, `{"properties":{"a":{},` + n + `}}`, "/properties/a/type"},
		"a reference to nowhere":          {`{"properties":{"a":{"$ref":"#/$defs/none"},` + n + `}}`, `{"properties":{"a":{},` + n + `}}`, "/properties/a/$ref"},
		"an anchor that is not there":     {`{"properties":{"a":{"$ref":"#none"},` + n + `}}`, `{"properties":{"a":{},` + n + `}}`, "/properties/a/$ref"},
		"another document":                {`{"properties":{"a":{"$ref":"https://example.com/a.json#/x"},` + n + `}}`, `{"properties":{"a":{},` + n + `}}`, "/properties/a/$ref"},
		"another dialect":                 {`{"$schema":"https://example.com/dialect","properties":{` + n + `}}`, `{"properties":{` + n + `}}`, "/$schema"},
		"a count that is none":            {`{"properties":{"a":{"minLength":1.5},` + n + `}}`, `{"properties":{"a":{},` + n + `}}`, "/properties/a/minLength"},
	} {
		t.Run(name, func(t *testing.T) {
			s, offered, left, err := new(schema.Compiler).Usable(gate.MustDoc(tt.schema))
			if err != nil {
				t.Fatal(err)
			}
			if offered.Digest() != gate.MustDoc(tt.offered).Digest() || !strings.Contains(strings.Join(left, "\n"), tt.left) || (tt.left == "") != (left == nil) {
				t.Errorf("offered %s, want %s; left out: %q", offered, tt.offered, left)
			}
			if err := s.Validate(gate.MustDoc(`{"a":"x","n":1}`)); err != nil {
				t.Error(err)
			}
			if err := s.Validate(gate.MustDoc(`{"n":"x"}`)); err == nil && strings.Contains(tt.offered, n) {
				t.Error("the rest of the schema judges nothing")
			}
		})
	}
}

// TestNullable: what OpenAPI 3.0 calls nullable may be null, and nothing else may that was not before.
func TestNullable(t *testing.T) {
	for name, tt := range map[string]struct{ schema, accepts, refuses string }{
		"a type":             {`{"type":"string","nullable":true}`, `null "a"`, `1`},
		"types":              {`{"type":["string","integer"],"nullable":true}`, `"a" 1`, `true`},
		"an enum":            {`{"type":"string","enum":["a"],"nullable":true}`, `null "a"`, `"b"`},
		"an enum with null":  {`{"enum":["a",null],"nullable":true}`, `null "a"`, `"b"`},
		"alternatives":       {`{"anyOf":[{"type":"string"},{"type":"integer"}],"nullable":true}`, `null "a" 1`, `true`},
		"one of":             {`{"oneOf":[{"type":"string"},{"type":"integer"}],"nullable":true}`, `null "a" 1`, `true`},
		"all of":             {`{"allOf":[{"$ref":"#/$defs/s"}],"nullable":true}`, `null "a"`, `1`},
		"a reference":        {`{"$ref":"#/$defs/s","nullable":true}`, `null "a"`, `1`},
		"within":             {`{"type":"object","properties":{"b":{"type":"string","nullable":true}}}`, `{"b":null} {"b":"a"}`, `{"b":1} null`},
		"false":              {`{"type":"string","nullable":false}`, `"a"`, `null`},
		"nothing else":       {`{"nullable":true}`, `null 1`, ``},
		"a property of that": {`{"type":"object","properties":{"nullable":true,"type":{"type":"string"}}}`, `{"nullable":1,"type":"a"}`, `{"type":null}`},
		"a value of that":    {`{"const":{"type":"string","nullable":true}}`, `{"type":"string","nullable":true}`, `{"type":["string","null"],"nullable":true}`},
	} {
		t.Run(name, func(t *testing.T) {
			offered := `{"type":"object","properties":{"a":` + tt.schema + `},"$defs":{"s":{"type":"string"}}}`
			s, got, left, err := new(schema.Compiler).Usable(gate.MustDoc(offered))
			if err != nil || left != nil || got.String() != offered {
				t.Fatalf("offered %s, left out %q: %v", got, left, err)
			}
			for values, accepted := range map[string]bool{tt.accepts: true, tt.refuses: false} {
				for _, value := range strings.Fields(values) {
					if err := s.Validate(gate.MustDoc(`{"a":` + value + `}`)); (err == nil) != accepted {
						t.Errorf("%s: %v", value, err)
					}
				}
			}
		})
	}
}

// TestUsableRefuses: what is wrong with a schema as a whole still costs its tool.
func TestUsableRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"a cycle":             `{"$ref":"#"}`,
		"doubling":            doubling(40, "allOf"),
		"no schema":           `7`,
		"a hundred bad words": `{"properties":{` + repeat(100, func(i int) string { return quoted(strings.Repeat("p", i+1)) + `:{"type":"any"}` }) + `}}`,
	} {
		if s, _, _, err := new(schema.Compiler).Usable(gate.MustDoc(text)); err == nil {
			t.Errorf("%s: %v", name, s)
		}
	}
}

// TestLookAroundAsInJavaScript: a pattern with look-around at its ends is judged as JavaScript
// judges it, for patterns and texts made of what schema generators write.
func TestLookAroundAsInJavaScript(t *testing.T) {
	toolchain.Need(t, "node")
	r := seed.Rand(t)
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	atom := func() string {
		return pick(`\.`, `.*`, `.*\.\.`, `[a-z]+`, `[()|]`, `a`, `(?:a|b)`, `(a)`, `\)`, `-`, `\d`, `$`, `@`)
	}
	type one struct{ Pattern, Text string }
	all := []one{{`^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$`, "a.b@example.com"}}
	for range unraced.Fewer(3000) {
		var p, x strings.Builder
		p.WriteString("^")
		for range r.IntN(3) {
			p.WriteString(pick("(?!", "(?=") + atom() + pick("", atom(), "|"+atom()) + ")")
		}
		for range 1 + r.IntN(3) {
			p.WriteString(atom() + pick("", "", "*", "?"))
		}
		if r.IntN(3) == 0 {
			p.WriteString(pick("(?<!", "(?<=") + atom() + ")")
		}
		p.WriteString(pick("$", "$", "", "|a"))
		for range r.IntN(6) {
			x.WriteString(pick("a", "b", ".", "..", "-", "1", "(", ")", "|", "@", "\n"))
		}
		all = append(all, one{p.String(), x.String()})
	}
	in, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), "node", "-e", `const all = JSON.parse(require("fs").readFileSync(0, "utf8"));
console.log(JSON.stringify(all.map(({Pattern, Text}) => { try { return new RegExp(Pattern, "u").test(Text) ? 1 : 0 } catch { return -1 } })))`)
	c.Stdin = strings.NewReader(string(in))
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	var want []int
	if err := json.Unmarshal(out, &want); err != nil || len(want) != len(all) {
		t.Fatal(err, len(want))
	}
	judged := 0
	for i, x := range all {
		if want[i] < 0 {
			continue
		}
		s, _, left, err := new(schema.Compiler).Usable(gate.MustDoc(`{"pattern":` + quoted(x.Pattern) + `}`))
		if err != nil {
			t.Fatalf("%s: %v", x.Pattern, err)
		}
		if left != nil { // looks around elsewhere
			continue
		}
		judged++
		if err := s.Validate(gate.MustDoc(quoted(x.Text))); (err == nil) != (want[i] == 1) {
			t.Errorf("%s of %+q: %v, want %d", x.Pattern, x.Text, err, want[i])
		}
	}
	if judged < len(all)/3 {
		t.Errorf("only %d of %d judged", judged, len(all))
	}
}
