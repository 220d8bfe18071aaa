package tools

import (
	"html"
	"iter"
	"strings"
)

type tokenKind int

const (
	textRun tokenKind = iota
	startTag
	endTag
)

// A token is a piece of HTML. Comments, declarations and processing
// instructions are none.
type token struct {
	kind       tokenKind
	name       string            // of the tag, in lower case
	attributes map[string]string // names in lower case, values unescaped and trimmed
	text       string            // unescaped
}

// rawText are the elements in which markup is text up to their end tag.
var rawText = words("script style textarea title iframe noscript noembed noframes xmp")

// tokens splits HTML as its specification's tokenizer does (WHATWG HTML,
// 13.2.5), in what matters for reading. There is no malformed HTML: what is
// no tag is text. (golang.org/x/net/html costs a millisecond for its entity
// table at the start of every instance, also when another tool is called.)
func tokens(s string) iter.Seq[token] {
	return func(yield func(token) bool) {
		for s != "" {
			t, n := next(s)
			s = s[n:]
			if (t.name != "" || t.text != "") && !yield(t) {
				return
			}
			if t.kind != startTag || !rawText[t.name] {
				continue
			}
			end := rawEnd(s, t.name)
			if end > 0 && !yield(token{text: html.UnescapeString(s[:end])}) {
				return
			}
			s = s[end:]
		}
	}
}

// next returns the token at the start of s, and its length. A token without
// name and text stands for nothing.
func next(s string) (token, int) {
	switch {
	case strings.HasPrefix(s, "<!--"):
		return token{}, through(s, 4, "-->")
	case strings.HasPrefix(s, "<!"), strings.HasPrefix(s, "<?"):
		return token{}, through(s, 2, ">")
	case len(s) > 2 && s[:2] == "</" && isLetter(s[2]):
		name, n := tagName(s[2:])
		return token{kind: endTag, name: name}, through(s, 2+n, ">")
	case len(s) > 1 && s[0] == '<' && isLetter(s[1]):
		name, n := tagName(s[1:])
		attributes, m := attributes(s[1+n:])
		return token{kind: startTag, name: name, attributes: attributes}, 1 + n + m
	}
	n := strings.IndexByte(s[1:], '<') + 1
	if n == 0 {
		n = len(s)
	}
	return token{text: html.UnescapeString(s[:n])}, n
}

// through returns the length of s up to and with the first stop from start on.
func through(s string, start int, stop string) int {
	if i := strings.Index(s[start:], stop); i >= 0 {
		return start + i + len(stop)
	}
	return len(s)
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func tagName(s string) (name string, n int) {
	if n = strings.IndexAny(s, whiteSpace+"/>"); n < 0 {
		n = len(s)
	}
	return strings.ToLower(s[:n]), n
}

// attributes reads what follows the name of a start tag, with the > that ends
// it. The first of two attributes of one name counts.
func attributes(s string) (map[string]string, int) {
	var found map[string]string
	rest := s
	for {
		rest = strings.TrimLeft(rest, whiteSpace+"/")
		if rest == "" || rest[0] == '>' {
			return found, len(s) - len(strings.TrimPrefix(rest, ">"))
		}
		n := strings.IndexAny(rest[1:], whiteSpace+"/>=") + 1 // a name may begin with =
		if n == 0 {
			n = len(rest)
		}
		name := strings.ToLower(rest[:n])
		rest = strings.TrimLeft(rest[n:], whiteSpace)
		value := ""
		if after, ok := strings.CutPrefix(rest, "="); ok {
			value, rest = attributeValue(strings.TrimLeft(after, whiteSpace))
		}
		if found == nil {
			found = map[string]string{}
		}
		if _, ok := found[name]; !ok {
			found[name] = strings.Trim(html.UnescapeString(value), whiteSpace)
		}
	}
}

func attributeValue(s string) (value, rest string) {
	if s != "" && (s[0] == '"' || s[0] == '\'') {
		value, rest, _ = strings.Cut(s[1:], s[:1])
		return value, rest
	}
	n := strings.IndexAny(s, whiteSpace+">")
	if n < 0 {
		n = len(s)
	}
	return s[:n], s[n:]
}

// rawEnd returns where the end tag of name begins.
func rawEnd(s, name string) int {
	for i := 0; ; i += 2 {
		at := strings.Index(s[i:], "</")
		if at < 0 {
			return len(s)
		}
		i += at
		if tag := s[i+2:]; len(tag) >= len(name) && strings.EqualFold(tag[:len(name)], name) &&
			(len(tag) == len(name) || strings.IndexByte(whiteSpace+"/>", tag[len(name)]) >= 0) {
			return i
		}
	}
}
