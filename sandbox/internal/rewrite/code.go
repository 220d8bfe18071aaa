package rewrite

import (
	"bytes"
	"encoding/binary"
)

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
		w.function.transform(body, w.m.imported+i)
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

// gate writes the function through which an imported one is called.
func (w *writer) gate(i uint32) {
	if w.m.again(i) {
		w.body = append(w.body, 1, 1, typeI32) // one local, for the result
	} else {
		w.body = append(w.body, 0)
	}
	w.index(opGlobalGet, w.fuel)
	w.number(opI64Const, HostCall)
	w.body = append(w.body, opI64Sub)
	w.index(opCall, w.meter)
	w.index(opGlobalSet, w.fuel)
	switch stub := w.m.stub(i); {
	case stub == failing:
		w.number(opI32Const, noFunction)
	case stub == trapping:
		w.body = append(w.body, opUnreachable)
	case w.m.again(i):
		w.callAgain(i)
	default:
		for p := range w.m.params[w.m.functions[i]] {
			w.index(opLocalGet, p)
		}
		w.index(opCall, i)
	}
	w.body = append(w.body, opEnd)
}

// run writes RunFunction.
func (w *writer) run() {
	w.body = append(w.body, 0) // no locals
	w.index(opCall, w.shift(w.command))
	w.number(opI32Const, 0)
	w.index(opCall, w.shift(w.m.exit-1))
	w.body = append(w.body, opEnd)
}

// callAgain writes the call of the i-th imported function, which has the form of a read, in
// a loop. It costs nothing: each round is the host's wish.
func (e *emitter) callAgain(i uint32) {
	const result = 4 // behind the parameters
	e.body = append(e.body, opLoop, typeI32)
	e.get(0, 1, 2, 3)
	e.index(opCall, i)
	e.index(opLocalTee, result)
	e.body = append(e.body, opI32Const, 0x7f, opI32Equal, opBranchIf, 0) // -1, which is Again
	e.get(result)
	e.body = append(e.body, opEnd)
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
