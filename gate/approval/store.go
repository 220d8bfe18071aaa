package approval

import (
	"context"
	"fmt"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/escaped"
)

// A Store keeps requests until they expire: in memory, or for several gateways in a database that they
// share. Each method is one step that no other comes into. An error that is no [*gate.NotApproved] is of
// the store itself.
type Store interface {
	// Ask returns the request of a question: one that is there and that its call may use, or a new one
	// with the given id, in which case the caller keeps its record and then calls Asked.
	Ask(ctx context.Context, q gate.Question, id string, expire time.Duration) (r Request, fresh bool, err error)
	// Asked ends what Ask began: the question stands, unless it could not be recorded.
	Asked(ctx context.Context, id string, recorded bool) error
	// Announce keeps the approvals of the calls of a set, as long as that of the set.
	Announce(ctx context.Context, set string, all []Request) error
	// Announced returns the approval that a call has in a set and may use.
	Announced(ctx context.Context, q gate.Question) (r Request, ok bool, err error)
	// Get returns the request with an id that has not expired.
	Get(ctx context.Context, id string) (r Request, ok bool, err error)
	// Show notes that the client is asked now, and Shown returns how long ago that was.
	Show(ctx context.Context, id string) error
	Shown(ctx context.Context, id string) (time.Duration, error)
	// Closed notes that the client has closed the question by itself.
	Closed(ctx context.Context, id, word string) error
	// Answer takes the right to answer a question. The caller keeps the record of its new state and
	// then calls Answered.
	Answer(ctx context.Context, id string) (Request, error)
	// Answered ends what Answer began: r holds the new state, unless it could not be recorded. It is
	// an error if the question has ended meanwhile.
	Answered(ctx context.Context, r Request, recorded bool) error
	// Wait returns once there is nothing to wait for, or ctx ends.
	Wait(ctx context.Context, id string)
	// Redeem uses up an approval for a call. Of several calls one gets it; that one gets it again.
	Redeem(ctx context.Context, id, call string) (r Request, again bool, err error)
	// Spoil makes a redeemed approval one that no call can redeem again.
	Spoil(ctx context.Context, id string) error
	// List returns the questions that no one has answered, the oldest first.
	List(ctx context.Context) ([]Request, error)
	// Expire removes what has expired, and returns what was open until now.
	Expire(ctx context.Context) ([]Request, error)
	// End lets go of calls that wait at this gateway. It removes what ends with the gateway, and
	// returns what was open until now.
	End(ctx context.Context) ([]Request, error)
}

// Kept is what a [Store] keeps of a request. Its methods are the transitions that all stores have in
// common.
type Kept struct {
	Request
	Known bool   // the question is recorded: people see it, and may answer
	User  string // ID of the call that has redeemed it
}

// NewKept returns the request of a question that nothing is recorded of yet.
func NewKept(id string, q gate.Question, asked time.Time, expire time.Duration) Kept {
	return Kept{Request: Request{ID: id, Question: q, State: StateRequested, Asked: asked, Expires: asked.Add(expire)}}
}

// Open reports whether it may still let a call pass.
func (k *Kept) Open() bool { return k.State == StateRequested || k.State == StateApproved }

// Serves reports whether a question of a call is this one, rather than a new one because another call
// has used it up.
func (k *Kept) Serves(call string) bool { return k.State != StateRedeemed || k.User == call }

// Usable reports whether a call may use the approval that it has in a set.
func (k *Kept) Usable(call string) bool {
	return k.State == StateApproved || k.State == StateRedeemed && k.User == call
}

// Waits reports whether the question is one that people see and have not answered.
func (k *Kept) Waits() bool { return k.Known && k.State == StateRequested }

// Unknown is the error of an id that has no request, or one that has expired.
func Unknown(id string) error {
	return refuse(fmt.Sprintf("there is no approval %s, or it has expired", escaped.Text(cut(id))))
}

// Answerable returns why the request cannot be answered. Busy says that an answer is being recorded.
func (k *Kept) Answerable(busy bool) error {
	switch {
	case !k.Known:
		return Unknown(k.ID)
	case k.State != StateRequested:
		return refuse(fmt.Sprintf("approval %s is %s already", k.ID, k.State))
	case busy:
		return refuse(fmt.Sprintf("approval %s is being answered at this moment", k.ID))
	}
	return nil
}

// Settle takes the answer of r.
func (k *Kept) Settle(r Request, expired bool) error {
	if k.State != StateRequested || expired {
		return refuse(fmt.Sprintf("approval %s has expired", k.ID))
	}
	k.By, k.Auth, k.Note, k.Request.Closed, k.Destinations = r.By, r.Auth, r.Note, r.Closed, r.Destinations
	k.State = StateApproved
	if r.State == StateDenied {
		k.State = StateDenied
	}
	return nil
}

// Redeem uses up the approval for a call, and reports whether the call has used it up before.
func (k *Kept) Redeem(call string, expired bool) (again bool, err error) {
	switch {
	case expired || k.State == StateExpired:
		return false, errExpired
	case k.State == StateRedeemed && k.User == call && call != "":
		return true, nil
	case k.State == StateRedeemed:
		return false, refuse("the approval was for one call, and another call has used it")
	case k.State == StateDenied && k.Request.Closed != "":
		return false, refuse("the client declined this call")
	case k.State == StateDenied:
		return false, refuse("a person has denied this call")
	case k.State != StateApproved:
		return false, refuse("no one has approved this call")
	}
	k.State, k.User = StateRedeemed, call
	return false, nil
}

var errExpired = refuse("the approval has expired")

// TooMany returns why a caller may not ask another question; nil if it may. So many wait already of the
// caller and of all, with so many bytes of arguments.
func TooMany(ofOne, ofAll, bytes int64) error {
	switch {
	case ofOne >= maxOpenOfOne:
		return refuse(fmt.Sprintf("%d calls of yours wait for approval already; call again once they are answered", maxOpenOfOne))
	case ofAll >= maxOpen || bytes > maxBytes:
		return refuse("too many calls wait for approval already; call again once they are answered")
	}
	return nil
}
