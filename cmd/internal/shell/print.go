package shell

import (
	"fmt"
	"io"

	"github.com/wasmgate/wasmgate/cmd/internal/show"
)

// Widths of columns, in characters.
const (
	MaxTool = 60
	MaxWhy  = 80
)

// PrintJSON prints a result for machines.
func (c *Shell) PrintJSON(v any) error { return show.JSON(c.Out, v, "  ") }

// PrintLine prints what programs read on one line of w.
func PrintLine(w io.Writer, v any) error { return show.JSON(w, v, "") }

// Said prints what a command has done.
func (c *Shell) Said(result any, text string) error {
	if c.JSON {
		return c.PrintJSON(result)
	}
	_, err := fmt.Fprintln(c.Out, text)
	return err
}
