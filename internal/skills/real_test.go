package skills_test

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/skills"
	"github.com/wasmgate/wasmgate/internal/skills/folder"
	"github.com/wasmgate/wasmgate/internal/testing/toolchain"
)

// TestRealSkills: skills as people write them pass whole. testdata/real.txt names them: the npm
// package, its version, the folder in it, and the digest of all its files.
func TestRealSkills(t *testing.T) {
	archives := os.Getenv("WASMGATE_SKILLS")
	if archives == "" {
		t.Skip("fetches packages from npm: set WASMGATE_SKILLS to a folder that keeps them")
	}
	list, err := os.ReadFile("testdata/real.txt")
	if err != nil {
		t.Fatal(err)
	}
	dir, files, noted := t.TempDir(), 0, 0
	servers := make(map[string]*client) // by the folder that has the skills
	for line := range strings.Lines(string(list)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var name, version, at, digest string
		if _, err := fmt.Sscan(line, &name, &version, &at, &digest); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		parent := filepath.Join(dir, strings.ReplaceAll(name, "/", "-"), filepath.FromSlash(path.Dir(at)))
		if servers[parent] == nil {
			if _, err := os.Stat(parent); err != nil {
				unpack(t, fetch(t, archives, name, version), filepath.Join(dir, strings.ReplaceAll(name, "/", "-")))
			}
			servers[parent] = serve(t, parent)
		}
		s, err := servers[parent].skill(path.Base(at))
		if err != nil {
			t.Errorf("%s %s: %v", name, at, err)
			continue
		}
		if got := digestOf(s); got != digest {
			t.Errorf("%s %s: the files have the digest %s, not %s", name, at, got, digest)
		}
		v, err := skills.Examine(s, func(p string, f gate.SkillFile) ([]byte, error) {
			files++
			return servers[parent].read(s, p, f)
		})
		if err != nil || v.Refused != "" {
			t.Errorf("%s %s: %s, %v", name, at, v.Refused, err)
		}
		for _, n := range v.Notes {
			noted++
			t.Logf("%s %s: %s", name, at, n)
		}
	}
	t.Logf("%d files, %d notes", files, noted)
}

// fetch returns the archive of a package, which npm fetches if the folder lacks it.
func fetch(t *testing.T, archives, name, version string) string {
	file := strings.ReplaceAll(strings.TrimPrefix(name, "@"), "/", "-") + "-" + version + ".tgz"
	file = filepath.Join(archives, file)
	if _, err := os.Stat(file); err == nil {
		return file
	}
	toolchain.Need(t, "npm")
	if out, err := exec.Command("npm", "pack", "--silent", "--fetch-retries=0", "--pack-destination", archives, name+"@"+version).CombinedOutput(); err != nil {
		t.Skipf("npm does not fetch %s: %v: %.300s", name, err, out)
	}
	return file
}

// unpack writes the files of an archive of npm. Their first folder is left out.
func unpack(t *testing.T, archive, dir string) {
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		_, name, ok := strings.Cut(path.Clean(h.Name), "/")
		if !ok || h.Typeflag != tar.TypeReg {
			continue
		}
		b, err := io.ReadAll(r)
		if err == nil {
			err = root.MkdirAll(path.Dir(name), 0o700)
		}
		if err == nil {
			err = root.WriteFile(name, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// digestOf returns one digest of all files of a skill.
func digestOf(s *gate.Skill) string {
	sum := sha256.New()
	for _, p := range skills.Paths(s) {
		fmt.Fprintln(sum, p, s.Files[p].Digest)
	}
	return fmt.Sprintf("sha256:%x", sum.Sum(nil))
}

// A client speaks to the server of a folder.
type client struct {
	t       *testing.T
	out     io.Writer
	in      *bufio.Reader
	entries map[string]gate.Doc
}

func serve(t *testing.T, dir string) *client {
	from, to, err := folder.Serve(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { to.Close(); _, _ = io.Copy(io.Discard, from) })
	c := &client{t: t, out: to, in: bufio.NewReader(from), entries: make(map[string]gate.Doc)}
	for e := range c.ask("skills/list", "").Get("skills").Elements() {
		c.entries[e.Get("uri").Text()] = e
	}
	return c
}

// ask returns the result of a request.
func (c *client) ask(method, uri string) gate.Doc {
	text, err := json.Marshal(uri)
	if err != nil {
		c.t.Fatal(err)
	}
	fmt.Fprintf(c.out, `{"jsonrpc":"2.0","id":1,"method":%q,"params":{"uri":%s}}`+"\n", method, text)
	for {
		line, err := c.in.ReadBytes('\n')
		if err != nil {
			c.t.Fatal(err)
		}
		d, err := gate.ParseDoc(line)
		if err != nil {
			c.t.Fatal(err)
		}
		if !d.Get("id").IsZero() {
			return d.Get("result")
		}
	}
}

func (c *client) skill(name string) (*gate.Skill, error) {
	return skills.Parse("team", c.entries["skill://"+name+"/SKILL.md"])
}

// read returns a file as a client of the gateway gets it.
func (c *client) read(s *gate.Skill, p string, f gate.SkillFile) ([]byte, error) {
	uri := skills.Root(s.URI) + p
	result := c.ask("resources/read", uri)
	b, err := skills.Read(f, uri, result)
	if text := skills.Passed(uri, result).At("/contents/0/text"); err == nil && !text.IsZero() && text.Text() != string(b) {
		err = errors.New("its text was changed")
	}
	return b, err
}
