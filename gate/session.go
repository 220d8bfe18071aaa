package gate

import (
	"context"
	"errors"
	"time"

	"github.com/wasmgate/wasmgate/gate/provenance"
)

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

// Meet returns the values that a lesson brings and that are new to what is known, at most
// limit of them.
func (l Lesson) Meet(known provenance.Provenance, limit int) provenance.Met {
	r := provenance.Reading{
		From: l.From, Source: l.Source, Private: l.Labels.Cover(Labels{provenance.Private}), Call: l.Call,
		Said: l.Said, Made: l.Made, Own: l.Own, Used: l.Used, IDs: l.ids, Structure: l.Structure, Origins: l.Origins,
	}
	if l.Tool != nil {
		r.Server, r.Tool = l.Tool.Name.Server, l.Tool.Name.String()
	}
	return provenance.Read(known, r, limit)
}
