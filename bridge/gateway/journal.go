package gateway

import "github.com/wasmgate/wasmgate/gate/audit"

// journal is the audit log, and the phases of servers as the log has them.
type journal struct {
	audit  *audit.Log // nil without Config.Audit
	phases phases     // of servers, as the log has them
}

// note records what is no call.
func (j *journal) note(e audit.Entry) error {
	if j.audit == nil {
		return nil
	}
	return j.audit.Append(e)
}
