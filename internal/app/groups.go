package app

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/config"
)

var catalogModes = map[string]gateway.CatalogMode{
	"off": gateway.CatalogOff, "beside": gateway.CatalogBeside, "only": gateway.CatalogOnly,
}

// groupsOf returns the groups that all of a server is in.
func groupsOf(s config.Server) gateway.Groups {
	if len(s.Groups) == 0 {
		return nil
	}
	its := make(gateway.Groups)
	for _, name := range s.Groups {
		its[name] = []string{s.ID + "__*"}
	}
	return its
}

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

// offered is [principal], which is offered what is in one of the groups, too, unless
// there are none.
func offered(c *config.Config, id string, groups []string) (*gate.Principal, error) {
	p, err := principal(c, id)
	if err != nil {
		return nil, err
	}
	p.Groups = p.Groups.Within(groups)
	return p, nil
}
