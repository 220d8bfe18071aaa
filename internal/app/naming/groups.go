package naming

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/internal/config"
)

// A GroupError says that a command names a group that the configuration does not.
type GroupError struct {
	Name  string
	Known []string
}

func (e *GroupError) Error() string {
	there := "there is none"
	if len(e.Known) > 0 {
		there = "there: " + strings.Join(e.Known, ", ")
	}
	return fmt.Sprintf("no group %q; put tools into it under groups in the configuration (%s)", e.Name, there)
}

// CheckGroups returns a [*GroupError] for the first of the groups that a configuration
// does not have.
func CheckGroups(c *config.Config, names []string) error {
	all := c.AllGroups()
	for _, name := range names {
		if _, ok := all[name]; !ok {
			return &GroupError{name, slices.Sorted(maps.Keys(all))}
		}
	}
	return nil
}
