//go:build unix

package guide

import (
	"os"
	"testing"

	"github.com/wasmgate/wasmgate/internal/testing/e2e"
	"github.com/wasmgate/wasmgate/internal/testing/program"
)

func TestMain(m *testing.M) {
	os.Exit(program.Main(m))
}

// TestE2E shows what README and the pages tell a reader to do.
func TestE2E(t *testing.T) {
	e2e.Run(t, []e2e.Part{
		{Name: "teams", Run: testTwoTeams, Short: e2e.Never},
		{Name: "login", Run: testLoginServer, Short: e2e.Never},
		{Name: "connect", Run: testConnect},
		{Name: "sso", Run: testSingleSignOn, Short: e2e.Never},
		{Name: "tutorial", Run: testTutorial, Short: e2e.Never},
		{Name: "apps", Run: testAppsPage, Short: e2e.Never},
	})
}
