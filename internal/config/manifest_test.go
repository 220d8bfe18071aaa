package config_test

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"

	"github.com/wasmgate/wasmgate/internal/config"
)

func TestReadManifest(t *testing.T) {
	tests := map[string]struct {
		file, want string // want is a problem if it is no JSON
	}{
		"members keep their order and numbers their digits": {
			"tools:\n  - name: add\n    inputSchema: {type: object, maxProperties: 12345678901234567890, a: 1.50, z: true, y: ~}\n",
			`{"tools":[{"name":"add","inputSchema":{"type":"object","maxProperties":12345678901234567890,"a":1.50,"z":true,"y":null}}]}`,
		},
		"texts that look like something else": {"a: \"1\"\nb: 'true'\n\"\\u2028\": \"\\\"\"\n", `{"a":"1","b":"true","\u2028":"\""}`},
		"a number that JSON has not":          {"a: 1\nb: [0x10]\n", "line 2 b[0]"},
		"a list":                              {"- a\n", "line 1 "},
		"a member given twice":                {"a: 1\na: 2\n", "line 2 a"},
		"no YAML":                             {"a: [\n", "line 1 "},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "m.yaml"), tt.file)
			got, err := config.ReadManifest(filepath.Join(dir, "m.wasm"))
			if json.Valid([]byte(tt.want)) {
				if err != nil || string(got) != tt.want {
					t.Errorf("%s, error %v; want %s", got, err, tt.want)
				}
				return
			}
			var problems config.Problems
			if !errors.As(err, &problems) || len(problems) != 1 || at(problems[0]) != tt.want {
				t.Errorf("%s, error %v; want a problem at %s", got, err, tt.want)
			}
		})
	}
	if got, err := config.ReadManifest(filepath.Join(t.TempDir(), "m.wasm")); got != nil || err != nil {
		t.Errorf("without a file: %s, %v", got, err)
	}
}

func at(p config.Problem) string { return "line " + string(rune('0'+p.Line)) + " " + p.Path }

// Any bytes beside a module are JSON, or problems.
func FuzzReadManifest(f *testing.F) {
	for _, s := range []string{"", "tools: []\n", "a: .inf\n", "a: &x [1]\nb: *x\n", "a: 1_000\n", "a: |\n  b\n", "{\"a\": 1e5000}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "m.yaml"), string(data))
		got, err := config.ReadManifest(filepath.Join(dir, "m.wasm"))
		var problems config.Problems
		if err == nil && !json.Valid(got) || err != nil && !errors.As(err, &problems) {
			t.Errorf("%s, error %v", got, err)
		}
	})
}
