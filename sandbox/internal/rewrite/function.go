package rewrite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

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

// A function is the one that is written, whose memory the next one uses again.
type function struct {
	*writer
	edits      []edit
	regions    []region
	remainders bool  // its remainders are written as divisions
	direct     bool  // it leads straight into a loop
	may        bool  // it may call others
	calling    bool  // it does
	blocks     []int // the region of each open block

	accesses int    // loads and stores since the guest came to its meter
	ways     []ways // of each open block
}

// transform writes the body of a function.
func (f *function) transform(c *cursor, index uint32) {
	t := f.m.functions[index]
	f.declare(c, f.m.params[t])
	code := c.b
	f.estimator.begin(f.m.shape(t), f.locals)
	f.read(c)
	if f.calling {
		f.estimator.settle() // in its end
	}
	if err := f.estimator.end(len(code), index); err != nil {
		c.stop(err)
	}
	if f.estimator.odd {
		c.stop(fmt.Errorf("the module has an invalid function: %d has a block that does not leave as many values as its type says", index))
	}
	if c.err != nil {
		return
	}
	f.regions[0].calls = true // so that the global holds the fuel before the first loop
	entry := f.regions[0].cost + int64(f.locals)
	if f.direct && f.regions[1].cost >= 8*entry {
		f.regions[1].cost += entry
	} else {
		f.index(opGlobalGet, f.fuel)
		f.spend(entry, true)
	}
	if f.calling {
		f.body = append(append(f.body, opBlock), f.around[t]...)
	}
	from := 0
	for i := range f.edits {
		e := &f.edits[i]
		f.body = append(f.body, code[from:e.at]...)
		from = f.edit(e, code)
	}
	f.body = append(f.body, code[from:]...)
	if f.calling {
		f.exit()
	}
}

// exit writes the end of a function that calls others, behind the block around its body: what
// it has paid for, at its entry and where its loops begin, may be executed later than the
// meter was asked, as often as it called itself.
func (f *function) exit() {
	cost := int64(f.locals)
	for _, r := range f.regions {
		cost += r.cost
	}
	f.index(opGlobalGet, f.fuel+1)
	f.number(opI64Const, cost)
	f.body = append(f.body, opI64Sub)
	f.index(opGlobalSet, f.fuel+1)
	f.index(opGlobalGet, f.fuel+1)
	f.body = append(f.body, opI64Const, 0, opI64Less, opIf, typeNone)
	f.index(opCall, f.asks())
	f.body = append(f.body, opEnd, opEnd)
}

// edit writes the replacement for a place in the code, and returns from where on the code goes on.
func (f *function) edit(e *edit, code []byte) (from int) {
	switch {
	case e.in.op == opLoop:
		f.loop(f.regions[e.region], code[e.at:e.to])
	case e.in.op == opEnd, e.in.op == opBranch, e.in.op == opBranchIf, e.in.op == opBranchTable, e.in.op == opReturn:
		return f.leave(e)
	case e.in.op == opNop:
		f.index(opCall, f.asks())
	case isRemainder(e.in.op):
		f.remainder(e.in.op)
	case e.in.bulk == bulkBytes:
		f.index(opCall, f.piecewise(code[e.at:e.to], e.in.number))
	case e.in.bulk == bulkEntries:
		f.bulk()
		return e.at
	default:
		f.index(e.in.op, f.shift(e.in.index))
	}
	return e.to
}

// leave writes a way out of loops that call nothing: the global gets what the local
// holds. A branch that may be taken does so only if it is, unless it carries values. A
// return becomes a branch to where a function ends that calls others.
func (f *function) leave(e *edit) (from int) {
	local := !f.regions[e.region].calls && f.regions[e.leaves].calls
	maybe := local && e.in.op == opBranchIf && !e.values
	if maybe {
		f.body = append(f.body, opIf, typeNone)
	}
	if local {
		f.index(opLocalGet, f.left)
		f.index(opGlobalSet, f.fuel)
	}
	switch {
	case maybe:
		f.index(opBranch, e.in.index+1)
		f.body = append(f.body, opEnd)
		return e.to
	case e.in.op == opReturn && f.calling:
		f.index(opBranch, e.in.index)
		return e.to
	}
	return e.at
}

// loop writes the beginning of a loop. While a loop calls nothing, only its own charges change the
// fuel: only a local holds it, until the loop is left.
func (f *function) loop(r region, begin []byte) {
	if r.calls {
		f.body = append(f.body, begin...)
		f.index(opGlobalGet, f.fuel)
	} else {
		if f.regions[r.parent].calls {
			f.index(opGlobalGet, f.fuel)
			f.index(opLocalSet, f.left)
		}
		f.body = append(f.body, begin...)
		f.index(opLocalGet, f.left)
	}
	f.spend(r.cost, r.calls)
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
func (f *function) declare(c *cursor, params uint32) {
	n := c.count()
	groups := c.b
	f.locals = params
	for range n {
		f.locals += c.uint() // bounded by Decode
		c.value()
	}
	f.left = f.locals
	f.remainders = divideForRemainders && slices.ContainsFunc(c.b, isRemainder) // or a number that looks like one
	more := []byte{1, typeI64, 1, typeI32}
	if f.remainders {
		more = append(more, 2, typeI32, 2, typeI64)
	}
	f.body = binary.AppendUvarint(f.body, uint64(n)+uint64(len(more)/2))
	f.body = append(f.body, groups[:len(groups)-len(c.b)]...)
	f.body = append(f.body, more...)
}

// read reads the instructions of a function to its end, and notes where it
// changes and what its regions cost. Region 0 is that of the function.
func (f *function) read(c *cursor) {
	f.edits, f.regions, f.blocks = f.edits[:0], append(f.regions[:0], region{}), append(f.blocks[:0], 0)
	f.direct, f.calling, f.accesses, f.ways = false, false, 0, append(f.ways[:0], ways{})
	f.may = bytes.IndexByte(c.b, opCall) >= 0 || bytes.IndexByte(c.b, opCallIndirect) >= 0
	size, straight, inside := len(c.b), true, 0
	for len(f.blocks) > 0 && c.err == nil {
		if !straight {
			f.regions[inside].cost += f.usual(c)
		}
		at := size - len(c.b)
		in := f.instruction(c)
		if op := in.op; op >= opBranch && op <= opBranchTable && int64(in.index) >= int64(len(f.blocks)) && c.err == nil {
			c.stop(errBranch) // around the body of a function there may be one block more
		}
		if c.err != nil { // what could not be read claims anything
			break
		}
		f.estimator.labels = f.labels
		f.regions[inside].cost += f.estimator.weight(in)
		dead := f.estimator.dead
		f.estimator.instruction(in)
		if straight && in.op == opLoop {
			f.direct = true
		}
		straight = straight && leadsOn(in)
		if !kinds[in.op].simple || in.op == opRefFunc {
			inside = f.structure(in, inside, at, size-len(c.b))
		}
		if f.remainders && isRemainder(in.op) {
			f.estimator.count[divisions]++ // what it becomes is longer
			f.edits = append(f.edits, edit{at: at, to: size - len(c.b), in: *in})
		}
		f.look(in, dead, inside, size-len(c.b))
	}
}

// look has a guest come to its meter behind an instruction, if on a way to there it may have loaded
// and stored too often since it did. The contents of a loop are paid for as often as it begins, and
// not counted around it.
func (f *function) look(in *instruction, dead bool, inside, behind int) {
	last := len(f.ways) - 1
	switch op := in.op; {
	case op == opBlock, op == opLoop, op == opIf:
		f.ways = append(f.ways, ways{op == opLoop, f.accesses, 0})
		switch op {
		case opLoop:
			f.accesses = 0
		case opIf:
			f.way(0, 0) // over it, if it has no other half
		}
	case op == opElse:
		if !dead {
			f.way(0, 0)
		}
		f.accesses = f.ways[last].begun
	case op == opEnd && f.ways[last].loop:
		f.accesses = f.ways[last].begun
		f.ways = f.ways[:last]
	case op == opEnd:
		if !dead {
			f.way(0, 0)
		}
		f.accesses = f.ways[last].most
		f.ways = f.ways[:last]
	case dead:
	case op == opBranch, op == opBranchIf:
		f.way(in.index, in.index)
	case op == opBranchTable:
		f.way(0, in.index) // also to what it does not name
	case op == prefixSIMD, op >= 0x28 && op <= 0x3e:
		f.accesses++
	}
	if f.accesses < accessesAtOnce || len(f.ways) == 0 || f.estimator.dead {
		return
	}
	f.accesses = 0
	f.regions[inside].calls = true
	f.estimator.look()
	f.edits = append(f.edits, edit{at: behind, to: behind, in: instruction{op: opNop}})
}

var errBranch = errors.New("the module has an invalid function: branch target out of range")

// way notes ways from here to the ends of blocks that are open, by their labels.
func (f *function) way(first, last uint32) {
	n := f.accesses
	for label := range last + 1 {
		if to := &f.ways[len(f.ways)-1-int(label)]; to.loop {
			n = to.begun
		} else if label >= first {
			to.most = max(to.most, n)
		}
	}
}

// usual reads instructions as long as they are of the kinds that make up most code, and returns how
// many they were.
func (f *function) usual(c *cursor) (n int64) {
	e, b := &f.estimator, c.b
	for counts := !e.dead && !e.over; len(b) > 1; n++ {
		k := &kinds[b[0]]
		switch {
		case k.usual, k.bare && k.simple && !f.remainders:
			b = b[1:]
			if counts {
				e.simple(k)
			}
		case k.local && b[1] < 0x80 && uint32(b[1]) < f.locals:
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
func (f *function) structure(in *instruction, inside, at, to int) int {
	begins, next := len(f.regions), inside
	switch in.op {
	case opBlock, opIf:
		f.blocks = append(f.blocks, inside)
	case opLoop:
		f.regions = append(f.regions, region{parent: inside})
		f.blocks = append(f.blocks, begins)
		next = begins
	case opEnd:
		f.blocks = f.blocks[:len(f.blocks)-1]
		if r := f.regions[inside]; r.calls {
			f.regions[r.parent].calls = true
		}
		if n := len(f.blocks); n > 0 {
			next = f.blocks[n-1]
		}
	case opCall, opCallIndirect, opMemoryGrow, opTailCall, opTailIndirect: // the host may charge for memory
		f.regions[inside].calls = true
		f.calling = f.calling || in.op == opCall || in.op == opCallIndirect
	}
	if in.bulk != bulkNone { // is charged by the global
		f.regions[inside].calls = true
	}
	switch op := in.op; {
	case op == opLoop, op == opCall, op == opTailCall, op == opRefFunc, in.bulk != bulkNone:
		f.edits = append(f.edits, edit{at: at, to: to, in: *in, region: begins})
	case op == opReturn && f.may, inside > 0 && !f.regions[inside].calls:
		f.leaving(in, inside, at, to)
	}
	return next
}

// leaving notes an instruction, if with it a loop may be left, or a function that calls others.
func (f *function) leaving(in *instruction, inside, at, to int) {
	e := edit{at: at, to: to, in: *in, region: inside}
	switch in.op {
	case opEnd:
		if len(f.blocks) == 0 || f.blocks[len(f.blocks)-1] == inside {
			return // of a block within the loop
		}
		e.at, e.leaves = to, f.regions[inside].parent
	case opBranch, opBranchIf, opBranchTable:
		if e.leaves = f.blocks[len(f.blocks)-1-int(in.index)]; e.leaves == inside {
			return
		}
		e.values = f.estimator.carried(in.index) > 0
	case opReturn:
		e.in.index = uint32(len(f.blocks) - 1)
	default:
		return
	}
	if inside > 0 {
		f.estimator.exit()
	}
	f.edits = append(f.edits, e)
}
