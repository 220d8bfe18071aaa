package main

import (
	"fmt"
	"io"

	"github.com/wasmgate/wasmgate/cmd/internal/show"
)

// What people read is written by package show.
var (
	plural        = show.Plural
	roughly       = show.Roughly
	sizeText      = show.SizeText
	firstSentence = show.FirstSentence
	visible       = show.Visible
	visibleLines  = show.VisibleLines
	short         = show.Short
	wrapped       = show.Wrapped
	isTerminal    = show.IsTerminal
	paint         = show.Paint
	newTable      = show.NewTable
)

const good, bad, faint = show.Good, show.Bad, show.Faint

// printJSON prints a result for machines.
func (c *cli) printJSON(v any) error { return show.JSON(c.out, v, "  ") }

// printLine prints what programs read on one line of w.
func printLine(w io.Writer, v any) error { return show.JSON(w, v, "") }

// said prints what a command has done.
func (c *cli) said(result any, text string) error {
	if c.json {
		return c.printJSON(result)
	}
	_, err := fmt.Fprintln(c.out, text)
	return err
}
