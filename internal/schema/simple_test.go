package schema

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
)

// What a simple schema accepts, the validator accepts: on schemas and documents made by
// chance of the words that simple schemas have, and some that they do not.
func TestSimpleAcceptsWhatTheValidatorAccepts(t *testing.T) {
	r := seed.Rand(t)
	accepted, schemas := 0, 0
	for range 1000 {
		raw := randomSchema(r, 3)
		s, err := Compile(gate.MustDoc(raw))
		if err != nil || s.simple == nil {
			continue
		}
		schemas++
		for range 20 {
			text := randomValue(r, 3)
			if r.IntN(2) == 0 {
				text = fitting(r, gate.MustDoc(raw), 4)
			}
			d := gate.MustDoc(text)
			if !s.simple.accepts(d) {
				continue
			}
			accepted++
			if err := s.validate(d); err != nil {
				t.Fatalf("%s accepts %s, and the validator does not: %v", raw, d, err)
			}
		}
	}
	if schemas < 100 || accepted < 200 {
		t.Errorf("of %d simple schemas %d documents were accepted: that says little", schemas, accepted)
	}
}

func pick(r *rand.Rand, of ...string) string { return of[r.IntN(len(of))] }

func randomSchema(r *rand.Rand, depth int) string {
	var all []string
	add := func(name, value string) { all = append(all, fmt.Sprintf("%q:%s", name, value)) }
	types := []string{`"string"`, `"integer"`, `"number"`, `"boolean"`, `"null"`, `"array"`, `"object"`}
	switch r.IntN(4) {
	case 0:
		a, b := pick(r, types...), pick(r, types...)
		if a != b {
			add("type", "["+a+","+b+"]")
		}
	case 1, 2:
		add("type", pick(r, types...))
	}
	below := func() string {
		if depth == 0 {
			return pick(r, `{}`, `{"type":"string"}`, `{"type":"integer"}`)
		}
		return randomSchema(r, depth-1)
	}
	if r.IntN(2) == 0 {
		add("properties", fmt.Sprintf(`{"a":%s,"b":%s}`, below(), below()))
	}
	if r.IntN(3) == 0 {
		add("required", pick(r, `["a"]`, `["a","c"]`, `[]`))
	}
	if r.IntN(3) == 0 {
		add("additionalProperties", pick(r, "false", "true", below()))
	}
	if r.IntN(3) == 0 {
		add("items", below())
	}
	if r.IntN(4) == 0 {
		add("anyOf", fmt.Sprintf("[%s,%s]", below(), below()))
	}
	if r.IntN(6) == 0 {
		add("enum", pick(r, `["x","yy"]`, `["x",1]`, `[""]`))
	}
	for _, bound := range []string{"minItems", "maxItems", "minLength", "maxLength", "minimum", "maximum"} {
		if r.IntN(10) == 0 {
			add(bound, pick(r, "0", "1", "2", "3"))
		}
	}
	if r.IntN(12) == 0 {
		add(pick(r, "uniqueItems", "exclusiveMinimum", "not", "const", "x-more"), pick(r, "true", "1", `{"type":"string"}`))
	}
	return "{" + strings.Join(all, ",") + "}"
}

var scalars = []string{`""`, `"x"`, `"yy"`, `"é\n"`, `"\ud83d\ude00"`, "0", "-0", "1", "2", "1.0", "1.5", "1e2", "-3", "123456789012345", "1234567890123456", "true", "false", "null"}

func randomValue(r *rand.Rand, depth int) string {
	if depth == 0 || r.IntN(3) == 0 {
		return pick(r, scalars...)
	}
	if r.IntN(2) == 0 {
		var all []string
		for range r.IntN(4) {
			all = append(all, randomValue(r, depth-1))
		}
		return "[" + strings.Join(all, ",") + "]"
	}
	var all []string
	for _, name := range []string{"a", "b", "c"} {
		if r.IntN(2) == 0 {
			all = append(all, fmt.Sprintf("%q:%s", name, randomValue(r, depth-1)))
		}
	}
	return "{" + strings.Join(all, ",") + "}"
}

// fitting returns a value that tries to be as a schema says.
func fitting(r *rand.Rand, schema gate.Doc, depth int) string {
	if any := schema.Get("anyOf"); doc.Len(any) > 0 && r.IntN(2) == 0 {
		return fitting(r, any.At(fmt.Sprintf("/%d", r.IntN(doc.Len(any)))), depth-1)
	}
	kind := schema.Get("type").Text()
	if kind == "" && !schema.Get("properties").IsZero() {
		kind = "object"
	}
	switch kind {
	case "string":
		return pick(r, `"x"`, `"yy"`, `""`, `"é"`)
	case "integer", "number":
		return pick(r, "0", "1", "2", "7")
	case "boolean":
		return "true"
	case "array":
		var all []string
		for range r.IntN(3) {
			all = append(all, fitting(r, schema.Get("items"), depth-1))
		}
		return "[" + strings.Join(all, ",") + "]"
	case "object":
		var all []string
		for _, name := range []string{"a", "b", "c"} {
			if p := schema.Get("properties").Get(name); name != "c" || r.IntN(2) == 0 {
				all = append(all, fmt.Sprintf("%q:%s", name, fitting(r, p, depth-1)))
			}
		}
		return "{" + strings.Join(all, ",") + "}"
	}
	return pick(r, scalars...)
}

// The meter refuses what takes too long: no simple schema accepts that.
func TestSimpleKeepsToTheMeter(t *testing.T) {
	wide := `{"anyOf":[{},` + strings.Repeat(`{"items":{"type":"string"}},`, 200) + `{}]}`
	rows := "[" + strings.Repeat(`"",`, 100_000) + `""]`
	long := `{"items":{"anyOf":[{"type":"string"},` + strings.Repeat(`{"type":"null"},`, 90) + `{}]}}`
	for _, raw := range []string{wide, long} {
		s, err := Compile(gate.MustDoc(raw))
		if err != nil || s.simple == nil {
			t.Fatalf("%.40s: %v, simple %v", raw, err, s)
		}
		d := gate.MustDoc(rows)
		if err := s.validate(d); err == nil {
			t.Fatalf("%.40s: the meter takes it", raw)
		}
		if s.simple.accepts(d) {
			t.Errorf("%.40s accepts what the meter refuses", raw)
		}
	}
}

// The official suite says the same, of all drafts.
func TestSimpleAgreesWithTheSuite(t *testing.T) {
	root := os.Getenv("WASMGATE_CORPUS")
	if root == "" {
		t.Skip("WASMGATE_CORPUS is not set: the data for this test is not here")
	}
	files, err := filepath.Glob(filepath.Join(root, "corpora/json-schema-test-suite/tests/draft*/*.json"))
	if err != nil {
		t.Fatal(err)
	}
	accepted := 0
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var groups []struct {
			Schema json.RawMessage
			Tests  []struct {
				Data  json.RawMessage
				Valid bool
			}
		}
		if err := json.Unmarshal(b, &groups); err != nil {
			t.Fatal(err)
		}
		for _, g := range groups {
			raw, err := gate.ParseDoc(g.Schema)
			if err != nil {
				continue
			}
			s := newSimple(raw)
			for _, one := range g.Tests {
				d, err := gate.ParseDoc(one.Data)
				if s == nil || err != nil || !s.accepts(d) {
					continue
				}
				accepted++
				if !one.Valid && !strings.Contains(file, "optional") {
					t.Errorf("%s: %s accepts %s", file, g.Schema, one.Data)
				}
			}
		}
	}
	if accepted < 200 {
		t.Errorf("%d documents were accepted: is the suite complete?", accepted)
	}
}

// A schema that tools declare is a simple one.
func TestSimpleIsWhatToolsDeclare(t *testing.T) {
	for _, raw := range []string{
		`{"type":"object","properties":{"path":{"type":"string","description":"p"},"head":{"type":"integer","minimum":1},"mode":{"enum":["a","b"]}},"required":["path"],"additionalProperties":false,"$schema":"http://json-schema.org/draft-07/schema#"}`,
		`{"type":"object","properties":{"x":{"anyOf":[{"type":"string"},{"type":"null"}],"default":null,"title":"X"}}}`,
	} {
		if newSimple(gate.MustDoc(raw)) == nil {
			t.Errorf("%s is not simple", raw)
		}
	}
	for _, raw := range []string{`true`, `{"$ref":"#/x"}`, `{"items":[{}]}`, `{"items":{"$schema":"x"}}`, `{"pattern":"a"}`, `{"enum":[1]}`, `{"minimum":1}`, `{"anyOf":[]}`} {
		if newSimple(gate.MustDoc(raw)) != nil {
			t.Errorf("%s is simple", raw)
		}
	}
}
