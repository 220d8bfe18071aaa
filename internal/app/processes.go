package app

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/wasmgate/wasmgate/internal/config"
)

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

// sayOwn names those servers in the log, once for a state folder: earlier versions gave
// clients that could be asked nothing one process together.
func (a *App) sayOwn() {
	names, said := ownByDefault(a.cfg), filepath.Join(a.cfg.State, "said-own-processes")
	if len(names) == 0 {
		return
	}
	f, err := os.OpenFile(said, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) {
		return
	}
	a.log.Info("each client has a process of its own of these servers; `sessions: shared` of a server gives all clients one", "servers", names)
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		a.log.Warn("this will be said again at the next start", "error", err)
	}
}
