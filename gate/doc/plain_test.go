package doc

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/testing/seed"
)

// pieces are what texts are made of by chance: what has to be escaped, what need not be,
// and what is of several bytes.
var pieces = []string{"a", "plain words ", `"`, `\`, "\n", "\x00", "\x1f", "\x7f", "é", "€", "😀", " ", strings.Repeat("x", 700), "1234567", "\u2028", "/"}

func randomText(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(12) {
		b.WriteString(pieces[r.IntN(len(pieces))])
	}
	return b.String()
}

// Bytes that are looked at by eights are found where they are found one by one.
func TestPlainIsThatOfEachByte(t *testing.T) {
	r := seed.Rand(t)
	special := func(c byte) bool { return c < ' ' || c == '"' || c == '\\' }
	for range 20_000 {
		b := bytes.Repeat([]byte{'a'}, r.IntN(40))
		for range r.IntN(4) {
			if len(b) > 0 {
				b[r.IntN(len(b))] = byte(r.IntN(256))
			}
		}
		from := r.IntN(len(b) + 1)
		want, wantASCII := len(b), len(b)
		if i := slices.IndexFunc(b[from:], special); i >= 0 {
			want = from + i
		}
		if i := slices.IndexFunc(b[from:], func(c byte) bool { return special(c) || c >= 0x80 }); i >= 0 {
			wantASCII = from + i
		}
		if got := plain(b, from); got != want {
			t.Fatalf("plain(%q, %d) = %d, want %d", b, from, got, want)
		}
		if got := plain(string(b), from); got != want {
			t.Fatalf("plain of the string %q from %d on is %d, want %d", b, from, got, want)
		}
		if got := plainASCII(b, from); got != wantASCII {
			t.Fatalf("plainASCII(%q, %d) = %d, want %d", b, from, got, wantASCII)
		}
	}
}

// A digest is that of the canonical form, in which strings have one notation however they
// were escaped, also when it goes into the hash by parts.
func TestDigestIsOfTheCanonicalForm(t *testing.T) {
	r := seed.Rand(t)
	for range 2000 {
		var all []string
		for range r.IntN(8) {
			all = append(all, randomText(r))
		}
		tight, err := json.Marshal(map[string]any{"list": all, "n": r.IntN(1000) - 500, randomText(r): randomText(r)})
		if err != nil {
			t.Fatal(err)
		}
		var loose bytes.Buffer
		if err := json.Indent(&loose, escaped(r, tight), "", " "); err != nil {
			t.Fatal(err)
		}
		d, other := Must(string(tight)), Must(loose.String())
		want := naive(nil, d)
		sum := sha256.Sum256(want)
		if got := d.Canonical(); !bytes.Equal(got, want) {
			t.Fatalf("canonical form %q, want %q", got, want)
		}
		if got := d.Digest(); got != hex.EncodeToString(sum[:]) || other.Digest() != got || !bytes.Equal(other.Canonical(), want) {
			t.Fatalf("%s and %s have the digests %s and %s, want that of %q", d, other, got, other.Digest(), want)
		}
	}
}

// escaped writes some letters of a document as escapes, in its strings alone.
func escaped(r *rand.Rand, b []byte) []byte {
	text := string(b)
	for _, c := range []string{"a", "x", "/"} {
		if r.IntN(2) == 0 && c != "x" {
			text = strings.ReplaceAll(text, c, map[string]string{"a": `\u0061`, "/": `\/`}[c])
		}
	}
	if r.IntN(2) == 0 {
		text = strings.NewReplacer(`\u001f`, `\u001F`, `\n`, `\u000a`).Replace(text)
	}
	if d, err := Parse([]byte(text)); err == nil && naiveEqual(d, Must(string(b))) {
		return []byte(text)
	}
	return b // an escape was broken in two
}

func naiveEqual(a, b Doc) bool { return bytes.Equal(naive(nil, a), naive(nil, b)) }

// naive writes the canonical form byte by byte.
func naive(out []byte, d Doc) []byte {
	switch d.Kind() {
	case String:
		return naiveString(out, d.Text())
	case Array:
		out = append(out, '[')
		for v := range d.Elements() {
			out = append(naive(out, v), ',')
		}
		return append(bytes.TrimSuffix(out, []byte{','}), ']')
	case Object:
		members := make(map[string]Doc)
		var names []string
		for name, v := range d.Members() {
			members[name], names = v, append(names, name)
		}
		slices.SortFunc(names, compareUTF16)
		out = append(out, '{')
		for i, name := range names {
			if i > 0 {
				out = append(out, ',')
			}
			out = naive(append(naiveString(out, name), ':'), members[name])
		}
		return append(out, '}')
	}
	return append(out, d.Raw()...)
}

func naiveString(out []byte, s string) []byte {
	out = append(out, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case strings.IndexByte("\b\t\n\f\r\"\\", c) >= 0:
			out = append(out, '\\', `btnfr"\`[strings.IndexByte("\b\t\n\f\r\"\\", c)])
		case c < ' ':
			out = append(out, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		default:
			out = append(out, c)
		}
	}
	return append(out, '"')
}
