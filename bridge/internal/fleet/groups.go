package fleet

import (
	"github.com/wasmgate/wasmgate/bridge/options"
)

// Regroup says anew what is in the groups of [Config.Groups]. Servers stay
// connected, and who watches is told.
func (f *Fleet) Regroup(groups options.Groups) {
	f.mu.Lock()
	f.cfg.Groups = groups
	f.mu.Unlock()
	f.rebuild()
}
