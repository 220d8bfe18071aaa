package gateway

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/wasmgate/wasmgate/bridge/fault"
	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/gate/codes"
	"github.com/wasmgate/wasmgate/internal/lock"
	"github.com/wasmgate/wasmgate/internal/product"
	"github.com/wasmgate/wasmgate/policy/study"
)

// journal is the audit log, and the phases of servers as the log has them.
type journal struct {
	audit  *audit.Log // nil without Config.Audit
	phases phases     // of servers, as the log has them
	log    *slog.Logger
}

// open opens the audit log, if one is configured. The log has no text that hide removes.
func (j *journal) open(c *Config, hide func(name, text string) string) (err error) {
	j.log = c.Log
	if c.Audit == "" {
		return nil
	}
	o := c.AuditOptions
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
		o.Snapshot = c.Snapshot
	}
	if o.Log == nil {
		o.Log = c.Log
	}
	j.audit, err = audit.Open(c.Audit, o)
	return err
}

// note records what is no call.
func (j *journal) note(e audit.Entry) error {
	if j.audit == nil {
		return nil
	}
	return j.audit.Append(e)
}

// noteSetting records that the operator has changed something, before it is done.
func (j *journal) noteSetting(what string) error {
	if err := j.note(audit.Entry{Event: audit.Server, Code: codes.OK, Reasons: []string{"configuration: " + what + " changed"}}); err != nil {
		return fmt.Errorf("%s: nothing was changed: %w", what, err)
	}
	return nil
}

// noteChange records what the operator has done to a server. Its phase is recorded
// anew after that.
func (j *journal) noteChange(id, what string) error {
	if err := j.note(audit.Entry{Event: audit.Server, Server: id, Code: codes.OK, Reasons: []string{what}}); err != nil {
		return fmt.Errorf("server %s was not changed: %w", id, err)
	}
	j.phases.forget(id)
	return nil
}

func (j *journal) notePause(server, what string) error {
	return j.note(audit.Entry{Event: audit.Server, Server: server, Code: codes.OK, Reasons: []string{what}})
}

// noteServers records which servers have become ready or faulted.
func (j *journal) noteServers(all []status.Server) {
	for _, s := range j.phases.changed(all) {
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
		if err := j.note(entry); err != nil {
			j.log.Error("audit log not written", "server", s.Server, "error", err)
		}
	}
}

// notePin keeps what became of a definition.
func (j *journal) notePin(e lock.Event) error {
	entry := audit.Entry{Event: audit.Pin, Code: e.Code, Server: e.Server, Tool: e.Key.String(), ToolDigest: e.Digest, Principal: e.By}
	if e.Why != "" {
		entry.Reasons = []string{e.Why}
	}
	return j.note(entry)
}

// noteDifference records a call on which the shadow policy would have decided
// otherwise. The arguments are in the records of the call.
func (j *journal) noteDifference(d study.Difference, snapshot string) {
	c := d.Query.Call
	e := audit.Entry{
		Event: audit.Shadow, ID: c.ID, Parent: c.Parent, Action: c.Action, Session: c.Session.ID,
		Tenant: c.Who.Tenant, Principal: c.Who.ID, Roles: c.Who.Roles,
		Server: d.Query.Tool.Name.Server, Tool: d.Query.Subject(), ToolDigest: d.Query.Tool.Digest,
		Effect: d.Decision.Effect, Reasons: d.Decision.Reasons, PolicyRevision: d.Decision.Revision,
		Snapshot: snapshot,
		Shadow: audit.ShadowDecision{
			Effect: d.Shadow.Effect, Reasons: d.Shadow.Reasons, Revision: d.Shadow.Revision, Differs: d.Differs,
		},
	}
	if d.Err != nil {
		e.Shadow.Error = d.Err.Error()
	}
	if err := j.note(e); err != nil {
		j.log.Error("shadow difference not recorded", "call", c.ID, "error", err)
	}
}
