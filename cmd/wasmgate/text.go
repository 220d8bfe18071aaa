package main

import (
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"

	"golang.org/x/term"
)

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return strconv.Itoa(n) + " " + word + "s"
}

// roughly returns a duration in whole seconds, or in minutes.
func roughly(d time.Duration) string {
	d = max(d, 0)
	if d < time.Minute {
		return d.Truncate(time.Second).String()
	}
	return strings.TrimSuffix(d.Truncate(time.Minute).String(), "0s")
}

// sizeText writes a number of bytes for people.
func sizeText(n int64) string {
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

func firstSentence(s string) string {
	if i := strings.Index(s, ". "); i >= 0 {
		return s[:i+1]
	}
	return s
}

// visible replaces what a terminal would act on.
func visible(s string) string {
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

// visibleLines is visible for text of several lines.
func visibleLines(text string) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		lines = append(lines, visible(line))
	}
	return strings.Join(lines, "\n")
}

// short cuts a text to n characters.
func short(s string, n int) string {
	r := []rune(strings.Join(strings.Fields(s), " "))
	if len(r) <= n {
		return string(r)
	}
	return string(r[:n-1]) + "…"
}

// wrapped joins words with commas to lines of some width.
func wrapped(words []string, width int) []string {
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

// isTerminal reports whether a person looks at what is written to w.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// The colours of a terminal, by meaning.
const (
	good  = "32"
	bad   = "31"
	faint = "2"
)

// paint colours s on terminals, unless NO_COLOR asks for none. It is for the
// last column, whose width nothing is aligned by.
func paint(w io.Writer, colour, s string) string {
	if !isTerminal(w) || os.Getenv("NO_COLOR") != "" {
		return s
	}
	return "\x1b[" + colour + "m" + s + "\x1b[0m"
}
