package definitioncommands

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/cmd/internal/shell"
	"github.com/wasmgate/wasmgate/cmd/internal/show"
	"github.com/wasmgate/wasmgate/internal/app/operation"
	"github.com/wasmgate/wasmgate/internal/app/pins"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/lock"
)

// commands show, scan and approve what servers define.
type commands struct{ *shell.Shell }

// Pin returns pin with its commands.
func Pin(c *shell.Shell) *cobra.Command { return commands{c}.newPin() }

// Scan returns the command that searches definitions for attacks.
func Scan(c *shell.Shell) *cobra.Command { return commands{c}.newScan() }

// Trust returns trust with its commands.
func Trust(c *shell.Shell) *cobra.Command { return commands{c}.newTrust() }

func (c commands) newPin() *cobra.Command {
	return shell.WithCommands(&cobra.Command{
		Use:   "pin",
		Short: "Show and approve the definitions of tools",
		Long: `A pin is the digest of an approved definition: of a tool, a prompt, or the server itself. A definition
that is new or has changed is quarantined: it is neither listed nor callable. Approving writes
wasmgate.lock. Keep that file in version control.

These commands ask the running gateway. If none runs, they connect the servers once.`,
		Example: "  wasmgate pin list\n  wasmgate pin diff files__read_file\n  wasmgate pin approve files",
	}, c.newPinList(), c.newPinDiff(), c.newPinApprove())
}

// pinned calls f with the pins of the gateway.
func (c commands) pinned(cmd *cobra.Command, f func(ctx context.Context, cfg *config.Config, g operation.Gateway) error) (err error) {
	cfg, err := c.Open()
	if err != nil {
		return err
	}
	if cfg.Pins.Mode == "off" {
		return shell.Misuse("pins are off; set pins.mode in the configuration to trust-first or strict")
	}
	g, err := c.Ask(cmd.Context(), cfg, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.End(cmd.Context())) }()
	return shell.NameError(f(cmd.Context(), cfg, g))
}

func selector(args []string) string { return strings.Join(args, " ") }

func (c commands) newPinList() *cobra.Command {
	return &cobra.Command{
		Use:     "list [SERVER]",
		Short:   "List definitions: pinned, trusted since they were first seen, quarantined, gone",
		Long:    "Lists the definitions of servers and their state. Only pinned and trusted ones can be called.",
		Example: "  wasmgate pin list\n  wasmgate pin list files --json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.pinned(cmd, func(ctx context.Context, _ *config.Config, g operation.Gateway) error {
				all, err := pins.Show.Ask(ctx, g, pins.Request{Selector: selector(args)})
				if err != nil {
					return err
				}
				return c.printPins(all)
			})
		},
	}
}

func (c commands) printPins(all *pins.List) error {
	if c.JSON {
		return c.PrintJSON(all)
	}
	if len(all.Pins) == 0 {
		fmt.Fprintln(c.Err, "no server declares anything that is pinned")
		return nil
	}
	t := show.NewTable(c.Out, "NAME", "STATE", "DIGEST", "SINCE")
	for _, e := range all.Pins {
		since := ""
		if !e.Since.IsZero() {
			since = e.Since.Local().Format(time.DateTime)
		}
		t.Row(lock.Visible(e.Label), string(e.State), e.Digest[:12], since)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if n := all.Count(); n > 0 {
		fmt.Fprintf(c.Err, "%d quarantined; `wasmgate pin diff%s` shows why\n", n, c.ConfigFlag())
	}
	return nil
}

func (c commands) newPinDiff() *cobra.Command {
	return &cobra.Command{
		Use:   "diff [TOOL|SERVER]",
		Short: "Show how definitions differ from what was approved",
		Long: `Shows field by field how quarantined definitions differ from the approved ones, what changed schemas mean
for calls, and what the rules of ` + "`wasmgate scan`" + ` find. Hidden characters are written as <U+202E>.

Exits with 0 if nothing differs, and with 3 if something does.`,
		Example: "  wasmgate pin diff\n  wasmgate pin diff files__read_file",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.pinned(cmd, func(ctx context.Context, _ *config.Config, g operation.Gateway) error {
				review, err := pins.Compare.Ask(ctx, g, pins.Request{Selector: selector(args)})
				if err != nil {
					return err
				}
				if err := c.printDifferences(review.Differences); err != nil || len(review.Differences) == 0 {
					return err
				}
				return shell.Exit(shell.ExitFalse, nil)
			})
		},
	}
}

func (c commands) printDifferences(all []lock.Difference) error {
	if c.JSON {
		return c.PrintJSON(all)
	}
	if len(all) == 0 {
		fmt.Fprintln(c.Err, "nothing differs from what is approved")
		return nil
	}
	show.Differences(c.Out, all)
	fmt.Fprintf(c.Err, "`wasmgate pin approve SERVER%s` approves it\n", c.ConfigFlag())
	return nil
}
