package app

import "github.com/wasmgate/wasmgate/internal/config"

// ownByDefault names the servers of which each client has a process of its own, since the
// configuration says nothing else.
func ownByDefault(cfg *config.Config) (names []string) {
	for _, s := range cfg.Servers {
		if s.OwnByDefault() {
			names = append(names, s.ID)
		}
	}
	return names
}
