package gate

import (
	"time"
)

// A Query is what an [Authorizer] decides on.
type Query struct {
	Call    *Call
	Tool    *Tool
	Session Session
}

// An Effect is the outcome of a decision. The zero Effect denies.
type Effect string

// The effects, from the strongest to the weakest.
const (
	Deny  Effect = "deny"
	Ask   Effect = "ask" // a person has to approve the call
	Allow Effect = "allow"
)

// A Decision is what an [Authorizer] answers. The zero Decision denies.
type Decision struct {
	Effect  Effect
	Reasons []string // shown to the caller
	// Scopes, of a denial, are those that a caller's access token lacks, and with which nothing
	// would deny the call; none if that is not known, or would not do.
	Scopes []string
	// Obligations must all be met for the call to pass.
	Obligations []Obligation
	// Labels are added to the session when the call is admitted.
	Labels Labels
	// Hidden says that no call of this tool could pass for this principal: to
	// the client the tool does not exist.
	Hidden bool
	// Remedy is the command by which the operator would allow the call, or what to
	// write where, if there is such. It is never shown to a client.
	Remedy string
	// Revision is a hash of the policy that decided.
	Revision string
}

// An Obligation is a condition under which a call is allowed. The set is
// closed, [Timeout], [MaxResult], [Profile], [Narrowing], [Redact], [Rate],
// [RecordFull] and [Approve]: the gate refuses a call whose obligations it does
// not know.
type Obligation interface{ obligation() }

type (
	// Timeout bounds the time the upstream may take.
	Timeout struct{ After time.Duration }
	// MaxResult bounds the size of the result, in bytes.
	MaxResult struct{ Bytes int64 }
	// Profile is the sanitizer's profile for the result.
	Profile struct{ Name string }
	// Redact has values replaced by "[redacted]": those of the arguments before the
	// upstream sees them, those of the result before anybody does. Both are lists of
	// JSON Pointers (RFC 6901) that are not empty; one that names nothing is met.
	// Result begins with /structuredContent/ or /content/. What the arguments are
	// after that still keeps to the tool's input schema, or the call is refused.
	Redact struct{ Arguments, Result []string }
	// RecordFull has the arguments and the result of the call recorded themselves,
	// and not only their digests.
	RecordFull struct{}
)

func (Timeout) obligation()    {}
func (MaxResult) obligation()  {}
func (Profile) obligation()    {}
func (Redact) obligation()     {}
func (RecordFull) obligation() {}
func (Approve) obligation()    {}

// Asked returns the decision as it holds for a call: under the obligation
// [Approve] what is allowed is asked.
func (d Decision) Asked() Decision {
	if d.Effect != Allow {
		return d
	}
	for _, o := range d.Obligations {
		if _, ok := o.(Approve); ok {
			d.Effect = Ask
			d.Reasons = append([]string{"the policy obliges to ask"}, d.Reasons...)
			return d
		}
	}
	return d
}
