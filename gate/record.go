package gate

import (
	"context"
	"time"

	"github.com/wasmgate/wasmgate/gate/step"
)

// An Event is what a [Record] tells of.
type Event string

// The events of a call. Granted is recorded before the upstream sees the call,
// Done before the client sees the answer; a call that is refused before it
// reaches the upstream has only Done. HostCall stands between them for each host
// call, refused or not, and is recorded before anything is done about it; what
// came of it is not. Of equal ones in a row the first is recorded so, and the
// others by their number.
const (
	Granted  Event = "granted"
	Done     Event = "done"
	HostCall Event = "host_call"
)

// EventApproval is not of a call but of an approval: see [ApprovalRecord].
const EventApproval Event = "approval"

// An ApprovalRecord is what a record tells of an approval: in EventApproval, what
// has become of it; in Granted and Done, by which approval the call passed, or for
// which it waits.
type ApprovalRecord struct {
	Approval
	State   string    // of EventApproval
	Binding string    // as of [Question.Binding]
	Note    string    // what the person said of a denial
	Expires time.Time // of EventApproval
}

// A Record is the evidence of a call.
type Record struct {
	Event    Event
	Time     time.Time
	Call     *Call
	Tool     *Tool // nil if there is no such tool
	Session  Session
	After    Labels // of the session, once the call was admitted
	Decision Decision
	// Met says in words where the session has met the values of a call that was not simply
	// allowed, as far as that is kept: see [Parts.TrackOrigins].
	Met      []string
	Approval ApprovalRecord
	Code     string // outcome; "" in Granted, and "ok" in HostCall says that it may be done
	Reason   string // what the client was told of a refusal
	Err      error  // cause, for the operator
	Result   Doc    // as the client got it
	Findings []Finding
	// OwnRecord says that the result was the account holder's own record, from which the session
	// took what is his: see [provenance.ToolLabels]. In Done.
	OwnRecord bool
	Usage     Usage
	// Upstream is by which credential the server was called; nil if it has none of its own. In
	// Done.
	Upstream *Credential
	// Full says that the policy has the arguments and the result recorded
	// themselves.
	Full bool
	// HostCalls is how many host calls the upstream asked for, refused ones
	// included; in Done.
	HostCalls uint64
	// Relayed are the IDs of the calls that a tool with Relay has made for this one; in
	// Done. Their Parent is this one.
	Relayed []string
	// Count is of how many equal host calls in a row the record tells; zero means
	// one. In HostCall.
	Count uint64
	Took  time.Duration
	// Steps is the time that each step took, in the order in which they ran.
	Steps    []step.Time
	Snapshot string
}

// A Credential is by which one a server was called. It names it, and is not it.
type Credential struct {
	Mode    string    `json:"mode"` // how the server's credentials are had, as the configuration says
	Issuer  string    `json:"issuer,omitempty"`
	Name    string    `json:"credential,omitempty"`
	Scopes  []string  `json:"scopes,omitempty"`   // none are not known
	Expires time.Time `json:"expires,omitzero"`   // zero: not known
	Narrow  bool      `json:"narrowed,omitempty"` // by the decision, for such calls alone
}

// A Recorder keeps records.
type Recorder interface {
	// Record returns once the record survives the death of this process. If it
	// returns an error the call is refused. ctx is never cancelled.
	Record(ctx context.Context, r *Record) error
}
