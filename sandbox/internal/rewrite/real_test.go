package rewrite_test

import (
	"archive/tar"
	"bufio"
	"bytes"
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

	"github.com/wasmgate/wasmgate/sandbox/internal/rewrite"
)

// A real module is one that somebody uses, in a package of npm.
type real struct {
	Package string `json:"package"`
	Version string `json:"version"`
	Path    string `json:"path"`
	SHA256  string `json:"sha256"`
}

// TestRealModules reads the modules of a list, which npm's client fetches into the
// folder that WASMGATE_MODULES names: each is cheap enough to compile. Those that
// are compiled within seconds have no more machine code than was estimated.
func TestRealModules(t *testing.T) {
	dir := os.Getenv("WASMGATE_MODULES")
	if dir == "" {
		t.Skip("WASMGATE_MODULES names no folder for the packages")
	}
	list, err := os.Open("testdata/modules.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer list.Close()
	for lines := bufio.NewScanner(list); lines.Scan(); {
		var m real
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			t.Fatal(err)
		}
		t.Run(fmt.Sprintf("%s@%s/%s", m.Package, m.Version, m.Path), func(t *testing.T) { m.check(t, m.fetch(t, dir)) })
	}
}

func (m real) check(t *testing.T, wasm []byte) {
	if sum := fmt.Sprintf("%x", sha256.Sum256(wasm)); sum != m.SHA256 {
		t.Fatalf("the digest is %s", sum)
	}
	decoded, err := rewrite.Decode(wasm)
	if err != nil {
		t.Fatal(err)
	}
	var unfit *rewrite.UnfitError
	if _, err := decoded.Seal(); err != nil && !errors.As(err, &unfit) {
		t.Fatal(err)
	}
	out, err := decoded.Meter()
	if err != nil {
		t.Fatal(err)
	}
	cost := decoded.Cost()
	t.Logf("%d bytes: %+v", len(wasm), cost)
	if len(wasm) > 4<<20 {
		return
	}
	if code := machineCode(t, out); cost.Code < code {
		t.Errorf("machine code of %d bytes was estimated at %d", code, cost.Code)
	}
}

// fetch returns a file of a package, which is fetched if it is not there yet.
func (m real) fetch(t *testing.T, dir string) []byte {
	version, _, _ := strings.Cut(m.Version, "+") // which is not in the name of the file
	file := filepath.Join(dir, fmt.Sprintf("%s-%s.tgz", strings.ReplaceAll(strings.TrimPrefix(m.Package, "@"), "/", "-"), version))
	if _, err := os.Stat(file); err != nil {
		out, err := exec.CommandContext(t.Context(), "npm", "pack", "--silent", "--ignore-scripts", "--pack-destination", dir, m.Package+"@"+m.Version).CombinedOutput()
		if err != nil {
			t.Fatalf("npm pack: %v: %s", err, out)
		}
	}
	b, err := os.ReadFile(file)
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
			t.Fatalf("%s in %s: %v", m.Path, file, err)
		}
		if _, name, _ := strings.Cut(path.Clean(h.Name), "/"); name == m.Path {
			wasm, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			return wasm
		}
	}
}
