package clustercommands

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/bridge/postgres"
	"github.com/wasmgate/wasmgate/cmd/internal/shell"
	"github.com/wasmgate/wasmgate/cmd/internal/show"
	"github.com/wasmgate/wasmgate/internal/cluster/members"
	"github.com/wasmgate/wasmgate/internal/doctor"
)

type commands struct{ *shell.Shell }

// Cluster returns the command about the gateways of a database.
func Cluster(c *shell.Shell) *cobra.Command {
	return shell.WithCommands(&cobra.Command{
		Use:     "cluster",
		Short:   "Show or drain the gateways that share a database",
		Long:    "Shows or drains the gateways that share the database of the configuration. No gateway has to run here.",
		Example: "  wasmgate cluster\n  wasmgate cluster drain gate-1 --wait",
	}, commands{c}.newStatus(), commands{c}.newDrain(), commands{c}.newVerify())
}

// Store returns the command about the database that gateways share.
func Store(c *shell.Shell) *cobra.Command {
	return shell.WithCommands(&cobra.Command{
		Use:     "store",
		Short:   "Check or migrate the database that gateways share",
		Long:    "Checks the database of the configuration, or brings its tables up to date. No gateway has to run.",
		Example: "  wasmgate store check\n  wasmgate store migrate",
	}, commands{c}.newCheck(), commands{c}.newMigrate())
}

func (c commands) newStatus() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the gateways: version, lease, homes, audit heads",
		Long: `Shows the gateways that run, and those that stopped within a day:

  SEEN    when the gateway gave its last sign of life. Its lease ends 15 s later.
  HOMES   principals whose requests it answers.
  CONFIG  identifies its configuration, and POLICY its policy.
  AUDIT   the last record of its audit log, for wasmgate audit verify --head.

It names versions, configurations and policies that differ.`,
		Example: "  wasmgate cluster status\n  wasmgate cluster status --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := c.Open()
			if err != nil {
				return err
			}
			all, err := members.Inspect(cmd.Context(), cfg)
			switch {
			case err != nil:
				return err
			case c.JSON:
				return c.PrintJSON(all)
			}
			t := show.NewTable(c.Out, "NODE", "STATE", "SEEN", "VERSION", "HOMES", "CONFIG", "POLICY", "AUDIT")
			for _, n := range all.Nodes {
				ago := time.Duration(n.Seen * float64(time.Second)).Round(time.Second)
				t.Row(n.Name, state(n), ago.String()+" ago", n.Version, strconv.Itoa(n.Homes), n.Config, n.Policy, show.Short(n.Audit, 20))
			}
			if err := t.Flush(); err != nil {
				return err
			}
			for _, p := range all.Problems {
				fmt.Fprintln(c.Out, show.Paint(c.Out, show.Bad, "problem: "+show.Visible(p)))
			}
			return nil
		},
	}
}

func state(n postgres.Node) string {
	switch {
	case n.Gone:
		return "stopped"
	case n.Draining:
		return "draining"
	}
	return "runs"
}

// lookEvery is how often drain looks whether a gateway has drained.
const lookEvery = time.Second

func (c commands) newDrain() *cobra.Command {
	var wait bool
	cmd := &cobra.Command{
		Use:   "drain NODE",
		Short: "Have a gateway give its work to the others",
		Long: `Has a gateway answer /readyz with 503, and give its principals to the other gateways, with the values that
their sessions have met. It answers what it has begun, and sessions of MCP 2025-11-25 until they end. It
takes part again when it is started again. A gateway that is stopped drains by itself.`,
		Example: "  wasmgate cluster drain gate-1 --wait",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := c.Open()
			if err != nil {
				return err
			}
			err = members.Drain(cmd.Context(), cfg, args[0])
			if _, ok := errors.AsType[*members.NameError](err); ok {
				return shell.Exit(shell.ExitMisuse, err)
			}
			said := args[0] + " drains; see `wasmgate cluster`"
			for drained := false; err == nil && wait && !drained; {
				said = args[0] + " has drained"
				select {
				case <-time.After(lookEvery):
				case <-cmd.Context().Done():
					return cmd.Context().Err()
				}
				drained, err = members.Drained(cmd.Context(), cfg, args[0])
			}
			if err != nil {
				return err
			}
			return c.Said(map[string]string{"drains": args[0]}, said)
		},
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "return once it has no principal and no call any more, or has stopped")
	return cmd
}

func (c commands) newVerify() *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Verify the audit logs of all gateways, each against the others",
		Long: `Has each gateway verify its audit log, and that the log has all records that the other gateways have noted
as its last, once a minute. It exits with 3 if a log is not what was written, or a gateway does not answer.`,
		Example: "  wasmgate cluster verify",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := c.Open()
			if err != nil {
				return err
			}
			all, err := members.VerifyLogs(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			var lines []string
			faults := 0
			for _, r := range all {
				line := fmt.Sprintf("%s: the chain holds: %d records, and %d that other gateways have noted", r.Node, r.Records, r.Heads)
				if r.Error != "" {
					faults++
					line = fmt.Sprintf("%s: %s", r.Node, show.Visible(r.Error))
				}
				lines = append(lines, line)
			}
			return c.report(all, strings.Join(lines, "\n"), faults)
		},
	}
}

// report prints what was looked at, and exits with 3 if it has faults.
func (c commands) report(all any, text string, faults int) error {
	if err := c.Said(all, text); err != nil || faults == 0 {
		return err
	}
	return shell.FoundFalse("%s", show.Plural(faults, "fault"))
}

func (c commands) newCheck() *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Check the database, and say how to fix what is wrong",
		Long: `Checks that the database can be written, its clock, durability and tables, the rights of the user, and that
the secret is that of the other gateways. It changes nothing. It exits with 3 if something is wrong.`,
		Example: "  wasmgate store check",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := c.Open()
			if err != nil {
				return err
			}
			if !cfg.Store.On() {
				return shell.Exit(shell.ExitMisuse, members.ErrNoStore)
			}
			checks := doctor.Store(cmd.Context(), cfg)
			text, faults := doctor.Text(checks)
			return c.report(checks, text, faults)
		},
	}
}

func (c commands) newMigrate() *cobra.Command {
	return &cobra.Command{
		Use:   "migrate",
		Short: "Bring the tables of the database up to date",
		Long: `Creates the tables of the database, or brings them up to date. A gateway does the same when it starts, if
its user may change tables. Gateways of the version before go on with the new tables.`,
		Example: "  DATABASE_URL=postgres://owner@db.example.com/wasmgate wasmgate store migrate",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := c.Open()
			if err != nil {
				return err
			}
			had, has, err := members.Migrate(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			said := fmt.Sprintf("the tables are up to date, at step %d", has)
			if had != has {
				said = fmt.Sprintf("the tables were brought from step %d to %d", had, has)
			}
			return c.Said(map[string]int{"had": had, "has": has}, said)
		},
	}
}
