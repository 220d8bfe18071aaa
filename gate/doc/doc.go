// Package doc reads JSON strictly. A [Doc] is one parsed document, whose parts share its bytes,
// with its digest, and with strings that can be replaced while all else keeps its bytes. A [Doc] is
// a gate.Doc.
//
// doc.go has documents, their parts and the walk over strings; parse.go and plain.go read, deep.go
// goes into strings that are JSON, replace.go takes values out, canonical.go writes what is
// digested.
package doc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"github.com/wasmgate/wasmgate/internal/pointer"
)

// A Doc is an immutable JSON value: the one form in which arguments and results
// travel through the gate. Policy, validator, sanitizer and upstream all read
// the same bytes, so they cannot disagree about what those say.
//
// Numbers keep every digit, members keep their order, and a Doc that no step
// changed is passed on byte for byte. A part of a document shares its bytes.
// The zero Doc is an absent value, which is not the same as null. Docs may be
// used from several goroutines.
type Doc struct {
	t *tape
	i uint32
}

// A Kind tells which of JSON's types a [Doc] has. The zero Kind is that of an
// absent value.
type Kind uint8

// The kinds of JSON values (RFC 8259, section 3).
const (
	Absent Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
)

// tape is a parsed document: its bytes, and an entry for each value in the
// order of the text. An object's members are pairs of entries, key and value.
type tape struct {
	raw   []byte
	nodes []node

	mu    sync.Mutex
	built []built
}

type node struct {
	start, end uint32 // raw[start:end] is the value
	next       uint32 // index of the entry after this value and all below it
	kind       Kind
	escaped    bool // a string with at least one backslash
}

// built holds what has been derived from value of, so that it is derived once.
type built struct {
	of     uint32
	value  any
	digest string
}

// IsZero reports whether the document is absent.
func (d Doc) IsZero() bool { return d.t == nil }

// Kind returns the type of the value.
func (d Doc) Kind() Kind {
	if d.t == nil {
		return Absent
	}
	return d.node().kind
}

func (d Doc) node() *node { return &d.t.nodes[d.i] }

// Raw returns the bytes of the value as they were received. They must not be
// changed. It is nil for an absent value.
func (d Doc) Raw() []byte {
	if d.t == nil {
		return nil
	}
	n := d.node()
	return d.t.raw[n.start:n.end:n.end]
}

// String returns the text of the document, for tests and messages.
func (d Doc) String() string { return string(d.Raw()) }

// MarshalJSON returns the bytes of the value; an absent one is null.
func (d Doc) MarshalJSON() ([]byte, error) {
	if d.t == nil {
		return []byte("null"), nil
	}
	return d.Raw(), nil
}

// UnmarshalJSON reads the value as [Parse] does.
func (d *Doc) UnmarshalJSON(b []byte) (err error) {
	*d, err = Parse(bytes.Clone(b))
	return err
}

// Text returns the decoded string if the value is one, and "" otherwise.
func (d Doc) Text() string {
	if d.Kind() != String {
		return ""
	}
	return d.t.text(d.i)
}

// True reports whether the value is true.
func (d Doc) True() bool { return d.Kind() == Bool && d.t.raw[d.node().start] == 't' }

// Get returns the member of an object with the given name, or an absent value.
func (d Doc) Get(name string) Doc {
	if d.Kind() != Object {
		return Doc{}
	}
	for i, end := d.i+1, d.node().next; i < end; i = d.t.nodes[i+1].next {
		if d.t.view(i) == name {
			return Doc{d.t, i + 1}
		}
	}
	return Doc{}
}

// At returns the part of the document that a JSON Pointer (RFC 6901) names, or
// an absent value. The pointer "" names the whole.
func (d Doc) At(at string) Doc {
	if at == "" {
		return d
	}
	if at[0] != '/' {
		return Doc{}
	}
	for token := range strings.SplitSeq(at[1:], "/") {
		switch d.Kind() {
		case Object:
			d = d.Get(pointer.Unescape(token))
		case Array:
			d = d.element(token)
		default:
			return Doc{}
		}
	}
	return d
}

func (d Doc) element(token string) Doc {
	want, err := strconv.ParseUint(token, 10, 32)
	if err != nil || token != strconv.FormatUint(want, 10) {
		return Doc{}
	}
	for v := range d.Elements() {
		if want == 0 {
			return v
		}
		want--
	}
	return Doc{}
}

// Members iterates over an object's members in the order of the text. It yields
// nothing for other kinds.
func (d Doc) Members() iter.Seq2[string, Doc] {
	return func(yield func(string, Doc) bool) {
		if d.Kind() != Object {
			return
		}
		for i := d.i + 1; i < d.node().next; i = d.t.nodes[i+1].next {
			if !yield(d.t.text(i), Doc{d.t, i + 1}) {
				return
			}
		}
	}
}

// Elements iterates over an array's elements. It yields nothing for other kinds.
func (d Doc) Elements() iter.Seq[Doc] {
	return func(yield func(Doc) bool) {
		if d.Kind() != Array {
			return
		}
		for i := d.i + 1; i < d.node().next; i = d.t.nodes[i].next {
			if !yield(Doc{d.t, i}) {
				return
			}
		}
	}
}

// Len returns how many members an object has, or elements an array; 0 for other kinds.
func Len(d Doc) (n int) {
	kind := d.Kind()
	if kind != Object && kind != Array {
		return 0
	}
	for i := d.i + 1; i < d.node().next; i = d.t.nodes[i].next {
		n++
	}
	if kind == Object {
		return n / 2
	}
	return n
}

// Value returns the document as encoding/json decodes it with UseNumber: nil,
// bool, [json.Number], string, []any and map[string]any. It is built once and
// shared: the caller must not change it.
func (d Doc) Value() any {
	if d.t == nil {
		return nil
	}
	d.t.mu.Lock()
	defer d.t.mu.Unlock()
	b := d.t.derived(d.i)
	if b.value == nil {
		b.value = d.t.value(d.i)
	}
	return b.value
}

// Digest returns the hex SHA-256 of the canonical form of the document
// (RFC 8785, with the exception that [Doc.Canonical] names), or "" if it is
// absent.
func (d Doc) Digest() string {
	if d.t == nil {
		return ""
	}
	d.t.mu.Lock()
	defer d.t.mu.Unlock()
	b := d.t.derived(d.i)
	if b.digest == "" {
		b.digest = d.t.digest(d.i)
	}
	return b.digest
}

// derived returns the entry for what was derived of value i. Callers hold mu.
func (t *tape) derived(i uint32) *built {
	for k := range t.built {
		if t.built[k].of == i {
			return &t.built[k]
		}
	}
	if len(t.built) == maxBuilt {
		return new(built)
	}
	t.built = append(t.built, built{of: i})
	return &t.built[len(t.built)-1]
}

// maxBuilt is of how many values of a document is kept what was derived of them: that of
// more is derived each time.
const maxBuilt = 8

func (t *tape) value(i uint32) any {
	n := &t.nodes[i]
	switch n.kind {
	case Bool:
		return t.raw[n.start] == 't'
	case Number:
		return json.Number(t.raw[n.start:n.end])
	case String:
		return t.text(i)
	case Array:
		a := []any{}
		for j := i + 1; j < n.next; j = t.nodes[j].next {
			a = append(a, t.value(j))
		}
		return a
	case Object:
		m := make(map[string]any, (n.next-i)/2)
		for j := i + 1; j < n.next; j = t.nodes[j+1].next {
			m[t.text(j)] = t.value(j + 1)
		}
		return m
	}
	return nil
}

// text returns the decoded string of entry i.
func (t *tape) text(i uint32) string {
	n := &t.nodes[i]
	inner := t.raw[n.start+1 : n.end-1]
	if !n.escaped {
		return string(inner)
	}
	return unescape(inner)
}

// view is text without a copy, for strings that are looked at and let go. The bytes of a document
// never change, so the string may share them; keeping the string keeps the whole document.
func (t *tape) view(i uint32) string {
	n := &t.nodes[i]
	inner := t.raw[n.start+1 : n.end-1]
	if n.escaped {
		return unescape(inner)
	}
	return unsafe.String(unsafe.SliceData(inner), len(inner))
}

// With returns a copy of an object in which the member has the given value, in
// its old place or else at the end. Everything else keeps its bytes. An absent
// document counts as {}. It panics if d is of another kind, or raw is not JSON.
func (d Doc) With(name string, raw []byte) Doc {
	return Must(string(AppendWith(d, nil, name, Must(string(raw)).Raw())))
}

var empty = Must("{}")

// AppendWith appends to b what [Doc.With] returns, for callers that send it and need no document of
// it. It does not look at raw, which has to be JSON.
func AppendWith(d Doc, b []byte, name string, raw []byte) []byte {
	if d.t == nil {
		d = empty
	}
	if d.Kind() != Object {
		panic(fmt.Sprintf("doc: member %q added to a JSON value that is not an object", name))
	}
	text := d.Raw()
	if old := d.Get(name); !old.IsZero() {
		base := d.node().start
		n := old.node()
		return append(append(append(b, text[:n.start-base]...), raw...), text[n.end-base:]...)
	}
	b = append(b, bytes.TrimRight(text[:len(text)-1], " \t\r\n")...)
	if d.node().next > d.i+1 {
		b = append(b, ',')
	}
	b = append(append(AppendString(b, name), ':'), raw...)
	return append(b, '}')
}

// A Leaf is the place of a string within a document, during [MapStrings].
type Leaf struct {
	// Key is true for the name of a member, false for a value.
	Key bool
	// JSON is true for a string that is a JSON object or array whose own strings
	// [MapDeep] has been through already.
	JSON bool
	// MIME is the value of mimeType in the object that holds the string, as in
	// the contents of MCP; "" if there is none.
	MIME   string
	path   []string
	names  []string // of members, as in path, that of the string itself the last
	in     Doc      // the object or array that holds it
	before Doc      // the element before it in an array
	nested bool     // in a string that is JSON
	made   *made    // nil: what is made has memory of its own
}

// made holds the texts that are made of the places in a document, many in one piece of memory. A
// text that was written stays as it is.
type made struct{ strings.Builder }

// minMade and maxMade are how many bytes of texts have one piece of memory: the first, and
// at most.
const minMade, maxMade = 128, 512

// room sees to it that a text of so many bytes is in one piece, and returns where it begins.
func (m *made) room(size int) (start int) {
	if m.Len()+size > m.Cap() {
		next := min(max(2*m.Cap(), minMade), maxMade)
		m.Reset()
		m.Grow(max(size, next))
	}
	return m.Len()
}

// Pointer returns the JSON Pointer of the string; that of a member's name is
// the pointer of its value. It is valid only during the call that got the Leaf.
func (l Leaf) Pointer() string {
	size := 0
	for _, token := range l.path {
		size += len("/") + len(token)
	}
	if size == 0 {
		return ""
	}
	b := l.made
	if b == nil {
		b = new(made)
	}
	start := b.room(size)
	for _, token := range l.path {
		b.WriteByte('/')
		pointer.Write(&b.Builder, token)
	}
	return b.String()[start:]
}

// View returns the text of the document without a copy of it: keeping the text keeps the whole
// document in memory.
func View(d Doc) string {
	raw := d.Raw()
	return unsafe.String(unsafe.SliceData(raw), len(raw))
}

// LeafAt returns the leaf at a path, of tokens of a JSON Pointer without its escapes.
func LeafAt(path []string) Leaf { return Leaf{path: path} }

// Path returns the tokens of [Leaf.Pointer], without its escapes. They must not be changed.
func Path(l Leaf) []string { return l.path }

// Nested reports whether a string is inside another one that is JSON.
func Nested(l Leaf) bool { return l.nested }

// MapStrings returns the document with each of its strings, names of members
// included, replaced by what f makes of it. If f changes nothing it returns d
// itself. It is an error if two members of an object get the same name.
func MapStrings(d Doc, f func(at Leaf, s string) string) (Doc, error) {
	return d.mapped(nil, f, false)
}

// usualDepth is how deep most documents are.
const usualDepth = 8

func (d Doc) mapped(path []string, f func(at Leaf, s string) string, deep bool) (Doc, error) {
	if d.t == nil || d.Kind() != String && d.node().next == d.i+1 { // nothing, or nothing in it
		return d, nil
	}
	room := tokens.Get().(*[2][usualDepth]string)
	defer tokens.Put(room)
	defer clear(room[:])
	m := mapper{t: d.t, f: f, path: append(room[0][:0], path...), names: room[1][:0], deep: deep, made: new(made)}
	return m.run(d)
}

// tokens are where the path and the names of a mapper have their memory.
var tokens = sync.Pool{New: func() any { return new([2][usualDepth]string) }}

// mapper copies the text lazily: out stays nil until a string changes.
type mapper struct {
	t      *tape
	f      func(Leaf, string) string
	path   []string
	names  []string
	last   uint32 // raw up to here is in out
	out    []byte
	deep   bool // strings that are JSON are gone through, too
	nested int  // in how many of them this document is
	made   *made
	err    error
}

// run maps a document of the tape.
func (m *mapper) run(d Doc) (Doc, error) {
	m.last = d.node().start
	m.walk(d.i, Leaf{})
	if m.err != nil {
		return Doc{}, m.err
	}
	if m.out == nil {
		return d, nil
	}
	return Parse(append(m.out, d.t.raw[m.last:d.node().end]...))
}

// walk goes through entry i; at says where the entry is.
func (m *mapper) walk(i uint32, at Leaf) {
	n := &m.t.nodes[i]
	here := Doc{m.t, i}
	switch n.kind {
	case String:
		m.leaf(i, at)
	case Array:
		at.in, at.before = here, Doc{}
		for j, k := i+1, 0; j < n.next; j, k = m.t.nodes[j].next, k+1 {
			m.path = append(m.path, strconv.Itoa(k))
			m.walk(j, at)
			m.path = m.path[:len(m.path)-1]
			at.before = Doc{m.t, j}
		}
	case Object:
		at = Leaf{MIME: here.Get("mimeType").Text(), in: here}
		for j := i + 1; j < n.next; j = m.t.nodes[j+1].next {
			name := m.t.view(j)
			m.path, m.names = append(m.path, name), append(m.names, name)
			at.Key = true
			m.leaf(j, at)
			at.Key = false
			m.walk(j+1, at)
			m.path, m.names = m.path[:len(m.path)-1], m.names[:len(m.names)-1]
		}
	}
}

func (m *mapper) leaf(i uint32, at Leaf) {
	if m.err != nil {
		return
	}
	old := m.t.view(i)
	s := old
	at.path, at.names, at.nested, at.made = m.path, m.names, m.nested > 0, m.made
	if m.deep && !at.Key && m.nested < MaxNested {
		if inner, ok := Embedded(old); ok {
			s, at.JSON = m.inner(old, inner), true
		}
	}
	if m.err != nil {
		return
	}
	s = m.f(at, s)
	if s == old {
		return
	}
	n := &m.t.nodes[i]
	m.out = append(m.out, m.t.raw[m.last:n.start]...)
	m.out = AppendString(m.out, s)
	m.last = n.end
}
