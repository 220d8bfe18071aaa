package gate

import (
	"context"
	"errors"

	"github.com/wasmgate/wasmgate/gate/obligation"
)

// LimitConcurrent is the limit on calls at upstreams at one time, and LimitRelays that on calls of
// tools that carry out others: see [Tool]. A call takes a place of one of them.
// LimitAgents is the limit on calls of agents' own tools, which run elsewhere: see actions.AgentCall.
const (
	LimitConcurrent = "concurrent"
	LimitRelays     = "relays"
	LimitAgents     = "agents"
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

// A Limiter bounds what is used, at once and in a time.
type Limiter interface {
	// Enter takes a slot for a call, before its arguments are searched. If its error wraps
	// [ErrBusy], trying again later can help.
	Enter(ctx context.Context, e Entry) (Slot, error)
}

// An Entry is a call that takes a slot.
type Entry struct {
	Limit   string     // which slots: [LimitConcurrent], [LimitRelays] or [LimitAgents]
	Caller  SessionKey // with whom others share in equal parts
	Session SessionKey
}

// A Slot is what a call holds of limits. Its methods may be called after Release, and do nothing
// then.
type Slot interface {
	// Charge takes what the call needs of its server and its tool, and of rates: all or nothing.
	// The error says which limit was met; if it wraps [ErrBusy] or an
	// [*obligation.OverRate], trying again later can help.
	Charge(ctx context.Context, c Charges) error
	// Work takes a share in what is worked on at once, for arguments or a result of so many
	// bytes, until Rest or Release is called. Its error is that of ctx.
	Work(ctx context.Context, bytes int) error
	Rest(ctx context.Context) error
	// Pause gives the slot back while the call waits for something else, such as its client, where
	// a person may take minutes to answer a server. It returns what takes the slot again, nil if
	// the call keeps it. That is called once, waits until ctx ends, and its error is that of ctx.
	Pause() (resume func(ctx context.Context) error)
	// Release gives everything back, and takes from rates what is known only now: the bytes that
	// the call has used. It may be called again, and from anywhere.
	Release(bytes int64)
}

// Charges are what a call needs beyond its slot.
type Charges struct {
	Server, Tool string
	// Again says that it has those already, and is decided on again: the server may be paused
	// by now.
	Again bool
	Rates []Charge
}

// A Charge is what a call takes from a rate.
type Charge struct {
	Limit string // which of the rates
	Owner Owner
	Rate  *obligation.Rate // how it fills again
}
