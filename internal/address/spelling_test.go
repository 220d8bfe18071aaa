package address_test

import (
	"slices"
	"testing"

	"github.com/wasmgate/wasmgate/internal/address"
)

// Spellings of mailboxes that mail programs and people read.
func TestSpellingsOfMailboxes(t *testing.T) {
	for text, want := range map[string]string{
		"mail a@[203.0.113.5] now":         "a@203.0.113.5",
		"mail a@[IPv6:2001:db8::1] now":    "a@2001:db8::1",
		`mail "a"@evil.example now`:        "a@evil.example",
		"mail a(at)evil.example now":       "a@evil.example",
		"mail a [at] evil.example now":     "a@evil.example",
		"mail a{AT}evil(dot)example now":   "a@evil.example",
		"mail a (at) evil [dot] example !": "a@evil.example",
		"mail a@203.0.113.5, now":          "a@203.0.113.5",
	} {
		var all []string
		address.In(text, func(a string) { all = append(all, a) })
		if !slices.Equal(all, []string{want}) {
			t.Errorf("%s: %q, want %s", text, all, want)
		}
	}
	for _, text := range []string{
		"we meet (at noon) [at the door]", "an array [at] an index", "print(at)", `she said "hello"@home`, "lodash@4.17.21", "react@next", "user@[name]", "x = a[dot]", "f(dot)(product)",
		"see the table (at) 12:30", "matrix@[1]",
	} {
		address.In(text, func(a string) { t.Errorf("%s: %s", text, a) })
	}
}
