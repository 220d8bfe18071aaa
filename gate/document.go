package gate

import (
	"unicode/utf8"

	"github.com/wasmgate/wasmgate/gate/doc"
)

// A Doc is an immutable JSON value, read strictly: the one form in which arguments and
// results travel through the gate.
type Doc = doc.Doc

// ParseDoc reads one JSON document, strictly: RFC 8259 in valid UTF-8, without a byte order
// mark, without two members of one name in an object, without unpaired surrogates and
// without trailing bytes; at most 256 levels deep, with numbers of at most 1,024 bytes and
// exponents up to 1,000. Two parsers that read what it accepts read the same, which makes it
// safe to judge a document here and act on it elsewhere.
//
// ParseDoc keeps b: the caller must not change it afterwards. The error is a [*doc.SyntaxError].
func ParseDoc(b []byte) (Doc, error) { return doc.Parse(b) }

// MustDoc is [ParseDoc] for documents that the program itself has written. It panics where
// ParseDoc returns an error.
func MustDoc(s string) Doc { return doc.Must(s) }

var emptyObject = MustDoc("{}")

// cut returns the beginning of s, of at most n bytes.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "..."
}
