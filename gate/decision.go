package gate

import (
	"slices"
	"time"
)

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
	// Redact has values replaced by [Redacted]: those of the arguments before the
	// upstream sees them, those of the result before anybody does. Both are lists of
	// JSON Pointers (RFC 6901) that are not empty; one that names nothing is met.
	// Result begins with /structuredContent/ or /content/. What the arguments are
	// after that still keeps to the tool's input schema, or the call is refused.
	Redact struct{ Arguments, Result []string }
	// RecordFull has the arguments and the result of the call recorded themselves,
	// and not only their digests.
	RecordFull struct{}
	// Approve has a person approve what is allowed: see [Decision.Asked].
	Approve struct{}
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

// Labels say what a session has read: a sorted set of at most 64 names.
// Labels only rise. The zero value is the empty set.
type Labels []string

// maxLabels is how many labels a set holds; policies give names to a handful of
// kinds of content.
const maxLabels = 64

// NewLabels returns the set of the given names.
func NewLabels(names ...string) Labels {
	l := slices.Clone(names)
	slices.Sort(l)
	return slices.Compact(l)
}

// Cover reports whether l has every label of m.
func (l Labels) Cover(m Labels) bool {
	for _, name := range m {
		if _, ok := slices.BinarySearch(l, name); !ok {
			return false
		}
	}
	return true
}

// Join returns the union of both sets, and l itself if m adds nothing.
func (l Labels) Join(m Labels) Labels {
	if l.Cover(m) {
		return l
	}
	return NewLabels(append(slices.Clone(l), m...)...)
}

// TooMany reports whether the set is beyond what a session may hold.
func (l Labels) TooMany() bool { return len(l) > maxLabels }

// Untrusted is the label of a session that has read what somebody outside may
// have written.
const Untrusted = "untrusted"

// Private is the label of a session that has read what is not for everybody.
const Private = "private"
