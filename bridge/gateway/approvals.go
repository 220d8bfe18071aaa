package gateway

import (
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/approval"
)

// newQueue makes the queue that asks people. Without Config.Approvals only clients with
// [ClientConfig].Approve are asked.
func (g *Gateway) newQueue(r gate.Recorder) (err error) {
	o := approval.Options{Channels: []approval.Channel{approval.Client}}
	if g.cfg.Approvals != nil {
		o = *g.cfg.Approvals
	}
	o.Recorder = r
	if o.Log == nil {
		o.Log = g.cfg.Log
	}
	g.asking, err = approval.New(o)
	return err
}

// approver returns the queue that asks people by these options; nil if no one is asked.
func (g *Gateway) approver(o *approval.Options) gate.Approver {
	if o != nil && o.Channels != nil && len(o.Channels) == 0 {
		return nil
	}
	return g.asking
}

// Approvals returns the questions that wait for people, to be shown and answered; nil if no one is
// asked. Anyone who has the queue can approve.
func (g *Gateway) Approvals() *approval.Queue {
	if g.cfg.Approvals == nil || g.gate.Parts().Approver == nil {
		return nil
	}
	return g.asking
}
