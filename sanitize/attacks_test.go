package sanitize_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/sanitize"
)

// Each file says what it would have done, by what it is found, and holds the
// text in Go's notation for strings.
func TestAttacksAreNeutralised(t *testing.T) {
	files, err := filepath.Glob("../testdata/attacks/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSpace(string(b)), "\n")
			rule := strings.TrimPrefix(lines[1], "# found as: ")
			attack, err := strconv.Unquote(lines[2])
			if err != nil {
				t.Fatal(err)
			}
			clean, found := new(t, sanitize.Text).Sanitize(attack)
			if left := activeContent(t, clean); left != "" {
				t.Errorf("%s is left in %+q", left, clean)
			}
			for _, f := range found {
				if f.Rule == rule && f.Removed {
					return
				}
			}
			t.Errorf("found %v, not %s", found, rule)
		})
	}
}
