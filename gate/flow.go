package gate

import "github.com/wasmgate/wasmgate/gate/provenance"

type (
	// Labels say what a session has read: a sorted set of at most 64 names. Labels only
	// rise. The zero value is the empty set.
	Labels = provenance.Labels
	// ToolLabels are what the operator says of a tool: what its results are, what it does,
	// and by which arguments somebody could turn it against the user.
	ToolLabels = provenance.ToolLabels
	// A ToolEffect is something that a tool does.
	ToolEffect = provenance.ToolEffect
	// A Place is a JSON Pointer into what a result says, in which * stands for every element
	// of an array and every member of an object: /channels/*, /items/*/sender. It is into the
	// structured content, or into the JSON or YAML that a text is, and stands for all below it.
	Place = provenance.Place
	// Identities are what a principal is called elsewhere: addresses, accounts, folders, and
	// domains as @example.com.
	Identities = provenance.Identities
	// Echoes remembers what tools have said that are labelled echo, so that what they say
	// every time is told from what somebody has put there. The zero value remembers nothing
	// yet. Use it from several goroutines.
	Echoes = provenance.Echoes
)

// NewLabels returns the set of the given names.
func NewLabels(names ...string) Labels { return provenance.NewLabels(names...) }

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
