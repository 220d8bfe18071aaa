package rewrite

import (
	"slices"
)

const (
	// RunFunction names what runs a command to its end: it calls what the module exports
	// as _start, and then what it imports to exit.
	RunFunction = "wasmgate:run"
	// Again is the result with which an imported function has its call made again. No errno
	// of WASI has this number.
	Again = 1<<32 - 1
)

// Rewind has Meter and Seal make of a command one that can go back to where it waits for its input:
// the imported functions for which reads is true are called again as long as they return [Again],
// and if one for which exits is true is imported, too, the module exports [RunFunction] in addition
// to _start. Only what a host does with these makes a difference.
func (m *Module) Rewind(reads, exits func(Import) bool) {
	m.reads, m.exit = nil, 0
	for _, in := range m.Imports {
		if !in.Function {
			continue
		}
		i := uint32(len(m.reads))
		m.reads = append(m.reads, reads(in) && m.form(i) == formRead && m.stub(i) == noStub)
		if exits(in) && m.form(i) == formExit && m.stub(i) == noStub {
			m.exit = i + 1
		}
	}
}

// form is that of the i-th function.
func (m *Module) form(i uint32) form {
	if i < uint32(len(m.functions)) && m.functions[i] < uint32(len(m.forms)) {
		return m.forms[m.functions[i]]
	}
	return otherForm
}

// again reports whether a call of the i-th imported function is made again.
func (m *Module) again(i uint32) bool { return m.reads != nil && m.reads[i] }

// command returns the function that RunFunction runs, if there is to be one.
func (m *Module) command() (start uint32, ok bool) {
	if m.exit == 0 || !slices.Contains(m.reads, true) {
		return 0, false
	}
	c := &cursor{b: m.body[sectionExport]}
	c.each(func() {
		name, kind, i := c.bytes(), c.byte(), c.uint()
		if string(name) == "_start" && kind == kindFunction && m.form(i) == formRun {
			start, ok = i, true
		}
	})
	return start, ok && c.err == nil
}
