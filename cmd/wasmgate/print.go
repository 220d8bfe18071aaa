package main

import (
	"encoding/json"
	"fmt"
	"io"
)

// printJSON prints a result for machines.
func (c *cli) printJSON(v any) error {
	e := json.NewEncoder(c.out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// printLine prints what programs read on one line of w.
func printLine(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// said prints what a command has done.
func (c *cli) said(result any, text string) error {
	if c.json {
		return c.printJSON(result)
	}
	_, err := fmt.Fprintln(c.out, text)
	return err
}
