package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
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
