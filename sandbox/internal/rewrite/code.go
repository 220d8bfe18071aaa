package rewrite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// Opcodes, 5.4, that are treated differently, and not only by the length of their immediates.
const (
	opUnreachable  = 0x00
	opNop          = 0x01
	opBlock        = 0x02
	opLoop         = 0x03
	opIf           = 0x04
	opElse         = 0x05
	opEnd          = 0x0b
	opBranch       = 0x0c
	opBranchIf     = 0x0d
	opBranchTable  = 0x0e
	opReturn       = 0x0f
	opCall         = 0x10
	opCallIndirect = 0x11
	opTailCall     = 0x12
	opTailIndirect = 0x13
	opDrop         = 0x1a
	opSelect       = 0x1b
	opSelectTyped  = 0x1c
	opLocalGet     = 0x20
	opLocalSet     = 0x21
	opLocalTee     = 0x22
	opGlobalGet    = 0x23
	opGlobalSet    = 0x24
	opMemoryGrow   = 0x40
	opI32Const     = 0x41
	opI64Const     = 0x42
	opI32Equal     = 0x46
	opI32Less      = 0x49 // unsigned
	opI32More      = 0x4b // unsigned
	opI64Less      = 0x53 // signed
	opI32Add       = 0x6a
	opI32Sub       = 0x6b
	opI32Or        = 0x72
	opI64Sub       = 0x7d
	opI64Shift     = 0x88 // right, unsigned
	opI64Extend    = 0xad // from an unsigned i32
	opRefFunc      = 0xd2
	prefixMisc     = 0xfc // behind it:
	memoryInit     = 8
	memoryCopy     = 10
	memoryFill     = 11
	tableGrow      = 15
	prefixSIMD     = 0xfd
)

// An instruction is what the rewriting has to know of one.
type instruction struct {
	op     byte
	bulk   byte   // what a bulk instruction moves: bulkNone, bulkBytes, bulkEntries
	number uint32 // behind a prefix
	index  uint32 // of a function, the type of an indirect call, a local variable, or a label, of several the outermost
	shape  shape  // of a block
}

// A shape is how many values a block takes and leaves.
type shape struct{ params, results int32 }

const (
	bulkNone = iota
	bulkBytes
	bulkEntries
)

// instruction reads one instruction, which is there until the next is read. Of
// indices it checks those that would reach what Meter adds: of types, functions,
// globals and locals.
func (w *writer) instruction(c *cursor) *instruction {
	in := &w.in
	*in = instruction{op: c.byte()}
	switch op := in.op; {
	case kinds[op].bare:
	case op >= opLocalGet && op <= opLocalTee:
		in.index = c.below(w.locals)
	case op >= 0x28 && op <= 0x3e: // loads and stores
		w.address(c)
	case op == opI32Const:
		c.leb(5)
	case op == opBlock || op == opLoop || op == opIf:
		in.shape = w.block(c)
	case op == opCall || op == opTailCall || op == opRefFunc:
		in.index = c.below(uint32(len(w.m.functions)))
		if start := w.m.body[sectionStart]; op == opRefFunc && start != nil && in.index == (&cursor{b: start}).uint() {
			w.cannot("it refers to its own start function, which cannot be metered") // which, exported, would count as declared
		}
	case op == opCallIndirect || op == opTailIndirect:
		in.index = c.below(uint32(len(w.m.params)))
		c.uint()
	case op == opBranch || op == opBranchIf:
		in.index = c.uint()
	case op == 0x25: // table.get
		c.uint()
	case op == 0x26: // table.set
		w.cannot(writesTables)
		c.uint()
	case op == opGlobalGet || op == opGlobalSet:
		c.below(w.m.globals)
	case op == opBranchTable:
		w.estimator.labels = c.b
		for n := c.count() + 1; n > 0 && c.err == nil; n-- {
			in.index = max(in.index, c.uint()) // the outermost
		}
	case op == opSelectTyped:
		if c.byte() != 1 {
			c.fail()
		}
		c.value()
	case op == 0x3f || op == opMemoryGrow: // memory.size
		w.zero(c)
	case op == opI64Const:
		c.leb(10)
	case op == 0x43: // f32.const
		c.skip(4)
	case op == 0x44: // f64.const
		c.skip(8)
	case op == 0xd0: // ref.null
		c.reference()
	case op == prefixMisc:
		in.number, in.bulk = w.misc(c)
	case op == prefixSIMD:
		in.number = w.vector(c)
	default:
		c.refuse(featureOf(op))
	}
	return in
}

// featureOf names what an opcode that is not known belongs to.
func featureOf(op byte) string {
	switch {
	case op >= 0x06 && op <= 0x0a, op == 0x18, op == 0x19, op == 0x1f:
		return "exceptions"
	case op == 0x14, op == 0x15, op >= 0xd3 && op <= 0xd6:
		return "typed function references"
	case op == 0xfb:
		return "garbage collection"
	case op == 0xfe:
		return "threads"
	}
	return "an unknown instruction"
}

// block reads the type of a block: one byte, or the index of a type as a
// signed number.
func (w *writer) block(c *cursor) shape {
	if len(c.b) > 0 && c.b[0] == typeNone {
		c.byte()
		return shape{}
	}
	if len(c.b) > 0 && c.b[0] > typeNone && c.b[0] < 0x80 {
		c.value()
		return shape{results: 1}
	}
	start := c.b
	i := c.below(uint32(len(w.m.params)))
	// As an unsigned number it is the same if its last byte has no sign.
	if n := len(start) - len(c.b); c.err == nil && start[n-1]&0x40 != 0 {
		c.fail()
	}
	if c.err != nil {
		return shape{}
	}
	return w.m.shape(i)
}

// address reads the immediate of a load or store.
func (w *writer) address(c *cursor) {
	if c.uint() >= 0x40 { // an alignment, or the flag of the index of a memory
		c.refuse("several memories")
	}
	c.uint()
}

// zero reads the index of the only memory.
func (w *writer) zero(c *cursor) {
	if c.byte() != 0 {
		c.refuse("several memories")
	}
}

const writesTables = "it writes to tables"

// misc reads an instruction of the prefix 0xfc.
func (w *writer) misc(c *cursor) (op uint32, bulk byte) {
	switch op = c.uint(); op {
	case 0, 1, 2, 3, 4, 5, 6, 7: // saturating conversions
	case memoryInit:
		w.cannot("it uses passive data segments")
		c.uint()
		w.zero(c)
		return op, bulkBytes
	case 9, 13: // data.drop, elem.drop
		w.cannot("it drops segments")
		c.uint()
	case memoryCopy:
		w.zero(c)
		w.zero(c)
		return op, bulkBytes
	case memoryFill:
		w.zero(c)
		return op, bulkBytes
	case 12, 14: // table.init, table.copy
		w.cannot(writesTables)
		c.uint()
		c.uint()
		return op, bulkEntries
	case tableGrow:
		w.cannot(writesTables)
		c.uint()
	case 16: // table.size
		c.uint()
	case 17: // table.fill
		w.cannot(writesTables)
		c.uint()
		return op, bulkEntries
	default:
		c.refuse("an unknown instruction")
	}
	return op, bulkNone
}

// vector reads an instruction of the prefix 0xfd. The engine reads only the first byte of its
// number, and takes a second byte 0x01 for a nop: no other second byte is allowed.
func (w *writer) vector(c *cursor) uint32 {
	op := c.byte()
	if op >= 0x80 && c.byte() != 1 && c.err == nil {
		c.refuse("relaxed vector instructions")
	}
	switch {
	case op <= 11 || op == 92 || op == 93: // loads and stores
		w.address(c)
	case op == 12 || op == 13: // v128.const, i8x16.shuffle
		c.skip(16)
	case op >= 21 && op <= 34: // lanes
		c.byte()
	case op >= 84 && op <= 91: // loads and stores of a lane
		w.address(c)
		c.byte()
	}
	return uint32(op)
}

// code writes the section of code: every function metered, one more for each
// imported function, RunFunction, what asks the meter, and what moves memory in pieces.
func (w *writer) code(c *cursor) {
	const room = binary.MaxVarintLen32 // for how many they are, known in the end
	n := c.count()
	if uint64(n) != uint64(len(w.m.functions))-uint64(w.m.imported) {
		c.fail()
		return
	}
	out := make([]byte, room, room+len(c.b)+len(c.b)/8)
	for i := range n {
		w.body = w.body[:0]
		body := &cursor{b: c.bytes()}
		w.function(body, w.m.imported+i)
		if err := body.end(); err != nil {
			c.stop(err)
			return
		}
		out = append(binary.AppendUvarint(out, uint64(len(w.body))), w.body...)
	}
	for i := range w.m.imported {
		w.body = w.body[:0]
		w.gate(i)
		out = append(binary.AppendUvarint(out, uint64(len(w.body))), w.body...)
	}
	if w.runs {
		w.body = w.body[:0]
		w.run()
		out = append(binary.AppendUvarint(out, uint64(len(w.body))), w.body...)
	}
	w.body = w.body[:0]
	w.ask()
	out = append(binary.AppendUvarint(out, uint64(len(w.body))), w.body...)
	for _, p := range w.pieces {
		w.body = w.body[:0]
		w.inPieces(p)
		out = append(binary.AppendUvarint(out, uint64(len(w.body))), w.body...)
	}
	count := binary.AppendUvarint(nil, uint64(n+w.own())+uint64(len(w.pieces)))
	copy(out[room-len(count):], count)
	w.sections[sectionCode] = out[room-len(count):]
}

// A region is the part of a function that is paid for at once: the function
// without its loops, or a loop without those within it.
type region struct {
	cost   int64 // instructions
	parent int   // the region around it
	calls  bool  // whether it, or a loop within it, calls what may change the fuel
}

// An edit is a place in a body at which something is written.
type edit struct {
	at     int // offset of the instruction
	to     int // offset behind it
	in     instruction
	region int  // that a loop begins, or that contains a branch
	leaves int  // the region in which a branch goes on
	values bool // the branch carries some
}

// accessesAtOnce is how many loads and stores a guest executes at most of one region until it
// comes to its meter: each can be the first of a page of memory, which the operating system
// has to make. Tests set it.
var accessesAtOnce = 4096

// ways are how many loads and stores of its region there may have been since a guest came
// to its meter, where an open block begins and on the ways to its end so far.
type ways struct {
	loop        bool
	begun, most int
}

// function writes the body of a function.
func (w *writer) function(c *cursor, index uint32) {
	t := w.m.functions[index]
	w.declare(c, w.m.params[t])
	code := c.b
	w.estimator.begin(w.m.shape(t), w.locals)
	w.read(c)
	if w.calling {
		w.estimator.settle() // in its end
	}
	if err := w.estimator.end(len(code), index); err != nil {
		c.stop(err)
	}
	if w.estimator.odd {
		c.stop(fmt.Errorf("the module has an invalid function: %d has a block that does not leave as many values as its type says", index))
	}
	if c.err != nil {
		return
	}
	w.regions[0].calls = true // so that the global holds the fuel before the first loop
	entry := w.regions[0].cost + int64(w.locals)
	if w.direct && w.regions[1].cost >= 8*entry {
		w.regions[1].cost += entry
	} else {
		w.index(opGlobalGet, w.fuel)
		w.spend(entry, true)
	}
	if w.calling {
		w.body = append(append(w.body, opBlock), w.around[t]...)
	}
	from := 0
	for i := range w.edits {
		e := &w.edits[i]
		w.body = append(w.body, code[from:e.at]...)
		from = w.edit(e, code)
	}
	w.body = append(w.body, code[from:]...)
	if w.calling {
		w.exit()
	}
}

// exit writes the end of a function that calls others, behind the block around its body: what
// it has paid for, at its entry and where its loops begin, may be executed later than the
// meter was asked, as often as it called itself.
func (w *writer) exit() {
	cost := int64(w.locals)
	for _, r := range w.regions {
		cost += r.cost
	}
	w.index(opGlobalGet, w.fuel+1)
	w.number(opI64Const, cost)
	w.body = append(w.body, opI64Sub)
	w.index(opGlobalSet, w.fuel+1)
	w.index(opGlobalGet, w.fuel+1)
	w.body = append(w.body, opI64Const, 0, opI64Less, opIf, typeNone)
	w.index(opCall, w.asks())
	w.body = append(w.body, opEnd, opEnd)
}

// edit writes the replacement for a place in the code, and returns from where on the code goes on.
func (w *writer) edit(e *edit, code []byte) (from int) {
	switch {
	case e.in.op == opLoop:
		w.loop(w.regions[e.region], code[e.at:e.to])
	case e.in.op == opEnd, e.in.op == opBranch, e.in.op == opBranchIf, e.in.op == opBranchTable, e.in.op == opReturn:
		return w.leave(e)
	case e.in.op == opNop:
		w.index(opCall, w.asks())
	case isRemainder(e.in.op):
		w.remainder(e.in.op)
	case e.in.bulk == bulkBytes:
		w.index(opCall, w.piecewise(code[e.at:e.to], e.in.number))
	case e.in.bulk == bulkEntries:
		w.bulk()
		return e.at
	default:
		w.index(e.in.op, w.shift(e.in.index))
	}
	return e.to
}

// leave writes a way out of loops that call nothing: the global gets what the local
// holds. A branch that may be taken does so only if it is, unless it carries values. A
// return becomes a branch to where a function ends that calls others.
func (w *writer) leave(e *edit) (from int) {
	local := !w.regions[e.region].calls && w.regions[e.leaves].calls
	maybe := local && e.in.op == opBranchIf && !e.values
	if maybe {
		w.body = append(w.body, opIf, typeNone)
	}
	if local {
		w.index(opLocalGet, w.locals)
		w.index(opGlobalSet, w.fuel)
	}
	switch {
	case maybe:
		w.index(opBranch, e.in.index+1)
		w.body = append(w.body, opEnd)
		return e.to
	case e.in.op == opReturn && w.calling:
		w.index(opBranch, e.in.index)
		return e.to
	}
	return e.at
}

// loop writes the beginning of a loop. While a loop calls nothing, only its own charges change the
// fuel: only a local holds it, until the loop is left.
func (w *writer) loop(r region, begin []byte) {
	if r.calls {
		w.body = append(w.body, begin...)
		w.index(opGlobalGet, w.fuel)
	} else {
		if w.regions[r.parent].calls {
			w.index(opGlobalGet, w.fuel)
			w.index(opLocalSet, w.locals)
		}
		w.body = append(w.body, begin...)
		w.index(opLocalGet, w.locals)
	}
	w.spend(r.cost, r.calls)
}

// valuesAtOnce is how many values are moved at the price of an instruction.
const valuesAtOnce = 4

// growing is what an instruction costs for which the engine calls the host.
const growing = 64

// weight is what an instruction costs: one, and more for the values that it moves.
func (e *estimator) weight(in *instruction) int64 {
	values := int64(0)
	switch in.op {
	case opElse, opEnd:
		values = int64(e.frames[len(e.frames)-1].shape.results)
	case opLoop:
		values = int64(in.shape.params)
	case opBranch, opBranchIf:
		values = e.carried(in.index)
	case opBranchTable:
		c := &cursor{b: e.labels}
		c.uint()
		values = e.carried(c.uint())
	case opReturn:
		values = int64(e.frames[0].shape.results)
	case opCall, opTailCall:
		values = e.module.shape(e.module.functions[in.index]).values()
	case opCallIndirect, opTailIndirect:
		values = e.module.shape(in.index).values()
	case opMemoryGrow, opRefFunc:
		return growing
	case prefixMisc:
		if in.number == tableGrow {
			return growing
		}
	}
	return 1 + values/valuesAtOnce
}

// leadsOn reports whether an instruction is followed by the next one in the code,
// and runs no other code, or traps.
func leadsOn(in *instruction) bool {
	switch op := in.op; {
	case op >= opLocalGet && op <= opGlobalSet, op >= opI32Const && op <= 0xc4, op == opBlock:
		return true
	}
	return false
}

// declare writes the local variables with two more: an i64 for what is left of
// the fuel, an i32 for the length of a bulk instruction; and those of remainders.
func (w *writer) declare(c *cursor, params uint32) {
	n := c.count()
	groups := c.b
	w.locals = params
	for range n {
		w.locals += c.uint() // bounded by Decode
		c.value()
	}
	w.remainders = divideForRemainders && slices.ContainsFunc(c.b, isRemainder) // or a number that looks like one
	more := []byte{1, typeI64, 1, typeI32}
	if w.remainders {
		more = append(more, 2, typeI32, 2, typeI64)
	}
	w.body = binary.AppendUvarint(w.body, uint64(n)+uint64(len(more)/2))
	w.body = append(w.body, groups[:len(groups)-len(c.b)]...)
	w.body = append(w.body, more...)
}

// read reads the instructions of a function to its end, and notes where it
// changes and what its regions cost. Region 0 is that of the function.
func (w *writer) read(c *cursor) {
	w.edits, w.regions, w.blocks = w.edits[:0], append(w.regions[:0], region{}), append(w.blocks[:0], 0)
	w.direct, w.calling, w.accesses, w.ways = false, false, 0, append(w.ways[:0], ways{})
	w.may = bytes.IndexByte(c.b, opCall) >= 0 || bytes.IndexByte(c.b, opCallIndirect) >= 0
	size, straight, inside := len(c.b), true, 0
	for len(w.blocks) > 0 && c.err == nil {
		if !straight {
			w.regions[inside].cost += w.usual(c)
		}
		at := size - len(c.b)
		in := w.instruction(c)
		if op := in.op; op >= opBranch && op <= opBranchTable && int64(in.index) >= int64(len(w.blocks)) && c.err == nil {
			c.stop(errBranch) // around the body of a function there may be one block more
		}
		if c.err != nil { // what could not be read claims anything
			break
		}
		w.regions[inside].cost += w.estimator.weight(in)
		dead := w.estimator.dead
		w.estimator.instruction(in)
		if straight && in.op == opLoop {
			w.direct = true
		}
		straight = straight && leadsOn(in)
		if !kinds[in.op].simple || in.op == opRefFunc {
			inside = w.structure(in, inside, at, size-len(c.b))
		}
		if w.remainders && isRemainder(in.op) {
			w.estimator.count[divisions]++ // what it becomes is longer
			w.edits = append(w.edits, edit{at: at, to: size - len(c.b), in: *in})
		}
		w.look(in, dead, inside, size-len(c.b))
	}
}

// look has a guest come to its meter behind an instruction, if on a way to there it may have loaded
// and stored too often since it did. The contents of a loop are paid for as often as it begins, and
// not counted around it.
func (w *writer) look(in *instruction, dead bool, inside, behind int) {
	last := len(w.ways) - 1
	switch op := in.op; {
	case op == opBlock, op == opLoop, op == opIf:
		w.ways = append(w.ways, ways{op == opLoop, w.accesses, 0})
		switch op {
		case opLoop:
			w.accesses = 0
		case opIf:
			w.way(0, 0) // over it, if it has no other half
		}
	case op == opElse:
		if !dead {
			w.way(0, 0)
		}
		w.accesses = w.ways[last].begun
	case op == opEnd && w.ways[last].loop:
		w.accesses = w.ways[last].begun
		w.ways = w.ways[:last]
	case op == opEnd:
		if !dead {
			w.way(0, 0)
		}
		w.accesses = w.ways[last].most
		w.ways = w.ways[:last]
	case dead:
	case op == opBranch, op == opBranchIf:
		w.way(in.index, in.index)
	case op == opBranchTable:
		w.way(0, in.index) // also to what it does not name
	case op == prefixSIMD, op >= 0x28 && op <= 0x3e:
		w.accesses++
	}
	if w.accesses < accessesAtOnce || len(w.ways) == 0 || w.estimator.dead {
		return
	}
	w.accesses = 0
	w.regions[inside].calls = true
	w.estimator.look()
	w.edits = append(w.edits, edit{at: behind, to: behind, in: instruction{op: opNop}})
}

var errBranch = errors.New("the module has an invalid function: branch target out of range")

// way notes ways from here to the ends of blocks that are open, by their labels.
func (w *writer) way(first, last uint32) {
	n := w.accesses
	for label := range last + 1 {
		if f := &w.ways[len(w.ways)-1-int(label)]; f.loop {
			n = f.begun
		} else if label >= first {
			f.most = max(f.most, n)
		}
	}
}

// usual reads instructions as long as they are of the kinds that make up most code, and returns how
// many they were.
func (w *writer) usual(c *cursor) (n int64) {
	e, b := &w.estimator, c.b
	for counts := !e.dead && !e.over; len(b) > 1; n++ {
		k := &kinds[b[0]]
		switch {
		case k.usual, k.bare && k.simple && !w.remainders:
			b = b[1:]
			if counts {
				e.simple(k)
			}
		case k.local && b[1] < 0x80 && uint32(b[1]) < w.locals:
			if counts {
				e.local(b[0], int32(b[1]))
			}
			b = b[2:]
		default:
			c.b = b
			return n
		}
	}
	c.b = b
	return n
}

// structure notes what an instruction in a region begins, ends or changes, and returns the region
// of the next one.
func (w *writer) structure(in *instruction, inside, at, to int) int {
	begins, next := len(w.regions), inside
	switch in.op {
	case opBlock, opIf:
		w.blocks = append(w.blocks, inside)
	case opLoop:
		w.regions = append(w.regions, region{parent: inside})
		w.blocks = append(w.blocks, begins)
		next = begins
	case opEnd:
		w.blocks = w.blocks[:len(w.blocks)-1]
		if r := w.regions[inside]; r.calls {
			w.regions[r.parent].calls = true
		}
		if n := len(w.blocks); n > 0 {
			next = w.blocks[n-1]
		}
	case opCall, opCallIndirect, opMemoryGrow, opTailCall, opTailIndirect: // the host may charge for memory
		w.regions[inside].calls = true
		w.calling = w.calling || in.op == opCall || in.op == opCallIndirect
	}
	if in.bulk != bulkNone { // is charged by the global
		w.regions[inside].calls = true
	}
	switch op := in.op; {
	case op == opLoop, op == opCall, op == opTailCall, op == opRefFunc, in.bulk != bulkNone:
		w.edits = append(w.edits, edit{at: at, to: to, in: *in, region: begins})
	case op == opReturn && w.may, inside > 0 && !w.regions[inside].calls:
		w.leaving(in, inside, at, to)
	}
	return next
}

// leaving notes an instruction, if with it a loop may be left, or a function that calls others.
func (w *writer) leaving(in *instruction, inside, at, to int) {
	e := edit{at: at, to: to, in: *in, region: inside}
	switch in.op {
	case opEnd:
		if len(w.blocks) == 0 || w.blocks[len(w.blocks)-1] == inside {
			return // of a block within the loop
		}
		e.at, e.leaves = to, w.regions[inside].parent
	case opBranch, opBranchIf, opBranchTable:
		if e.leaves = w.blocks[len(w.blocks)-1-int(in.index)]; e.leaves == inside {
			return
		}
		e.values = w.estimator.carried(in.index) > 0
	case opReturn:
		e.in.index = uint32(len(w.blocks) - 1)
	default:
		return
	}
	if inside > 0 {
		w.estimator.exit()
	}
	w.edits = append(w.edits, e)
}
