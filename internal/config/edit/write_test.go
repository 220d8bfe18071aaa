package edit_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/config/edit"
)

// imported are the servers of an mcp.json.
func imported(t *testing.T, text string) []config.Server {
	t.Helper()
	servers, _, err := config.ImportMCP(strings.NewReader(text), filepath.Join(t.TempDir(), "mcp.json"))
	if err != nil {
		t.Fatal(err)
	}
	return servers
}

func TestAddServers(t *testing.T) {
	const two = `{"mcpServers": {"a": {"command": "sh", "args": ["-c", "x: y"]}, "b": {"url": "https://example.com/"}}}`
	const a, b = "a:\n    command: sh\n    args:\n      - \"-c\"\n      - \"x: y\"\n", "b:\n    url: \"https://example.com/\"\n"
	tests := map[string]struct{ before, after, err string }{
		"no file":                      {"", "version: 1\nservers:\n  " + a + "  " + b, ""},
		"a file without servers":       {"version: 1\nlog: {level: info}", "version: 1\nlog: {level: info}\nservers:\n  " + a + "  " + b, ""},
		"an empty block":               {"servers:\nlog: {}\n", "servers:\n  " + a + "  " + b + "log: {}\n", ""},
		"a block in braces":            {"servers: {} # none\n", "servers: # none\n  " + a + "  " + b, ""},
		"one of them":                  {"servers:\n  " + a, "servers:\n  " + a + "  " + b, ""},
		"both":                         {"servers:\n  " + a + "  " + b, "servers:\n  " + a + "  " + b, ""},
		"one between others":           {"servers:\n  " + b + "  # last\n\n# after\nlog: {}\n", "servers:\n  " + b + "  # last\n  " + a + "\n# after\nlog: {}\n", ""},
		"another of the name":          {"servers:\n  a: {command: zsh}\n", "", "has other servers of these names: a"},
		"servers in braces":            {"servers: {c: {command: sh}}\n", "", "only a person can edit"},
		"a file that is not a mapping": {"- a\n", "", "must be a mapping"},
		"nonsense":                     {"a: [\n", "", "wasmgate.yaml:1"},
		"a name that looks alike":      {"servers:\n  \"0\": {command: sh}\n  o: {command: sh}\n", "", "looks like"},
		"more than a document":         {"version: 1\n---\nservers: {}\n", "", "more than one document"},
		"an end of the document":       {"version: 1\n...\n", "", "only a person can edit"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "folder", "wasmgate.yaml")
			if tt.before != "" {
				if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := errors.Join(os.WriteFile(path, []byte(tt.before), 0o640), os.Chmod(path, 0o640)); err != nil { // umask
					t.Fatal(err)
				}
			}
			_, err := edit.AddServers(path, imported(t, two))
			after, rerr := os.ReadFile(path)
			if rerr != nil {
				t.Fatal(rerr)
			}
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) || string(after) != tt.before {
					t.Errorf("error %v, want %q; the file:\n%s", err, tt.err, after)
				}
				return
			}
			if diff := cmp.Diff(tt.after, string(after)); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			info, err := os.Stat(path)
			if want := map[bool]os.FileMode{true: 0o600, false: 0o640}[tt.before == ""]; err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != want {
				t.Errorf("mode %v, want %v, %v", info.Mode(), want, err)
			}
		})
	}
}

// What is added reads back as it was, whatever characters it has.
func TestAddServersReadBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "wasmgate.yaml")
	servers := imported(t, `{"mcpServers": {"x": {"command": "sh", "args": ["-", "#", "a: b", "${NAME:-d}", "yes", "1", "ü", "\"'\\"], "env": {"A": "line", "B": ""}}}}`)
	added, err := edit.AddServers(path, servers)
	if err != nil || len(added) != 1 {
		t.Fatal(added, err)
	}
	cfg, err := config.Load(path, config.Options{Getenv: func(string) (string, bool) { return "", false }, Dirs: config.Dirs{Home: "/h", Config: "/c", State: "/s"}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"-", "#", "a: b", "d", "yes", "1", "ü", `"'\`}
	if diff := cmp.Diff(want, cfg.Servers[0].Args); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if added, err := edit.AddServers(path, servers); err != nil || len(added) != 0 {
		t.Errorf("again: %v, %v", added, err)
	}
}
