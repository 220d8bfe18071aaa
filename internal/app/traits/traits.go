// Package traits carries what policies see of a tool to processes that do not have the tool.
package traits

import (
	"encoding/json"
	"fmt"

	"github.com/wasmgate/wasmgate/gate"
)

// Traits are what policies see of a tool, and what sessions learn from it. They
// let a recorded call be decided in a process that does not have the tool.
type Traits struct {
	Name         string          `json:"name"`  // server__tool
	Local        string          `json:"local"` // its name at the server
	Annotations  json.RawMessage `json:"annotations,omitempty"`
	Sandboxed    bool            `json:"sandboxed"`
	Relay        bool            `json:"relay"` // it carries out other calls
	Capabilities json.RawMessage `json:"capabilities,omitempty"`
	Origin       json.RawMessage `json:"origin,omitempty"`
	Pinned       bool            `json:"pinned"`
	Findings     []string        `json:"findings,omitempty"`
	Teaches      gate.Labels     `json:"teaches,omitempty"`
}

// Of returns the traits of a tool.
func Of(t *gate.Tool) *Traits {
	return &Traits{
		Name: t.Name.String(), Local: t.Local, Annotations: t.Annotations.Raw(),
		Sandboxed: t.Sandboxed, Relay: t.Relay, Capabilities: t.Capabilities.Raw(), Origin: t.Origin.Raw(),
		Pinned: t.Pinned, Findings: t.Findings, Teaches: t.Teaches,
	}
}

// Tool returns a tool with the traits, as policies see it. It has no schemas, so that no gate lets it be called.
func (t *Traits) Tool(offered, digest string, definition json.RawMessage) (*gate.Tool, error) {
	name, err := gate.ParseToolName(t.Name)
	if err != nil {
		return nil, fmt.Errorf("tool %s: %w", offered, err)
	}
	g := &gate.Tool{
		Name: name, Local: t.Local, Offered: offered, Digest: digest, Sandboxed: t.Sandboxed, Relay: t.Relay,
		Pinned: t.Pinned, Findings: t.Findings, Teaches: t.Teaches,
	}
	for doc, raw := range map[*gate.Doc]json.RawMessage{
		&g.Definition: definition, &g.Annotations: t.Annotations, &g.Capabilities: t.Capabilities, &g.Origin: t.Origin,
	} {
		if len(raw) == 0 {
			continue
		}
		if *doc, err = gate.ParseDoc(raw); err != nil {
			return nil, fmt.Errorf("tool %s: %w", offered, err)
		}
	}
	return g, nil
}
