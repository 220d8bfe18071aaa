package gate

import "github.com/wasmgate/wasmgate/gate/internal/flow"

type (
	// Labels say what a session has read: a sorted set of at most 64 names. Labels only
	// rise. The zero value is the empty set.
	Labels = flow.Labels
	// ToolLabels are what the operator says of a tool: what its results are, what it does,
	// and by which arguments somebody could turn it against the user.
	ToolLabels = flow.ToolLabels
	// A TextKind says what the texts of a result are. It follows from where they come from,
	// never from how they look: an attacker can write a page as if it were source.
	TextKind = flow.TextKind
	// A ResultKind says who may have written a tool's results. The zero ResultKind is
	// ResultUntrusted.
	ResultKind = flow.ResultKind
	// A ToolEffect is something that a tool does.
	ToolEffect = flow.ToolEffect
	// A Place is a JSON Pointer into what a result says, in which * stands for every element
	// of an array and every member of an object: /channels/*, /items/*/sender. It is into the
	// structured content, or into the JSON or YAML that a text is, and stands for all below it.
	Place = flow.Place
	// An Origin is one place in which a session has met a value.
	Origin = flow.Origin
	// A Source says where a session has met a value. It is a set, since a value can be met in
	// several places; the empty set is that of a value never met.
	Source = flow.Source
	// Provenance is what a session knows of where values came from. It is immutable:
	// [Provenance.Join] returns another one, which shares what has not changed. The zero
	// Provenance knows nothing.
	//
	// Values are compared whole, and in a form in which spellings of one thing are equal:
	// numbers, dates and times of day, e-mail addresses, account numbers, URLs. They are kept
	// as keyed hashes of 64 bits, of which nobody outside knows the key, so that a value takes
	// some 20 bytes however long it is.
	Provenance = flow.Provenance
	// Shown are the values in the texts of a listing. Sessions that were shown the same share
	// them; they are immutable.
	Shown = flow.Shown
	// Met are the values in one document. The zero Met are none.
	Met = flow.Met
	// An Argument is a value among the arguments of a call.
	Argument = flow.Argument
	// Identities are what a principal is called elsewhere: addresses, accounts, folders, and
	// domains as @example.com.
	Identities = flow.Identities
	// Echoes remembers what tools have said that are labelled echo, so that what they say
	// every time is told from what somebody has put there. The zero value remembers nothing
	// yet. Use it from several goroutines.
	Echoes = flow.Echoes
)

// NewLabels returns the set of the given names.
func NewLabels(names ...string) Labels { return flow.NewLabels(names...) }

// ToolEffects returns all effects of tools.
func ToolEffects() []ToolEffect { return flow.ToolEffects() }

const (
	// Untrusted is the label of a session that has read what somebody outside may have
	// written.
	Untrusted = flow.Untrusted
	// Private is the label of a session that has read what is not for everybody.
	Private = flow.Private
)

// The sources, in the order of their names.
const (
	FromApproved  = flow.FromApproved  // a person approved a call with it
	FromPrompt    = flow.FromPrompt    // the user wrote it, as the host application vouches, or names the record whose party it is
	FromTrusted   = flow.FromTrusted   // a trusted tool returned it, or a call used it before anything untrusted was read
	FromUntrusted = flow.FromUntrusted // it was in a result that somebody outside may have written
)

// The kinds of results.
const (
	ResultUntrusted = flow.ResultUntrusted // somebody outside may have
	ResultTrusted   = flow.ResultTrusted   // nobody outside could
	ResultEcho      = flow.ResultEcho      // it says what it was told
)

// The effects of tools.
const (
	EffectRead        = flow.EffectRead        // nothing changes
	EffectLocal       = flow.EffectLocal       // changes what the user has on the machine
	EffectInternal    = flow.EffectInternal    // changes what the user has elsewhere
	EffectExternal    = flow.EffectExternal    // reaches other people
	EffectDestructive = flow.EffectDestructive // what is lost is lost
	EffectEgress      = flow.EffectEgress      // sends data to an address
	EffectCredential  = flow.EffectCredential  // changes who has access
)

// Meet returns the values that a lesson brings and that are new to what is known, at most
// limit of them.
func (l Lesson) Meet(known Provenance, limit int) Met {
	r := flow.Reading{
		From: l.From, Source: l.Source, Private: l.Labels.Cover(Labels{Private}), Call: l.Call,
		Said: l.Said, Made: l.Made, Used: l.Used, IDs: l.ids, Structure: l.Structure, Origins: l.Origins,
	}
	if l.Tool != nil {
		r.Server, r.Tool = l.Tool.Name.Server, l.Tool.Name.String()
	}
	return flow.Read(known, r, limit)
}
