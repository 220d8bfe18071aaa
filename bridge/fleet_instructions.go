package bridge

import (
	"strings"

	"github.com/wasmgate/wasmgate/gate"
)

// maxInstructions bounds what one server says of how it is used, in bytes: it goes into
// the context of a model, with each conversation.
const maxInstructions = 8 << 10

// Instructions returns what the servers say of how they are used, in the order of
// configuration. What is not approved says nothing.
func (f *Fleet) Instructions() []Instructions {
	var all []Instructions
	for _, m := range f.snapshot() {
		if m.endpoint == nil {
			continue
		}
		said := m.endpoint.Declared().Instructions
		if said.Kind() != gate.String || f.cfg.Pins != nil && f.cfg.Pins.CheckInstructions(m.id, said) != nil {
			continue
		}
		text, _ := m.given.Tools.Sanitizer.Sanitize(gate.Text{Server: m.id, Profile: "text", Text: clipped(said.Text(), maxInstructions)})
		if text = clipped(strings.TrimSpace(text), maxInstructions); text != "" {
			all = append(all, Instructions{m.id, text})
		}
	}
	return all
}
