package rewrite

import (
	"bytes"
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

// A form is what matters of the type of a function.
type form byte

const (
	otherForm form = iota
	formRun        // takes and returns nothing
	formExit       // takes an i32
	formRead       // takes four i32 and returns one
)

// formOf is the form of the type at the beginning of b. A type that is not written in the shortest
// way has no known form.
func formOf(b []byte) form {
	begins := func(written ...byte) bool { return bytes.HasPrefix(b, written) }
	switch {
	case begins(typeOf, 0, 0):
		return formRun
	case begins(typeOf, 1, typeI32, 0):
		return formExit
	case begins(typeOf, 4, typeI32, typeI32, typeI32, typeI32, 1, typeI32):
		return formRead
	}
	return otherForm
}

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

// run writes RunFunction.
func (w *writer) run() {
	w.body = append(w.body, 0) // no locals
	w.index(opCall, w.shift(w.command))
	w.number(opI32Const, 0)
	w.index(opCall, w.shift(w.m.exit-1))
	w.body = append(w.body, opEnd)
}

// callAgain writes the call of the i-th imported function, which has the form of a read, in
// a loop. It costs nothing: each round is the host's wish.
func (w *writer) callAgain(i uint32) {
	const result = 4 // behind the parameters
	w.body = append(w.body, opLoop, typeI32)
	w.get(0, 1, 2, 3)
	w.index(opCall, i)
	w.index(opLocalTee, result)
	w.body = append(w.body, opI32Const, 0x7f, opI32Equal, opBranchIf, 0) // -1, which is Again
	w.get(result)
	w.body = append(w.body, opEnd)
}
