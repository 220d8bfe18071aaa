package config_test

import (
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/config"
)

// TestEnvironment: a server gets the variables that its own keys name, the more exact key
// winning, and what it lacks faults it alone.
func TestEnvironment(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("good.env", "# of the tests\n\nA=file\nB = no\n", 0o600)
	write("fine.env", "# of the tests\n\nA=file\nB=\"quoted value\"\nC=file\n", 0o600)
	write("open.env", "A=1\n", 0o644)
	write("wasmgate.yaml", `version: 1
servers:
  all: {command: x, env_file: fine.env, env_from: [C, FROM], env: {FROM2: "${FROM}"}}
  unset: {command: x, env_from: [NOBODY_HAS_SET_THIS]}
  odd: {command: x, env_file: good.env}
  gone: {command: x, env_file: no.env}
  open: {command: x, env_file: open.env}
`, 0o600)
	lookup := func(name string) (string, bool) {
		v, ok := map[string]string{"C": "gateway", "FROM": "given"}[name]
		return v, ok
	}
	cfg, err := config.Load(filepath.Join(dir, "wasmgate.yaml"), config.Options{Getenv: lookup})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]config.Secret{"A": "file", "B": "quoted value", "C": "gateway", "FROM": "given", "FROM2": "given"}
	faults := map[string]string{"unset": "NOBODY_HAS_SET_THIS", "odd": "good.env:4", "gone": "no.env", "open": "chmod 600"}
	for _, s := range cfg.Servers {
		if s.ID == "all" && (!maps.Equal(s.Env, want) || s.Fault != "") {
			t.Errorf("environment %v, fault %s", s.Env, s.Fault)
		}
		if s.ID == "open" && runtime.GOOS == "windows" {
			continue
		}
		if part := faults[s.ID]; !strings.Contains(s.Fault, part) || (part == "") != (s.Fault == "") {
			t.Errorf("%s: fault %q does not say %q", s.ID, s.Fault, part)
		}
	}
}
