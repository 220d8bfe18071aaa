package sandbox_test

import (
	"encoding/binary"
	"slices"
)

// A guest builds a WebAssembly module byte by byte, so that the tests need no
// toolchain and can write what none would. Numbers of functions are in the
// order of creation, imports first.
type guest struct {
	types, imports, functions, code, exports, custom [][]byte

	table    []byte // limits and type of the table, if any
	pages    uint32 // the memory's size at start
	start    []byte // the section's content, if any
	elements []byte // an element segment, if any
	memory   string // the name the memory is exported by
}

func newGuest() *guest { return &guest{pages: 1, memory: "memory"} }

func leb(n uint32) []byte { return binary.AppendUvarint(nil, uint64(n)) }

func name(s string) []byte { return append(leb(uint32(len(s))), s...) }

// join concatenates its arguments: bytes, byte slices and ints (as bytes).
func join(parts ...any) []byte {
	var b []byte
	for _, p := range parts {
		switch p := p.(type) {
		case int:
			b = append(b, byte(p))
		case byte:
			b = append(b, p)
		case []byte:
			b = append(b, p...)
		default:
			panic("join: neither int, byte nor []byte")
		}
	}
	return b
}

// section writes a section that is a vector.
func section(id byte, items [][]byte) []byte {
	if len(items) == 0 {
		return nil
	}
	body := append(leb(uint32(len(items))), slices.Concat(items...)...)
	return join(id, leb(uint32(len(body))), body)
}

// Value types; a type is written as the bytes of its parameters and results.
const (
	i32 = "\x7f"
	i64 = "\x7e"
)

func (g *guest) typ(params, results string) []byte {
	g.types = append(g.types, join(0x60, name(params), name(results)))
	return leb(uint32(len(g.types) - 1))
}

// imports adds a function of WASI.
func (g *guest) wasi(function, params, results string) (call []byte) {
	return g.link("wasi_snapshot_preview1", function, join(0, g.typ(params, results)))
}

func (g *guest) link(module, function string, kind []byte) (call []byte) {
	g.imports = append(g.imports, join(name(module), name(function), kind))
	return join(0x10, leb(uint32(len(g.imports)-1)))
}

// function adds a function with two i32 locals of its own, exported if it has
// a name, and returns the instruction that calls it.
func (g *guest) function(export, params, results string, body ...any) (call []byte) {
	g.functions = append(g.functions, g.typ(params, results))
	full := join(1, 2, 0x7f, join(body...), 0x0b)
	g.code = append(g.code, join(leb(uint32(len(full))), full))
	index := leb(uint32(len(g.imports) + len(g.functions) - 1))
	if export != "" {
		g.exports = append(g.exports, join(name(export), 0, index))
	}
	return join(0x10, index)
}

func (g *guest) section(id string, content []byte) *guest {
	g.custom = append(g.custom, join(0, leb(uint32(len(name(id))+len(content))), name(id), content))
	return g
}

// bytes writes the module. Global 0 is a mutable i32 that begins at 4096.
func (g *guest) bytes() []byte {
	exports := g.exports
	if g.memory != "" {
		exports = append(exports, join(name(g.memory), 2, 0))
	}
	var table [][]byte
	if g.table != nil {
		table = [][]byte{g.table}
	}
	var elements [][]byte
	if g.elements != nil {
		elements = [][]byte{g.elements}
	}
	var start []byte
	if g.start != nil {
		start = join(8, leb(uint32(len(g.start))), g.start)
	}
	return slices.Concat([]byte("\x00asm\x01\x00\x00\x00"),
		section(1, g.types), section(2, g.imports), section(3, g.functions), section(4, table),
		section(5, [][]byte{join(0, leb(g.pages))}),
		section(6, [][]byte{join(0x7f, 1, number(4096), 0x0b)}),
		section(7, exports), start, section(9, elements), section(10, g.code), slices.Concat(g.custom...))
}

// Instructions.
var (
	unreachable = []byte{0x00}
	forever     = []byte{0x03, 0x40, 0x0c, 0x00, 0x0b} // loop br 0 end
	drop        = []byte{0x1a}
	add         = []byte{0x6a}
	store       = []byte{0x36, 2, 0} // i32.store
	store8      = []byte{0x3a, 0, 0}
	load        = []byte{0x28, 2, 0} // i32.load
	memoryGrow  = []byte{0x40, 0x00}
	getGlobal   = []byte{0x23, 0}
	setGlobal   = []byte{0x24, 0}
)

func get(local byte) []byte { return []byte{0x20, local} }

// number is i32.const.
func number(n int32) []byte {
	b := []byte{0x41}
	for ; ; n >>= 7 {
		c := byte(n & 0x7f)
		if n>>7 == 0 && c&0x40 == 0 || n>>7 == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

// put stores a constant at a constant address.
func put(address, value int32) []byte { return join(number(address), number(value), store) }

const manifest = `{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}`

// Parameters of tool_call.
const namePtr, nameLen, argsPtr, argsLen = 0, 1, 2, 3

// allocator adds a cabi_realloc that never reuses memory.
func (g *guest) allocator() {
	g.function("cabi_realloc", i32+i32+i32+i32, i32, getGlobal, getGlobal, get(3), add, setGlobal)
}

// reactor returns a module whose tool_call has this body.
func reactor(body ...any) *guest {
	g := newGuest()
	g.allocator()
	g.function("tool_call", i32+i32+i32+i32, i32, body...)
	return g.section("wasmgate", []byte(manifest))
}

// answer returns a result<string, string> that lies at 16.
func answer(discriminant int32, ptr, size []byte) []byte {
	return join(put(16, discriminant), number(20), ptr, store, number(24), size, store, number(16))
}

// say returns JSON of one character, the digit that is on the stack.
func say(digit []byte) []byte {
	return join(number(32), digit, number('0'), add, store8, answer(0, number(32), number(1)))
}

// command returns a module whose _start reads stdin to 1024, up to 512 bytes,
// writes it to fd, and exits with code.
func command(fd, code int32) *guest {
	g := newGuest()
	read := g.wasi("fd_read", i32+i32+i32+i32, i32)
	write := g.wasi("fd_write", i32+i32+i32+i32, i32)
	exit := g.wasi("proc_exit", i32, "")
	g.function("_start", "", "",
		put(0, 1024), put(4, 512), // an iovec
		number(0), number(0), number(1), number(8), read, drop,
		number(4), number(8), load, store, // as long as what was read
		number(fd), number(0), number(1), number(8), write, drop,
		number(code), exit)
	return g.section("wasmgate", []byte(manifest))
}

// bytesWithout writes the module without its custom sections.
func (g *guest) bytesWithout() []byte {
	g.custom = nil
	return g.bytes()
}

// raw writes a module of one section with this body.
func raw(id byte, body ...any) []byte {
	b := join(body...)
	return join([]byte("\x00asm\x01\x00\x00\x00"), id, leb(uint32(len(b))), b)
}
