package gateway

import (
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/approval"
)

// newQueue makes the queue that asks people. Without Config.Approvals only clients with
// [ClientConfig].Approve are asked.
func newQueue(c *Config, r gate.Recorder) (*approval.Queue, error) {
	o := approval.Options{Channels: []approval.Channel{approval.Client}}
	if c.Approvals != nil {
		o = *c.Approvals
	}
	o.Recorder = r
	if o.Log == nil {
		o.Log = c.Log
	}
	return approval.New(o)
}

// approver returns the queue if people are asked by these options; nil if no one is.
func approver(q *approval.Queue, o *approval.Options) gate.Approver {
	if o != nil && o.Channels != nil && len(o.Channels) == 0 {
		return nil
	}
	return q
}

// Approvals returns the questions that wait for people, to be shown and answered; nil if no one is
// asked. Anyone who has the queue can approve.
func (g *Gateway) Approvals() *approval.Queue {
	if g.cfg.Approvals == nil || g.gate.Parts().Approver == nil {
		return nil
	}
	return g.asking
}
