package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// table prints rows in aligned columns. Columns stay aligned when rows lack their
// last cells, and grow over what is printed in parts.
type table struct {
	out    io.Writer
	rows   [][]string // not printed yet
	widths []int      // of columns, in characters; a row of one cell has no say
}

func newTable(out io.Writer, heads ...string) *table {
	t := &table{out: out}
	t.row(heads...)
	return t
}

// row adds a row. What cells hold may be foreign: nothing in it can move the
// cursor or the columns.
func (t *table) row(cells ...string) {
	for i, c := range cells {
		cells[i] = visible(c)
	}
	for len(cells) > 0 && cells[len(cells)-1] == "" {
		cells = cells[:len(cells)-1]
	}
	t.rows = append(t.rows, cells)
	if len(cells) < 2 {
		return
	}
	for i, c := range cells {
		if i == len(t.widths) {
			t.widths = append(t.widths, 0)
		}
		t.widths[i] = max(t.widths[i], utf8.RuneCountInString(c))
	}
}

// flush prints the rows that are not printed yet.
func (t *table) flush() error {
	var b strings.Builder
	for _, cells := range t.rows {
		for i, c := range cells[:max(len(cells)-1, 0)] {
			fmt.Fprintf(&b, "%-*s  ", t.widths[i], c)
		}
		b.WriteString(strings.Join(cells[max(len(cells)-1, 0):], "") + "\n")
	}
	t.rows = nil
	_, err := io.WriteString(t.out, b.String())
	return err
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

// short cuts a text to n characters.
func short(s string, n int) string {
	r := []rune(strings.Join(strings.Fields(s), " "))
	if len(r) <= n {
		return string(r)
	}
	return string(r[:n-1]) + "…"
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
