package app

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

func traitsOf(t *gate.Tool) *Traits {
	return &Traits{
		Name: t.Name.String(), Local: t.Local, Annotations: t.Annotations.Raw(),
		Sandboxed: t.Sandboxed, Relay: t.Relay, Capabilities: t.Capabilities.Raw(), Origin: t.Origin.Raw(),
		Pinned: t.Pinned, Findings: t.Findings, Teaches: t.Teaches,
	}
}

// Described returns the tool as policies see it. It has no schemas, so that no gate
// lets it be called. It is nil without Traits.
func (t Tool) Described() (*gate.Tool, error) {
	if t.Traits == nil {
		return nil, nil
	}
	name, err := gate.ParseToolName(t.Traits.Name)
	if err != nil {
		return nil, fmt.Errorf("tool %s: %w", t.Name, err)
	}
	g := &gate.Tool{
		Name: name, Local: t.Traits.Local, Offered: t.Name, Digest: t.Digest, Sandboxed: t.Traits.Sandboxed, Relay: t.Traits.Relay,
		Pinned: t.Traits.Pinned, Findings: t.Traits.Findings, Teaches: t.Traits.Teaches,
	}
	for doc, raw := range map[*gate.Doc]json.RawMessage{
		&g.Definition: t.Definition, &g.Annotations: t.Traits.Annotations, &g.Capabilities: t.Traits.Capabilities, &g.Origin: t.Traits.Origin,
	} {
		if len(raw) == 0 {
			continue
		}
		if *doc, err = gate.ParseDoc(raw); err != nil {
			return nil, fmt.Errorf("tool %s: %w", t.Name, err)
		}
	}
	return g, nil
}
