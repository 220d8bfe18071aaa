// Package toollist prints lists of tools: what is offered and why not, and what definitions cost a model.
package toollist

import (
	"fmt"
	"io"
	"slices"

	"github.com/wasmgate/wasmgate/cmd/internal/show"
	"github.com/wasmgate/wasmgate/internal/app/inventory"
)

// Print writes what is offered; if all is true, also what is hidden and why, and prompts, resources and methods.
func Print(w io.Writer, tools []inventory.Tool, all bool) error {
	heads := []string{"TOOL", "DESCRIPTION"}
	if all {
		heads = []string{"TOOL", "OFFERED", "DESCRIPTION"}
	}
	at := slices.IndexFunc(tools, func(t inventory.Tool) bool { return t.Kind != "" })
	if at < 0 {
		at = len(tools)
	}
	if err := printTable(w, heads, tools[:at], all); err != nil || at == len(tools) {
		return err
	}
	fmt.Fprintln(w)
	return printTable(w, []string{"KIND", "NAME", "OFFERED", "DESCRIPTION"}, tools[at:], all)
}

func printTable(w io.Writer, heads []string, tools []inventory.Tool, all bool) error {
	t := show.NewTable(w, heads...)
	for _, tool := range tools {
		description := show.Short(show.FirstSentence(tool.Description), 90)
		if !all {
			t.Row(tool.Name, description)
			continue
		}
		cells := []string{tool.Name, offered(tool), description}
		if tool.Kind != "" {
			cells = slices.Insert(cells, 0, tool.Kind)
		}
		t.Row(cells...)
	}
	return t.Flush()
}

// offered says whether a tool is offered, and why not, or for which calls.
func offered(t inventory.Tool) string {
	switch {
	case !t.Offered:
		return "no: " + t.Why
	case t.Condition != "":
		return "yes: " + show.Short(t.Condition, 160)
	default:
		return "yes"
	}
}
