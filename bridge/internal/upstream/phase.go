package upstream

import (
	"fmt"
	"slices"
)

// A Phase is where an endpoint is in its life.
type Phase string

// The phases. Only a Ready endpoint takes calls; Closed is the end.
const (
	Idle       Phase = "idle"
	Connecting Phase = "connecting"
	Starting   Phase = "starting" // Connecting, of a child, in a [Status]
	Ready      Phase = "ready"
	Closing    Phase = "closing"
	Closed     Phase = "closed"
	Faulted    Phase = "faulted"
)

// next is the whole machine: what may follow what.
var next = map[Phase][]Phase{
	Idle:       {Connecting, Closed},
	Connecting: {Ready, Faulted, Closing},
	Ready:      {Faulted, Closing},
	Faulted:    {Connecting, Closing},
	Closing:    {Closed},
}

// to returns the phase q if the machine allows it after p. A step that it does
// not allow is a mistake of this package, and panics.
func (p Phase) to(q Phase) Phase {
	if !slices.Contains(next[p], q) {
		panic(fmt.Sprintf("bridge: endpoint phase %s cannot become %s", p, q))
	}
	return q
}
