package config_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/internal/config"
)

// undeclared leaves out the digests of what was written, where a test compares what was read.
var undeclared = cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Declared" }, cmp.Ignore())

// TestDeclared: what a file says of a server decides its digest, in whatever order, and neither
// what the process has nor where the file lies. Keys that change nothing of what runs do not count.
func TestDeclared(t *testing.T) {
	declared := func(server string, environ map[string]string) string {
		t.Helper()
		dir := t.TempDir()
		o := options(filepath.Join(dir, "home"))
		o.Getenv = environment(environ)
		write(t, filepath.Join(dir, "m.wasm"), "")
		c, err := config.Load(write(t, filepath.Join(dir, "wasmgate.yaml"), "version: 1\nservers: {s: {"+server+"}}\n"), o)
		if err != nil {
			t.Fatal(err)
		}
		return c.Servers[0].Declared
	}
	here, there := map[string]string{"TOKEN": "a", "HOME": "/a"}, map[string]string{"TOKEN": "b", "HOME": "/b", "MORE": "c"}
	const command = `command: ./run, args: [a, "${HOME}"], cwd: work, env: {A: "env:TOKEN", B: "2"}`
	first := declared(command, here)
	for _, same := range []string{command, `env: {B: "2", A: "env:TOKEN"}, cwd: work, args: [a, "${HOME}"], command: ./run`, command + ", timeout: 3s, concurrent: 4, required: true"} {
		if declared(same, there) != first {
			t.Errorf("another digest of %s", same)
		}
	}
	seen := map[string]string{first: command}
	for _, other := range []string{
		strings.Replace(command, "./run", "run", 1), strings.Replace(command, "[a, ", "[a, b, ", 1), strings.Replace(command, `[a, "`, `["a, `, 1),
		strings.Replace(command, "cwd: work", "cwd: works", 1), strings.Replace(command, "env:TOKEN", "env:HOME", 1), strings.Replace(command, "A:", "C:", 1),
		command + ", confine: {}", `url: "https://a.example"`, `url: "https://a.example", headers: {X: y}`, `url: "https://a.example", private: true`, "module: m.wasm", "module: m.wasm, args: [a]",
	} {
		digest := declared(other, here)
		if was, ok := seen[digest]; ok {
			t.Errorf("%s and %s have one digest", was, other)
		}
		seen[digest] = other
	}
}
