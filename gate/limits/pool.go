package limits

import (
	"errors"
	"fmt"
	"math"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/fair"
)

// A pool has slots for one kind of calls, for each of their sessions, servers and tools.
type pool struct {
	*fair.Queue[gate.SessionKey, room]
	times int64  // how many times limits.concurrent
	what  string // which calls have these slots; "" for most
}

// A room is what a limit is of.
type room struct {
	of string
	gate.SessionKey
}

// The things that a limit on concurrent calls can be for.
const (
	ofAll     = "the gateway"
	ofSession = "this client"
	ofServer  = "the server"
	ofTool    = "the tool"
)

var all = room{of: ofAll}

type demand = fair.Demand[gate.SessionKey, room]

// timesMore is how many times more relays there are than other calls, and calls that
// wait for their clients: both take memory, and next to no work.
const timesMore = 4

func more(concurrent int64) int64 { return timesMore * min(concurrent, math.MaxInt64/timesMore) }

// busy returns the error of a queue as one that a client may read.
func (p *pool) busy(err error) error {
	if full, ok := errors.AsType[*fair.Full[room]](err); ok {
		return &gate.Busy{What: fmt.Sprintf("%s has as many calls under way%s as it may have at once, which is %d", full.Of.of, p.what, full.Most)}
	}
	return err
}
