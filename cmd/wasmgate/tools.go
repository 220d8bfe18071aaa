package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/cmd/internal/shell"
	"github.com/wasmgate/wasmgate/cmd/internal/toollist"
	"github.com/wasmgate/wasmgate/internal/app/inventory"
	"github.com/wasmgate/wasmgate/internal/app/operation"
	"github.com/wasmgate/wasmgate/internal/app/overview"
	"github.com/wasmgate/wasmgate/internal/find"
)

func (c callCommands) newTools() *cobra.Command {
	var as, search string
	var groups []string
	var all, cost bool
	cmd := &cobra.Command{
		Use:   "tools",
		Short: "List the tools that a principal is offered",
		Long: `Lists the tools that a principal is offered. With --all it also lists hidden tools with the reason, the
conditions under which a call passes, and prompts, resources, resource templates and methods. With --cost it
lists instead, for each server, how large its definitions are for a model, and how often its tools were called.`,
		Example: "  wasmgate tools --as alice --group docs\n  wasmgate tools --all --search \"read file\"\n  wasmgate tools --cost",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if all && cost {
				return shell.Misuse("--all and --cost are two lists: give one of them")
			}
			cfg, err := c.Open()
			if err != nil {
				return err
			}
			if err := checkGroups(cmd, cfg, groups); err != nil {
				return err
			}
			g, err := c.Ask(cmd.Context(), cfg, "")
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, g.End(cmd.Context())) }()
			tools, err := inventory.Tools.Ask(cmd.Context(), g, inventory.Request{As: as, All: all})
			if err != nil {
				return err
			}
			if all {
				others, err := inventory.Features.Ask(cmd.Context(), g, inventory.Request{As: as, All: all})
				if err != nil {
					return err
				}
				tools = append(tools, others...)
			}
			if s, err := overview.Show.Ask(cmd.Context(), g, operation.None{}); err == nil && len(s.Unready())+len(s.Faulted()) > 0 {
				defer fmt.Fprintf(c.Err, "not ready: %s; see `wasmgate status`\n", strings.Join(slices.Concat(s.Unready(), s.Faulted()), ", "))
			}
			tools = slices.DeleteFunc(tools, func(t inventory.Tool) bool { return !t.Matches(groups, find.NewSearch(search)) })
			if len(tools) == 0 && !c.JSON {
				return c.noTools(search != "" || len(groups) > 0, all)
			}
			if cost {
				return c.printCosts(cmd.Context(), cfg.Audit.Path, tools)
			}
			if c.JSON {
				return c.PrintJSON(tools)
			}
			return toollist.Print(c.Out, tools, all)
		},
	}
	cmd.Flags().StringVar(&as, "as", "", "principal (default: local)")
	cmd.Flags().BoolVar(&all, "all", false, "also list hidden tools with the reason, prompts, resources and methods")
	cmd.Flags().BoolVar(&cost, "cost", false, "what the definitions of each server cost a model, in tokens")
	cmd.Flags().StringVar(&search, "search", "", "only tools whose name, title and description contain all of these words")
	cmd.Flags().StringSliceVar(&groups, "group", nil, "only tools of this group; may be repeated")
	return cmd
}

func (c callCommands) printCosts(ctx context.Context, log string, tools []inventory.Tool) error {
	costs, err := toollist.CostsOf(ctx, tools, log)
	switch {
	case err != nil:
		return err
	case c.JSON:
		return c.PrintJSON(costs)
	}
	return toollist.PrintCosts(c.Out, costs)
}

// noTools says on standard error that there is nothing to list, and where more may be.
func (c callCommands) noTools(narrowed, all bool) error {
	text := "no tools"
	if narrowed {
		text = "no tool matches"
	}
	if !all {
		text += "; `wasmgate tools --all` looks at hidden ones too, and says why they are"
	}
	_, err := fmt.Fprintln(c.Err, text)
	return err
}
