package obligation

import "time"

// An Obligation is a condition under which a call is allowed.
type Obligation interface{ obligation() }

type (
	// Timeout bounds the time the upstream may take.
	Timeout struct{ After time.Duration }
	// MaxResult bounds the size of the result, in bytes.
	MaxResult struct{ Bytes int64 }
	// Profile is the sanitizer's profile for the result.
	Profile struct{ Name string }
	// Redact has values replaced by "[redacted]": those of the arguments before the upstream sees
	// them, those of the result before anybody does. Both are lists of JSON Pointers (RFC 6901)
	// that are not empty; one that names nothing is met. Result begins with /structuredContent/ or
	// /content/. If the arguments break the tool's input schema after that, the call is refused.
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

// Approve has a person approve what is allowed. By, if it is not empty, names who may, in the words
// of grants: an id, role:NAME or *, with TENANT/ before the name of one of a tenant. With NotSelf
// no one can approve their own call.
type Approve struct {
	By      []string
	NotSelf bool
}
