package rewrite

import "encoding/binary"

// An emitter writes the instructions of one function.
type emitter struct {
	body  []byte
	meter uint32 // the index of MeterFunction
	fuel  uint32 // the index of MeterGlobal, behind which is BehindGlobal
	left  uint32 // the index of the local for what is left of the fuel, the first of those that are added
}

// spend subtracts a cost from the fuel, which is on the stack.
func (e *emitter) spend(cost int64, store bool) {
	e.number(opI64Const, cost)
	e.settle(store)
}

// bulk subtracts what a bulk instruction on a table costs whose length is on the
// stack, and stays there. A table is so small that it takes no time.
func (e *emitter) bulk() {
	e.index(opLocalTee, e.left+1)
	e.index(opGlobalGet, e.fuel)
	e.index(opLocalGet, e.left+1)
	e.body = append(e.body, opI64Extend)
	e.settle(true)
}

// settle takes the fuel and what to subtract from it off the stack, keeps the
// difference in the local, and calls the meter if it is negative. It stores the
// same in the global, unless that is done where the loop is left.
func (e *emitter) settle(store bool) {
	e.body = append(e.body, opI64Sub)
	e.index(opLocalTee, e.left)
	if store {
		e.index(opGlobalSet, e.fuel)
		e.index(opLocalGet, e.left)
	}
	e.body = append(e.body, opI64Const, 0, opI64Less, opIf, typeNone)
	e.index(opLocalGet, e.left)
	e.index(opCall, e.meter)
	e.index(opLocalTee, e.left)
	e.index(opGlobalSet, e.fuel)
	e.body = append(e.body, opEnd)
}

// ask writes the function that asks the meter.
func (e *emitter) ask() {
	e.body = append(e.body, 0) // no locals
	e.index(opGlobalGet, e.fuel)
	e.index(opCall, e.meter)
	e.index(opGlobalSet, e.fuel)
	e.body = append(e.body, opEnd)
}

// index writes an instruction with an index.
func (e *emitter) index(op byte, i uint32) {
	e.body = binary.AppendUvarint(append(e.body, op), uint64(i))
}

// number writes an instruction with a signed number that is not negative.
func (e *emitter) number(op byte, n int64) {
	e.body = signed(append(e.body, op), n)
}

// signed writes a signed number that is not negative.
func signed(b []byte, n int64) []byte {
	for ; n > 0x3f; n >>= 7 {
		b = append(b, byte(n&0x7f|0x80))
	}
	return append(b, byte(n))
}

func (e *emitter) get(locals ...uint32) {
	for _, i := range locals {
		e.index(opLocalGet, i)
	}
}
