package gate

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/wasmgate/wasmgate/gate/inquiry"
	"github.com/wasmgate/wasmgate/gate/obligation"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/gate/step"
)

// An Approver asks people about calls whose policy answers ask. It is called
// concurrently. The gate gives it time: while it waits, the call holds nothing that
// others wait for.
type Approver interface {
	// Approve waits for a person's answer to q, within ctx. It returns an approval that is redeemed
	// for this call: the same Call.ID may redeem it again, another may not. The error is a
	// [*Pending] if there is no answer yet, a [*NotApproved] if there will be no approval, and
	// anything else if no one could be asked; ctx.Err() if ctx ended first.
	Approve(ctx context.Context, q Question) (Approval, error)
}

// A Question is what a person is asked.
type Question struct {
	// Query is the call, the tool and the session as the policy saw them. The
	// call's arguments are those that will be sent.
	Query
	Reasons  []string // why the policy asks
	Revision string   // of the policy
	Snapshot string   // of the configuration
	// Destinations are the values that say to whom or where, and that no trusted source has named:
	// an answer can be for all of them. Origins is where the session has met values of the
	// arguments, by their JSON Pointers, as far as it is kept.
	Destinations []string
	Origins      map[string][]provenance.Origin
	// Beside are the other values at the place of one result that has all destinations. No trusted
	// source has named them either: an answer can be for them, too. There are none if a question
	// could not show all values of that place.
	Beside   []string
	BesideOf provenance.List
	// Approvers say who may answer: each of them has to accept the person that answers.
	Approvers []obligation.Approve
	// Set are calls that the client has announced by [Permit.Propose], each with its own question:
	// the answer is about all of them, and an approval lets each pass once, in the session of Call.
	Set []Question
}

// Binding returns what an approval is bound to, as a digest: the tenant, the
// principal, the server as it is configured, the tool with its definition, the arguments,
// the policy with its labels and grants, and whom it lets answer; of a set also the session, and
// each of its calls. An approval of one binding approves no other.
func (q Question) Binding() string {
	h := sha256.New()
	for _, part := range []string{
		"approval 2", string(q.Call.Action), q.Call.Who.Tenant, q.Call.Who.ID, q.Tool.Name.Server, q.Tool.Name.Tool,
		q.Tool.Local, q.Tool.Digest, q.Tool.Config, q.Call.Args.Digest(), q.Revision,
	} {
		fmt.Fprintf(h, "%d:%s", len(part), part) // so that no part can run into the next
	}
	for _, a := range q.Approvers {
		fmt.Fprintf(h, "%q %t", a.By, a.NotSelf)
	}
	if len(q.Set) > 0 {
		fmt.Fprintf(h, "set %q %q", q.Call.Session.Owner, q.Call.Session.ID)
	}
	for _, one := range q.Set {
		fmt.Fprint(h, one.Binding())
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Inquiry returns what a person is asked.
func (q Question) Inquiry() inquiry.Inquiry {
	who := q.Call.Who.ID
	if q.Call.Who.Tenant != "" {
		who = q.Call.Who.Tenant + "/" + who
	}
	i := inquiry.Inquiry{
		Caller:  who,
		Set:     len(q.Set) > 0,
		Reasons: q.Reasons,
		Near:    q.Beside, NearAt: fmt.Sprintf("%s of %s (call %s)", cmp.Or(q.BesideOf.Place, "/"), q.BesideOf.Tool, q.BesideOf.Call),
		Read: q.Session.Labels, ReadAll: q.Session.Top,
		Digest: q.Binding(),
	}
	all := q.Set
	if !i.Set {
		all = []Question{q}
	}
	for _, one := range all {
		i.Calls = append(i.Calls, inquiry.Call{Server: one.Tool.Name.Server, Tool: one.Tool.Local, Arguments: inquiry.Lines(one.Call.Args)})
		for _, to := range one.Destinations {
			i.Unnamed = append(i.Unnamed, inquiry.Unnamed{Value: to, Met: one.metAt(to)})
		}
	}
	return i
}

// metAt says where a value of the arguments was met.
func (q Question) metAt(to string) (met []string) {
	for at, origins := range q.Origins {
		if provenance.TextOf(q.Call.Args.At(at)) != to {
			continue
		}
		for _, o := range origins {
			if o.Tool != "" {
				met = append(met, fmt.Sprintf("%s of %s (call %s)", cmp.Or(o.Pointer, "/"), o.Tool, o.Call))
			}
		}
	}
	slices.Sort(met)
	return slices.Compact(met)
}

// An Approval is a person's consent to one call. The zero Approval is none.
type Approval struct {
	ID string
	By string // the channel and who, such as "cli:local" or "client"
	// Auth is how the person that answered was verified, as of [Principal.Auth]; "" is not at all.
	Auth string
	// Destinations are those that the consent includes, for as long as the session of the call
	// lasts. They are from [Question.Destinations] and [Question.Beside], as the person who consents
	// was shown them.
	Destinations []string
}

// Pending says that a call waits for a person. It is an error.
type Pending struct {
	ID      string
	Expires time.Time       // after it no answer counts
	Inquiry inquiry.Inquiry // what the person is asked
	// Destinations are those that an answer can be for, in the session of the call. Beside are
	// the values next to them, which it can be for as well.
	Destinations, Beside []string
	// CanAnswer says that the client may be asked by the answer to its call (MCP
	// 2026-07-28, input_required).
	CanAnswer bool
	// Remedy is the command by which the operator approves the call; "" if none
	// does. It is never shown to a client.
	Remedy string
	// Closed says how the client closed the question by itself, such as "declined"; "" if it did not.
	Closed string
	// Asked is the question in its parts, where a [Client] is asked: the tool, the arguments as
	// they would be sent, who calls. It is not to be changed, and nil elsewhere.
	Asked *Question
}

// Error returns the text for the client.
func (p *Pending) Error() string {
	closed := ""
	if p.Closed != "" {
		closed = "the client " + p.Closed + " the question without asking a person; the call "
	}
	return fmt.Sprintf("%swaits for approval %s until %s; once a person has approved it, call again with the same arguments",
		closed, p.ID, p.Expires.UTC().Format(time.RFC3339))
}

// Code returns "refused_approve".
func (p *Pending) Code() string { return "refused_" + string(step.Approve) }

// NotApproved says that a call was not approved, and will not be: a person denied
// it, or what was approved has expired, was for something else or somebody else,
// or was used by another call.
type NotApproved struct {
	Reason string // safe to show to the client
	Err    error  // cause, for the operator; may be nil
}

// Error returns the reason, for the client.
func (e *NotApproved) Error() string { return e.Reason }

// Unwrap returns the cause, or nil.
func (e *NotApproved) Unwrap() error { return e.Err }

// Code returns "refused_approve".
func (e *NotApproved) Code() string { return "refused_" + string(step.Approve) }

// An Answer is what a person said through some channel. The zero Answer is none.
type Answer struct {
	Verdict Verdict
	// Always, with Approved: do not ask about this tool again. It takes somebody who writes the
	// grant, and is otherwise without effect.
	Always bool
	// Destinations, with Approved: do not ask about the call's destinations again in this session.
	// Beside, with it: nor about the values that were shown next to them.
	Destinations, Beside bool
	// Unfilled says that the client closed the question without a decision filled in, as programs
	// do that answer without asking a person.
	Unfilled bool
}

// A Verdict is what a person says to a question.
type Verdict string

// The verdicts. Dismissed is no answer: the question stays open.
const (
	Approved  Verdict = "approved"
	Denied    Verdict = "denied"
	Dismissed Verdict = "dismissed"
)

// Answered is an answer that a client brings with a call (the retry that follows
// input_required, MCP 2026-07-28). Err says why it is not acceptable, because it
// was altered, has expired or is somebody else's: the call is then refused and
// recorded.
type Answered struct {
	ID     string // of the approval
	Answer Answer
	Err    error
}
