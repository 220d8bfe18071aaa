package secrets

import (
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/testing/seed"
)

// A name is taken for that of a secret if its words say so: what its last letters say in
// front of that changes nothing.
func TestNamesOfSecretsAreKnownByTheirWords(t *testing.T) {
	r := seed.Rand(t)
	slow := func(name string) bool {
		words := words(name)
		for _, s := range secretNames {
			if words == s || strings.HasSuffix(words, " "+s) {
				return true
			}
		}
		return false
	}
	pieces := append(strings.Fields(strings.Join(secretNames, " ")), "my", "x", "1", "é", "K", "ſ", "text", "content", "PASSWORD", "Key", "apiKEY", "id")
	yes := 0
	for range 50_000 {
		var b strings.Builder
		for range 1 + r.IntN(4) {
			b.WriteString(pieces[r.IntN(len(pieces))])
			b.WriteString([]string{"", "_", "-", " ", ".", "/", "é", "\u00a0", "[0]", "\x10", "\x7f"}[r.IntN(11)])
		}
		name := b.String()
		if r.IntN(3) == 0 {
			name = name[r.IntN(len(name)):]
		}
		want := slow(name)
		if got := namesSecret(name); got != want {
			t.Fatalf("namesSecret(%q) = %t, want %t", name, got, want)
		}
		if want {
			yes++
		}
	}
	if yes < 1000 {
		t.Errorf("%d names of secrets: that says little", yes)
	}
	for _, s := range secretNames {
		if !namesSecret(s) {
			t.Errorf("%q is none", s)
		}
	}
}
