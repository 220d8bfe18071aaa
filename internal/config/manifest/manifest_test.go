package manifest_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/config/manifest"
	"github.com/wasmgate/wasmgate/internal/config/tree"
)

func TestReadManifest(t *testing.T) {
	tests := map[string]struct {
		file, want string // want is a problem if it is no JSON
	}{
		"members keep their order and numbers their digits": {
			"tools:\n  - name: add\n    inputSchema: {type: object, maxProperties: 12345678901234567890, a: 1.50, z: true, y: ~}\n",
			`{"tools":[{"name":"add","inputSchema":{"type":"object","maxProperties":12345678901234567890,"a":1.50,"z":true,"y":null}}]}`,
		},
		"texts that look like something else": {
			"warm:\n  arguments: {a: \"1\", b: 'true', \"\\u2028\": \"\\\"\", $c: \"${HOME}\"}\n",
			`{"warm":{"arguments":{"a":"1","b":"true","\u2028":"\"","$c":"${HOME}"}}}`,
		},
		"a number that JSON has not": {"warm:\n  arguments: {b: [0x10]}\n", "line 2 warm.arguments.b[0]"},
		"a list":                     {"- a\n", "line 1 "},
		"a member given twice":       {"isolation: call\nisolation: call\n", "line 2 isolation"},
		"no YAML":                    {"a: [\n", "line 1 "},
		"an unknown key":             {"tools:\n  - name: a\n    descripton: b\n    inputSchema: {}\n", "line 3 tools[0].descripton"},
		"a key in other letters":     {"tools:\n  - name: a\n    inputSchema: {}\n    outputschema: {}\n", "line 4 tools[0].outputschema"},
		"a tool without a schema":    {"tools:\n  - name: a\n", "line 2 tools[0]"},
		"a number for a duration":    {"limits:\n  timeout: 2\n", "line 2 limits.timeout"},
		"an origin with a path":      {"wants:\n  http:\n    - origin: https://a.example/v1\n", "line 3 wants.http[0].origin"},
		"a text for a list":          {"wants:\n  secrets: API\n", "line 2 wants.secrets"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "m.yaml"), tt.file)
			got, err := manifest.Read(filepath.Join(dir, "m.wasm"))
			if json.Valid([]byte(tt.want)) {
				if err != nil || string(got.JSON) != tt.want {
					t.Errorf("%+v, error %v; want %s", got, err, tt.want)
				}
				return
			}
			var problems tree.Problems
			if !errors.As(err, &problems) || len(problems) != 1 || at(problems[0]) != tt.want {
				t.Errorf("%+v, error %v; want a problem at %s", got, err, tt.want)
			}
		})
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "m.yaml"), "limits: {timeout: 2, memory: 64}\n")
	_, err := manifest.Read(filepath.Join(dir, "m.wasm"))
	for _, want := range []string{"limits.timeout: 2 has no unit: write 2s", "limits.memory: 64 has no unit: write 64MiB"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v; want %s", err, want)
		}
	}
	if got, err := manifest.Read(filepath.Join(t.TempDir(), "m.wasm")); got != nil || err != nil {
		t.Errorf("without a file: %+v, %v", got, err)
	}
}

func at(p tree.Problem) string { return "line " + string(rune('0'+p.Line)) + " " + p.Path }

// Whatever bytes a manifest has, reading them gives JSON, or problems.
func FuzzReadManifest(f *testing.F) {
	for _, s := range []string{"", "tools: []\n", "a: .inf\n", "a: &x [1]\nb: *x\n", "a: 1_000\n", "a: |\n  b\n", "{\"a\": 1e5000}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "m.yaml"), string(data))
		got, err := manifest.Read(filepath.Join(dir, "m.wasm"))
		var problems tree.Problems
		if err == nil && !json.Valid(got.JSON) || err != nil && !errors.As(err, &problems) {
			t.Errorf("%+v, error %v", got, err)
		}
	})
}

// A place in a manifest is found by its JSON Pointer, or the nearest above it.
func TestManifestProblem(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "m.yaml"), "tools:\n  - name: a\n    inputSchema:\n      properties:\n        a/b: {type: x}\n")
	m, err := manifest.Read(filepath.Join(dir, "m.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	for pointer, want := range map[string]string{
		"": "line 1 ", "/tools/0/name": "line 2 tools[0].name", "/tools/0/inputSchema/properties/a~1b/type": "line 5 tools[0].inputSchema.properties[\"a/b\"].type",
		"/tools/0/inputSchema/type": "line 3 tools[0].inputSchema", "/tools/7": "line 1 tools", "/none": "line 1 ",
	} {
		if p := m.Problem(pointer, "x"); at(p) != want {
			t.Errorf("%s is at %s, want %s", pointer, at(p), want)
		}
	}
}

func write(t testing.TB, path, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
