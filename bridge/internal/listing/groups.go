package listing

import (
	"slices"

	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/match"
)

// groupsOf returns the groups that a name is in, sorted.
func groupsOf(g options.Groups, name gate.ToolName) []string {
	qualified := name.String()
	var in []string
	for group, patterns := range g {
		if match.Any(patterns, qualified) {
			in = append(in, group)
		}
	}
	slices.Sort(in)
	return in
}

// Grouped returns what a server offers, in these groups in addition to those of its own server. If
// it is in no further group, Grouped returns t itself.
func Grouped(t *gate.Tool, g options.Groups) *gate.Tool {
	more := groupsOf(g, t.Name)
	if len(more) == 0 {
		return t
	}
	grouped := *t
	grouped.Groups = slices.Compact(slices.Sorted(slices.Values(slices.Concat(t.Groups, more))))
	return &grouped
}
