package listing

import (
	"slices"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/match"
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
		if match.Any(patterns, qualified) {
			in = append(in, group)
		}
	}
	slices.Sort(in)
	return in
}

// Grouped returns what a server offers, in these groups beside those of its own server. What
// is in none more is t itself.
func Grouped(t *gate.Tool, g Groups) *gate.Tool {
	more := g.of(t.Name)
	if len(more) == 0 {
		return t
	}
	grouped := *t
	grouped.Groups = slices.Compact(slices.Sorted(slices.Values(slices.Concat(t.Groups, more))))
	return &grouped
}
