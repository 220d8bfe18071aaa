package gate

import (
	"context"
	"errors"
	"time"

	"github.com/wasmgate/wasmgate/gate/obligation"
	"github.com/wasmgate/wasmgate/gate/provenance"
)

// Parts are the collaborators of a gate, one immutable snapshot. Those whose comment does
// not say what nil means are required. All are called concurrently, none may keep or
// change its arguments, and a panic in any of them refuses the call.
type Parts struct {
	Upstream   Upstream
	Authorizer Authorizer
	Sessions   Sessions
	Sanitizer  Sanitizer
	Recorder   Recorder
	// Renew has what other gateways have granted count, and returns the state of a session then. It is
	// false if they have changed nothing since s, or that is not known. Nil says that there are no others.
	Renew func(ctx context.Context, s Session) (now Session, changed bool)
	// Limiter is asked before the upstream is; nil sets no limits.
	Limiter Limiter
	// Pins knows which definitions are approved; nil approves of all.
	Pins Pins
	// ContentChecker judges images, sounds, files and links to resources; nil
	// passes them.
	ContentChecker ContentChecker
	// MaxResult bounds what a result may grow to by what is put into its texts, in bytes: a text
	// beyond that is replaced as a whole. Zero sets no bound.
	MaxResult int
	// Secrets finds secrets in arguments and results; nil looks for none.
	Secrets Secrets
	// Returned remembers the words of results, by session and server, so that what comes back in an
	// argument to the same server is not taken for a secret because it looks like one. Learn takes
	// a result as its client gets it. Knows says whether all words of a text, which has at least
	// one, were in results. Nil remembers nothing, and none does where Secrets only reports it.
	Returned interface {
		Learn(s SessionKey, server string, result Doc)
		Knows(s SessionKey, server, text string) bool
	}
	// Inputs says how arguments are held against the input schema of a tool; nil coerces
	// those of all.
	Inputs func(*Tool) InputMode
	// Labeler knows the operator's labels of tools, and whether a tool has any; nil knows none.
	Labeler interface {
		Labels(t *Tool) (said provenance.ToolLabels, any bool)
	}
	// Approver asks people; without one, what a policy would ask is refused.
	Approver Approver
	// TrackValues has sessions keep where values came from, for an authorizer that asks. Without it
	// [Session.Values] stays as it is, and unknown values are not trusted.
	TrackValues bool
	// TrackOrigins has sessions keep by which calls, and at which places, the newest values
	// came, for an authorizer that asks, and for people.
	TrackOrigins bool
	// Structure reads a text of a result that is no JSON as a document, if it is one, for
	// what labels say of places in results; nil reads none.
	Structure func(text string) (Doc, bool)
	// Echoes remembers what tools have said that repeat their arguments; nil remembers nothing, so
	// that they may say no more than that.
	Echoes *provenance.Echoes
	// TrustPrompt takes io.github.wasmgate/prompt, of a request's _meta, for the user's own words.
	// Everyone that can write into a call's _meta then decides what is trusted.
	TrustPrompt bool
	// Snapshot identifies the configuration that the parts were built from, in
	// the audit log: a hash of its content.
	Snapshot string
}

// ErrUnknown says that there is no such capability.
var ErrUnknown = errors.New("unknown")

// An Upstream is where calls go.
type Upstream interface {
	// Lookup finds what an action names. The error wraps [ErrUnknown] if there
	// is no such thing.
	Lookup(ctx context.Context, action Action, name string) (*Tool, error)
	// Invoke carries out a permitted call, once. Its error has a Code from the
	// set that [Code] documents. It refuses the zero Permit, and asks the Permit
	// before a sandboxed tool does anything outside of its sandbox.
	Invoke(ctx context.Context, p Permit) (Result, error)
	// Features returns all that is offered of a feature, such as all tools, in the order
	// in which clients see it.
	Features(ctx context.Context, f Feature) []*Tool
}

// ErrOverdue says that no decision was reached in time, through no fault of the call's:
// the same call may pass when there is less to do.
var ErrOverdue = errors.New("the gateway is too busy to decide")

// An Authorizer decides.
type Authorizer interface {
	// Authorize decides on one call. An error denies it; one that wraps [ErrOverdue]
	// refuses it as a gateway does that is busy.
	Authorize(ctx context.Context, q Query) (Decision, error)
	// Visible returns, for each tool, whether any call of it by the principal could pass. An error
	// hides them all.
	Visible(ctx context.Context, who *Principal, tools []*Tool) ([]bool, error)
	// Offer returns the definition of a visible tool as the principal should see it, or the tool's
	// own: it may leave out only what would be refused.
	Offer(ctx context.Context, who *Principal, t *Tool) Doc
}

// Sessions keeps what sessions have read. Labels only rise.
type Sessions interface {
	// View returns a state of the session; it may be old, Admit finds out.
	View(ctx context.Context, k SessionKey) (Session, error)
	// Admit is the one point at which c enters the order of its session. If a
	// label has risen since s, or one of the call's arguments was met in untrusted
	// content since, it returns the state of now and [ErrStale]: decide again.
	// Otherwise labels are part of the session when it returns. Admitting the same
	// Call.ID twice is one admission.
	Admit(ctx context.Context, s Session, c *Call, labels Labels) (Session, error)
	// Learn adds what a session has read, before it can act on it.
	Learn(ctx context.Context, k SessionKey, l Lesson) error
}

// A Lesson is what a session has read: a result, a listing, or the user's own words; or
// what a call of its own has used.
type Lesson struct {
	Call string // its ID, or that of the record of a listing
	// Program is that of the call that reads, and Connection says that the session is the
	// program's own connection: see [Call.Program].
	Program    string
	Connection bool

	Labels Labels
	// Top says that nothing can be said of what was read: the session counts as having read
	// everything.
	Top    bool
	From   Doc               // whose values the session has met now
	Source provenance.Source // what they count as
	Used   bool              // From are arguments of a call: what the session was shown in a listing stays as it is
	Shown  *provenance.Shown // what it was shown in a listing; nil if nothing
	// Tool is the tool whose result From is, and Said the operator's labels of it; nil and zero if
	// it is not a result.
	Tool *Tool
	Said provenance.ToolLabels
	// Made says that the call made what its result has ids of: they are the session's own.
	Made bool
	// Own says that the call was not chosen by an outsider, so that its result can be the account
	// holder's own record.
	Own bool
	// Structure is that of the parts. Origins has the session keep where values were met.
	Structure func(text string) (Doc, bool)
	Origins   bool

	ids []string // that the call has made
}

// ErrStale says that a session has changed since it was viewed.
var ErrStale = errors.New("the session has changed")

// A Session is one version of a session's state, immutable.
type Session struct {
	Key     SessionKey
	Version uint64
	Labels  Labels
	// Top says that not all of the session's state could be kept: policies see
	// the session as having read everything.
	Top bool
	// Values is what the session knows of where values came from.
	Values provenance.Provenance
	// Generation counts the revocations, pauses and resets of all gateways that share sessions, as far as they
	// held here when the state was viewed. One gateway alone has 0.
	Generation uint64
	// Destinations are those that a person has approved for the session.
	Destinations []Destination
}

// Tainted reports whether the session may have read what an outsider wrote.
func (s Session) Tainted() bool { return s.Top || s.Labels.Cover(Labels{provenance.Untrusted}) }

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

// A Sanitizer makes text safe to show to a model.
type Sanitizer interface {
	// Sanitize returns the text without what could hurt, and what it found. It
	// must be idempotent, and must return text itself if it changed nothing.
	Sanitize(t Text) (clean string, found []Finding)
}

// Text is one decoded string that a server wrote.
type Text struct {
	Server  string
	Tool    string // qualified; "" for texts that are no tool's
	Profile string // asked for by a decision; "" leaves the choice to the sanitizer
	Kind    provenance.TextKind
	MIME    string // "" if unknown
	Text    string
}

// A Finding is something that was found in a result.
type Finding struct {
	Rule    string `json:"rule"`
	At      string `json:"at,omitempty"` // JSON Pointer into the result, or "arguments:" and one into the arguments, or "answer:" and one into a client's answer
	Count   int    `json:"count"`
	Removed bool   `json:"removed"` // false: reported, and left in place
	// Fingerprint distinguishes secrets without revealing them; "" for what is no secret.
	Fingerprint string `json:"fingerprint,omitempty"`
}

// A Destination is one that a person has approved for a session: a value that says to whom or
// where, which tools of a server may get until the session ends. It covers arguments of
// [provenance.ToolLabels.To] alone.
type Destination struct {
	ID      string    `json:"id"` // of the approval by which it came
	Server  string    `json:"server"`
	Value   string    `json:"value"`
	By      string    `json:"by"` // the channel and who
	Since   time.Time `json:"since"`
	Session SessionKey
}
