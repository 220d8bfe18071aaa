package rewrite

import "bytes"

// pieceSize is how many bytes are moved between two charges: that takes some
// microseconds, or tens of them where the pages of memory are new.
const pieceSize = 64 << 10

// A piece is an instruction that moves memory: memory.init, copy or fill. It is
// called as a function of its three operands.
type piece struct {
	code []byte // the instruction
	op   uint32
}

// piecewise returns the index of the function that does what an instruction does.
func (w *writer) piecewise(code []byte, op uint32) uint32 {
	first := uint32(len(w.m.functions)) + 1 + w.own()
	for i, p := range w.pieces {
		if bytes.Equal(p.code, code) {
			return first + uint32(i)
		}
	}
	w.pieces = append(w.pieces, piece{code, op})
	return first + uint32(len(w.pieces)) - 1
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
func (w *writer) inPieces(p piece) {
	w.locals = pieceLocals
	w.body = append(w.body, 1, 1, typeI64) // one local, for what is left of the fuel
	w.pieceLeft()
	w.body = append(w.body, opIf, typeNone)
	w.overflows(pieceTo)
	if p.op != memoryFill {
		w.overflows(pieceFrom)
		w.body = append(w.body, opI32Or)
	}
	w.body = append(w.body, opIf, typeNone)
	w.get(pieceTo, pieceFrom, pieceLength)
	w.body = append(append(w.body, p.code...), opEnd)
	w.ends(p)
	w.number(opI32Const, 0)
	w.body = append(w.body, p.code...)
	if p.op == memoryCopy { // from its end on, if it is copied to higher addresses
		w.get(pieceFrom, pieceTo)
		w.body = append(w.body, opI32Less, opIf, typeNone)
		w.rounds(p, true)
		w.body = append(w.body, opElse)
	}
	w.rounds(p, false)
	if p.op == memoryCopy {
		w.body = append(w.body, opEnd)
	}
	w.body = append(w.body, opEnd)
	w.index(opGlobalGet, w.fuel)
	w.get(pieceLength)
	w.body = append(w.body, opI64Extend, opI64Const, 3, opI64Shift)
	w.settle(true)
	w.get(pieceTo, pieceFrom, pieceLength)
	w.body = append(append(w.body, p.code...), opEnd)
}

// rounds writes a loop that moves whole pieces while there is more than one, from
// the end or from the beginning on.
func (w *writer) rounds(p piece, backwards bool) {
	w.body = append(w.body, opLoop, typeNone)
	w.index(opGlobalGet, w.fuel)
	w.spend(pieceSize/8, true)
	w.advance(pieceLength, opI32Sub)
	if backwards {
		w.ends(p)
	} else {
		w.get(pieceTo, pieceFrom)
	}
	w.number(opI32Const, pieceSize)
	w.body = append(w.body, p.code...)
	if !backwards {
		w.advance(pieceTo, opI32Add)
	}
	if !backwards && p.op != memoryFill {
		w.advance(pieceFrom, opI32Add)
	}
	w.pieceLeft()
	w.body = append(w.body, opBranchIf, 0, opEnd)
}

// pieceLeft asks whether there is more than a piece.
func (w *writer) pieceLeft() {
	w.get(pieceLength)
	w.number(opI32Const, pieceSize)
	w.body = append(w.body, opI32More)
}

// overflows asks whether what begins at an address ends beyond 32 bits.
func (w *writer) overflows(address uint32) {
	w.get(address, pieceLength)
	w.body = append(w.body, opI32Add)
	w.get(address)
	w.body = append(w.body, opI32Less)
}

// ends puts the first two operands on the stack, of what is behind all that is to
// be moved.
func (w *writer) ends(p piece) {
	w.get(pieceTo, pieceLength)
	w.body = append(w.body, opI32Add)
	w.get(pieceFrom)
	if p.op != memoryFill {
		w.get(pieceLength)
		w.body = append(w.body, opI32Add)
	}
}

// advance adds the size of a piece to a parameter, or subtracts it.
func (w *writer) advance(parameter uint32, op byte) {
	w.get(parameter)
	w.number(opI32Const, pieceSize)
	w.body = append(w.body, op)
	w.index(opLocalSet, parameter)
}

func (w *writer) get(locals ...uint32) {
	for _, i := range locals {
		w.index(opLocalGet, i)
	}
}
