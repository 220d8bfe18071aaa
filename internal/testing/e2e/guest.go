//go:build unix

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/wasmgate/wasmgate/internal/testing/toolchain"
)

// A Guest is a WASM module that the Go toolchain builds.
type Guest struct {
	Name     string // of its file
	Dir      string // of its source, below the root of the repository
	Mode     string // as of go build -buildmode
	Manifest string // "" for none
}

// Asker asks its host for whatever its caller wants.
var Asker = Guest{"asker.wasm", "sandbox/testdata/asker", "c-shared", `{"tools": [{"name": "ask", "inputSchema": {"type": "object"}}]}`}

var built sync.Map // by the source

// Build builds the module into a place, once for all places of a package.
func (g Guest) Build(pl *Place) {
	pl.T.Helper()
	once, _ := built.LoadOrStore(g.Dir, sync.OnceValues(g.compile))
	wasm, err := once.(func() ([]byte, error))()
	if err != nil {
		pl.T.Fatal(err)
	}
	pl.Write(g.Name, string(wasm))
	if g.Manifest != "" {
		pl.Write(strings.TrimSuffix(g.Name, ".wasm")+".yaml", g.Manifest)
	}
}

func (g Guest) compile() ([]byte, error) {
	dir, err := os.MkdirTemp("", "guest")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	to := filepath.Join(dir, g.Name)
	c := exec.Command("go", "build", "-buildmode="+g.Mode, "-ldflags=-s -w", "-o", to, ".")
	c.Dir = filepath.Join(toolchain.Root(), filepath.FromSlash(g.Dir))
	c.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=", "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build %s: %w: %s", g.Dir, err, out)
	}
	return os.ReadFile(to)
}
