package rewrite

import "slices"

// A stub is a replacement for an imported function.
type stub byte

const (
	noStub stub = iota
	failing
	trapping
)

// noFunction is WASI's errno of a function that is not supported.
const noFunction = 52

// Stub has Meter and Seal replace those imported functions for which absent is true by functions of
// the module's own. One that fails as those of WASI do returns that it is not supported; the others
// trap.
func (m *Module) Stub(absent func(Import) bool, fails func(Import) bool) {
	m.stubs = nil
	for _, in := range m.Imports {
		switch {
		case !in.Function:
		case !absent(in):
			m.stubs = append(m.stubs, noStub)
		case fails(in):
			m.stubs = append(m.stubs, failing)
		default:
			m.stubs = append(m.stubs, trapping)
		}
	}
	if !slices.ContainsFunc(m.stubs, func(s stub) bool { return s != noStub }) {
		m.stubs = nil
	}
}

// stub returns the replacement for the i-th imported function.
func (m *Module) stub(i uint32) stub {
	if m.stubs == nil {
		return noStub
	}
	return m.stubs[i]
}
