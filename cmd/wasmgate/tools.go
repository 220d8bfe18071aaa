package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/internal/app"
	"github.com/wasmgate/wasmgate/internal/find"
)

func (c *cli) newTools() *cobra.Command {
	var as, search string
	var groups []string
	var all bool
	cmd := &cobra.Command{
		Use:   "tools",
		Short: "List the tools that a principal is offered",
		Long: `Lists the tools that a principal is offered. With --all it also lists hidden tools with the reason, the
conditions under which a call passes, and prompts, resources, resource templates and methods.`,
		Example: "  wasmgate tools --as alice --group docs\n  wasmgate tools --all --search \"read file\"",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			cfg, err := c.open()
			if err != nil {
				return err
			}
			if err := checkGroups(cmd, cfg, groups); err != nil {
				return err
			}
			g, err := c.ask(cmd.Context(), cfg, "")
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, g.close(cmd.Context())) }()
			tools, err := g.Tools(cmd.Context(), as, all)
			if err != nil {
				return err
			}
			if all {
				others, err := g.Features(cmd.Context(), as, all)
				if err != nil {
					return err
				}
				tools = append(tools, others...)
			}
			if s, err := g.Status(cmd.Context()); err == nil && len(s.Unready())+len(s.Faulted()) > 0 {
				defer fmt.Fprintf(c.err, "not ready: %s; see `wasmgate status`\n", strings.Join(slices.Concat(s.Unready(), s.Faulted()), ", "))
			}
			tools = slices.DeleteFunc(tools, func(t app.Tool) bool { return !t.Matches(groups, find.NewSearch(search)) })
			if len(tools) == 0 && !c.json {
				return c.noTools(search != "" || len(groups) > 0, all)
			}
			return c.printTools(tools, all)
		},
	}
	cmd.Flags().StringVar(&as, "as", "", "principal (default: local)")
	cmd.Flags().BoolVar(&all, "all", false, "also list hidden tools with the reason, prompts, resources and methods")
	cmd.Flags().StringVar(&search, "search", "", "only tools whose name, title and description contain all of these words")
	cmd.Flags().StringSliceVar(&groups, "group", nil, "only tools of this group; may be repeated")
	return cmd
}

func (c *cli) printTools(tools []app.Tool, all bool) error {
	if c.json {
		return c.printJSON(tools)
	}
	heads := []string{"TOOL", "DESCRIPTION"}
	if all {
		heads = []string{"TOOL", "OFFERED", "DESCRIPTION"}
	}
	at := slices.IndexFunc(tools, func(t app.Tool) bool { return t.Kind != "" })
	if at < 0 {
		at = len(tools)
	}
	if err := c.printTable(heads, tools[:at], all); err != nil || at == len(tools) {
		return err
	}
	fmt.Fprintln(c.out)
	return c.printTable([]string{"KIND", "NAME", "OFFERED", "DESCRIPTION"}, tools[at:], all)
}

func (c *cli) printTable(heads []string, tools []app.Tool, all bool) error {
	t := newTable(c.out, heads...)
	for _, tool := range tools {
		description := short(firstSentence(tool.Description), 90)
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

// noTools says on standard error that there is nothing to list, and where more may be.
func (c *cli) noTools(narrowed, all bool) error {
	text := "no tools"
	if narrowed {
		text = "no tool matches"
	}
	if !all {
		text += "; `wasmgate tools --all` looks at hidden ones too, and says why they are"
	}
	_, err := fmt.Fprintln(c.err, text)
	return err
}

// offered says whether a tool is offered, and why not, or for which calls.
func offered(t app.Tool) string {
	switch {
	case !t.Offered:
		return "no: " + t.Why
	case t.Condition != "":
		return "yes: " + short(t.Condition, 160)
	default:
		return "yes"
	}
}
