package upstream

import (
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/listing"
	"github.com/wasmgate/wasmgate/gate"
)

// A Declaration is what a server is and declares, at one time.
type Declaration struct {
	Server string
	// Config says how the server is reached; nil for a local one.
	Config *Config
	// TLSKey is the hex SHA-256 of the public key of its certificate, as the
	// certificate holds it (RFC 7469, section 2.4), if it is asked for.
	TLSKey       string
	Instructions gate.Doc // absent if there are none
	Tools        []gate.Doc
	Prompts      []gate.Doc
	Templates    []gate.Doc // of resources
	// Own says, for each of Tools, whether it is part of the program.
	Own []bool
	// Announced is when the server said that its tools have changed; zero if it has
	// just been connected.
	Announced time.Time
}

func (e *Endpoint) declaration(l *link, tools *listing.Tools, announced time.Time) Declaration {
	d := Declaration{
		Server: e.cfg.Server, Config: &e.cfg, TLSKey: l.tlsKey, Instructions: l.instructions,
		Tools: tools.Declared, Own: make([]bool, len(tools.Declared)), Announced: announced,
	}
	if more := tools.Features; more != nil {
		d.Prompts, d.Templates = more.Declared[gate.FeaturePrompt], more.Declared[gate.FeatureTemplate]
	}
	return d
}

// Declared returns what the server has declared last, also definitions of tools that are
// quarantined.
func (e *Endpoint) Declared() Declaration {
	e.mu.Lock()
	defer e.mu.Unlock()
	d := Declaration{Server: e.cfg.Server, Config: &e.cfg, Tools: e.tools.Listed}
	d.Own = make([]bool, len(d.Tools))
	if more := e.tools.Features; more != nil {
		d.Prompts, d.Templates = more.Declared[gate.FeaturePrompt], more.Declared[gate.FeatureTemplate]
	}
	if e.link != nil {
		d.Instructions, d.TLSKey = e.link.instructions, e.link.tlsKey
	}
	return d
}
