package rewrite

// A kind is what all instructions of an opcode have in common.
type kind struct {
	bare   bool // nothing follows the opcode
	usual  bool // so it is, and they are simple and no remainders
	local  bool // they read or write a local variable
	simple bool // they neither branch nor call, and name no local variable
	class  class
	effect int8 // by how many values they change the operand stack
}

// A class is of instructions that are compiled alike.
type class int

const (
	others class = iota
	accesses
	ofGlobals
	divisions
	truncations
	vectors
	classes
)

var vector = kind{class: vectors}

// Costs of an instruction of a class.
var perClass = [classes]struct{ code, memory, steps int64 }{
	others:      {codePlain, memoryPlain, 0},
	accesses:    {codeAccess, memoryAccess, 0},
	ofGlobals:   {codePlain, memoryPlain, 0},
	divisions:   {codeDivide, memoryAccess, 8 << 10},
	truncations: {codeTruncate, memoryTruncate, 16 << 10},
	vectors:     {codeVector, memoryAccess, 0},
}

var kinds = func() (kinds [256]kind) {
	for op := range 256 {
		switch op := byte(op); {
		case op <= opNop, op == opElse, op == opEnd, op == opReturn, op == opDrop, op == opSelect, op >= 0x45 && op <= 0xc4, op == 0xd1: // arithmetic, ref.is_null
			kinds[op].bare = true
		case op >= opLocalGet && op <= opLocalTee:
			kinds[op].local = true
		}
		switch op := byte(op); {
		case op == opMemoryGrow, op == prefixMisc, op == prefixSIMD, op >= opBlock && op < opDrop, op >= opLocalGet && op <= opLocalTee, op == opUnreachable:
			continue
		case op >= 0x28 && op <= 0x3f: // loads and stores, memory.size
			kinds[op].class = accesses
		case op == opGlobalGet, op == opGlobalSet:
			kinds[op].class = ofGlobals
		case op >= 0x6d && op <= 0x70, op >= 0x7f && op <= 0x82:
			kinds[op].class = divisions
		case op >= 0xa8 && op <= 0xab, op >= 0xae && op <= 0xb1: // from floats to integers
			kinds[op].class = truncations
		}
		kinds[op].simple, kinds[op].effect = true, effect(byte(op))
		kinds[op].usual = kinds[op].bare && !isRemainder(byte(op))
	}
	return kinds
}()

// effect is by how many values a simple instruction changes the operand stack.
func effect(op byte) int8 {
	switch {
	case op == opDrop, op == opGlobalSet, op >= 0x46 && op <= 0x4f, op >= 0x51 && op <= 0x66, // comparisons
		op >= 0x6a && op <= 0x78, op >= 0x7c && op <= 0x8a, op >= 0x92 && op <= 0x98, op >= 0xa0 && op <= 0xa6: // of two operands
		return -1
	case op == opSelect, op == opSelectTyped, op == 0x26, op >= 0x36 && op <= 0x3e: // table.set, stores
		return -2
	case op == opGlobalGet, op == 0x3f, op >= opI32Const && op <= 0x44, op == 0xd0, op == opRefFunc: // memory.size, constants
		return 1
	}
	return 0
}

func effectMisc(op uint32) int64 {
	switch {
	case op == memoryInit, op == memoryCopy, op == memoryFill, op == 12, op == 14, op == 17: // bulk instructions
		return -3
	case op == tableGrow:
		return -1
	case op == 16: // table.size
		return 1
	}
	return 0
}

// unary are the vector instructions from 96 on that have one operand.
var unary = func() (is [256]bool) {
	for _, r := range [][2]int{{96, 100}, {103, 106}, {116, 117}, {122, 122}, {124, 129}, {131, 132}, {135, 138}, {148, 148}, {160, 161}, {163, 164}, {167, 170},
		{192, 193}, {195, 196}, {199, 202}, {224, 225}, {227, 227}, {236, 237}, {239, 239}, {248, 255}} {
		for op := r[0]; op <= r[1]; op++ {
			is[op] = true
		}
	}
	return is
}()

func effectVector(op uint32) int64 {
	switch {
	case op == 12: // v128.const
		return 1
	case op == 11, op >= 88 && op <= 91, op == 82: // stores, bitselect
		return -2
	case op < 11, op >= 15 && op <= 20, op == 77, op == 83, op >= 92 && op <= 95: // loads, splats, not, any_true, conversions
		return 0
	case op >= 21 && op <= 34: // lanes: extracted, or replaced
		switch op {
		case 23, 26, 28, 30, 32, 34:
			return -1
		}
		return 0
	case op >= 96 && unary[op]:
		return 0
	}
	return -1
}
