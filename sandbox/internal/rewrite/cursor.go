package rewrite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

var errMalformed = errors.New("the module is malformed, cut off, or uses features that are not in WebAssembly 2.0")

// A cursor reads forward through untrusted bytes. After a failure it is at the end and returns
// zeros.
type cursor struct {
	b   []byte
	err error // the first failure
}

func (c *cursor) stop(err error) {
	if c.err == nil {
		c.err = err
	}
	c.b = nil
}

func (c *cursor) fail() { c.stop(errMalformed) }

// refuse fails with the name of what the module uses.
func (c *cursor) refuse(feature string) {
	c.stop(fmt.Errorf("the module uses %s, not in WebAssembly 2.0 and not supported", feature))
}

// end returns the failure, which bytes that are left over are too.
func (c *cursor) end() error {
	if len(c.b) > 0 {
		c.fail()
	}
	return c.err
}

func (c *cursor) byte() byte {
	if len(c.b) == 0 {
		c.fail()
		return 0
	}
	b := c.b[0]
	c.b = c.b[1:]
	return b
}

// uint reads an unsigned LEB128 of at most 32 bits. Most have one byte.
func (c *cursor) uint() uint32 {
	if len(c.b) > 0 && c.b[0] < 0x80 {
		v := c.b[0]
		c.b = c.b[1:]
		return uint32(v)
	}
	return c.long()
}

func (c *cursor) long() uint32 {
	v, n := binary.Uvarint(c.b)
	if n <= 0 || n > 5 || v > math.MaxUint32 {
		c.fail()
		return 0
	}
	c.b = c.b[n:]
	return uint32(v)
}

// below reads an index that must be less than n.
func (c *cursor) below(n uint32) uint32 {
	i := c.uint()
	if i >= n {
		c.fail()
		return 0
	}
	return i
}

// leb passes a signed LEB128 of at most so many bytes.
func (c *cursor) leb(most int) {
	for i, b := range c.b[:min(most, len(c.b))] {
		if b < 0x80 {
			c.b = c.b[i+1:]
			return
		}
	}
	c.fail()
}

// count reads how many items follow. Each takes at least one byte.
func (c *cursor) count() uint32 {
	n := c.uint()
	if uint64(n) > uint64(len(c.b)) {
		c.fail()
		return 0
	}
	return n
}

// each calls f, which reads an item, for each item of a vector.
func (c *cursor) each(f func()) {
	for n := c.count(); n > 0 && c.err == nil; n-- {
		f()
	}
}

func (c *cursor) bytes() []byte {
	n := c.count()
	b := c.b[:n:n]
	c.b = c.b[n:]
	return b
}

func (c *cursor) skip(n int) {
	if n > len(c.b) {
		c.fail()
		return
	}
	c.b = c.b[n:]
}

func (c *cursor) name() string { return string(c.bytes()) }

// Value types, 5.3.
const (
	typeI32    = 0x7f
	typeI64    = 0x7e
	typeVector = 0x7b
	typeFunc   = 0x70
	typeExtern = 0x6f
	typeNone   = 0x40 // of a block
	typeOf     = 0x60 // begins the type of a function
)

// value reads a value type.
func (c *cursor) value() {
	switch t := c.byte(); {
	case t >= typeVector && t <= typeI32, t == typeFunc, t == typeExtern, c.err != nil:
	default:
		c.refuse("value types other than numbers, vectors, funcref and externref")
	}
}

// reference reads a reference type.
func (c *cursor) reference() byte {
	t := c.byte()
	if t != typeFunc && t != typeExtern && c.err == nil {
		c.refuse("typed references")
	}
	return t
}

// limits reads how small and how large a table or memory may be.
func (c *cursor) limits() (least, most uint32, bounded bool) {
	flags := c.byte()
	switch {
	case flags > 7:
		c.fail()
	case flags > 3:
		c.refuse("64-bit memory")
	case flags > 1:
		c.refuse("threads")
	}
	least = c.uint()
	if flags == 1 {
		most = c.uint()
	}
	return least, most, flags == 1
}
