package gate

import "github.com/wasmgate/wasmgate/gate/provenance"

// Labels say what a session has read: a sorted set of at most 64 names. Labels only
// rise. The zero value is the empty set.
type Labels = provenance.Labels

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
