//go:build unix

package gateway

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/wasmgate/wasmgate/internal/testing/e2e"
	"github.com/wasmgate/wasmgate/internal/testing/toolchain"
)

// earlier builds the program of before the last change of the database's tables.
func earlier(t *testing.T, p *e2e.Program) *e2e.Program {
	t.Helper()
	dir := t.TempDir()
	run := func(in, name string, args ...string) (string, error) {
		c := exec.CommandContext(t.Context(), name, args...)
		c.Dir = in
		out, err := c.CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	commit, err := run(toolchain.Root(), "git", "log", "-1", "--format=%H", "--", "internal/pg/schema.go")
	if err == nil {
		_, err = run(toolchain.Root(), "git", "archive", "--output", filepath.Join(dir, "source.tar"), commit+"^")
	}
	switch {
	case err != nil && os.Getenv("WASMGATE_POSTGRES") == "require":
		t.Fatalf("the repository has no earlier version: %v: %s", err, commit)
	case err != nil:
		t.Skipf("the repository has no earlier version: %v: %s", err, commit)
	}
	if out, err := run(dir, "tar", "-xf", "source.tar"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := run(dir, "go", "build", "-o", "wasmgate", "./cmd/wasmgate"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	old := *p
	old.Path = filepath.Join(dir, "wasmgate")
	old.Plain = old.Path
	return &old
}

// testVersions upgrades one of two gateways first: both go on, and what is read or revoked at one holds at the other. The old one does not start
// again, and says what to do.
func testVersions(t *testing.T, p *e2e.Program) {
	c := newCluster(t, false, more{}, earlier(t, p), p)
	for at := range c.urls {
		token := c.caller(t, at)
		for _, url := range c.urls {
			if ok, code := passes(t, c.client(url, token), "own__send", toBob); !ok {
				t.Errorf("a value that was met at node %d: %s", at, code)
			}
			if ok, code := passes(t, c.client(url, token), "own__send", toEvil); ok || code != "refused_authorize" {
				t.Errorf("one that was not met at node %d: %t %s", at, ok, code)
			}
		}
		id, key := c.key(t, at, "bob")
		c.nodes[1-at].Must("key", "revoke", id)
		for _, url := range c.urls {
			if ok, _ := passes(t, c.client(url, key), "own__find", `{}`); ok {
				t.Errorf("a key that was revoked at node %d", 1-at)
			}
		}
	}
	c.processes[0].Signal(syscall.SIGTERM)
	c.processes[0].Wait()
	if r := c.nodes[0].Run("serve", "--listen", "127.0.0.1:0"); r.Code == 0 || !strings.Contains(r.Stderr, "a newer wasmgate has written the schema") || !strings.Contains(r.Stderr, "run that version") {
		t.Errorf("the old version on the tables of the new one: %+v", r)
	}
	if ok, code := passes(t, c.client(c.urls[1], c.caller(t, 1)), "own__send", toBob); !ok {
		t.Errorf("the new one: %s", code)
	}
}
