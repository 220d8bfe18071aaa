package schema_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/schema"
)

// generated is a schema that a library wrote, and arguments that the library itself takes.
type generated struct {
	From   string            `json:"from"`
	Name   string            `json:"name"`
	Schema json.RawMessage   `json:"schema"`
	Values []json.RawMessage `json:"values"`
}

// TestGeneratedSchemas: no schema that a known library generates costs its tool, and what the library
// accepts is accepted. testdata/documented.jsonl has schemas as libraries in other languages document
// them; WASMGATE_SCHEMAS names the output of .ci/schemas/generate.mjs, which .ci/schemas/run makes.
func TestGeneratedSchemas(t *testing.T) {
	files := []string{"testdata/documented.jsonl"}
	if file := os.Getenv("WASMGATE_SCHEMAS"); file != "" {
		files = append(files, file)
	} else {
		t.Log("without the schemas of npm's libraries: .ci/schemas/run tests them")
	}
	all := goSchemas(t)
	for _, file := range files {
		all = append(all, readGenerated(t, file)...)
	}
	compiler := schema.NewCompiler()
	left, values := map[string]int{}, 0
	for _, g := range all {
		what := g.From + ", " + g.Name
		document, err := gate.ParseDoc(g.Schema)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		repaired, _ := schema.Repair(document)
		s, offered, out, err := compiler.Usable(repaired)
		if err != nil {
			t.Errorf("%s: the tool would be lost: %v\n%s", what, err, g.Schema)
			continue
		}
		for _, one := range out {
			left[one]++
		}
		checkNormalized(t, offered, schema.Normalize(offered))
		for _, value := range g.Values {
			values++
			if err := s.Validate(gate.MustDoc(string(value))); err != nil {
				t.Errorf("%s: %s is refused: %v\n%s", what, value, err, g.Schema)
			}
		}
	}
	t.Logf("%d schemas and %d arguments; keywords left out, and how often:", len(all), values)
	for _, one := range slices.Sorted(maps.Keys(left)) {
		t.Logf("%6d %s", left[one], one)
	}
}

func readGenerated(t *testing.T, file string) (all []generated) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		var g generated
		if err := json.Unmarshal(lines.Bytes(), &g); err != nil {
			t.Fatalf("%s:%d: %v", file, n, err)
		}
		all = append(all, g)
	}
	if len(all) == 0 || lines.Err() != nil {
		t.Fatalf("%s has %d schemas: %v", file, len(all), lines.Err())
	}
	return all
}

// goSchemas returns what the SDK for Go generates of types.
func goSchemas(t *testing.T) []generated {
	type point struct {
		X float64 `json:"x" jsonschema:"to the right"`
		Y float64 `json:"y,omitempty"`
	}
	type query struct {
		Text   string            `json:"text" jsonschema:"what to look for"`
		Limit  int               `json:"limit,omitempty"`
		Tags   []string          `json:"tags,omitempty"`
		Labels map[string]string `json:"labels,omitempty"`
		At     *point            `json:"at,omitempty"`
		Path   [2]point          `json:"path,omitzero"`
		Any    any               `json:"any,omitempty"`
		Bytes  []byte            `json:"bytes,omitempty"`
		Raw    json.RawMessage   `json:"raw,omitempty"`
		Small  uint8             `json:"small,omitempty"`
		hidden int
	}
	_ = query{}.hidden
	s, err := jsonschema.For[query](nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return []generated{{From: "jsonschema-go", Name: strings.TrimPrefix(t.Name(), "Test"), Schema: text, Values: []json.RawMessage{
		json.RawMessage(`{"text":"a"}`),
		json.RawMessage(`{"text":"a","limit":3,"tags":["x"],"labels":{"a":"b"},"at":{"x":1},"any":[null],"small":7}`),
		json.RawMessage(`{"text":"a","at":null,"tags":null}`),
	}}}
}
