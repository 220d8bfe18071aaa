package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Random tests take their seeds from internal/testing/seed, so that they say the same of the same code.
func TestSeedsFollowFromNames(t *testing.T) {
	drawn := regexp.MustCompile(`\brand\.Uint64\(\)|\bseed\w* :?= (uint64|int64)\(time\.|NewPCG\((uint64|int64)\(time\.`)
	for _, line := range []string{"\tseed := rand.Uint64()\n", "\tseed := uint64(time.Now().UnixNano())\n", "r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))"} {
		if !drawn.MatchString(line) {
			t.Errorf("%q is not found", line)
		}
	}
	tests := 0
	err := filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "seeds_test.go") {
			return err
		}
		tests++
		b, err := os.ReadFile(path)
		if found := drawn.Find(b); found != nil {
			t.Errorf("%s draws a seed (%s): take it from internal/testing/seed", path, found)
		}
		return err
	})
	if err != nil || tests < 300 {
		t.Errorf("%d tests were looked at: %v", tests, err)
	}
}
