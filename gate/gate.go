package gate

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/wasmgate/wasmgate/gate/provenance"
)

// A Gate passes calls on to an upstream, or refuses them. Use it from several
// goroutines.
type Gate struct {
	parts atomic.Pointer[Parts]
	known knownListings
}

// New returns a gate made of the given parts. It is an error if a required one
// is missing.
func New(p Parts) (*Gate, error) {
	g := new(Gate)
	if err := g.Swap(p); err != nil {
		return nil, err
	}
	return g, nil
}

// Swap replaces all parts at once. Calls under way end with the parts they
// began with.
func (g *Gate) Swap(p Parts) error {
	for _, part := range []struct {
		name    string
		missing bool
	}{
		{"Upstream", p.Upstream == nil}, {"Authorizer", p.Authorizer == nil}, {"Sessions", p.Sessions == nil},
		{"Sanitizer", p.Sanitizer == nil}, {"Recorder", p.Recorder == nil},
	} {
		if part.missing {
			return fmt.Errorf("gate: parts have no %s", part.name)
		}
	}
	g.parts.Store(&p)
	return nil
}

// Parts returns the parts in use.
func (g *Gate) Parts() Parts { return *g.parts.Load() }

// knownListings are the listings that were shown last, by what is in them.
type knownListings struct {
	mu sync.Mutex
	by map[uint64]*provenance.Shown
}
