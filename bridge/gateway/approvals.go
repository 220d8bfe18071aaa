package gateway

import (
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/approval"
)

// newApprover returns what asks people; nil if nobody is to be asked.
func (g *Gateway) newApprover(r gate.Recorder) (gate.Approver, error) {
	if g.cfg.Approvals == nil {
		return nil, nil
	}
	o := *g.cfg.Approvals
	o.Recorder = r
	if o.Log == nil {
		o.Log = g.cfg.Log
	}
	var err error
	if g.asking, err = approval.New(o); err != nil {
		return nil, err
	}
	return g.asking, nil
}

// Approvals returns the questions that wait for people, to be shown and answered;
// nil without Config.Approvals. Whoever has it can approve.
func (g *Gateway) Approvals() *approval.Queue { return g.asking }
