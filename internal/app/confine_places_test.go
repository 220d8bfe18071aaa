package app

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/config/dirs"
)

// The settings of an agent are never proposed, also where a variable has moved them.
func TestOwnPlacesHaveAgents(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	t.Setenv("CLAUDE_CONFIG_DIR", filepath.Join(home, "elsewhere"))
	own := ownPlaces(&config.Config{}, dirs.DirsOf("linux", home, func(string) string { return "" }))
	for _, name := range []string{"elsewhere/settings.json", ".cursor/mcp.json"} {
		if path := filepath.Join(home, filepath.FromSlash(name)); !slices.Contains(own, path) {
			t.Errorf("%s is not among %q", path, own)
		}
	}
}
