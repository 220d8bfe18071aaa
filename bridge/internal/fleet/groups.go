package fleet

import (
	"github.com/wasmgate/wasmgate/bridge/options"
)

// Regroup replaces [Config.Groups]. Servers stay connected, and watchers are notified.
func (f *Fleet) Regroup(groups options.Groups) {
	f.mu.Lock()
	f.cfg.Groups = groups
	f.mu.Unlock()
	f.rebuild()
}
