package show

import (
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"

	"golang.org/x/term"
)

// Plural writes a number of things.
func Plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return strconv.Itoa(n) + " " + word + "s"
}

// Roughly returns a duration in whole seconds, or in minutes.
func Roughly(d time.Duration) string {
	d = max(d, 0)
	if d < time.Minute {
		return d.Truncate(time.Second).String()
	}
	return strings.TrimSuffix(d.Truncate(time.Minute).String(), "0s")
}

// SizeText writes a number of bytes for people.
func SizeText(n int64) string {
	size, unit := float64(n), "bytes"
	switch {
	case n >= 1<<30:
		size, unit = size/(1<<30), "GiB"
	case n >= 1<<20:
		size, unit = size/(1<<20), "MiB"
	case n >= 1<<10:
		size, unit = size/(1<<10), "KiB"
	}
	return strings.TrimSuffix(strconv.FormatFloat(size, 'f', 1, 64), ".0") + " " + unit
}

// FirstSentence cuts a text behind its first sentence.
func FirstSentence(s string) string {
	if i := strings.Index(s, ". "); i >= 0 {
		return s[:i+1]
	}
	return s
}

// Visible replaces what a terminal would act on.
func Visible(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case !unicode.IsGraphic(r):
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// VisibleLines is [Visible] for text of several lines.
func VisibleLines(text string) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		lines = append(lines, Visible(line))
	}
	return strings.Join(lines, "\n")
}

// Short cuts a text to n characters.
func Short(s string, n int) string {
	r := []rune(strings.Join(strings.Fields(s), " "))
	if len(r) <= n {
		return string(r)
	}
	return string(r[:n-1]) + "…"
}

// Wrapped joins words with commas to lines of some width.
func Wrapped(words []string, width int) []string {
	var lines []string
	for i, w := range words {
		if i < len(words)-1 {
			w += ","
		}
		if last := len(lines) - 1; last >= 0 && len(lines[last])+1+len(w) <= width {
			lines[last] += " " + w
			continue
		}
		lines = append(lines, w)
	}
	return lines
}

// IsTerminal reports whether a person looks at what is written to w.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// The colours of a terminal, by meaning.
const (
	Good  = "32"
	Bad   = "31"
	Faint = "2"
)

// Paint colours s on terminals, unless NO_COLOR asks for none. It is for the
// last column, whose width nothing is aligned by.
func Paint(w io.Writer, colour, s string) string {
	if !IsTerminal(w) || os.Getenv("NO_COLOR") != "" {
		return s
	}
	return "\x1b[" + colour + "m" + s + "\x1b[0m"
}
