package rewrite

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

// values is how many values there are in all.
func (s shape) values() int64 { return int64(s.params) + int64(s.results) }

const (
	bulkNone = iota
	bulkBytes
	bulkEntries
)
