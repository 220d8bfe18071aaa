package gate

import "github.com/wasmgate/wasmgate/gate/provenance"

// said returns the operator's labels of a tool. For an agent's own tool it returns only what its
// arguments are for, since ids are those of servers.
func (p *Parts) said(t *Tool) provenance.ToolLabels {
	if p.Labeler == nil || !t.Feature.called() {
		return provenance.ToolLabels{}
	}
	said, _ := p.Labeler.Labels(t)
	if t.Feature == FeatureAgent {
		return provenance.ToolLabels{Control: said.Control, Content: said.Content, To: said.To, Commits: said.Commits}
	}
	return said
}

// teaches returns the labels that a session gets from a result of the tool, and whether its values
// are trusted if its arguments are. A tool that carries out others teaches nothing: the others have
// done so.
func (p *Parts) teaches(t *Tool) (labels Labels, vouched bool) {
	if t.Relay {
		return nil, false
	}
	if p.Labeler != nil && t.Feature.called() { // the operator's labels of a tool do not apply to a prompt of that name
		if l, ok := p.Labeler.Labels(t); ok {
			return provenance.Teaches(l), l.Result == provenance.ResultTrusted || l.Result == provenance.ResultEcho
		}
	}
	return t.Teaches, !t.Teaches.Cover(Labels{provenance.Untrusted})
}
