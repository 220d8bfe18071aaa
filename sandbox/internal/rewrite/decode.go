package rewrite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
)

// Bounds on what is given to the compiler, which cannot be interrupted and
// allocates some 15 times the size of a module.
const (
	maxModule    = 64 << 20
	maxFunctions = 1 << 16
	maxTypes     = 1 << 16
	maxImports   = 1 << 16
	// maxTable bounds the entries of all tables together, 8 bytes each. The engine bounds tables
	// only by what the module declares.
	maxTable     = 1 << 18
	maxTables    = 64
	maxData      = 64 << 20 // of a memory, its end as data segments fill it
	maxLocals    = 50_000   // of one function, as browsers bound them
	maxAllLocals = 1 << 20  // of all functions together
	maxSignature = 1000     // parameters of a function, and results, as browsers bound them
	maxGlobals   = 1 << 16
	maxExports   = 1 << 16
	// maxElements bounds the entries of all element segments together. Segments
	// may overlap, and each instantiation writes them all.
	maxElements = 1 << 18
)

// Section ids of WebAssembly Core 2.0, 5.5.2.
const (
	sectionCustom = iota
	sectionType
	sectionImport
	sectionFunction
	sectionTable
	sectionMemory
	sectionGlobal
	sectionExport
	sectionStart
	sectionElement
	sectionCode
	sectionData
	sectionDataCount
	sections

	sectionTag = 13 // of the exceptions proposal
)

// order is the order of sections in a module.
var order = []byte{
	sectionType, sectionImport, sectionFunction, sectionTable, sectionMemory, sectionGlobal,
	sectionExport, sectionStart, sectionElement, sectionDataCount, sectionCode, sectionData,
}

// Kinds of imports and exports, 5.5.5.
const (
	kindFunction = iota
	kindTable
	kindMemory
	kindGlobal
	kindTag
)

const manifestSection = "wasmgate"

var preamble = []byte("\x00asm\x01\x00\x00\x00")

// An Import is something that a module asks for.
type Import struct {
	Module, Name string
	Function     bool // whether it is a function, not a table, memory or global
	// Params and Results are how many it takes and returns.
	Params, Results int
}

// A Module is a module whose sections were checked. Its slices refer to the
// bytes that were decoded.
type Module struct {
	Manifest  []byte // content of the custom section wasmgate; nil without one
	Imports   []Import
	MinMemory int64 // bytes
	Go        bool  // whether it says that Go's toolchain made it

	body      [sections][]byte // nil where there is none
	params    []uint32         // how many parameters each type has
	results   []uint32         // and how many results
	forms     []form           // and of what form it is
	functions []uint32         // the type of each function, imported ones first
	imported  uint32           // how many functions are
	globals   uint32
	memories  uint32
	mutable   uint32 // how many of them can change
	tables    []byte // the section of tables, with bounds
	stubs     []stub // for each imported function; nil for none
	reads     []bool // whether its call is made again; nil for none
	exit      uint32 // the imported function that exits, and 1; 0 for none
	cost      Cost
}

// Decode checks what a module declares. The error says, of a module that is
// refused, what it has and what is supported.
func Decode(wasm []byte) (*Module, error) {
	if len(wasm) > maxModule {
		return nil, fmt.Errorf("the module has %d bytes, more than %d", len(wasm), maxModule)
	}
	if !bytes.HasPrefix(wasm, preamble) {
		return nil, notCore(wasm)
	}
	m := &Module{}
	place := -1 // of the last section, in order
	for c := (&cursor{b: wasm[len(preamble):]}); len(c.b) > 0; {
		id, body := c.byte(), c.bytes()
		if c.err != nil {
			return nil, c.err
		}
		if id == sectionCustom {
			if err := m.custom(body); err != nil {
				return nil, err
			}
			continue
		}
		at := slices.Index(order, id)
		if id == sectionTag {
			c.refuse("exceptions")
			return nil, c.err
		}
		if at <= place { // unknown, twice, or too late
			return nil, errMalformed
		}
		place, m.body[id] = at, body
		if err := m.section(id, &cursor{b: body}); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// custom takes the manifest out of a custom section.
func (m *Module) custom(body []byte) error {
	c := &cursor{b: body}
	name := c.bytes()
	if c.err != nil || !utf8.Valid(name) {
		return errMalformed
	}
	if string(name) == "producers" { // a list of strings: language, how many, Go
		m.Go = bytes.Contains(c.b, []byte("\x08language\x01\x02Go"))
	}
	if string(name) != manifestSection {
		return nil
	}
	if m.Manifest != nil {
		return errors.New("the module has two sections wasmgate")
	}
	m.Manifest = append([]byte{}, c.b...)
	return nil
}

// notCore says what was found in place of a core module, and what to do.
func notCore(b []byte) error {
	switch {
	case len(b) >= 8 && string(b[:4]) == "\x00asm" && binary.LittleEndian.Uint16(b[6:]) == 1:
		return errors.New("this is a WebAssembly component, not a core module: build it for the target wasm32-wasip1")
	case len(b) >= 8 && string(b[:4]) == "\x00asm":
		return fmt.Errorf("this is WebAssembly of version %d, only version 1 is known", binary.LittleEndian.Uint32(b[4:]))
	}
	return errors.New("this is not a WebAssembly module: it does not begin with \\0asm")
}

// section checks a section that comes before those which Meter writes again, and the bounded parts
// of the others.
func (m *Module) section(id byte, c *cursor) error {
	switch id {
	case sectionType:
		if err := bound(c, "types", maxTypes); err != nil {
			return err
		}
		c.each(func() { m.typ(c) })
	case sectionImport:
		if err := bound(c, "imports", maxImports); err != nil {
			return err
		}
		c.each(func() { m.importing(c) })
	case sectionFunction:
		if err := bound(c, "functions", maxFunctions); err != nil {
			return err
		}
		c.each(func() { m.functions = append(m.functions, c.below(uint32(len(m.params)))) })
	case sectionTable:
		return m.boundTables(c)
	case sectionGlobal:
		return bound(c, "globals", maxGlobals)
	case sectionExport:
		return bound(c, "exports", maxExports)
	case sectionMemory:
		c.each(func() { m.memory(c) })
	case sectionCode:
		return boundLocals(c)
	default:
		return nil
	}
	return c.end()
}

// bound looks at the count of a vector before it is read.
func bound(c *cursor, what string, most uint32) error {
	if n := (&cursor{b: c.b}).count(); n > most {
		return fmt.Errorf("the module has %d %s, more than %d", n, what, most)
	}
	return nil
}

func (m *Module) typ(c *cursor) {
	m.forms = append(m.forms, formOf(c.b))
	if c.byte() != typeOf && c.err == nil {
		c.refuse("types of the garbage collection proposal")
	}
	params, results := uint32(0), uint32(0)
	c.each(func() { params++; c.value() })
	c.each(func() { results++; c.value() })
	if most := max(params, results); most > maxSignature {
		c.stop(fmt.Errorf("the module has a function type of %d parameters or results, more than %d", most, maxSignature))
	}
	m.params, m.results = append(m.params, params), append(m.results, results)
}

func (m *Module) importing(c *cursor) {
	in := Import{Module: c.name(), Name: c.name()}
	kind := c.byte()
	switch kind {
	case kindFunction:
		in.Function = true
		t := c.uint()
		m.functions = append(m.functions, t) // Meter checks it: a missing grant of an import is reported first
		m.imported++
		if t < uint32(len(m.params)) {
			in.Params, in.Results = int(m.params[t]), int(m.results[t])
		}
	case kindTable:
		c.reference()
		c.limits()
	case kindMemory:
		m.memory(c)
	case kindGlobal:
		c.value()
		m.mutable += uint32(c.byte()) & 1
		m.globals++
	case kindTag:
		c.refuse("exceptions")
	default:
		c.fail()
	}
	if c.err == nil {
		m.Imports = append(m.Imports, in)
	}
}

func (m *Module) memory(c *cursor) {
	least, _, _ := c.limits()
	m.MinMemory = max(m.MinMemory, int64(least)<<16)
	m.memories++
}

// boundLocals bounds the local variables: three bytes can declare any number of them.
func boundLocals(c *cursor) error {
	var most, all uint64
	c.each(func() {
		body := &cursor{b: c.bytes()}
		var locals uint64
		body.each(func() { locals += uint64(body.uint()); body.value() })
		if body.err != nil {
			c.stop(body.err)
		}
		most, all = max(most, locals), all+locals
	})
	if most > maxLocals || all > maxAllLocals {
		return fmt.Errorf("the module has a function with %d local variables and %d in all; %d and %d are the most", most, all, maxLocals, maxAllLocals)
	}
	return c.end()
}

// boundTables writes a table section in which every table has a maximum, so
// that table.grow fails beyond it as the specification lets it.
func (m *Module) boundTables(c *cursor) error {
	n := c.count()
	if n > maxTables {
		return fmt.Errorf("the module has %d tables, more than %d", n, maxTables)
	}
	out := binary.AppendUvarint(nil, uint64(n))
	for range n {
		kind, flags := c.byte(), c.byte()
		least, most := c.uint(), uint32(maxTable)/n
		if flags&1 != 0 {
			most = min(most, c.uint())
		}
		if c.err != nil || flags > 1 || kind != typeFunc && kind != typeExtern {
			return errors.New("the module has a table of an unsupported kind; only 32-bit tables of funcref or externref are supported")
		}
		if least > maxTable/n {
			return fmt.Errorf("the module has a table of %d entries; %d is the most", least, maxTable/n)
		}
		out = binary.AppendUvarint(append(out, kind, 1), uint64(least))
		out = binary.AppendUvarint(out, uint64(most))
	}
	m.tables = out
	return c.end()
}

func (m *Module) shape(t uint32) shape {
	return shape{int32(m.params[t]), int32(m.results[t])}
}

// Cost returns what compiling the module takes that Meter or Seal made of it,
// which must have been called.
func (m *Module) Cost() Cost { return m.cost }

// A form is what matters of the type of a function.
type form byte

const (
	otherForm form = iota
	formRun        // takes and returns nothing
	formExit       // takes an i32
	formRead       // takes four i32 and returns one
)

// formOf is the form of the type at the beginning of b. A type that is not written in the shortest
// way has no known form.
func formOf(b []byte) form {
	begins := func(written ...byte) bool { return bytes.HasPrefix(b, written) }
	switch {
	case begins(typeOf, 0, 0):
		return formRun
	case begins(typeOf, 1, typeI32, 0):
		return formExit
	case begins(typeOf, 4, typeI32, typeI32, typeI32, typeI32, 1, typeI32):
		return formRead
	}
	return otherForm
}
