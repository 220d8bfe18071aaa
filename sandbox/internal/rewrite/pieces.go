package rewrite

// pieceSize is how many bytes are moved between two charges: that takes some
// microseconds, or tens of them where the pages of memory are new.
const pieceSize = 64 << 10

// A piece is an instruction that moves memory: memory.init, copy or fill. It is
// called as a function of its three operands.
type piece struct {
	code []byte // the instruction
	op   uint32
}

// Parameters of a piece: where to, where from or the value, and how much.
const (
	pieceTo = iota
	pieceFrom
	pieceLength
	pieceLocals
)

// inPieces writes the function that does what an instruction does, a piece after
// the other. It traps before it moves anything where the instruction does: where
// an end is beyond 32 bits, or where moving nothing at the end traps.
func (e *emitter) inPieces(p piece) {
	e.left = pieceLocals
	e.body = append(e.body, 1, 1, typeI64) // one local, for what is left of the fuel
	e.pieceLeft()
	e.body = append(e.body, opIf, typeNone)
	e.overflows(pieceTo)
	if p.op != memoryFill {
		e.overflows(pieceFrom)
		e.body = append(e.body, opI32Or)
	}
	e.body = append(e.body, opIf, typeNone)
	e.get(pieceTo, pieceFrom, pieceLength)
	e.body = append(append(e.body, p.code...), opEnd)
	e.ends(p)
	e.number(opI32Const, 0)
	e.body = append(e.body, p.code...)
	if p.op == memoryCopy { // from its end on, if it is copied to higher addresses
		e.get(pieceFrom, pieceTo)
		e.body = append(e.body, opI32Less, opIf, typeNone)
		e.rounds(p, true)
		e.body = append(e.body, opElse)
	}
	e.rounds(p, false)
	if p.op == memoryCopy {
		e.body = append(e.body, opEnd)
	}
	e.body = append(e.body, opEnd)
	e.index(opGlobalGet, e.fuel)
	e.get(pieceLength)
	e.body = append(e.body, opI64Extend, opI64Const, 3, opI64Shift)
	e.settle(true)
	e.get(pieceTo, pieceFrom, pieceLength)
	e.body = append(append(e.body, p.code...), opEnd)
}

// rounds writes a loop that moves whole pieces while there is more than one, from
// the end or from the beginning on.
func (e *emitter) rounds(p piece, backwards bool) {
	e.body = append(e.body, opLoop, typeNone)
	e.index(opGlobalGet, e.fuel)
	e.spend(pieceSize/8, true)
	e.advance(pieceLength, opI32Sub)
	if backwards {
		e.ends(p)
	} else {
		e.get(pieceTo, pieceFrom)
	}
	e.number(opI32Const, pieceSize)
	e.body = append(e.body, p.code...)
	if !backwards {
		e.advance(pieceTo, opI32Add)
	}
	if !backwards && p.op != memoryFill {
		e.advance(pieceFrom, opI32Add)
	}
	e.pieceLeft()
	e.body = append(e.body, opBranchIf, 0, opEnd)
}

// pieceLeft asks whether there is more than a piece.
func (e *emitter) pieceLeft() {
	e.get(pieceLength)
	e.number(opI32Const, pieceSize)
	e.body = append(e.body, opI32More)
}

// overflows asks whether what begins at an address ends beyond 32 bits.
func (e *emitter) overflows(address uint32) {
	e.get(address, pieceLength)
	e.body = append(e.body, opI32Add)
	e.get(address)
	e.body = append(e.body, opI32Less)
}

// ends puts the first two operands on the stack, of what is behind all that is to
// be moved.
func (e *emitter) ends(p piece) {
	e.get(pieceTo, pieceLength)
	e.body = append(e.body, opI32Add)
	e.get(pieceFrom)
	if p.op != memoryFill {
		e.get(pieceLength)
		e.body = append(e.body, opI32Add)
	}
}

// advance adds the size of a piece to a parameter, or subtracts it.
func (e *emitter) advance(parameter uint32, op byte) {
	e.get(parameter)
	e.number(opI32Const, pieceSize)
	e.body = append(e.body, op)
	e.index(opLocalSet, parameter)
}
