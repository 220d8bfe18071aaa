package auditcommands

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/cmd/internal/shell"
	"github.com/wasmgate/wasmgate/cmd/internal/show"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/app/exceptions"
	"github.com/wasmgate/wasmgate/internal/app/operation"
	"github.com/wasmgate/wasmgate/internal/config/except"
)

// findings show findings and sessions.
type findings struct{ *shell.Shell }

// Findings returns findings with its commands.
func Findings(c *shell.Shell) *cobra.Command { return findings{c}.newFindings() }

// Sessions returns sessions with its commands.
func Sessions(c *shell.Shell) *cobra.Command { return findings{c}.newSessions() }

func (c findings) newFindings() *cobra.Command {
	return shell.WithCommands(&cobra.Command{
		Use:     "findings",
		Short:   "Show what was neutralized or reported in calls, and make exceptions",
		Long:    "Shows what the sanitizer and the search for secrets found in recorded calls, and writes exceptions from\ntheir rules into the configuration.",
		Example: "  wasmgate findings list --tool 'files__*'\n  wasmgate findings except 1f0c3a5b7d9e\n  wasmgate findings except 1f0c3a5b7d9e tool",
	}, c.newFindingsList(), c.newFindingsExcept())
}

func (c findings) newFindingsList() *cobra.Command {
	var f audit.Filter
	cmd := &cobra.Command{
		Use: "list", Short: "List findings by rule, tool and place, the most frequent first", Args: cobra.NoArgs,
		Long:    fmt.Sprintf("Counts the findings in the newest %d calls that have any. INERT is how often it was neutralized; the\nothers were only reported.", except.MostCalls),
		Example: "  wasmgate findings list --tool 'files__*'",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := c.Open()
			if err != nil {
				return err
			}
			all, err := except.List(cmd.Context(), cfg.Audit.Path, f)
			if err != nil {
				return err
			}
			if c.JSON {
				return c.PrintJSON(all)
			}
			t := show.NewTable(c.Out, "FINDING", "RULE", "TOOL", "CALLS", "FOUND", "INERT", "PLACE", "LAST CALL")
			for _, f := range all {
				t.Row(f.ID, f.Rule, show.Short(f.Tool, shell.MaxTool), strconv.Itoa(f.Calls), strconv.Itoa(f.Found), strconv.Itoa(f.Removed), show.Short(f.At, shell.MaxTool), f.Last)
			}
			return t.Flush()
		},
	}
	cmd.Flags().StringVar(&f.Tool, "tool", "", "only calls of this tool, or of tools that match a pattern")
	return cmd
}

func (c findings) newFindingsExcept() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "except FINDING [one|tool|server|rule]", Short: "Write an exception for a finding", Args: cobra.RangeArgs(1, 2),
		Long: `Shows the possible exceptions for a finding, each with its effect and the line to write: for one value,
a tool, a server, or the whole rule. With the name of one it writes that line into the configuration and
changes nothing else. On a terminal it asks first. A running gateway checks the change as admin/grant,
records it, and reads the file again.`,
		Example: "  wasmgate findings except 1f0c3a5b7d9e\n  wasmgate findings except 1f0c3a5b7d9e tool",
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := c.Open()
			if err != nil {
				return err
			}
			all, err := except.List(cmd.Context(), cfg.Audit.Path, audit.Filter{})
			if err != nil {
				return err
			}
			i := slices.IndexFunc(all, func(f except.Finding) bool { return f.ID == args[0] })
			if i < 0 {
				return shell.Misuse("there is no finding %q; see wasmgate findings list", args[0])
			}
			return c.WithState(cmd.Context(), func(g operation.Gateway) error {
				offers, err := exceptions.Find.Ask(cmd.Context(), g, all[i].Of())
				if err != nil {
					return err
				}
				if len(args) == 1 {
					return c.printOffers(all[i], offers)
				}
				return c.except(cmd, g, all[i], offers, args[1], yes)
			})
		},
	}
	shell.YesFlag(cmd, &yes)
	return cmd
}

func (c findings) printOffers(f except.Finding, o except.Offers) error {
	if c.JSON {
		return c.PrintJSON(struct {
			except.Finding
			except.Offers
		}{f, o})
	}
	fmt.Fprintf(c.Out, "%s in calls of %s, at %s\n", show.Visible(f.Rule), show.Visible(f.Tool), show.Visible(f.At))
	if len(o.All) == 0 {
		fmt.Fprintln(c.Out, "no entry of the configuration makes an exception from it, or one does already")
	}
	for _, e := range o.All {
		line := strings.TrimSpace(e.Line)
		if e.ByHand != "" {
			line = e.String() + "\n  " + e.ByHand
		}
		fmt.Fprintf(c.Out, "\n%s: %s\n  %s\n", e.Name, show.Visible(e.Means), show.VisibleLines(line))
	}
	return nil
}

func (c findings) except(cmd *cobra.Command, g operation.Gateway, f except.Finding, o except.Offers, name string, yes bool) error {
	i := slices.IndexFunc(o.All, func(e except.Offer) bool { return e.Name == name })
	if i < 0 {
		return shell.Misuse("%v; see wasmgate findings except %s", except.ErrNone, f.ID)
	}
	o.All = o.All[i : i+1]
	if o.All[0].ByHand == "" {
		preview := func() error { return c.printOffers(f, o) }
		if err := c.Confirmed(yes, preview, "Write it into "+o.File+"?"); err != nil {
			return err
		}
	}
	written, err := exceptions.Write.Ask(cmd.Context(), g, exceptions.Request{Found: f.Of(), Name: name, Seen: o.Seen})
	if err != nil {
		return err
	}
	return c.Said(written, strings.TrimSpace(fmt.Sprintf("written into %s: %s\n%s", written.File, strings.TrimSpace(written.Line), written.Advice)))
}
