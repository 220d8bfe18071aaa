package rewrite_test

import (
	"encoding/binary"
	"math/rand/v2"
)

// A signature is the types of what a function or block takes and leaves.
type signature struct{ params, results string }

const (
	tI64 = 0x7e
	tF64 = 0x7c
	// Global 0 of a generated module counts down where a loop or function begins,
	// and ends the module at 0, so that every call ends by itself.
	rounds = 1000 // less deep than what the interpreter carries
)

// A generator writes valid modules of random content: nested blocks, loops and
// branches that carry values, few or hundreds; calls; memory, tables, traps.
type generator struct {
	r         *rand.Rand
	types     []signature
	functions []int // the type of each, imported ones first
	passive   bool  // it has a passive data segment, and writes to its table

	b      []byte // of the function that is written
	locals string
	labels []string // what a branch to each open block carries, outermost first
	left   int      // instructions, about
}

const generatedImports = 2

// generate writes a module. Function n is exported as f and n in base 26.
func generate(r *rand.Rand) []byte {
	g := &generator{r: r, passive: r.IntN(3) == 0}
	g.types = []signature{{"\x7f", "\x7f"}, {"\x7e", ""}, {"", ""}, {"\x7f\x7f", "\x7e"}}
	for range 4 {
		g.types = append(g.types, signature{g.values(4), g.values(3)})
	}
	large := g.values(1) + many(r.IntN(300), tI32)
	g.types = append(g.types, signature{large, large}, signature{"", large}, signature{large, g.values(2)})
	g.functions = []int{0, 1}
	own := 2 + r.IntN(8)
	if r.IntN(10) == 0 {
		own = 500
	}
	for range own {
		g.functions = append(g.functions, r.IntN(len(g.types)))
	}
	return g.module(own)
}

func many(n int, t byte) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = t
	}
	return string(b)
}

// values returns up to so many types of values.
func (g *generator) values(most int) (s string) {
	for range g.r.IntN(most + 1) {
		s += string(rune(g.value()))
	}
	return s
}

func (g *generator) value() byte { return []byte{tI32, tI32, tI64}[g.r.IntN(3)] }

func (g *generator) module(own int) []byte {
	var types, functions, exports, bodies [][]byte
	for _, s := range g.types {
		types = append(types, join([]byte{0x60}, sized([]byte(s.params)), sized([]byte(s.results))))
	}
	declared := u([]byte{3, 0}, len(g.functions))
	for i, t := range g.functions {
		declared = u(declared, i)
		exports = append(exports, u(append(sized([]byte{'f', byte('a' + i/26%26), byte('a' + i%26), byte('a' + i/676)}), 0), i))
		if i >= generatedImports {
			functions = append(functions, u(nil, t))
			g.left = 10 + g.r.IntN(max(20, 1500/own))
			bodies = append(bodies, sized(g.body(g.types[t])))
		}
	}
	globals := [][]byte{join([]byte{tI32, 1, 0x41}, signed(rounds), []byte{0x0b}), {tI32, 1, 0x41, 5, 0x0b}, {tI64, 1, 0x42, 0x7f, 0x0b}}
	for i := range globals {
		exports = append(exports, []byte{2, 'g', byte('0' + i), 3, byte(i)})
	}
	exports = append(exports, []byte("\x06memory\x02\x00"))
	data := [][]byte{join([]byte{0, 0x41, 16, 0x0b}, sized([]byte("some data")))}
	count := []byte(nil)
	if g.passive {
		data = append(data, append([]byte{1}, sized(make([]byte, 200_000))...))
		count = []byte{12, 1, 2}
	}
	elements := u([]byte{0, 0x41, 0, 0x0b}, 7)
	for range 7 {
		elements = u(elements, g.r.IntN(len(g.functions)))
	}
	out := []byte("\x00asm\x01\x00\x00\x00")
	for _, s := range [][]byte{
		vector8(1, types), vector8(2, [][]byte{[]byte("\x01h\x01a\x00\x00"), []byte("\x01h\x01b\x00\x01")}), vector8(3, functions), vector8(4, [][]byte{{0x70, 0, 8}}),
		vector8(5, [][]byte{{1, 4, 6}}), vector8(6, globals), vector8(7, exports), g.start(), vector8(9, [][]byte{elements, declared}), count, vector8(10, bodies), vector8(11, data),
	} {
		out = append(append(out, g.custom()...), s...)
	}
	return append(out, g.custom()...)
}

// start has a start function, at times.
func (g *generator) start() []byte {
	for i, t := range g.functions {
		if t == 2 && g.r.IntN(3) == 0 {
			return join([]byte{8}, sized(u(nil, i)))
		}
	}
	return nil
}

// custom has an unknown section, at times, or one of names that says it has two billion.
func (g *generator) custom() []byte {
	switch g.r.IntN(8) {
	case 0:
		return join([]byte{0}, sized(join(sized([]byte("x")), make([]byte, g.r.IntN(9)))))
	case 1:
		return join([]byte{0}, sized(join(sized([]byte("name")), []byte{1}, sized([]byte{0xff, 0xff, 0xff, 0xff, 7}))))
	}
	return nil
}

func (g *generator) body(s signature) []byte {
	extra := g.values(5) + "\x7f\x7e"
	g.b, g.locals, g.labels = nil, s.params+extra, []string{s.results}
	if g.r.IntN(20) == 0 { // many, which live across all that follows
		extra += many(g.r.IntN(400), tI32)
		g.locals = s.params + extra
	}
	g.countDown()
	g.statements(1+g.r.IntN(6), 6)
	g.push(s.results, 5)
	out := u(nil, len(extra))
	for _, t := range []byte(extra) {
		out = append(out, 1, t)
	}
	return join(out, g.b, []byte{0x0b})
}

func (g *generator) op(b ...byte) { g.b = append(g.b, b...) }

func (g *generator) index(op byte, i int) { g.b = u(append(g.b, op), i) }

// signed is a number as constants have it.
func signed(n int64) (b []byte) {
	for n < -64 || n > 63 {
		b = append(b, byte(n)|0x80)
		n >>= 7
	}
	return append(b, byte(n)&0x7f)
}

// number writes a constant; most are small, zero or at a limit.
func (g *generator) number(t byte) {
	n := int64(g.r.Uint64()) >> g.r.IntN(64)
	if t == tI32 {
		g.op(append([]byte{0x41}, signed(int64(int32(n)))...)...)
	} else {
		g.op(append([]byte{0x42}, signed(n)...)...)
	}
}

// below writes an i32 that is less than a power of two.
func (g *generator) below(power int64, depth int) {
	g.push("\x7f", depth)
	g.op(append(append([]byte{0x41}, signed(power-1)...), 0x71)...)
}

func (g *generator) countDown() {
	g.op(0x23, 0, 0x41, 1, 0x6b, 0x24, 0, 0x23, 0, 0x45, 0x04, tNone, 0x00, 0x0b)
}

// local returns a local variable of a type.
func (g *generator) local(t byte) int {
	for i, n := g.r.IntN(len(g.locals)), 0; n < len(g.locals); i, n = i+1, n+1 {
		if i %= len(g.locals); g.locals[i] == t {
			return i
		}
	}
	panic("every function has locals of both types")
}

// push writes what leaves values of such types.
func (g *generator) push(types string, depth int) {
	for _, t := range []byte(types) {
		g.expression(t, depth)
	}
}

func (g *generator) drop(types string) {
	for range types {
		g.op(0x1a)
	}
}

// block writes a block, loop or if around what inside writes, of a type that has
// an index.
func (g *generator) block(op byte, typ int, depth int) {
	s := g.types[typ]
	g.push(s.params, depth-1)
	label := s.results
	switch op {
	case 0x03:
		label = s.params
	case 0x04:
		g.expression(tI32, depth-1)
	}
	g.op(append([]byte{op}, signed(int64(typ))...)...)
	g.within(label, func() {
		if op == 0x03 {
			g.countDown()
		}
		if op == 0x03 && g.r.IntN(2) == 0 { // again, with what it has
			g.expression(tI32, 1)
			g.op(0x41, 3, 0x71, 0x0d, 0)
		}
		g.drop(s.params)
		g.statements(g.r.IntN(3), depth-1)
		g.push(s.results, depth-1)
		if op == 0x04 {
			g.op(0x05)
			g.drop(s.params)
			g.push(s.results, depth-1)
		}
	})
}

// typed returns a type with one result.
func (g *generator) typed(t byte) (typ int, ok bool) {
	for range 4 {
		if i := g.r.IntN(len(g.types)); g.types[i].results == string(rune(t)) {
			return i, true
		}
	}
	return 0, false
}

var (
	operations32 = []byte{0x6a, 0x6b, 0x6c, 0x6d, 0x6e, 0x6f, 0x70, 0x71, 0x72, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x46, 0x48, 0x4d}
	operations64 = []byte{0x7c, 0x7d, 0x7e, 0x7f, 0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89}
)

// expression writes what leaves a value of a type.
func (g *generator) expression(t byte, depth int) {
	if g.left--; depth <= 0 || g.left < 0 {
		if g.r.IntN(3) == 0 {
			g.number(t)
		} else {
			g.index(0x20, g.local(t))
		}
		return
	}
	typ, ok := g.typed(t)
	switch k := g.r.IntN(12); {
	case k < 4:
		g.push(string([]byte{t, t}), depth-1)
		if t == tI32 {
			g.op(operations32[g.r.IntN(len(operations32))])
		} else {
			g.op(operations64[g.r.IntN(len(operations64))])
		}
	case k == 4 && t == tI32:
		g.expression(tI64, depth-1)
		g.op(0xa7)
	case k == 4: // by way of a float, whose NaNs cannot be seen
		g.expression(tI32, depth-1)
		g.op(0xb7, 0x9f, 0xfc, 6)
	case k == 5:
		g.below(1<<18, depth-1)
		if t == tI32 {
			g.op(0x28, 2, 4)
		} else {
			g.op(0x29, 3, 8)
		}
	case k == 6:
		g.push(string([]byte{t, t, tI32}), depth-1)
		g.op(0x1b)
	case k == 7 && ok:
		g.block([]byte{2, 3, 4}[g.r.IntN(3)], typ, depth)
	case k == 8 && ok:
		g.push(g.types[typ].params, depth-1)
		g.below(8, 1)
		g.index(0x11, typ)
		g.op(0)
	case k == 9:
		g.expression(t, depth-1)
		g.index(0x22, g.local(t))
	case k == 10 && t == tI32: // through a vector
		g.expression(tI32, depth-1)
		g.op(0xfd, 17, 0xfd, 27, 1)
	case k == 11 && t == tI32:
		g.op([]byte{0x41, 0x41, 0x3f}[g.r.IntN(3)], 0)
	default:
		g.number(t)
	}
}

func (g *generator) statements(n, depth int) {
	for range n {
		g.statement(depth)
	}
}

func (g *generator) statement(depth int) {
	if g.left--; depth <= 0 || g.left < 0 {
		g.op(0x01)
		return
	}
	switch g.r.IntN(14) {
	case 0, 1:
		t := g.value()
		g.expression(t, depth-1)
		g.index(0x21, g.local(t))
	case 2:
		g.expression(tI32, depth-1)
		g.op(0x24, 1)
	case 3:
		g.below(1<<18, depth-1)
		g.expression(tI64, depth-1)
		g.op(0x37, 3, 0)
	case 4, 5: // a block of any type, also of hundreds of values
		typ := g.r.IntN(len(g.types))
		g.block([]byte{2, 3, 4}[g.r.IntN(3)], typ, depth)
		g.drop(g.types[typ].results)
	case 6, 7: // a branch that may be taken
		l := g.r.IntN(len(g.labels))
		carried := g.labels[len(g.labels)-1-l]
		g.push(carried, depth-2)
		g.expression(tI32, depth-1)
		g.index(0x0d, l)
		g.drop(carried)
	case 8: // one that is taken
		g.expression(tI32, depth-1)
		l := 1 + g.r.IntN(len(g.labels))
		g.op(0x04, tNone)
		g.within("", func() {
			g.push(g.labels[len(g.labels)-1-l], depth-2)
			if l == len(g.labels)-1 && g.r.IntN(2) == 0 {
				g.op(0x0f)
			} else {
				g.index(0x0c, l)
			}
		})
	case 9:
		g.jumpTable(depth)
	case 10:
		f := g.r.IntN(len(g.functions))
		s := g.types[g.functions[f]]
		g.push(s.params, depth-2)
		g.index(0x10, f)
		g.drop(s.results)
	case 11, 12:
		g.bulk(depth)
	case 13:
		g.op(0x41)
		g.op(signed(int64(g.r.IntN(2)))...)
		g.op(0x40, 0, 0x1a)
	}
}

// jumpTable writes a br_table to blocks that all carry what one does.
func (g *generator) jumpTable(depth int) {
	carried := g.labels[g.r.IntN(len(g.labels))]
	var to []int
	for i, l := range g.labels {
		if l == carried {
			to = append(to, len(g.labels)-i) // one more is open around it
		}
	}
	g.op(0x02, tNone)
	g.within("", func() {
		g.push(carried, depth-2)
		g.below(8, depth-1)
		g.index(0x0e, 7)
		for range 8 {
			g.b = u(g.b, to[g.r.IntN(len(to))])
		}
	})
}

// within writes what is in a block to which a branch carries such values, and its
// end.
func (g *generator) within(carried string, inside func()) {
	g.labels = append(g.labels, carried)
	inside()
	g.labels = g.labels[:len(g.labels)-1]
	g.op(0x0b)
}

// bulk moves memory, up to some pieces of it, or writes to the table.
func (g *generator) bulk(depth int) {
	g.below(1<<18, depth-1)
	switch k := g.r.IntN(6); {
	case k < 2:
		g.expression(tI32, 1)
		g.below(1<<18, depth-1)
		g.op(0xfc, 11, 0)
	case k < 4:
		g.below(1<<18, depth-1)
		g.below(1<<18, depth-1)
		g.op(0xfc, 10, 0, 0)
	case k == 4 && g.passive:
		g.below(1<<18, depth-1)
		g.below(1<<18, depth-1)
		g.op(0xfc, 8, 1, 0)
	case g.passive:
		g.op(0x41, 7, 0x71)
		g.index(0xd2, g.r.IntN(len(g.functions)))
		g.op(0x26, 0)
	default:
		g.op(0x1a)
	}
}

// seeded returns a source of random numbers that a seed tells.
func seeded(seed uint64) *rand.Rand {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	return rand.New(rand.NewChaCha8(key))
}
