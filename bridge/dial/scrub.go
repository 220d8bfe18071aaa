package dial

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"iter"
	"slices"
	"strconv"
	"strings"
)

// maxLayers is how many layers of escapes scrubbing looks through. Text in JSON,
// in a string of JSON, escaped for a URL has three; the others are for secrets
// that look escaped themselves.
const maxLayers = 8

// A form is one way in which a text may contain a secret, in lower case. Letters are compared
// without case: the few more hits are no loss.
type form struct {
	text []byte
	// before and after are true if the neighbour in a base64 text holds bits of
	// the secret too.
	before, after bool
}

// newForms returns the forms of value: itself, hex, and base64 in both alphabets
// at each of the three places that it may have within the text that was encoded.
func newForms(value string) []form {
	forms := []form{{text: fold(hex.EncodeToString([]byte(value)))}}
	if strings.Contains(value, " ") { // application/x-www-form-urlencoded
		forms = append(forms, form{text: fold(strings.ReplaceAll(value, " ", "+"))})
	}
	for v := range layers(fold(value)) { // of a secret that looks escaped itself
		forms = append(forms, form{text: v.text})
	}
	for _, alphabet := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for shift := range 3 {
			encoded := alphabet.EncodeToString(append(make([]byte, shift), value...))
			if shift > 0 {
				encoded = encoded[shift+1:] // characters that hold bits of the text before
			}
			partial := (shift+len(value))%3 != 0
			if partial {
				encoded = encoded[:len(encoded)-1]
			}
			forms = append(forms, form{text: fold(encoded), before: shift > 0, after: partial})
		}
	}
	return forms
}

// fold returns s with the letters of ASCII in lower case, byte for byte.
func fold[T string | []byte](s T) []byte {
	b := append([]byte(nil), s...)
	for i, c := range b {
		b[i] = lower(c)
	}
	return b
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// A view is a text as a reader may see it: folded, and with escapes decoded.
type view struct {
	text []byte
	// at is where in the original each byte begins, and where the text ends. Nil
	// means that every byte is where it was.
	at []int
}

func (v view) pos(i int) int {
	if v.at == nil {
		return i
	}
	return v.at[i]
}

// layers returns the views of a folded text: as it is, and with one layer of
// escapes less each time, as long as there are any.
func layers(text []byte) iter.Seq[view] {
	return func(yield func(view) bool) {
		v := view{text: text}
		for range maxLayers + 1 {
			before := len(v.text)
			if !yield(v) {
				return
			}
			if v = unescape(v); len(v.text) == before {
				return
			}
		}
	}
}

// A hit is a part of a text that gives a secret away.
type hit struct {
	from, to int
	secret   Secret
}

// scrub returns text with each form of each secret replaced by the secret's
// placeholder. It returns text itself if there is none.
func scrub(text []byte, secrets []Secret) []byte {
	if len(secrets) == 0 || len(text) == 0 {
		return text
	}
	var hits []hit
	for v := range layers(fold(text)) {
		for _, s := range secrets {
			hits = s.find(v, hits)
		}
	}
	return replace(text, hits)
}

func scrubString(s string, secrets []Secret) string { return string(scrub([]byte(s), secrets)) }

// find adds the places of s in v to hits.
func (s Secret) find(v view, hits []hit) []hit {
	for _, f := range s.open().forms {
		for i := 0; ; {
			n := bytes.Index(v.text[i:], f.text)
			if n < 0 {
				break
			}
			from, to := i+n, i+n+len(f.text)
			i = to
			if f.before && from > 0 && isBase64(v.text[from-1]) {
				from--
			}
			if f.after && to < len(v.text) && isBase64(v.text[to]) {
				to++
			}
			hits = append(hits, hit{v.pos(from), v.pos(to), s})
		}
	}
	return hits
}

func isBase64(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '+' || c == '/' || c == '-' || c == '_'
}

func replace(text []byte, hits []hit) []byte {
	if len(hits) == 0 {
		return text
	}
	slices.SortFunc(hits, func(a, b hit) int { return a.from - b.from })
	var out bytes.Buffer
	end := 0 // of what is written or replaced
	for _, h := range hits {
		if h.from >= end {
			out.Write(text[end:h.from])
			out.WriteString(h.secret.String())
		}
		end = max(end, h.to)
	}
	out.Write(text[end:])
	return out.Bytes()
}

// unescape decodes one layer of the escapes of URLs (%41), of JSON and
// JavaScript (\u0041, \x41, \/) and of HTML (&#65;, &#x41;, &amp;), as far as
// they stand for ASCII. If there is none, it returns v.
func unescape(v view) view {
	if !bytes.ContainsAny(v.text, `%\&`) {
		return v
	}
	out := view{make([]byte, 0, len(v.text)), make([]int, 0, len(v.text)+1)}
	for i := 0; i < len(v.text); {
		c, n := decode(v.text[i:])
		out.text, out.at = append(out.text, lower(c)), append(out.at, v.pos(i))
		i += n
	}
	out.at = append(out.at, v.pos(len(v.text)))
	return out
}

// decode returns the byte that b begins with, and how many bytes stand for it. b
// is not empty.
func decode(b []byte) (c byte, n int) {
	rest := b[1:]
	switch {
	case b[0] == '%':
		if c, ok := number(rest, 2, 16); ok {
			return c, 3
		}
	case b[0] == '\\' && len(rest) > 0:
		if c, ok := number(rest[1:], 4, 16); rest[0] == 'u' && ok {
			return c, 6
		}
		if c, ok := number(rest[1:], 2, 16); rest[0] == 'x' && ok {
			return c, 4
		}
		if bytes.IndexByte([]byte(`\/"'`), rest[0]) >= 0 {
			return rest[0], 2
		}
	case b[0] == '&':
		return entity(b)
	}
	return b[0], 1
}

// maxEntity is the length of the longest entity that is decoded, with room for a
// few leading zeros.
const maxEntity = 12

func entity(b []byte) (c byte, n int) {
	end := bytes.IndexByte(b[:min(len(b), maxEntity)], ';')
	if end < 0 {
		return b[0], 1
	}
	name := b[1:end]
	switch {
	case bytes.HasPrefix(name, []byte("#x")):
		if c, ok := number(name[2:], len(name)-2, 16); ok {
			return c, end + 1
		}
	case bytes.HasPrefix(name, []byte("#")):
		if c, ok := number(name[1:], len(name)-1, 10); ok {
			return c, end + 1
		}
	default:
		if c, ok := named[string(name)]; ok {
			return c, end + 1
		}
	}
	return b[0], 1
}

var named = map[string]byte{"amp": '&', "lt": '<', "gt": '>', "quot": '"', "apos": '\''}

// number reads the first n bytes of b as the number of a character of ASCII.
func number(b []byte, n, base int) (byte, bool) {
	if n == 0 || len(b) < n {
		return 0, false
	}
	v, err := strconv.ParseUint(string(b[:n]), base, 32)
	return byte(v), err == nil && v < 0x80
}
