package rewrite

import "runtime"

// divideForRemainders has the remainder of a by b written as a - a/b*b. The engine's back
// end for arm64 computes some remainders wrong if many values live at once: its version
// 1.12.0 may give one of the registers of the instruction away before it is done. Tests
// set it elsewhere, too.
var divideForRemainders = runtime.GOARCH == "arm64"

// The instructions that are written, and of what: those of i32 and, behind them, of i64.
const (
	opI32Multiply  = 0x6c
	opI32Remainder = 0x6f // signed; unsigned is the next, as for i64
	opI64Equal     = 0x51
	opI64Multiply  = 0x7e
	opI64Remainder = 0x81
	toDivision     = 2 // by how much the opcode of the division is less
)

func isRemainder(op byte) bool {
	return op == opI32Remainder || op == opI32Remainder+1 || op == opI64Remainder || op == opI64Remainder+1
}

// remainder writes a remainder as a division, which traps as it does by zero.
func (e *emitter) remainder(op byte) {
	a, number, equal, multiply, subtract := e.left+2, byte(opI32Const), byte(opI32Equal), byte(opI32Multiply), byte(opI32Sub)
	if op >= opI64Remainder {
		a, number, equal, multiply, subtract = e.left+4, opI64Const, opI64Equal, opI64Multiply, opI64Sub
	}
	b := a + 1
	e.index(opLocalSet, b)
	e.index(opLocalTee, a)
	e.index(opLocalGet, a)
	if op == opI32Remainder || op == opI64Remainder {
		// By -1 the division of the smallest number traps; by 1 as little is left.
		e.body = append(e.body, number, 1)
		e.index(opLocalGet, b)
		e.index(opLocalGet, b)
		e.body = append(e.body, number, minusOne, equal, opSelect)
		e.index(opLocalTee, b)
	} else {
		e.index(opLocalGet, b)
	}
	e.body = append(e.body, op-toDivision)
	e.index(opLocalGet, b)
	e.body = append(e.body, multiply, subtract)
}

const minusOne = 0x7f // as constants have it
