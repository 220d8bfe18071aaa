package bridge

import (
	"maps"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
)

// Groups say what is in the groups of an operator: for each, patterns of qualified
// names of tools and prompts, literals, or literals with * at their end. Resources have
// no name there but their server's, so that SERVER__* means them too.
type Groups map[string][]string

// of returns the groups that a name is in, sorted.
func (g Groups) of(name gate.ToolName) []string {
	qualified := name.String()
	var in []string
	for group, patterns := range g {
		if slices.ContainsFunc(patterns, func(p string) bool { return fits(p, qualified) }) {
			in = append(in, group)
		}
	}
	slices.Sort(in)
	return in
}

// fits reports whether a name is a pattern's.
func fits(pattern, name string) bool {
	prefix, open := strings.CutSuffix(pattern, "*")
	return name == pattern || open && strings.HasPrefix(name, prefix)
}

// For returns what of the groups can concern a server, so that what is said of another
// does not change its configuration. Nil is nothing.
func (g Groups) For(server string) Groups {
	var its Groups
	for _, group := range slices.Sorted(maps.Keys(g)) {
		for _, p := range g[group] {
			prefix, open := strings.CutSuffix(p, "*")
			if !strings.HasPrefix(p, server+"__") && !(open && strings.HasPrefix(server+"__", prefix)) {
				continue
			}
			if its == nil {
				its = make(Groups)
			}
			its[group] = append(its[group], p)
		}
	}
	return its
}
