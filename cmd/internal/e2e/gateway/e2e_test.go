//go:build unix

package gateway

import (
	"os"
	"testing"

	"github.com/wasmgate/wasmgate/internal/testing/database"
	"github.com/wasmgate/wasmgate/internal/testing/e2e"
	"github.com/wasmgate/wasmgate/internal/testing/program"
)

func TestMain(m *testing.M) {
	os.Exit(database.Main(m, program.Main))
}

// TestE2E shows what a gateway does when its policy, its servers or its clients change, fail or attack.
func TestE2E(t *testing.T) {
	e2e.Run(t, []e2e.Part{
		{Name: "lying", Run: testLyingResults},
		{Name: "arguments", Run: testBadArguments},
		{Name: "sick", Run: testSickServers},
		{Name: "growing", Run: testGrowingResults},
		{Name: "gone", Run: testClientGone, Short: e2e.Always},
		{Name: "kill", Run: testKill, Short: e2e.Always},
		{Name: "drain", Run: testDrain},
		{Name: "twice", Run: testSecondSignal},
		{Name: "reload", Run: testReload},
		{Name: "mounted", Run: testMounted},
		{Name: "refused", Run: testRefusedStarts},
		{Name: "audit", Run: testAuditFull},
		{Name: "hold", Run: testAuditHold},
		{Name: "readme", Run: testReadme, Short: e2e.Never},
		{Name: "pins", Run: testPins},
		{Name: "shadow", Run: testShadow},
		{Name: "asked", Run: testAsked, Short: e2e.Always},
		{Name: "probe", Run: testProbe},
		{Name: "servers", Run: testServers},
		{Name: "replay", Run: testRecordReplay},
		{Name: "status", Run: testStatusCheck},
		{Name: "fair", Run: testFair},
		{Name: "cluster", Run: testCluster},
		{Name: "rows", Run: testRows},
		{Name: "primary", Run: testPrimary},
		{Name: "versions", Run: testVersions, Short: e2e.Never},
	})
}
