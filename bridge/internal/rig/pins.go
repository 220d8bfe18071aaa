package rig

import (
	"errors"
	"slices"
	"sync"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/gate"
)

// Pins approve of the tools whose names they have, and keep what they observe.
type Pins struct {
	Approved []string
	Persons  []string // of those, by a person

	Mu       sync.Mutex
	Observed []status.Declaration
}

func (p *Pins) Observe(d status.Declaration) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	p.Observed = append(p.Observed, d)
}

// Last returns what was observed last.
func (p *Pins) Last() status.Declaration {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	if len(p.Observed) == 0 {
		return status.Declaration{}
	}
	return p.Observed[len(p.Observed)-1]
}

func (p *Pins) Check(t *gate.Tool) error {
	if !slices.Contains(p.Approved, t.Local) {
		return errors.New("not approved")
	}
	return nil
}

func (p *Pins) CheckInstructions(server string, _ gate.Doc) error {
	if !slices.Contains(p.Approved, server+" instructions") {
		return errors.New("not approved")
	}
	return nil
}

func (p *Pins) Pinned(t *gate.Tool) bool { return slices.Contains(p.Persons, t.Local) }
