package fleet

import (
	"context"
	"slices"

	"github.com/wasmgate/wasmgate/gate"
)

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
