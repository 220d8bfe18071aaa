package gateway

import (
	"fmt"
	"os"

	"github.com/wasmgate/wasmgate/bridge/fault"
	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/product"
)

// openAudit opens the audit log, if one is configured. The log has no text that hide removes.
func (g *Gateway) openAudit(hide func(name, text string) string) (err error) {
	if g.cfg.Audit == "" {
		return nil
	}
	o := g.cfg.AuditOptions
	o.Hide = hide
	if o.Node == "" {
		if o.Node, _ = os.Hostname(); o.Node == "" {
			o.Node = "local"
		}
	}
	if o.Version == "" {
		o.Version = product.Version()
	}
	if o.Snapshot == "" {
		o.Snapshot = g.cfg.Snapshot
	}
	if o.Log == nil {
		o.Log = g.cfg.Log
	}
	g.audit, err = audit.Open(g.cfg.Audit, o)
	return err
}

// Healthy returns why no call would pass now, or nil.
func (g operator) Healthy() error {
	if g.draining.Load() {
		return ErrDraining
	}
	if g.audit == nil {
		return nil
	}
	return g.audit.Healthy()
}

// AuditWarning reports how full the audit log is, from 80 % of its limit on, while it holds records
// that are too young to be deleted: see [audit.Warning]. "" means that there is nothing to report.
func (g operator) AuditWarning() string {
	if g.audit == nil {
		return ""
	}
	return audit.Warning(g.audit)
}

// SetAudit puts in place how the audit log writes and keeps records: see [audit.Change].
func (g operator) SetAudit(o audit.Options) error {
	if g.audit == nil {
		return nil
	}
	return audit.Change(g.audit, o)
}

// Snapshot identifies the configuration in use.
func (g operator) Snapshot() string { return g.gate.Parts().Snapshot }

// RecordHeads records heads of the logs of other gateways, each as NODE SEQ:HASH: what is cut off or forged
// there shows here.
func (g operator) RecordHeads(heads []string) error {
	if g.audit == nil {
		return nil
	}
	return g.audit.Append(audit.Entry{Event: audit.Heads, Code: "ok", Heads: heads})
}

// AuditHead is the last record of the audit log; zero if there is none.
func (g operator) AuditHead() audit.Head {
	if g.audit == nil {
		return audit.Head{}
	}
	return g.audit.Head()
}

// noteServers records which servers have become ready or faulted.
func (g *Gateway) noteServers() {
	for _, s := range g.phases.changed(g.fleet.Status()) {
		entry := audit.Entry{Event: audit.Server, Server: s.Server, Code: "ok"}
		if s.Phase == status.Faulted {
			entry.Code, entry.Error = string(s.Fault), s.Error
		}
		if s.Circuit != "" {
			entry.Code, entry.Error = string(fault.NotConnected), "the circuit is open"
			if s.Error != "" {
				entry.Error += ": " + s.Error
			}
		}
		if err := g.note(entry); err != nil {
			g.cfg.Log.Error("audit log not written", "server", s.Server, "error", err)
		}
	}
}

// Note puts into the audit log what is no call: of [audit.Key], [audit.Revoke]
// and [audit.Denied], and of credentials for servers login, logout, refresh and connect.
func (g operator) Note(e audit.Entry) error {
	switch e.Event {
	case audit.Key, audit.Revoke, audit.Denied, "login", "logout", "refresh", "connect":
		return g.note(e)
	}
	return fmt.Errorf("only the gateway itself records %s", e.Event)
}
