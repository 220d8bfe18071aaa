package bridge

import (
	"slices"

	"github.com/wasmgate/wasmgate/gate"
)

// Regroup says anew what is in the groups of [FleetConfig.Groups]. Servers stay
// connected, and who watches is told.
func (f *Fleet) Regroup(groups Groups) {
	f.mu.Lock()
	f.cfg.Groups = groups
	f.mu.Unlock()
	f.rebuild()
}

// put returns what a server offers, in these groups beside those of its own server. What
// is in none more is t itself.
func (g Groups) put(t *gate.Tool) *gate.Tool {
	more := g.of(t.Name)
	if len(more) == 0 {
		return t
	}
	grouped := *t
	grouped.Groups = slices.Compact(slices.Sorted(slices.Values(slices.Concat(t.Groups, more))))
	return &grouped
}
