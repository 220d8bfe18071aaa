package folder_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/skills"
	"github.com/wasmgate/wasmgate/internal/skills/folder"
)

// A client speaks to the server of a folder.
type client struct {
	t    *testing.T
	out  io.Writer
	in   *bufio.Reader
	told int // notifications
}

func serve(t *testing.T, dir string) *client {
	from, to, err := folder.Serve(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		to.Close()
		if _, err := io.Copy(io.Discard, from); err != nil {
			t.Error(err)
		}
	})
	return &client{t: t, out: to, in: bufio.NewReader(from)}
}

// next returns the next message of the server.
func (c *client) next() gate.Doc {
	line, err := c.in.ReadBytes('\n')
	if err != nil {
		c.t.Fatal(err)
	}
	d, err := gate.ParseDoc(line)
	if err != nil {
		c.t.Fatal(err)
	}
	return d
}

func (c *client) ask(method, uri string) gate.Doc {
	fmt.Fprintf(c.out, `{"jsonrpc":"2.0","id":1,"method":%q,"params":{"uri":%s}}`+"\n", method, must(uri))
	for {
		if d := c.next(); !d.Get("id").IsZero() {
			return d
		}
		c.told++
	}
}

func must(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	p := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// listed returns the skills that can be offered, and why others cannot.
func (c *client) listed() (all map[string]*gate.Skill, refused map[string]error) {
	all, refused = make(map[string]*gate.Skill), make(map[string]error)
	for e := range c.ask("skills/list", "").At("/result/skills").Elements() {
		uri := e.Get("uri").Text()
		if s, err := skills.Parse("team", e); err != nil {
			refused[uri] = err
		} else {
			all[uri] = s
		}
	}
	return all, refused
}

// TestFolder: every folder with a SKILL.md is a skill, all of whose files are what their digests say.
func TestFolder(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	write(t, outside, "secret.txt", "outside")
	write(t, dir, "git-workflow/SKILL.md", "---\nname: git-workflow\ndescription: Git\nmetadata: {version: \"1.0\", tags: [a, b]}\n---\n\n# Git\n")
	write(t, dir, "git-workflow/a b/100%.md", "# ü\n")
	write(t, dir, "git-workflow/logo.bin", "\x00\xff")
	write(t, dir, "git-workflow/.env", "hidden")
	write(t, dir, ".cache/x/SKILL.md", "---\nname: x\ndescription: X\n---\n")
	write(t, dir, "deep/er/release/SKILL.md", "---\nname: release\ndescription: R\n---\n")
	write(t, dir, "broken/SKILL.md", "no frontmatter")
	write(t, dir, "README.md", "no skill")
	if err := os.Symlink(filepath.Join(outside, "secret.txt"), filepath.Join(dir, "git-workflow", "out.txt")); err != nil {
		t.Skip(err)
	}
	if err := os.Symlink("logo.bin", filepath.Join(dir, "git-workflow", "in.bin")); err != nil {
		t.Fatal(err)
	}
	c := serve(t, dir)
	all, refused := c.listed()
	if len(all) != 2 || len(refused) != 1 || refused["skill://broken/SKILL.md"] == nil {
		t.Fatalf("skills %v, refused %v", all, refused)
	}
	s := all["skill://git-workflow/SKILL.md"]
	if got := fmt.Sprint(skills.Paths(s)); got != "[SKILL.md a%20b/100%25.md in.bin logo.bin]" {
		t.Errorf("files %s", got)
	}
	other := serve(t, dir) // which has listed nothing
	v, err := skills.Examine(s, func(p string, f gate.SkillFile) ([]byte, error) {
		uri := skills.Root(s.URI) + p
		return skills.Read(f, uri, other.ask("resources/read", uri).Get("result"))
	})
	if err != nil || v.Refused != "" {
		t.Errorf("%+v, %v", v, err)
	}
	for _, uri := range []string{"skill://git-workflow/out.txt", "skill://git-workflow/.env", "skill://git-workflow/../README.md", "file:///etc/passwd"} {
		if got := c.ask("resources/read", uri); got.Get("error").IsZero() {
			t.Errorf("%s: %s", uri, got)
		}
	}
	if got := c.ask("tools/list", ""); got.At("/error/code").String() != "-32601" {
		t.Errorf("tools/list: %s", got)
	}
}

// TestFolderIsWatched: the client hears of a change, and the next listing has it.
func TestFolderIsWatched(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a/SKILL.md", "---\nname: a\ndescription: A\n---\n")
	c := serve(t, dir)
	before, _ := c.listed()
	write(t, dir, "a/more.md", strings.Repeat("x", 100))
	if got := c.next().Get("method").Text(); got != "notifications/resources/list_changed" {
		t.Fatalf("heard %q", got)
	}
	after, _ := c.listed()
	if len(before["skill://a/SKILL.md"].Files) != 1 || len(after["skill://a/SKILL.md"].Files) != 2 {
		t.Errorf("before %v, after %v", before, after)
	}
	if _, _, err := folder.Serve(filepath.Join(dir, "gone")); err == nil {
		t.Error("a folder that is not there is served")
	}
}
