package granted

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/sandbox"
)

// A file may be what its innermost directory may.
func TestFile(t *testing.T) {
	host := &Host{dirs: []sandbox.Dir{{Path: "/a"}, {Path: "/a/b", Write: true}}}
	for path, want := range map[string]string{"/a": "r", "/a/x": "r", "/a/b": "rw", "/a/b/c": "rw", "/ab": "", "/": "", "/a/bc": "r"} {
		for op, granted := range map[string]bool{"read": strings.Contains(want, "r"), "write": strings.Contains(want, "w"), "remove": strings.Contains(want, "w")} {
			if err := host.File(t.Context(), op, filepath.FromSlash(path)); (err == nil) != granted {
				t.Errorf("%s %s: %v, want %q", op, path, err, want)
			}
		}
	}
}

// Secrets come from the environment, and go to their origin.
func TestSecrets(t *testing.T) {
	lookup := func(name string) (string, bool) { return "made up value", name == "API" }
	for written, ok := range map[string]bool{"API=https://api.example.com": true, "API": false, "OTHER=https://api.example.com": false, "API=nowhere": false} {
		all, err := Secrets([]string{written}, lookup)
		if (err == nil) != ok || ok && (len(all) != 1 || all[0].Name() != "API") {
			t.Errorf("%s: %v, %v", written, all, err)
		}
	}
}
