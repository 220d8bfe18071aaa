package upstream

import (
	"fmt"
	"slices"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
)

// next is the whole machine: what may follow what.
var next = map[status.Phase][]status.Phase{
	status.Idle:       {status.Connecting, status.Closed},
	status.Connecting: {status.Ready, status.Faulted, status.Closing},
	status.Ready:      {status.Faulted, status.Closing},
	status.Faulted:    {status.Connecting, status.Closing},
	status.Closing:    {status.Closed},
}

// after returns the phase q if the machine allows it after p. A step that it does
// not allow is a mistake of this package, and panics.
func after(p, q status.Phase) status.Phase {
	if !slices.Contains(next[p], q) {
		panic(fmt.Sprintf("bridge: endpoint phase %s cannot become %s", p, q))
	}
	return q
}
