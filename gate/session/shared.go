package session

import (
	"context"
	"slices"
	"time"

	"github.com/wasmgate/wasmgate/gate"
)

// Shared keeps the labels of sessions where several gateways see them. Values stay in the gateway
// that has met them: one that learns from Shared that another has read something in a session
// counts all values of that session as met in untrusted content.
//
// Each method is one step, and what it has changed outlives the process when it returns. A
// session that was not used for ttl is one that has read nothing.
type Shared interface {
	// Read returns what all gateways know of a session. It counts as use.
	Read(ctx context.Context, k gate.SessionKey, ttl time.Duration) (Known, error)
	// Raise adds to a session, and returns what is known of it then.
	Raise(ctx context.Context, k gate.SessionKey, ttl time.Duration, r Rise) (Known, error)
	// Reset takes from a session all that it has read, and raises the generation.
	Reset(ctx context.Context, k gate.SessionKey) error
	// Take returns once what the home before this one has handed over of a session; nil if that is nothing.
	Take(ctx context.Context, n Known) ([]byte, error)
	// Restore has write write again what this gateway knows, once after the last changes may be lost: see Known.Behind. Write reports whether that
	// was the whole of it.
	Restore(ctx context.Context, write func(ctx context.Context) (whole bool, err error)) error
	// All returns the sessions that have read something, or only those that were reset.
	All(ctx context.Context, ttl time.Duration, reset bool) ([]Known, error)
}

// Known is what several gateways know of a session.
type Known struct {
	Key    gate.SessionKey
	Labels gate.Labels
	Top    bool
	Raised map[string]string // as in State
	// Readers are the gateways in which the session may have read what its labels are for.
	Readers []string
	// Resets is how often the session was reset.
	Resets uint64
	// Generation rises with each change that gateways have to follow, of whatever session: a
	// revocation, a pause, a reset.
	Generation uint64
	// Home rises each time that another gateway, or another run of one, becomes the one that answers
	// the owner's requests, and Elsewhere says that it is not this one. Zero and false without homes.
	Home      uint64
	Elsewhere bool
	// Handed says that the home before this one has handed over what it knew: see [Shared.Take].
	Handed bool
	// Behind says that Shared may lack what was written last, as after a standby was promoted, and that this gateway has not written it again: see
	// [Shared.Restore]. Nothing else is known then. Lost says that another gateway has not, and cannot any more.
	Behind, Lost bool
}

// A Rise is what a session is to have at least.
type Rise struct {
	Labels gate.Labels
	Top    bool
	Call   string // with which that comes
	Reader string
}

// covers reports whether there is nothing in r that is not known.
func (n Known) covers(r Rise) bool {
	clean := len(r.Labels) == 0 && !r.Top && len(n.Labels) == 0 && !n.Top
	return n.Labels.Cover(r.Labels) && (n.Top || !r.Top) && (clean || slices.Contains(n.Readers, r.Reader))
}
