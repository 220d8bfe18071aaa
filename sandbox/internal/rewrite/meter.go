package rewrite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
)

// Names that a metered module imports and exports in addition to its own. No module may use these
// names itself.
const (
	// MeterModule and MeterFunction name a function from i64 to i64: from the
	// fuel that is left, negative if the guest overdrew it, to what is left
	// from then on. It may trap, to end the guest.
	MeterModule   = "wasmgate:meter"
	MeterFunction = "fuel"
	// MeterGlobal names a mutable i64: the fuel that is left. It begins at 0.
	MeterGlobal = "wasmgate:fuel"
	// BehindGlobal names a mutable i64 from which functions that call others subtract, when
	// they return, what they have paid for at their entry: it may have been executed since
	// the host was last asked. The host is asked when that is negative, and sets it anew.
	BehindGlobal = "wasmgate:behind"
	// HostCall is what a call of an imported function costs, in instructions.
	HostCall = 256
	// StartFunction names what a sealed module had as its start function, which
	// no instantiation of it calls.
	StartFunction = "wasmgate:start"
)

// GlobalName names the i-th mutable global of a sealed module, which exports it.
func GlobalName(i int) string { return "wasmgate:global:" + strconv.Itoa(i) }

// A writer writes a module again.
type writer struct {
	reader
	emitter
	sections  [sections][]byte
	mutable   []uint32 // the indices of the module's own mutable globals
	memory    []byte   // what data segments put there
	sealed    bool
	entries   uint32 // of element segments, so far
	estimator estimator
	function  function

	command uint32   // that RunFunction runs
	runs    bool     // there is one
	around  [][]byte // of each type, how a block begins that leaves what functions of it do
	pieces  []piece  // what moves memory in pieces
}

// Meter returns the module with metering, as the package describes it.
func (m *Module) Meter() ([]byte, error) {
	w, err := m.rewrite(false)
	if err != nil {
		return nil, err
	}
	return w.module(), nil
}

// A Sealed is a metered module without a beginning: an instance of it has an empty memory and has
// run nothing. A host that fills its memory and sets its globals decides in which state it begins.
// It can also bring the instance back to that state, because the module holds nothing else that
// changes.
type Sealed struct {
	WASM []byte
	// Memory is what the data segments would put into memory, from address 0 on;
	// zeros follow.
	Memory []byte
	// Globals is how many mutable globals there are, each exported by its
	// [GlobalName].
	Globals int
	// Start says that there was a start function, now exported as StartFunction.
	Start bool
}

// An UnfitError says why a module cannot be sealed: it could change what the
// host cannot set back.
type UnfitError struct{ Reason string }

func (e *UnfitError) Error() string { return "the module cannot be sealed: " + e.Reason }

// Seal returns the module with metering, sealed. The error is an [*UnfitError]
// for a module that can only be metered.
func (m *Module) Seal() (*Sealed, error) {
	w, err := m.rewrite(true)
	if err != nil {
		return nil, err
	}
	if w.unfit != "" {
		return nil, &UnfitError{w.unfit}
	}
	return &Sealed{WASM: w.module(), Memory: w.memory, Globals: len(w.mutable), Start: m.body[sectionStart] != nil}, nil
}

func (m *Module) rewrite(sealed bool) (*writer, error) {
	for _, in := range m.Imports {
		if in.Module == MeterModule {
			return nil, errors.New("the module imports " + MeterModule + ", which is reserved for the sandbox")
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
	w := &writer{reader: reader{m: &own}, emitter: emitter{meter: m.imported}, sections: m.body, sealed: sealed, estimator: estimator{module: &own}}
	w.function.writer = w
	w.sections[sectionTable] = m.tables
	w.command, w.runs = m.command()
	for _, in := range m.Imports {
		if !in.Function {
			w.cannot("it imports a mutable value or table:  " + strconv.Quote(in.Module+"."+in.Name))
		}
	}
	if err := w.write(); err != nil {
		return nil, err
	}
	var err error
	m.cost, err = w.estimator.cost(len(m.body[sectionCode]), len(w.pieces), w.runs)
	return w, err
}

// write writes the sections. Those that name functions and globals of others
// come after them.
func (w *writer) write() error {
	for _, s := range []struct {
		id       byte
		optional bool
		write    func(*cursor)
	}{
		{sectionType, false, w.types}, {sectionImport, false, w.imports}, {sectionGlobal, false, w.globals},
		{sectionExport, false, w.exports}, {sectionStart, true, w.start}, {sectionElement, true, w.elements},
		{sectionDataCount, true, w.dataCount}, {sectionCode, false, w.code}, {sectionFunction, false, w.functions}, {sectionData, true, w.data},
	} {
		c := &cursor{b: w.m.body[s.id]}
		if c.b == nil {
			if s.optional {
				continue
			}
			c.b = []byte{0} // an empty vector
		}
		s.write(c)
		if err := c.end(); err != nil {
			return err
		}
	}
	if w.sealed {
		w.sections[sectionStart], w.sections[sectionDataCount], w.sections[sectionData] = nil, nil, nil
	}
	return nil
}

// module puts the sections together.
func (w *writer) module() []byte {
	out := append([]byte{}, preamble...)
	for _, id := range order {
		if body := w.sections[id]; body != nil {
			out = binary.AppendUvarint(append(out, id), uint64(len(body)))
			out = append(out, body...)
		}
	}
	return out
}

// more writes a vector with n items more, and reads it to its end. Decode has
// read those that it is used for.
func more(c *cursor, n uint32, items ...byte) []byte {
	out := binary.AppendUvarint(nil, uint64(c.count()+n))
	out = append(append(out, c.b...), items...)
	c.b = nil
	return out
}

// types adds those of the meter, of what moves memory in pieces and of what asks the meter,
// and those of blocks that leave several values.
func (w *writer) types(c *cursor) {
	items, n := []byte{typeOf, 1, typeI64, 1, typeI64, typeOf, 3, typeI32, typeI32, typeI32, 0, typeOf, 0, 0}, uint32(3)
	known := map[string][]byte{}
	t := &cursor{b: c.b}
	t.each(func() {
		t.byte()
		t.bytes()
		results := t.bytes()
		block := results
		switch {
		case len(results) == 0:
			block = []byte{typeNone}
		case len(results) > 1:
			if block = known[string(results)]; block == nil {
				block = signed(nil, int64(len(w.m.params))+int64(n))
				known[string(results)] = block
				items = append(binary.AppendUvarint(append(items, typeOf, 0), uint64(len(results))), results...)
				n++
			}
		}
		w.around = append(w.around, block)
	})
	w.sections[sectionType] = more(c, n, items...)
}

func (w *writer) imports(c *cursor) {
	item := appendName(nil, MeterModule)
	item = append(appendName(item, MeterFunction), kindFunction)
	item = binary.AppendUvarint(item, uint64(len(w.m.params)))
	if w.m.stubs != nil {
		c = &cursor{b: w.stubbed(c, item)}
	}
	w.sections[sectionImport] = more(c, 1, item...)
}

// stubbed is a section of imports in which the meter, which nothing calls there, keeps the
// places of those that have stubs, so that no index changes.
func (w *writer) stubbed(c *cursor, meter []byte) []byte {
	n, function := c.count(), uint32(0)
	out := binary.AppendUvarint(nil, uint64(n))
	for range n {
		head := c.b
		c.bytes()
		c.bytes()
		stubbed := false
		switch c.byte() {
		case kindFunction:
			c.uint()
			stubbed = w.m.stub(function) != noStub
			function++
		case kindTable:
			c.reference()
			c.limits()
		case kindMemory:
			c.limits()
		default: // a global: Decode takes nothing else
			c.value()
			c.byte()
		}
		if stubbed {
			out = append(out, meter...)
		} else {
			out = append(out, head[:len(head)-len(c.b)]...)
		}
	}
	return out
}

// own is how many functions are added before those that move memory in pieces: gates, RunFunction,
// and the one that asks the meter. How many functions move memory is not known yet.
func (w *writer) own() uint32 {
	n := w.m.imported + 1
	if w.runs {
		n++
	}
	return n
}

// asks is the index of the function that asks the meter.
func (w *writer) asks() uint32 { return uint32(len(w.m.functions)) + w.own() }

// functions declares a gate for each imported function, RunFunction, what asks the meter, and
// what moves memory in pieces.
func (w *writer) functions(c *cursor) {
	var items []byte
	for _, t := range w.m.functions[:w.m.imported] {
		items = binary.AppendUvarint(items, uint64(t))
	}
	if w.runs {
		items = binary.AppendUvarint(items, uint64(w.m.functions[w.command]))
	}
	items = binary.AppendUvarint(items, uint64(len(w.m.params))+2)
	for range w.pieces {
		items = binary.AppendUvarint(items, uint64(len(w.m.params))+1)
	}
	w.sections[sectionFunction] = more(c, w.own()+uint32(len(w.pieces)), items...)
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
	out := binary.AppendUvarint(nil, uint64(n)+2)
	for range n {
		head := c.b
		c.value()
		if c.byte() != 0 {
			w.m.mutable++
			w.mutable = append(w.mutable, w.m.globals)
			if c.err == nil && head[0] <= typeVector {
				w.cannot("it has a mutable global that is a vector or a reference")
			}
		}
		out = append(out, head[:len(head)-len(c.b)]...)
		out = w.constant(c, out)
		if c.err != nil {
			return
		}
		w.m.globals++
	}
	w.fuel = w.m.globals
	w.sections[sectionGlobal] = append(out, typeI64, 1, opI64Const, 0, opEnd, typeI64, 1, opI64Const, 0, opEnd)
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
	out := binary.AppendUvarint(nil, uint64(n)+w.added())
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
	out = exported(out, MeterGlobal, kindGlobal, w.fuel)
	out = exported(out, BehindGlobal, kindGlobal, w.fuel+1)
	if w.runs {
		out = exported(out, RunFunction, kindFunction, uint32(len(w.m.functions))+1+w.m.imported)
	}
	if w.sealed {
		for i, global := range w.mutable {
			out = exported(out, GlobalName(i), kindGlobal, global)
		}
		if start := w.m.body[sectionStart]; start != nil {
			out = exported(out, StartFunction, kindFunction, w.startFunction(&cursor{b: start})) // checked with that section
		}
	}
	w.sections[sectionExport] = out
}

// added is how many exports are added to the module's own.
func (w *writer) added() uint64 {
	n := uint64(2)
	if w.runs {
		n++
	}
	if w.sealed {
		n += uint64(len(w.mutable))
		if w.m.body[sectionStart] != nil {
			n++
		}
	}
	return n
}

func exported(out []byte, name string, kind byte, index uint32) []byte {
	return binary.AppendUvarint(append(appendName(out, name), kind), uint64(index))
}

func (w *writer) start(c *cursor) {
	w.sections[sectionStart] = binary.AppendUvarint(nil, uint64(w.startFunction(c)))
}

func (w *writer) startFunction(c *cursor) uint32 {
	i := c.below(uint32(len(w.m.functions)))
	if c.err != nil || w.m.params[w.m.functions[i]]+w.m.results[w.m.functions[i]] > 0 {
		c.fail()
		return 0
	}
	return w.shift(i)
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
	if w.entries += n; w.entries > maxElements {
		c.stop(fmt.Errorf("the module has element segments of %d entries and more; %d is the most", w.entries, maxElements))
	}
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

// dataCount reads the section that says how many data segments follow. A sealed
// module has neither, and a difference between them would go unseen.
func (w *writer) dataCount(c *cursor) {
	if n := c.uint(); n != (&cursor{b: w.m.body[sectionData]}).count() && w.m.body[sectionData] != nil || n != 0 && w.m.body[sectionData] == nil {
		c.fail()
	}
}

// data reads the data segments, 5.5.14. They stay as they are, or become the
// memory that a sealed module begins with.
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
		if flags == 1 {
			w.cannot("it has passive data segments")
			c.bytes()
			return
		}
		w.body = w.constant(c, w.body[:0])
		at, constant := offset(w.body)
		content := c.bytes()
		switch {
		case !w.sealed || c.err != nil:
		case !constant:
			w.cannot("it has a data segment whose address is not a number")
		case w.unfit == "":
			w.place(c, at, content)
		}
	})
}

// offset reads a constant expression that is one i32.const.
func offset(expr []byte) (at uint32, ok bool) {
	if len(expr) < 3 || expr[0] != opI32Const {
		return 0, false
	}
	var n int64
	shift := 0
	for _, b := range expr[1 : len(expr)-1] {
		if shift >= 35 {
			return 0, false
		}
		n |= int64(b&0x7f) << shift
		shift += 7
		if b < 0x80 {
			break
		}
	}
	if last := expr[len(expr)-2]; last&0x40 != 0 {
		n |= -1 << shift
	}
	return uint32(n), expr[len(expr)-2] < 0x80 && shift == 7*(len(expr)-2)
}

// place writes a data segment into the memory, as an instantiation would.
func (w *writer) place(c *cursor, at uint32, content []byte) {
	end := int64(at) + int64(len(content))
	if w.m.memories == 0 || end > w.m.MinMemory {
		c.stop(errors.New("the module has a data segment that does not fit into its memory"))
		return
	}
	if end > maxData {
		w.cannot(fmt.Sprintf("it has data beyond the first %d bytes of its memory", maxData))
		return
	}
	if missing := end - int64(len(w.memory)); missing > 0 {
		w.memory = append(w.memory, make([]byte, missing)...)
	}
	copy(w.memory[at:], content)
}

func appendName(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}
