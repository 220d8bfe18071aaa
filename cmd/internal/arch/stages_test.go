package arch

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"testing"
)

// The list of stages is short, enters no package more than twice, and names functions that exist. That a call
// passes them is checked by passed, which takes minutes to build.
func TestStages(t *testing.T) {
	const root = "../../.."
	stages, err := Stages(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(stages) > 20 {
		t.Errorf("a call has %d stages, of at most 20", len(stages))
	}
	entered, last := make(map[string]int), ""
	for _, s := range stages {
		if at := path.Dir(s.File); at != last {
			entered[at]++
			last = at
		}
		src, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(s.File)))
		if err != nil || !regexp.MustCompile(`(?m)^func (\([^)]*\) )?`+s.Function+`\(`).Match(src) {
			t.Errorf("%s has no function %s: %v", s.File, s.Function, err)
		}
	}
	for at, n := range entered {
		if n > 2 {
			t.Errorf("a call enters %s %d times, of at most 2", at, n)
		}
	}
}
