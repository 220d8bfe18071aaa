package pages

import (
	"regexp"
	"testing"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/internal/lock"
)

func TestWordsOfAChange(t *testing.T) {
	for _, c := range []struct {
		old, new string
		want     words
	}{
		{"Reads a file.", "Reads a secret file.", words{"Reads a ", "", "secret ", "file."}},
		{"", "all of it is new", words{"", "", "all of it is new", ""}},
		{"one two", "one two", words{"one two", "", "", ""}},
		{"a a", "a", words{"", "a ", "", "a"}},
		{"kept gone kept", "kept kept", words{"kept ", "gone ", "", "kept"}},
	} {
		if got := wordsOf(lock.Reviewed{Change: lock.Change{Old: c.old, New: c.new}}); got != c.want {
			t.Errorf("%q, %q: %+v", c.old, c.new, got)
		}
	}
}

// A page cannot show as text what is none.
func TestTextOnly(t *testing.T) {
	for _, v := range []any{status.Note{Text: "x"}, []string{"x"}, map[string]int{"x": 1}, &status.Note{}, nil, 3} {
		if got, err := visible(v); err == nil {
			t.Errorf("%#v is shown as %q", v, got)
		}
	}
	all, err := files.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		text, err := files.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		if found := regexp.MustCompile(`\b(print|printf|println)\b`).Find(text); found != nil {
			t.Errorf("%s prints values of any type by %s", f.Name(), found)
		}
	}
}
