package gateway

import (
	"encoding/json"
	"net/http"

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
	if g.audit == nil {
		return nil
	}
	return g.audit.Healthy()
}

func (g *Gateway) healthz(w http.ResponseWriter, _ *http.Request) {
	answer := map[string]string{"status": "ok", "version": Version()}
	w.Header().Set("Content-Type", "application/json")
	if err := g.Healthy(); err != nil {
		answer["status"], answer["error"] = "failing", err.Error()
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(answer)
}
