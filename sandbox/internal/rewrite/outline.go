package rewrite

import (
	"crypto/sha256"
	"encoding/binary"
)

// Outline returns what is left of a module that Meter or Seal wrote if every function of
// it does nothing but trap. An engine that has the module's machine code needs no more:
// it neither reads nor validates megabytes of code that it will not look at again. No
// other module has the same outline, for the module's digest is in it.
func Outline(wasm []byte) []byte {
	sum := sha256.Sum256(wasm)
	digest := append(appendName(nil, "wasmgate:module"), sum[:]...)
	out := append([]byte{}, preamble...)
	for c := (&cursor{b: wasm[len(preamble):]}); len(c.b) > 0; {
		id, body := c.byte(), c.bytes()
		if id == sectionCode {
			body = traps((&cursor{b: body}).count())
		}
		out = binary.AppendUvarint(append(out, id), uint64(len(body)))
		out = append(out, body...)
	}
	out = binary.AppendUvarint(append(out, sectionCustom), uint64(len(digest)))
	return append(out, digest...)
}

// traps is a section of so many functions without locals that trap at once.
func traps(n uint32) []byte {
	out := binary.AppendUvarint(nil, uint64(n))
	for range n {
		out = append(out, 3, 0, opUnreachable, opEnd)
	}
	return out
}
