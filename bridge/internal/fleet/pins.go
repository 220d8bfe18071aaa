package fleet

import (
	"context"
	"slices"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/local"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream"
	"github.com/wasmgate/wasmgate/gate"
)

// Pins sees the declarations of servers, and reports which parts are approved.
type Pins interface {
	gate.Pins
	// Observe sees what a server declares, before any of it is offered. It may take
	// its time, and is called concurrently for different servers.
	Observe(d status.Declaration)
	// Pinned reports whether a person has approved the definition of a tool.
	Pinned(t *gate.Tool) bool
	// CheckInstructions returns nil if what a server says of how it is used is approved.
	CheckInstructions(server string, text gate.Doc) error
}

func (f *Fleet) observe(d status.Declaration) {
	if f.cfg.Pins != nil {
		f.cfg.Pins.Observe(d)
	}
}

// Refresh has the fleet and its watchers look again at what is approved.
func (f *Fleet) Refresh() { f.rebuild() }

// candidate is a tool that a catalog can have.
type candidate struct {
	member member
	tool   *gate.Tool
}

// pinned returns the tools of all servers in the order in which they get their
// names: those first that are approved, so that none that is not can take or change
// the name of one that is.
func pinned(members []member, pins Pins) []candidate {
	var approved, others []candidate
	for _, m := range members {
		for _, t := range m.upstream.Features(context.Background(), gate.FeatureTool) {
			switch {
			case pins == nil:
				approved = append(approved, candidate{m, t})
			case pins.Check(t) != nil:
				others = append(others, candidate{m, t})
			case pins.Pinned(t):
				known := *t
				known.Pinned = true
				approved = append(approved, candidate{m, &known})
			default:
				approved = append(approved, candidate{m, t})
			}
		}
	}
	return slices.Concat(approved, others)
}

// Declared returns what each server has declared last, in the order of
// configuration and as it was written: also definitions that are quarantined. A
// server that has not been connected has declared nothing.
func (f *Fleet) Declared() []status.Declaration {
	var all []status.Declaration
	for _, m := range f.snapshot() {
		switch up := m.upstream.(type) {
		case *local.Server:
			all = append(all, up.Declared())
		case *upstream.Endpoint:
			all = append(all, up.Declared())
		}
	}
	return all
}
