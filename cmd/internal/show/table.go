package show

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// A Table prints rows in aligned columns. Columns stay aligned when rows lack their
// last cells, and grow over what is printed in parts.
type Table struct {
	out    io.Writer
	rows   [][]string // not printed yet
	widths []int      // of columns, in characters; a row of one cell has no say
}

func NewTable(out io.Writer, heads ...string) *Table {
	t := &Table{out: out}
	t.Row(heads...)
	return t
}

// Row adds a row. What cells hold may be foreign: nothing in it can move the
// cursor or the columns.
func (t *Table) Row(cells ...string) {
	for i, c := range cells {
		cells[i] = Visible(c)
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

// Flush prints the rows that are not printed yet.
func (t *Table) Flush() error {
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
