package gateway

import (
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/approval"
)

// newQueue makes what asks people; nil if nobody is ever asked.
func (g *Gateway) newQueue(r gate.Recorder) (err error) {
	if g.cfg.Approvals == nil {
		return nil
	}
	o := *g.cfg.Approvals
	o.Recorder = r
	if o.Log == nil {
		o.Log = g.cfg.Log
	}
	g.asking, err = approval.New(o)
	return err
}

// approver returns what asks people by these options; nil if nobody is asked.
func (g *Gateway) approver(o *approval.Options) gate.Approver {
	if g.asking == nil || o.Channels != nil && len(o.Channels) == 0 {
		return nil
	}
	return g.asking
}

// Approvals returns the questions that wait for people, to be shown and answered;
// nil if nobody is asked. Whoever has it can approve.
func (g *Gateway) Approvals() *approval.Queue {
	if g.gate.Parts().Approver == nil {
		return nil
	}
	return g.asking
}
