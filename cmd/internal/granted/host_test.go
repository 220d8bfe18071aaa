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
