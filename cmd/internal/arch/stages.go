package arch

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// A Stage is a function on the way of a tools/call, as docs/internals/development.md lists it.
type Stage struct{ File, Function string }

var stageRow = regexp.MustCompile("(?m)^\\| \\d+ \\| [^|]+ \\| `([a-z/_]+\\.go)` `(\\w+)` \\|")

// Stages reads the list of a checkout, in the order of a call.
func Stages(root string) ([]Stage, error) {
	path := filepath.Join(root, "docs", "internals", "development.md")
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all []Stage
	for _, row := range stageRow.FindAllSubmatch(b, -1) {
		all = append(all, Stage{string(row[1]), string(row[2])})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s lists no stage of a tools/call", path)
	}
	return all, nil
}
