package gate

import (
	"github.com/wasmgate/wasmgate/gate/obligation"
)

// approvers are what a decision demands of who approves it.
func (d Decision) approvers() (all []obligation.Approve) {
	for _, o := range d.Obligations {
		if a, ok := o.(obligation.Approve); ok && (len(a.By) > 0 || a.NotSelf) {
			all = append(all, a)
		}
	}
	return all
}
