package gate

import (
	"slices"
	"strings"
)

// Groups narrow what a client is offered: to what is in at least one of the groups of each list.
// The zero Groups narrow nothing. For the client, everything else does not exist.
type Groups [][]string

// Within returns the groups narrowed further; an empty list narrows nothing. g itself
// stays as it is.
func (g Groups) Within(names []string) Groups {
	if len(names) == 0 {
		return g
	}
	return append(slices.Clip(g), names)
}

// Has reports whether a client that is offered the groups is offered the tool. Tools
// that carry out other calls are in every group: they reach what the client is offered,
// and no more.
func (g Groups) Has(t *Tool) bool {
	if t.Relay {
		return true
	}
	for _, names := range g {
		if !slices.ContainsFunc(names, func(name string) bool { return inGroup(t, name) }) {
			return false
		}
	}
	return true
}

func inGroup(t *Tool, group string) bool {
	if server, ok := strings.CutPrefix(group, ServerGroup); ok {
		return t.Name.Server == server
	}
	return slices.Contains(t.Groups, group)
}
