package gateway

import (
	"errors"
	"os"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
)

// journal is what the audit log has, and has been told.
type journal struct {
	audit  *audit.Log // nil without Config.Audit
	phases phases     // of servers, as the log has them
}

// openAudit opens the audit log, into which nothing comes that hide takes out.
func (g *Gateway) openAudit(hide func(name, text string) string) (gate.Recorder, error) {
	if g.cfg.Audit == "" {
		return g.cfg.Recorder, nil
	}
	o := g.cfg.AuditOptions
	o.Hide = hide
	if o.Node == "" {
		if o.Node, _ = os.Hostname(); o.Node == "" {
			o.Node = "local"
		}
	}
	if o.Version == "" {
		o.Version = Version()
	}
	if o.Snapshot == "" {
		o.Snapshot = g.cfg.Snapshot
	}
	if o.Log == nil {
		o.Log = g.cfg.Log
	}
	var err error
	if g.audit, err = audit.Open(g.cfg.Audit, o); err != nil {
		return nil, err
	}
	if g.cfg.Recorder == nil {
		return g.audit, nil
	}
	return gate.Recorders(g.audit, g.cfg.Recorder), nil
}

// note records what is no call.
func (j *journal) note(e audit.Entry) error {
	if j.audit == nil {
		return nil
	}
	return j.audit.Append(e)
}

// Healthy returns why no call would pass now, or nil.
func (g *Gateway) Healthy() error {
	if g.draining.Load() {
		return ErrDraining
	}
	if g.audit == nil {
		return nil
	}
	return g.audit.Healthy()
}

// AuditWarning says how full the audit log is, from 80 % on of what it may take while it
// holds records that are too young to go: see [audit.Log.Warning]. "" is nothing to say.
func (g operator) AuditWarning() string {
	if g.audit == nil {
		return ""
	}
	return g.audit.Warning()
}

// SetAudit puts in place how the audit log writes and keeps records: see [audit.Log.Change].
func (g *Gateway) SetAudit(o audit.Options) error {
	if g.audit == nil {
		return nil
	}
	return g.audit.Change(o)
}

// AuditHead is the last record of the audit log; zero if there is none.
func (g operator) AuditHead() audit.Head {
	if g.audit == nil {
		return audit.Head{}
	}
	return g.audit.Head()
}

// ErrDraining says that a gateway takes no more calls.
var ErrDraining = errors.New("the gateway is shutting down")
