//go:build unix

package modules

import (
	"os"
	"testing"

	"github.com/wasmgate/wasmgate/internal/testing/e2e"
	"github.com/wasmgate/wasmgate/internal/testing/program"
)

func TestMain(m *testing.M) {
	os.Exit(program.Main(m))
}

// TestE2E shows tools that run in the sandbox.
func TestE2E(t *testing.T) {
	e2e.Run(t, []e2e.Part{
		{Name: "languages", Run: testLanguages, Short: e2e.Never},
		{Name: "plugins", Run: testPlugins, Short: e2e.Never},
		{Name: "guest", Run: testGuestServer, Short: e2e.Never},
		{Name: "hostcalls", Run: testHostCalls},
		{Name: "traps", Run: testTraps, Short: e2e.Never},
		{Name: "repos", Run: testRepoScan, Short: e2e.Never},
		{Name: "modules", Run: testWrongModules, Short: e2e.Never},
		{Name: "bundles", Run: testBundles, Short: e2e.Never},
		{Name: "bombs", Run: testBombs},
		{Name: "marks", Run: testMarks},
	})
}
