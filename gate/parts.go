package gate

import (
	"context"
	"errors"

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

func (p *Parts) inputMode(t *Tool) InputMode {
	if p.Inputs == nil {
		return coerceInput
	}
	return p.Inputs(t)
}
