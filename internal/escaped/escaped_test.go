package escaped_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/wasmgate/wasmgate/internal/escaped"
	"github.com/wasmgate/wasmgate/internal/seed"
)

// hostile are characters on which terminals act, or which readers do not see.
const hostile = "\x00\x07\x08\x1b\x7f\u0085\u009b\u00a0\u200b\u200e\u202e\u2028\u2029\u2066\ufeff\ufff9\U000e0041\U000f0000"

// texts are random ones with hostile characters among ordinary ones.
func texts(t *testing.T) (all []string) {
	r := seed.Rand(t)
	letters := []rune(hostile + "\r\n\tabc ä世\U0001f600\\\"u")
	for range 2000 {
		var b strings.Builder
		for range r.IntN(20) {
			b.WriteRune(letters[r.IntN(len(letters))])
		}
		all = append(all, b.String())
	}
	return all
}

func shown(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

func TestText(t *testing.T) {
	for _, s := range texts(t) {
		if got := escaped.Text(s); !shown(got) {
			t.Errorf("%q is shown as %q", s, got)
		}
		if got := escaped.Lines(s); !shown(strings.ReplaceAll(got, "\n", "")) || strings.Count(got, "\n") != strings.Count(s, "\n") {
			t.Errorf("the lines of %q are shown as %q", s, got)
		}
	}
}

// JSON means what it meant.
func TestJSON(t *testing.T) {
	for _, s := range texts(t) {
		var doc strings.Builder
		e := json.NewEncoder(&doc)
		e.SetEscapeHTML(false)
		if err := e.Encode(map[string]string{s: s}); err != nil {
			t.Fatal(err)
		}
		got := escaped.JSON([]byte(doc.String()))
		var back map[string]string
		if err := json.Unmarshal([]byte(got), &back); err != nil || back[s] != s || !shown(strings.TrimSuffix(got, "\n")) {
			t.Errorf("%q is %q, %v", doc.String(), got, err)
		}
	}
}
