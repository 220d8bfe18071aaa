package doc

import (
	"strings"
	"unsafe"
)

// MaxNested bounds how deep JSON within strings within JSON is walked.
const MaxNested = 4

// MapDeep is [MapStrings] for a document in whose strings there is JSON. If a string is an object
// or an array and nothing else, f gets its strings first, as parts of the document. Then f gets the
// string as a whole, with these replaced, and its [Leaf.JSON] is true. White space and all that
// stays keep their bytes.
func MapDeep(d Doc, f func(at Leaf, s string) string) (Doc, error) {
	return d.mapped(nil, f, true)
}

// MapTextAt is [MapDeep] for a string that is at a path in a document.
func MapTextAt(path []string, text string, f func(at Leaf, s string) string) (string, error) {
	m := mapper{f: f, path: path, deep: true, made: new(made)}
	at := Leaf{path: path, made: m.made}
	if inner, ok := Embedded(text); ok {
		text, at.JSON = m.inner(text, inner), true
	}
	if m.err != nil {
		return "", m.err
	}
	return f(at, text), nil
}

// inner maps the JSON that a string consists of, and returns the string with it.
func (m *mapper) inner(text string, inner Doc) string {
	below := mapper{t: inner.t, f: m.f, path: m.path, names: m.names, deep: m.deep, nested: m.nested + 1, made: m.made}
	out, err := below.run(inner)
	if err != nil {
		m.err = err
		return text
	}
	return Around(text, inner, out)
}

// Embedded reads a string that is a JSON object or array and nothing else.
func Embedded(text string) (Doc, bool) {
	t := strings.TrimSpace(text)
	if t == "" || (t[0] != '{' && t[0] != '[') {
		return Doc{}, false
	}
	d, err := Parse(unsafe.Slice(unsafe.StringData(text), len(text))) // whose bytes never change
	return d, err == nil
}

// Around replaces the document inner, the only one in text, by out; white space around it stays.
func Around(text string, inner, out Doc) string {
	if out == inner {
		return text
	}
	n := inner.node()
	return text[:n.start] + out.String() + text[n.end:]
}

// Name returns what the string is called where it is, or "". It is the name of its member, after
// that of the member that holds it and a slash. For a value next to a name, such as {"name":
// "HOME", "value": "/root"}, it is that name. For what follows an option in a list, such as
// ["--user", "ann"], it is the option. The name of a member has the name of the object that
// contains it.
func (l Leaf) Name() string {
	names := l.names
	if l.Key {
		names = names[:len(names)-1]
	}
	if len(names) == 0 {
		return l.option("")
	}
	own := names[len(names)-1]
	if !l.Key {
		own = l.option(l.beside(own))
	}
	if len(names) == 1 {
		return own
	}
	of := names[len(names)-2]
	if l.made == nil {
		return of + "/" + own
	}
	start := l.made.room(len(of) + len("/") + len(own))
	l.made.WriteString(of)
	l.made.WriteByte('/')
	l.made.WriteString(own)
	return l.made.String()[start:]
}

// Members whose value another member names, and the members that name them.
var (
	valueMembers = map[string]bool{"value": true, "val": true, "v": true, "content": true, "data": true, "default": true, "defaultvalue": true, "text": true, "secret": true}
	nameMembers  = [...]string{"name", "key", "Name", "Key", "variable", "header", "field", "id", "label", "k", "property", "parameter", "option", "title"}
)

// maxSibling bounds what is taken for a name, in bytes.
const maxSibling = 100

// beside returns the name that a sibling gives, or the member's own.
func (l Leaf) beside(own string) string {
	if l.in.Kind() != Object || !valueMembers[strings.ToLower(own)] {
		return own
	}
	for _, member := range nameMembers {
		if name := l.in.Get(member).Text(); name != "" && len(name) <= maxSibling {
			return name
		}
	}
	return own
}

// option returns the element before the string if that is the name of what follows,
// or else own.
func (l Leaf) option(own string) string {
	before := l.before.Text()
	if l.in.Kind() != Array || before == "" || len(before) > maxSibling {
		return own
	}
	if before[0] == '-' || strings.ContainsAny(before[len(before)-1:], ":=") || l.pair() {
		return before
	}
	return own
}

// pair reports whether the string is the second of two.
func (l Leaf) pair() bool {
	first, n := l.in.i+1, l.in.node()
	return l.before.i == first && l.in.t.nodes[l.before.node().next].next == n.next
}
