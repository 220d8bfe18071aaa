package lock

import (
	"fmt"
	"strings"
	"unicode"
)

// Visible returns s with everything that a screen would not show for what it is
// written as its code point, such as <U+202E>: control and format characters,
// spaces that are no plain space, fillers, and variation selectors. What it
// returns is one line and safe to print on a terminal.
func Visible(s string) string {
	plain := true
	for i := 0; i < len(s) && plain; i++ {
		plain = ' ' <= s[i] && s[i] < 0x7f
	}
	if plain {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if hidden(r) {
			fmt.Fprintf(&b, "<U+%04X>", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// brailleBlank is a symbol to Unicode, and looks like a space.
const brailleBlank = '\u2800'

func hidden(r rune) bool {
	return !unicode.IsPrint(r) || r == unicode.ReplacementChar || r == brailleBlank ||
		unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// spelled returns s with every character beyond ASCII written as its code point.
func spelled(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r > unicode.MaxASCII || hidden(r) {
			fmt.Fprintf(&b, "<U+%04X>", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
