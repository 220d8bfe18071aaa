package gateway

import (
	"fmt"

	"github.com/wasmgate/wasmgate/gate/audit"
)

// Healthy returns why no call would pass now, or nil.
func (g Operator) Healthy() error {
	if g.draining.Load() {
		return ErrDraining
	}
	if g.journal.audit == nil {
		return nil
	}
	return g.journal.audit.Healthy()
}

// AuditWarning reports how full the audit log is, from 80 % of its limit on, while it holds records
// that are too young to be deleted: see [audit.Warning]. "" means that there is nothing to report.
func (g Operator) AuditWarning() string {
	if g.journal.audit == nil {
		return ""
	}
	return audit.Warning(g.journal.audit)
}

// SetAudit puts in place how the audit log writes and keeps records: see [audit.Change].
func (g Operator) SetAudit(o audit.Options) error {
	if g.journal.audit == nil {
		return nil
	}
	return audit.Change(g.journal.audit, o)
}

// Snapshot identifies the configuration in use.
func (g Operator) Snapshot() string { return g.gate.Parts().Snapshot }

// AuditHead is the last record of the audit log; zero if there is none.
func (g Operator) AuditHead() audit.Head {
	if g.journal.audit == nil {
		return audit.Head{}
	}
	return g.journal.audit.Head()
}

// Note puts into the audit log what is no call: of [audit.Key], [audit.Revoke]
// and [audit.Denied], and of credentials for servers login, logout, refresh and connect.
func (g Operator) Note(e audit.Entry) error {
	switch e.Event {
	case audit.Key, audit.Revoke, audit.Denied, "login", "logout", "refresh", "connect":
		return g.journal.note(e)
	}
	return fmt.Errorf("only the gateway itself records %s", e.Event)
}
