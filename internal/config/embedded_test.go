package config_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/config"
)

// The tools that come with wasmgate are offered without a configuration, and if an entry names
// them.
func TestEmbeddedTools(t *testing.T) {
	dir := t.TempDir()
	o := options(dir)
	if !config.Default(o.Dirs).EmbeddedTools() {
		t.Error("without a configuration there are none")
	}
	for text, want := range map[string]bool{
		"":                           false,
		"version: 1\n":               false,
		"servers: {a: {command: b}}": false,
		"tools: {files: {module: \"embedded:files\"}}": false,
		"tools: {embedded: {module: embedded}}":        true,
		"tools: {x: {module: embedded}}":               true,
	} {
		c, err := config.Load(write(t, filepath.Join(dir, "wasmgate.yaml"), text), o)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		} else if c.EmbeddedTools() != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
	_, err := config.Load(write(t, filepath.Join(dir, "wasmgate.yaml"), "tools:\n  e: {module: embedded, grant: {kv: true}}\n"), o)
	if err == nil || !strings.Contains(err.Error(), "wasmgate.yaml:2: tools.e: the embedded tools take no key but module") {
		t.Errorf("with a grant: %v", err)
	}
}
