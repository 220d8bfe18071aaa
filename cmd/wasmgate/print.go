package main

import (
	"fmt"
	"io"

	"github.com/wasmgate/wasmgate/cmd/internal/show"
)

// Widths of columns, in characters.
const (
	maxTool = 60
	maxWhy  = 80
)

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
