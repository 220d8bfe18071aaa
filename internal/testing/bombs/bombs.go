// Package bombs writes modules that are small and ask much of a compiler, for tests. All
// of them are valid.
package bombs

import (
	"bytes"
	"encoding/binary"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
)

// A Shape is a module of one kind of cost: a function 0 with a body, and what it
// needs.
type Shape struct {
	Types     [][2]int // how many i32 each takes and leaves, behind one of none
	Locals    int      // i32 of the function; two v128 follow, or more
	Vectors   int
	Body      []byte
	More      []Function
	Globals   int
	Constants int // globals that cannot change
	Imports   int // of sched_yield, which come first
}

// A Function is one more, of the type with this index.
type Function struct {
	Type int
	Body []byte
}

const (
	tI32  = 0x7f
	tV128 = 0x7b
	tNone = 0x40
)

// WASM returns the module, which exports its memory, and function 0 as f and _start.
// Functions with an index from Imports on are its own.
func (s Shape) WASM() []byte {
	types := [][]byte{{0x60, 0, 0}, {0x60, 0, 1, tI32}}
	for _, t := range s.Types {
		b := append(u([]byte{0x60}, t[0]), bytes.Repeat([]byte{tI32}, t[0])...)
		types = append(types, append(u(b, t[1]), bytes.Repeat([]byte{tI32}, t[1])...))
	}
	var functions, globals, imports [][]byte
	bodies := [][]byte{sized(slices.Concat(u([]byte{2}, s.Locals), []byte{tI32, byte(max(s.Vectors, 2)), tV128}, s.Body, []byte{0x0b}))}
	functions = append(functions, []byte{0})
	for _, f := range s.More {
		functions = append(functions, u(nil, f.Type))
		bodies = append(bodies, sized(slices.Concat([]byte{0}, f.Body, []byte{0x0b})))
	}
	exports := [][]byte{[]byte("\x06memory\x02\x00"), append([]byte("\x01f\x00"), u(nil, s.Imports)...), append([]byte("\x06_start\x00"), u(nil, s.Imports)...)}
	for range s.Globals {
		globals = append(globals, []byte{tI32, 1, 0x41, 0, 0x0b})
	}
	for range s.Constants {
		globals = append(globals, []byte{tI32, 0, 0x41, 0, 0x0b})
	}
	for range s.Imports {
		imports = append(imports, slices.Concat(sized([]byte("wasi_snapshot_preview1")), sized([]byte("sched_yield")), []byte{0, 1}))
	}
	return slices.Concat([]byte("\x00asm\x01\x00\x00\x00"), vector8(1, types), vector8(2, imports), vector8(3, functions), vector8(4, [][]byte{{0x70, 0, 1}}),
		vector8(5, [][]byte{{0, 1}}), vector8(6, globals), vector8(7, exports), vector8(10, bodies))
}

func u(b []byte, n int) []byte      { return binary.AppendUvarint(b, uint64(n)) }
func sized(b []byte) []byte         { return append(u(nil, len(b)), b...) }
func op(o byte, n int) []byte       { return u([]byte{o}, n) }
func get(i int) []byte              { return op(0x20, i) }
func set(i int) []byte              { return op(0x21, i) }
func brIf(l int) []byte             { return op(0x0d, l) }
func times(n int, b ...byte) []byte { return bytes.Repeat(b, n) }
func join(parts ...[]byte) []byte   { return slices.Concat(parts...) }

// vector8 writes a section of items.
func vector8(id byte, items [][]byte) []byte {
	return append([]byte{id}, sized(append(u(nil, len(items)), slices.Concat(items...)...))...)
}

// each joins what f makes for all numbers below n.
func each(n int, f func(i int) []byte) (b []byte) {
	for i := range n {
		b = append(b, f(i)...)
	}
	return b
}

func gets(n int) []byte { return each(n, get) }

// fetch gives so many local variables values that a compiler cannot know, and keep uses them.
func fetch(n int) []byte {
	return each(n, func(i int) []byte { return join([]byte{0x41, 0, 0x28, 2}, u(nil, 4*i), set(i)) })
}

func keep(n int) []byte {
	return each(n, func(i int) []byte { return join([]byte{0x41, 0}, get(i), []byte{0x36, 2, 0}) })
}

// vectors computes so often with the v128 behind so many locals.
func vectors(n, locals int, operands int, code ...byte) []byte {
	one := join(times(operands, get(locals)...), code, set(locals))
	return join(times(n, one...), []byte{0x41, 0}, get(locals), []byte{0xfd, 11, 4, 0})
}

// Shapes are what a small module can ask of a compiler: n times something of m
// values.
func Shapes(n, m int) map[string]func() Shape {
	swap := [][2]int{{m, m}} // type 2
	same := []Function{{2, gets(m)}}
	loopBack := join(get(0), brIf(0), []byte{0x0b})
	drops, set1, chain := times(m, 0x1a), join([]byte{0x41, 1}, set(1)), times(n, join(get(0), brIf(0))...)
	return map[string]func() Shape{
		"instructions": func() Shape {
			return Shape{Locals: 2, Body: join(times(n*m, join(get(0), []byte{0x41, 3, 0x6a}, set(0))...), keep(1))}
		},
		"loads": func() Shape {
			return Shape{Locals: 60, Body: join(each(n*m/4, func(i int) []byte { return join(get(i%60), []byte{0x28, 2, 4}, set((i*13+1)%60)) }), keep(60))}
		},
		"divisions": func() Shape {
			return Shape{Locals: 2, Body: join(times(n*m/4, join(get(0), get(1), []byte{0x6d}, set(0))...), keep(1))}
		},
		"truncations": func() Shape {
			return Shape{Locals: 2, Body: join(times(n*m/4, join(get(0), []byte{0xb2, 0xa8}, set(0))...), keep(1))}
		},
		"vectors, popcnt":      func() Shape { return Shape{Locals: 1, Body: vectors(n*m/8, 1, 1, 0xfd, 98)} },
		"vectors, truncations": func() Shape { return Shape{Locals: 1, Body: vectors(n*m/8, 1, 1, 0xfd, 0xf9, 1)} },
		"vectors, products":    func() Shape { return Shape{Locals: 1, Body: vectors(n*m/8, 1, 2, 0xfd, 0xdc, 1)} },
		"bulk":                 func() Shape { return Shape{Locals: 1, Body: times(n*m/64, 0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 11, 0)} },
		"calls": func() Shape {
			return Shape{Types: swap, Locals: m, More: same, Body: join(gets(m), times(n, 0x10, 1), drops)}
		},
		"results": func() Shape {
			return Shape{Types: [][2]int{{0, m}}, More: []Function{{2, times(m, 0x41, 1)}}, Body: append(times(n, 0x10, 1), 0x00)}
		},
		"indirect calls": func() Shape {
			return Shape{Types: swap, Locals: m, Body: join(gets(m), times(n, 0x41, 0, 0x11, 2, 0), drops)}
		},
		"returns": func() Shape {
			return Shape{Types: swap, More: []Function{{2, join(gets(m), times(n, join(get(0), []byte{4, 2, 0x0f, 0x0b})...))}}}
		},
		"blocks": func() Shape {
			return Shape{Types: swap, Locals: m, More: same, Body: join(gets(m), times(n, join([]byte{2, 2}, get(0), brIf(0), []byte{0x10, 1, 0x0b})...), drops)}
		},
		"loops of values": func() Shape {
			return Shape{Types: swap, Locals: m, More: same, Body: join(gets(m), times(n, join([]byte{3, 2, 0x10, 1}, loopBack)...), drops)}
		},
		"ifs of values": func() Shape {
			return Shape{Types: swap, Locals: m, More: same, Body: join(gets(m), times(n, join(get(0), []byte{4, 2, 0x10, 1, 0x0b})...), drops)}
		},
		"branches": func() Shape {
			return Shape{Types: swap, Locals: m, More: same, Body: join(gets(m), []byte{2, 2}, times(n, join(get(0), brIf(0), []byte{0x10, 1})...), []byte{0x0b}, drops)}
		},
		"jump tables": func() Shape {
			return Shape{Types: [][2]int{{0, m}}, Locals: m, Body: join(fetch(m), []byte{2, 2, 2, 2}, gets(m), get(0), u([]byte{0x0e}, n/2*2), times(n/2, 0, 1), []byte{0, 0x0b}, drops, gets(m), []byte{0x0b}, drops)}
		},
		"ways": func() Shape {
			return Shape{Locals: 1, Body: join(times(m, 2, tNone), times(n*m/64, join(get(0), brIf(m-1))...), times(m, 0x0b))}
		},
		"lookups": func() Shape {
			return Shape{Locals: m, Body: join(fetch(m), times(n, join(get(0), []byte{4, tNone, 1, 0x0b})...), keep(m))}
		},
		"loops over locals": func() Shape {
			return Shape{Locals: m, Body: join(fetch(m), times(n, join([]byte{3, tNone}, loopBack)...), keep(m))}
		},
		"nested loops": func() Shape {
			return Shape{Locals: m, Body: join(fetch(m), times(n/4, 3, tNone), each(m, func(i int) []byte { return join(get(i), []byte{0x41, 1, 0x6a}, set(i)) }), times(n/4, loopBack...), keep(m))}
		},
		"nested loops over locals": func() Shape {
			return Shape{Locals: m, Body: join(fetch(m), times(n, 3, tNone), times(n, loopBack...), keep(m))}
		},
		"ifs that write locals": func() Shape {
			return Shape{Locals: m, Body: join(fetch(m), times(n/16, join(get(0), []byte{4, tNone}, each(m, func(i int) []byte { return join([]byte{0x41, 1}, set(i)) }), []byte{0x0b}, keep(m))...))}
		},
		"values on the stack": func() Shape {
			return Shape{Locals: 1, Body: join(each(m, func(i int) []byte { return join([]byte{0x41, 0, 0x28, 2}, u(nil, 4*i)) }), times(n, join(get(0), []byte{4, tNone, 0x0b})...), drops)}
		},
		"addresses": func() Shape {
			return Shape{Locals: m, Body: join(each(m, func(i int) []byte { return join(get(i), []byte{0x28, 2, 0, 0x1a}) }), times(n, join(get(0), brIf(0))...))}
		},
		"globals":   func() Shape { return Shape{Globals: m, More: []Function{{0, nil}}, Body: times(n, 0x10, 1)} },
		"functions": func() Shape { return Shape{More: slices.Repeat([]Function{{0, nil}}, n*m/16)} },
		"ifs with another half": func() Shape {
			return Shape{Types: [][2]int{{0, m}}, More: []Function{{2, times(m, 0x41, 1)}}, Body: times(n, join([]byte{0x41, 1, 4, 2, 0x10, 1, 5, 0x10, 1, 0x0b}, drops)...)}
		},
		"back edges": func() Shape { // each has to load again what the call has saved
			load := each(15, func(i int) []byte { return join([]byte{0x41, 0, 0xfd, 0, 4, 0}, set(13+i)) })
			store := each(15, func(i int) []byte { return join([]byte{0x41, 0}, get(13+i), []byte{0xfd, 11, 4, 0}) })
			return Shape{Locals: 13, Vectors: 15, More: []Function{{0, nil}}, Body: join(fetch(13), load, []byte{3, tNone, 0x10, 1}, times(n*m/4, join(get(0), brIf(0))...), []byte{0x0b}, keep(13), store)}
		},
		"branches of values": func() Shape {
			return Shape{Types: swap, Locals: m, Body: join(gets(m), []byte{2, 2}, times(n, join(get(0), brIf(0))...), []byte{0x0b}, drops)}
		},
		"tables": func() Shape {
			return Shape{Locals: 1, Body: join(times(n, 0x41, 0, 0xd0, 0x70, 0x41, 0, 0xfc, 17, 0), times(n, 0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 14, 0, 0))}
		},
		"tables that grow": func() Shape { return Shape{Body: times(n*m/16, 0xd0, 0x70, 0x41, 0, 0xfc, 15, 0, 0x1a)} },
		"results on the stack": func() Shape {
			return Shape{Locals: 1, More: []Function{{1, []byte{0x41, 1}}}, Body: join(times(m, 0x10, 1), times(n, join(get(0), []byte{4, tNone, 0x0b})...), drops)}
		},
		"live globals": func() Shape {
			read := each(m, func(i int) []byte { return append(op(0x23, i), 0x1a) })
			return Shape{Globals: m, Locals: 1, Body: join(read, times(n, join(get(0), brIf(0))...), read)}
		},
		"functions and globals": func() Shape { return Shape{Constants: m, More: slices.Repeat([]Function{{0, nil}}, n)} },
		"functions and imports": func() Shape { return Shape{Imports: m, More: slices.Repeat([]Function{{0, nil}}, n)} },
		"long chains, locals":   func() Shape { return Shape{Locals: 2, Body: join(set1, chain, times(m, 0x20, 1, 0x1a))} },
		"long chains, globals": func() Shape {
			return Shape{Globals: 1, Locals: 1, Body: join(times(2, 0x23, 0, 0x1a), chain, times(m, 0x23, 0, 0x1a))}
		},
		"long chains, memory": func() Shape {
			return Shape{Locals: 1, Body: join([]byte{0x3f, 0, 0x1a}, chain, times(m, 0x3f, 0, 0x1a))}
		},
		"types": func() Shape { return Shape{Types: slices.Repeat(swap, n)} },
	}
}

// Random returns a module of a random shape, of all sizes up to some hundred kilobytes,
// and what it is. Some have a section of names that says it has two billion.
func Random(r *rand.Rand) (name string, wasm []byte) {
	size := func() int { return int(8 * math.Pow(500, r.Float64())) } // up to 4,000
	all := Shapes(size(), min(size(), 1000))                          // a type has no more values
	names := slices.Sorted(maps.Keys(all))
	name = names[r.IntN(len(names))]
	wasm = all[name]().WASM()
	if r.IntN(4) == 0 {
		wasm = join(wasm, []byte{0}, sized(join(sized([]byte("name")), []byte{1}, sized([]byte{0xff, 0xff, 0xff, 0xff, 7}))))
	}
	return name, wasm
}
