package fleet

import (
	"strings"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

// maxInstructions bounds what one server says of how it is used, in bytes: it goes into
// the context of a model, with each conversation.
const maxInstructions = 8 << 10

// Instructions returns what the servers say of how they are used, in the order of
// configuration. What is not approved says nothing.
func (f *Fleet) Instructions() []mcp.Instructions {
	var all []mcp.Instructions
	for _, m := range f.snapshot() {
		if m.endpoint == nil {
			continue
		}
		said := m.endpoint.Declared().Instructions
		if said.Kind() != doc.String || f.cfg.Pins != nil && f.cfg.Pins.CheckInstructions(m.id, said) != nil {
			continue
		}
		text, _ := m.given.Tools.Sanitizer.Sanitize(gate.Text{Server: m.id, Profile: "text", Text: mcp.Clip(said.Text(), maxInstructions)})
		if text = mcp.Clip(strings.TrimSpace(text), maxInstructions); text != "" {
			all = append(all, mcp.Instructions{Server: m.id, Text: text})
		}
	}
	return all
}
