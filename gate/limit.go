package gate

import "errors"

// LimitConcurrent is the limit on calls at upstreams at one time, and LimitRelays that on calls of
// tools that carry out others: see [Tool]. A call takes a place of one of them.
// LimitAgents is the limit on calls of agents' own tools, which run elsewhere: see actions.AgentCall.
const (
	LimitConcurrent = "concurrent"
	LimitRelays     = "relays"
	LimitAgents     = "agents"
)

// Bounds of one round of a call, whether the client answers it by its next call, or the upstream
// asks the client meanwhile.
const (
	// RoundState bounds the state that a server has brought back to it, in bytes.
	RoundState = 64 << 10
	// RoundRequests bounds what a server asks in one round.
	RoundRequests = 16
)

// ErrBusy says that a limit is reached for the moment.
var ErrBusy = errors.New("too many calls are in progress")

// Busy says which limit on calls at once is reached for the moment. It is an error,
// and [ErrBusy].
type Busy struct {
	What string // safe to show to the client
}

// Error returns the text for the client.
func (b *Busy) Error() string { return b.What }

// Is implements what [errors.Is] asks for.
func (b *Busy) Is(target error) bool { return target == ErrBusy }
