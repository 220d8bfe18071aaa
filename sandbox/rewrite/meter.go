package rewrite

import (
	"encoding/binary"
	"errors"
)

// What a metered module imports and exports beyond what it did. No module may
// use these names itself.
const (
	// MeterModule and MeterFunction name a function from i64 to i64: from the
	// fuel that is left, negative if the guest overdrew it, to what is left
	// from then on. It may trap, to end the guest.
	MeterModule   = "wasmgate:meter"
	MeterFunction = "fuel"
	// MeterGlobal names a mutable i64: the fuel that is left. It begins at 0.
	MeterGlobal = "wasmgate:fuel"
	// HostCall is what a call of an imported function costs, in instructions.
	HostCall = 256
)

// A writer writes a module again.
type writer struct {
	m        *Module
	sections [sections][]byte
	fuel     uint32 // the index of MeterGlobal

	// Of the function that is written; kept to be used again.
	locals  uint32 // how many it has itself, with its parameters
	body    []byte
	edits   []edit
	regions []region
	blocks  []int // the region of each open block
}

// Meter returns the module with metering, as the package describes it.
func (m *Module) Meter() ([]byte, error) {
	for _, in := range m.Imports {
		if in.Module == MeterModule {
			return nil, errors.New("the module imports " + MeterModule + ", which is the sandbox's own")
		}
	}
	for _, t := range m.functions {
		if t >= uint32(len(m.params)) {
			return nil, errMalformed
		}
	}
	if m.memories > 1 {
		c := &cursor{}
		c.refuse("several memories")
		return nil, c.err
	}
	own := *m
	w := &writer{m: &own, sections: m.body}
	w.sections[sectionTable] = m.tables
	for _, s := range []struct {
		id    byte
		write func(*cursor)
	}{
		{sectionType, w.types}, {sectionImport, w.imports}, {sectionFunction, w.functions}, {sectionGlobal, w.globals},
		{sectionExport, w.exports}, {sectionStart, w.start}, {sectionElement, w.elements},
		{sectionDataCount, func(c *cursor) { c.uint() }}, {sectionCode, w.code}, {sectionData, w.data},
	} {
		c := &cursor{b: m.body[s.id]}
		if c.b == nil {
			if s.id == sectionStart || s.id == sectionElement || s.id == sectionDataCount || s.id == sectionData {
				continue
			}
			c.b = []byte{0} // an empty vector
		}
		s.write(c)
		if err := c.end(); err != nil {
			return nil, err
		}
	}
	out := append([]byte{}, preamble...)
	for _, id := range order {
		if body := w.sections[id]; body != nil {
			out = binary.AppendUvarint(append(out, id), uint64(len(body)))
			out = append(out, body...)
		}
	}
	return out, nil
}

// more writes a vector with n items more, and reads it to its end. Decode has
// read those that it is used for.
func more(c *cursor, n uint32, items ...byte) []byte {
	out := binary.AppendUvarint(nil, uint64(c.count()+n))
	out = append(append(out, c.b...), items...)
	c.b = nil
	return out
}

func (w *writer) types(c *cursor) {
	w.sections[sectionType] = more(c, 1, typeOf, 1, typeI64, 1, typeI64)
}

func (w *writer) imports(c *cursor) {
	item := appendName(nil, MeterModule)
	item = append(appendName(item, MeterFunction), kindFunction)
	item = binary.AppendUvarint(item, uint64(len(w.m.params)))
	w.sections[sectionImport] = more(c, 1, item...)
}

// functions declares a gate for each imported function.
func (w *writer) functions(c *cursor) {
	var items []byte
	for _, t := range w.m.functions[:w.m.imported] {
		items = binary.AppendUvarint(items, uint64(t))
	}
	w.sections[sectionFunction] = more(c, w.m.imported, items...)
}

// shift returns the new index of a function: behind the imported MeterFunction,
// and of an imported function that of its gate.
func (w *writer) shift(i uint32) uint32 {
	if i < w.m.imported {
		return uint32(len(w.m.functions)) + 1 + i
	}
	return i + 1
}

func (w *writer) globals(c *cursor) {
	n := c.count()
	out := binary.AppendUvarint(nil, uint64(n)+1)
	for range n {
		head := c.b
		c.value()
		c.byte()
		out = append(out, head[:len(head)-len(c.b)]...)
		out = w.constant(c, out)
		if c.err != nil {
			return
		}
		w.m.globals++
	}
	w.fuel = w.m.globals
	w.sections[sectionGlobal] = append(out, typeI64, 1, opI64Const, 0, opEnd)
}

// constant writes a constant expression, 5.4.9, behind out. It takes what any
// version allows, and leaves it to the compiler to be stricter.
func (w *writer) constant(c *cursor, out []byte) []byte {
	for {
		start := c.b
		in := w.instruction(c)
		switch in.op {
		case opEnd, opI32Const, opI64Const, 0x43, 0x44, opGlobalGet, 0xd0, prefixSIMD,
			0x6a, 0x6b, 0x6c, 0x7c, opI64Sub, 0x7e: // add, sub, mul of both sizes: extended constants
			if c.err == nil {
				out = append(out, start[:len(start)-len(c.b)]...)
			}
		case opRefFunc:
			out = binary.AppendUvarint(append(out, opRefFunc), uint64(w.shift(in.index)))
		default:
			c.fail()
		}
		if in.op == opEnd || c.err != nil {
			return out
		}
	}
}

func (w *writer) exports(c *cursor) {
	n := c.count()
	out := binary.AppendUvarint(nil, uint64(n)+1)
	for range n {
		name, kind, i := c.bytes(), c.byte(), uint32(0)
		switch kind {
		case kindFunction:
			i = w.shift(c.below(uint32(len(w.m.functions))))
		case kindGlobal:
			i = c.below(w.m.globals)
		case kindTag:
			c.refuse("exceptions")
		default:
			i = c.uint()
		}
		if c.err != nil {
			return
		}
		out = append(binary.AppendUvarint(out, uint64(len(name))), name...)
		out = binary.AppendUvarint(append(out, kind), uint64(i))
	}
	out = append(appendName(out, MeterGlobal), kindGlobal)
	w.sections[sectionExport] = binary.AppendUvarint(out, uint64(w.fuel))
}

func (w *writer) start(c *cursor) {
	w.sections[sectionStart] = binary.AppendUvarint(nil, uint64(w.shift(c.below(uint32(len(w.m.functions))))))
}

func (w *writer) elements(c *cursor) {
	n := c.count()
	out := binary.AppendUvarint(make([]byte, 0, len(c.b)*5/4), uint64(n))
	for range n {
		if out = w.element(c, out); c.err != nil {
			return
		}
	}
	w.sections[sectionElement] = out
}

// element writes an element segment, 5.5.12, behind out.
func (w *writer) element(c *cursor, out []byte) []byte {
	flags := c.uint()
	if flags > 7 {
		c.fail()
	}
	active, explicit, expressions := flags&1 == 0, flags&2 != 0, flags&4 != 0
	out = append(out, byte(flags))
	if active && explicit {
		out = binary.AppendUvarint(out, uint64(c.uint())) // the table
	}
	if active {
		out = w.constant(c, out)
	}
	switch {
	case active && !explicit:
	case expressions:
		out = append(out, c.reference())
	default:
		out = append(out, c.byte()) // the kind of the elements
	}
	n := c.count()
	out = binary.AppendUvarint(out, uint64(n))
	for ; n > 0 && c.err == nil; n-- {
		if expressions {
			out = w.constant(c, out)
		} else {
			out = binary.AppendUvarint(out, uint64(w.shift(c.below(uint32(len(w.m.functions))))))
		}
	}
	return out
}

// data reads the data segments, 5.5.14, which stay as they are.
func (w *writer) data(c *cursor) {
	c.each(func() {
		flags := c.uint()
		if flags > 2 {
			c.fail()
		}
		if flags == 2 {
			if c.uint() != 0 {
				c.refuse("several memories")
			}
		}
		if flags != 1 { // not passive
			w.body = w.constant(c, w.body[:0])
		}
		c.bytes()
	})
}

// spend subtracts a cost from the fuel, which is on the stack.
func (w *writer) spend(cost int64) {
	w.number(opI64Const, cost)
	w.settle()
}

// bulk subtracts what a bulk instruction costs whose length is on the stack,
// and stays there.
func (w *writer) bulk(kind int) {
	w.index(opLocalTee, w.locals+1)
	w.index(opGlobalGet, w.fuel)
	w.index(opLocalGet, w.locals+1)
	w.body = append(w.body, opI64Extend)
	if kind == bulkBytes {
		w.body = append(w.body, opI64Const, 3, opI64Shift)
	}
	w.settle()
}

// settle takes the fuel and what to subtract from it off the stack, stores the
// difference in the global and the local alike, and calls the meter if it is
// negative.
func (w *writer) settle() {
	w.body = append(w.body, opI64Sub)
	w.index(opLocalTee, w.locals)
	w.index(opGlobalSet, w.fuel)
	w.index(opLocalGet, w.locals)
	w.body = append(w.body, opI64Const, 0, opI64Less, opIf, typeNone)
	w.index(opLocalGet, w.locals)
	w.index(opCall, w.m.imported)
	w.index(opLocalTee, w.locals)
	w.index(opGlobalSet, w.fuel)
	w.body = append(w.body, opEnd)
}

// gate writes the function through which an imported one is called.
func (w *writer) gate(i uint32) {
	w.body = append(w.body, 0) // no locals
	w.index(opGlobalGet, w.fuel)
	w.number(opI64Const, HostCall)
	w.body = append(w.body, opI64Sub)
	w.index(opCall, w.m.imported)
	w.index(opGlobalSet, w.fuel)
	for p := range w.m.params[w.m.functions[i]] {
		w.index(opLocalGet, p)
	}
	w.index(opCall, i)
	w.body = append(w.body, opEnd)
}

// index writes an instruction with an index.
func (w *writer) index(op byte, i uint32) {
	w.body = binary.AppendUvarint(append(w.body, op), uint64(i))
}

// number writes an instruction with a signed number that is not negative.
func (w *writer) number(op byte, n int64) {
	w.body = append(w.body, op)
	for ; n > 0x3f; n >>= 7 {
		w.body = append(w.body, byte(n&0x7f|0x80))
	}
	w.body = append(w.body, byte(n))
}

func appendName(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}
