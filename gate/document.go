package gate

import (
	"unicode/utf8"

	"github.com/wasmgate/wasmgate/gate/internal/doc"
)

type (
	// A Doc is an immutable JSON value, read strictly: the one form in which arguments and
	// results travel through the gate.
	Doc = doc.Doc
	// A Kind tells which of JSON's types a [Doc] has. The zero Kind is that of an absent
	// value.
	Kind = doc.Kind
	// A Leaf is the place of a string within a document, during [Doc.MapStrings].
	Leaf = doc.Leaf
	// A SyntaxError says why, and where, bytes are no acceptable JSON document.
	SyntaxError = doc.SyntaxError
)

// The kinds of JSON values (RFC 8259, section 3).
const (
	Absent = doc.Absent
	Null   = doc.Null
	Bool   = doc.Bool
	Number = doc.Number
	String = doc.String
	Array  = doc.Array
	Object = doc.Object
)

// ErrSurrogate is within the error of [ParseDoc] for a \u escape that is half of a surrogate
// pair: such text has no meaning in Unicode, and parsers differ about it. See
// [ReplaceSurrogates].
var ErrSurrogate = doc.ErrSurrogate

// ParseDoc reads one JSON document, strictly: RFC 8259 in valid UTF-8, without a byte order
// mark, without two members of one name in an object, without unpaired surrogates and
// without trailing bytes; at most 256 levels deep, with numbers of at most 1,024 bytes and
// exponents up to 1,000. Two parsers that read what it accepts read the same, which makes it
// safe to judge a document here and act on it elsewhere.
//
// ParseDoc keeps b: the caller must not change it afterwards. The error is a [*SyntaxError].
func ParseDoc(b []byte) (Doc, error) { return doc.Parse(b) }

// MustDoc is [ParseDoc] for documents that the program itself has written. It panics where
// ParseDoc returns an error.
func MustDoc(s string) Doc { return doc.Must(s) }

// ReplaceSurrogates overwrites, in place, each \u escape that is half of a surrogate pair
// with the escape of U+FFFD, the replacement character, and returns how many there were.
// Servers that cut strings by UTF-16 units send such halves; a result is worth more than a
// refusal, while arguments with them are refused.
func ReplaceSurrogates(b []byte) int { return doc.ReplaceSurrogates(b) }

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
