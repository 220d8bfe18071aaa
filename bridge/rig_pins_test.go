package bridge_test

import (
	"errors"
	"slices"
	"sync"

	"github.com/wasmgate/wasmgate/bridge"
	"github.com/wasmgate/wasmgate/gate"
)

// pins approve of the tools whose names they have, and keep what they observe.
type pins struct {
	approved, pinned []string

	mu       sync.Mutex
	observed []bridge.Declaration
}

func (p *pins) Observe(d bridge.Declaration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.observed = append(p.observed, d)
}

func (p *pins) last() bridge.Declaration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.observed) == 0 {
		return bridge.Declaration{}
	}
	return p.observed[len(p.observed)-1]
}

func (p *pins) Check(t *gate.Tool) error {
	if !slices.Contains(p.approved, t.Local) {
		return errors.New("not approved")
	}
	return nil
}

func (p *pins) CheckInstructions(server string, _ gate.Doc) error {
	if !slices.Contains(p.approved, server+" instructions") {
		return errors.New("not approved")
	}
	return nil
}

func (p *pins) Pinned(t *gate.Tool) bool { return slices.Contains(p.pinned, t.Local) }
