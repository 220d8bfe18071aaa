package app

import (
	"path/filepath"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/app/naming"
	"github.com/wasmgate/wasmgate/internal/background"
)

// AuditPath is where the audit log is.
func (a *App) AuditPath() string { return a.cfg.Audit.Path }

// IndexPath is the folder of the index over it.
func (a *App) IndexPath() string { return filepath.Join(a.cfg.State, "index") }

// Principal returns who has a name in it; "" is the local one.
func (a *App) Principal(id string) (*gate.Principal, error) {
	return naming.Principal(a.Settings.Config(), id)
}

// Documents is [background.Documents] of the log of this gateway.
func (a *App) Documents(wanted map[string]bool, most int64) (map[string][]byte, error) {
	return background.Documents(a.cfg, wanted, most)
}
