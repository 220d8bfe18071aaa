//go:build race

package unraced

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Run runs the tests of a package, for its TestMain, and returns the exit code. It builds
// the compiler with the Go toolchain; where there is none, modules are compiled with the
// detector.
func Run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "wasmgate-compiler-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "wasmgate-compiler.exe")
	if out, err := exec.Command("go", "build", "-o", file, "github.com/wasmgate/wasmgate/sandbox/internal/compiler/testdata/native").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "modules are compiled with the race detector: build a compiler without: %v\n%s", err, out)
	} else if err := os.Setenv("WASMGATE_NATIVE_COMPILER", file); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func short() bool { return os.Getenv("WASMGATE_RACE_ALL") == "" }
