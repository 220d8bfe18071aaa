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
	Pages        []gate.Doc // of apps, as they are pinned
	Skills       []gate.Doc // as they are pinned
	// Own says, for each of Tools, whether it is part of the program, and Modules what it
	// runs in; Modules is nil for servers that are not local.
	Own     []bool
	Modules []listing.Module
	// Announced is when the server said that its tools have changed; zero if it has
	// just been connected.
	Announced time.Time
}

// adds adds what is declared besides tools; more is nil if that is nothing.
func (d *Declaration) adds(more *listing.Features) {
	if more != nil {
		d.Prompts, d.Templates = more.Declared[gate.FeaturePrompt], more.Declared[gate.FeatureTemplate]
		d.Pages, d.Skills = more.Declared[gate.FeaturePage], more.Declared[gate.FeatureSkill]
	}
}
