//go:build unix

package real

import (
	"os"
	"testing"

	"github.com/wasmgate/wasmgate/internal/testing/e2e"
	"github.com/wasmgate/wasmgate/internal/testing/program"
)

func TestMain(m *testing.M) {
	serveTailor()
	os.Exit(program.Main(m))
}

// TestE2E shows servers and clients that others have made.
func TestE2E(t *testing.T) {
	e2e.Run(t, []e2e.Part{
		{Name: "real", Run: testRealServers},
		{Name: "features", Run: testFeatures},
		{Name: "twins", Run: testTwins},
		{Name: "stdio", Run: testOneFleet},
		{Name: "denied", Run: testDenied, Short: e2e.Always},
		{Name: "confined", Run: testConfinedServers, Short: e2e.Never},
		{Name: "versions", Run: testPinnedVersions, Short: e2e.Never},
		{Name: "secrets", Run: testSecrets, Short: e2e.Never},
		{Name: "jobs", Run: testJobs},
		{Name: "tasks", Run: testTasks},
		{Name: "task asks", Run: testTaskAsks},
		{Name: "revisions", Run: testEras},
		{Name: "memory", Run: testMemory},
		{Name: "peers", Run: testPeers},
		{Name: "methods", Run: testMethods},
		{Name: "groups", Run: testGroups},
		{Name: "slow banner", Run: testSlowBanner},
	})
}
