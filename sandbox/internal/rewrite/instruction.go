package rewrite

// A reader reads the instructions of a module, and notes which of them cannot be set back.
type reader struct {
	m      *Module
	unfit  string // the first thing for which the module cannot be sealed
	locals uint32 // how many the function has that is read, with its parameters
	in     instruction
	labels []byte // of the br_table that was read last: how many, and each
}

// instruction reads one instruction, which is there until the next is read. Of
// indices it checks those that would reach what Meter adds: of types, functions,
// globals and locals.
func (r *reader) instruction(c *cursor) *instruction {
	in := &r.in
	*in = instruction{op: c.byte()}
	switch op := in.op; {
	case kinds[op].bare:
	case op >= opLocalGet && op <= opLocalTee:
		in.index = c.below(r.locals)
	case op >= 0x28 && op <= 0x3e: // loads and stores
		r.address(c)
	case op == opI32Const:
		c.leb(5)
	case op == opBlock || op == opLoop || op == opIf:
		in.shape = r.block(c)
	case op == opCall || op == opTailCall || op == opRefFunc:
		in.index = c.below(uint32(len(r.m.functions)))
		if start := r.m.body[sectionStart]; op == opRefFunc && start != nil && in.index == (&cursor{b: start}).uint() {
			r.cannot("it refers to its own start function, which cannot be metered") // which, exported, would count as declared
		}
	case op == opCallIndirect || op == opTailIndirect:
		in.index = c.below(uint32(len(r.m.params)))
		c.uint()
	case op == opBranch || op == opBranchIf:
		in.index = c.uint()
	case op == 0x25: // table.get
		c.uint()
	case op == 0x26: // table.set
		r.cannot(writesTables)
		c.uint()
	case op == opGlobalGet || op == opGlobalSet:
		c.below(r.m.globals)
	case op == opBranchTable:
		r.labels = c.b
		for n := c.count() + 1; n > 0 && c.err == nil; n-- {
			in.index = max(in.index, c.uint()) // the outermost
		}
	case op == opSelectTyped:
		if c.byte() != 1 {
			c.fail()
		}
		c.value()
	case op == 0x3f || op == opMemoryGrow: // memory.size
		r.zero(c)
	case op == opI64Const:
		c.leb(10)
	case op == 0x43: // f32.const
		c.skip(4)
	case op == 0x44: // f64.const
		c.skip(8)
	case op == 0xd0: // ref.null
		c.reference()
	case op == prefixMisc:
		in.number, in.bulk = r.misc(c)
	case op == prefixSIMD:
		in.number = r.vector(c)
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
func (r *reader) block(c *cursor) shape {
	if len(c.b) > 0 && c.b[0] == typeNone {
		c.byte()
		return shape{}
	}
	if len(c.b) > 0 && c.b[0] > typeNone && c.b[0] < 0x80 {
		c.value()
		return shape{results: 1}
	}
	start := c.b
	i := c.below(uint32(len(r.m.params)))
	// As an unsigned number it is the same if its last byte has no sign.
	if n := len(start) - len(c.b); c.err == nil && start[n-1]&0x40 != 0 {
		c.fail()
	}
	if c.err != nil {
		return shape{}
	}
	return r.m.shape(i)
}

// address reads the immediate of a load or store.
func (r *reader) address(c *cursor) {
	if c.uint() >= 0x40 { // an alignment, or the flag of the index of a memory
		c.refuse("several memories")
	}
	c.uint()
}

// zero reads the index of the only memory.
func (r *reader) zero(c *cursor) {
	if c.byte() != 0 {
		c.refuse("several memories")
	}
}

const writesTables = "it writes to tables"

// misc reads an instruction of the prefix 0xfc.
func (r *reader) misc(c *cursor) (op uint32, bulk byte) {
	switch op = c.uint(); op {
	case 0, 1, 2, 3, 4, 5, 6, 7: // saturating conversions
	case memoryInit:
		r.cannot("it uses passive data segments")
		c.uint()
		r.zero(c)
		return op, bulkBytes
	case 9, 13: // data.drop, elem.drop
		r.cannot("it drops segments")
		c.uint()
	case memoryCopy:
		r.zero(c)
		r.zero(c)
		return op, bulkBytes
	case memoryFill:
		r.zero(c)
		return op, bulkBytes
	case 12, 14: // table.init, table.copy
		r.cannot(writesTables)
		c.uint()
		c.uint()
		return op, bulkEntries
	case tableGrow:
		r.cannot(writesTables)
		c.uint()
	case 16: // table.size
		c.uint()
	case 17: // table.fill
		r.cannot(writesTables)
		c.uint()
		return op, bulkEntries
	default:
		c.refuse("an unknown instruction")
	}
	return op, bulkNone
}

// vector reads an instruction of the prefix 0xfd. The engine reads only the first byte of its
// number, and takes a second byte 0x01 for a nop: no other second byte is allowed.
func (r *reader) vector(c *cursor) uint32 {
	op := c.byte()
	if op >= 0x80 && c.byte() != 1 && c.err == nil {
		c.refuse("relaxed vector instructions")
	}
	switch {
	case op <= 11 || op == 92 || op == 93: // loads and stores
		r.address(c)
	case op == 12 || op == 13: // v128.const, i8x16.shuffle
		c.skip(16)
	case op >= 21 && op <= 34: // lanes
		c.byte()
	case op >= 84 && op <= 91: // loads and stores of a lane
		r.address(c)
		c.byte()
	}
	return uint32(op)
}

// cannot notes a reason for which the module cannot be sealed.
func (r *reader) cannot(reason string) {
	if r.unfit == "" {
		r.unfit = reason
	}
}
