package upstream

import (
	"github.com/wasmgate/wasmgate/internal/drain"
)

// uses are the calls that a fleet makes of an endpoint.
type uses struct{ calls drain.Counter }

// Enter counts a call that a fleet makes of the endpoint, until Leave, or reports that it
// was retired.
func (u *uses) Enter() bool { return u.calls.Begin() }

// Leave ends a call that has entered.
func (u *uses) Leave() { u.calls.End() }

// Retire lets no more calls enter, and returns a channel that is closed when none is left.
func (u *uses) Retire() <-chan struct{} { return u.calls.Close() }
