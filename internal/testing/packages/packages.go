// Package packages fetches files of the world out of npm's packages and Go's modules, for
// tests.
package packages

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// A File is one of a package.
type File struct {
	Package string `json:"package"`
	Version string `json:"version"` // that of a Go module begins with v
	Path    string `json:"path"`
	SHA256  string `json:"sha256"`
}

func (f File) String() string { return fmt.Sprintf("%s@%s/%s", f.Package, f.Version, f.Path) }

// Fetch returns what a file holds. Its package is fetched if it is not there yet: by npm's
// client into a folder, or by Go's into its cache of modules.
func (f File) Fetch(t testing.TB, dir string) []byte {
	fetch := f.npm
	if strings.HasPrefix(f.Version, "v") {
		fetch = f.module
	}
	content := fetch(t, dir)
	if sum := fmt.Sprintf("%x", sha256.Sum256(content)); sum != f.SHA256 {
		t.Fatalf("%s: the digest is %s", f, sum)
	}
	return content
}

func (f File) module(t testing.TB, dir string) []byte {
	download := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", f.Package+"@"+f.Version)
	download.Dir = dir
	out, err := download.Output()
	var module struct{ Dir, Error string }
	if json.Unmarshal(out, &module) != nil || err != nil {
		t.Fatalf("go mod download: %v: %s", err, module.Error)
	}
	content, err := os.ReadFile(filepath.Join(module.Dir, filepath.FromSlash(f.Path)))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func (f File) npm(t testing.TB, dir string) []byte {
	version, _, _ := strings.Cut(f.Version, "+") // which is not in the name of the archive
	archive := filepath.Join(dir, fmt.Sprintf("%s-%s.tgz", strings.ReplaceAll(strings.TrimPrefix(f.Package, "@"), "/", "-"), version))
	if _, err := os.Stat(archive); err != nil {
		out, err := exec.CommandContext(t.Context(), "npm", "pack", "--silent", "--ignore-scripts", "--pack-destination", dir, f.Package+"@"+f.Version).CombinedOutput()
		if err != nil {
			t.Fatalf("npm pack: %v: %s", err, out)
		}
	}
	b, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err != nil {
			t.Fatalf("%s in %s: %v", f.Path, archive, err)
		}
		if _, name, _ := strings.Cut(path.Clean(h.Name), "/"); name != f.Path {
			continue
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
}
