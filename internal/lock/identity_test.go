package lock_test

import (
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/lock"
)

func write(t testing.TB, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func identityOf(p lock.Program) string {
	i, _ := p.Identity()
	return i.Doc.Digest()
}

// What a program is changes with its command, its arguments, its executable and its
// script, and with nothing else.
func TestIdentityOfAProgram(t *testing.T) {
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "node"), "v1")
	script := write(t, filepath.Join(dir, "server.js"), "one")
	write(t, filepath.Join(dir, "data.json"), "{}")
	base := lock.Program{Command: "node", Args: []string{"--x", "server.js", "data.json"}, Started: []string{"--x", "server.js", "data.json"}, File: file, Dir: dir}
	before := identityOf(base)

	write(t, filepath.Join(dir, "data.json"), "{1}")
	moved := base
	moved.Env, moved.Started = []string{"A=1"}, []string{"--x", script, "data.json"}
	for name, p := range map[string]lock.Program{"the same again": base, "elsewhere": moved} {
		if identityOf(p) != before {
			t.Errorf("%s: another identity", name)
		}
	}
	other := base
	other.Args = []string{"--x", "server.js", "other.json"}
	if identityOf(other) == before {
		t.Error("other arguments: the same identity")
	}
	write(t, script, "two")
	if identityOf(base) == before {
		t.Error("another script: the same identity")
	}
	write(t, script, "one")
	write(t, file, "v2")
	if identityOf(base) == before {
		t.Error("another executable: the same identity")
	}
	none := base
	none.File, none.FileError = "", os.ErrNotExist
	if _, notes := none.Identity(); len(notes) != 1 || !strings.Contains(notes[0], "its executable is not pinned") {
		t.Errorf("notes = %q", notes)
	}
}

const tree = `{"lockfileVersion":3,"packages":{"":{"dependencies":{"@x/server":"^1"}},
	"node_modules/@x/server":{"version":"1.2.3","integrity":"sha512-%s"},"node_modules/dep":{"version":"2.0.0","integrity":"sha512-dep"}}}`

func TestIdentityOfNPX(t *testing.T) {
	home := t.TempDir()
	npx := func(args ...string) lock.Program {
		return lock.Program{Command: "npx", Args: args, Started: args, Dir: filepath.Join(home, "project"), Env: []string{"HOME=" + home}}
	}
	install := func(integrity string, specs ...string) {
		sum := sha512.Sum512([]byte(strings.Join(specs, "\n")))
		write(t, filepath.Join(home, ".npm", "_npx", hex.EncodeToString(sum[:])[:16], "package-lock.json"), fmt.Sprintf(tree, integrity))
	}
	install("one", "@x/server@1.2.3")
	install("one", "@x/server")
	install("one", "@x/server@latest")
	install("one", "@x/server@1")
	install("one", "a@1.0.0", "b@1.0.0")
	for args, unpinned := range map[string]string{
		"-y @x/server@1.2.3 /srv": "", "--yes -p @x/server@1.2.3 -- server": "", "--package=@x/server@1.2.3 server": "",
		"-p b@1.0.0 -p a@1.0.0 -c x": "", "--registry https://r.example @x/server@1.2.3": "",
		"-y @x/server": "@x/server is not pinned", "@x/server@latest": "@x/server@latest is not pinned", "@x/server@1": "write @x/server@VERSION",
	} {
		i, notes := npx(strings.Fields(args)...).Identity()
		if got := strings.Join(notes, "|"); (got == "") != (unpinned == "") || !strings.Contains(got, unpinned) || len(notes) > 1 {
			t.Errorf("npx %s: notes %q, want %q", args, got, unpinned)
		}
		if got := i.Doc.At("/tree/node_modules~1@x~1server").Text(); got != "1.2.3 sha512-one" {
			t.Errorf("npx %s: identity %s", args, i.Doc)
		}
	}
	before := identityOf(npx("-y", "@x/server@1.2.3"))
	install("two", "@x/server@1.2.3")
	if identityOf(npx("-y", "@x/server@1.2.3")) == before {
		t.Error("what is installed has another integrity, and the identity is the same")
	}

	// A project that has the package is what npx takes it from.
	write(t, filepath.Join(home, "node_modules", "@x", "server", "package.json"), "{}")
	write(t, filepath.Join(home, "node_modules", ".package-lock.json"), fmt.Sprintf(tree, "local"))
	if i, _ := npx("@x/server@1.2.3").Identity(); i.Doc.At("/tree/node_modules~1@x~1server").Text() != "1.2.3 sha512-local" {
		t.Errorf("in a project: %s", i.Doc)
	}
	if _, notes := npx("unheard-of@1.0.0").Identity(); len(notes) != 1 || !strings.Contains(notes[0], "not pinned beyond the name and version") {
		t.Errorf("not installed: %q", notes)
	}
	for _, args := range []string{"", "-y", "git+https://example.com/x.git", "./folder", "-p"} {
		if _, notes := npx(strings.Fields(args)...).Identity(); len(notes) == 0 {
			t.Errorf("npx %s: nothing is said to be unpinned", args)
		}
	}
}

func TestIdentityOfUVX(t *testing.T) {
	for args, want := range map[string]string{
		"mcp-server-time==1.2": "", "mcp-server-time@1.2.3": "", "--from x[extra]==2026.1.0rc1 server": "",
		"mcp-server-time": "write mcp-server-time==VERSION", "--python 3.12 x>=1": "not pinned", "--from git+https://example.com/x server": "not pinned", "x==1.*": "not pinned",
	} {
		_, notes := lock.Program{Command: "uvx", Started: strings.Fields(args)}.Identity()
		got := strings.Join(notes[:len(notes)-1], "|") // the last says what of uvx is never known
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("uvx %s: %q, want %q", args, got, want)
		}
	}
}

func TestIdentityOfURLs(t *testing.T) {
	base := lock.Origin("https://Example.com/mcp?token=x", "").Doc.Digest()
	for address, same := range map[string]bool{
		"https://example.com/mcp": true, "https://example.com/mcp?token=y": true,
		"https://example.com/other": false, "http://example.com/mcp": false, "https://example.com:444/mcp": false, "https://example.org/mcp": false,
	} {
		if got := lock.Origin(address, "").Doc.Digest() == base; got != same {
			t.Errorf("%s: the same: %t", address, got)
		}
	}
	if lock.Origin("https://example.com/mcp", "aa").Doc.Digest() == base {
		t.Error("the key of the certificate is not part of the identity")
	}
}
