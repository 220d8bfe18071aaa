package gate

import "github.com/wasmgate/wasmgate/gate/doc"

// Tell returns the parameters of a notification that a server sends outside of any call, an object,
// as a client may see them: every string goes the way of the strings of results. It is false for
// what cannot be sanitized.
func (g *Gate) Tell(server string, params Doc) (Doc, bool) {
	return g.parts.Load().notice(&Tool{Name: ToolName{Server: server}}, noDuty, params)
}

// notice makes the parameters of a server's notification safe.
func (p *Parts) notice(from *Tool, d duty, params Doc) (clean Doc, ok bool) {
	defer func() {
		if recover() != nil { // a part that panics has made nothing safe
			clean, ok = Doc{}, false
		}
	}()
	if params.Kind() != doc.Object {
		return Doc{}, false
	}
	s := p.scrub(from, d.profile)
	clean, err := s.doc(params)
	if err != nil || s.refused() {
		return Doc{}, false
	}
	return clean, true
}
