package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/cmd/internal/approvalcommands"
	"github.com/wasmgate/wasmgate/cmd/internal/shell"
	"github.com/wasmgate/wasmgate/cmd/internal/show"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/app"
	"github.com/wasmgate/wasmgate/internal/app/operation"
	"github.com/wasmgate/wasmgate/internal/app/overview"
	"github.com/wasmgate/wasmgate/internal/config"
)

// statusCommands say how a gateway is, and pause what it does.
type statusCommands struct{ *shell.Shell }

func (c statusCommands) newStatus() *cobra.Command {
	var check bool
	cmd := &cobra.Command{
		Use:   "status [SERVER]",
		Short: "Show the servers: phase, tools, faults, what is quarantined",
		Long: `Asks the running gateway. If none runs, it connects the servers once and reports. With the name of a
server it shows everything about that server, and its last lines on standard error.

With --check it waits for servers that are starting, at most for servers.X.start. It exits with 0 if
all are ready, with 3 if a server is faulted or a module cannot be used, and with 1 if some are still
starting.`,
		Example: "  wasmgate status\n  wasmgate status files\n  wasmgate status --check --json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			cfg, err := c.Open()
			if err != nil {
				return errors.Join(c.statusOfRunning(cmd.Context()), err)
			}
			g, err := c.Ask(cmd.Context(), cfg, "")
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, g.End(cmd.Context())) }()
			s, err := overview.Show.Ask(cmd.Context(), g, operation.None{})
			if check && err == nil {
				s, err = c.settled(cmd.Context(), cfg, g)
			}
			if err != nil {
				return err
			}
			if len(args) > 0 {
				one, err := statusOf(s, args[0])
				if err != nil {
					return err
				}
				s.Servers = []status.Server{one}
				err = c.printServer(one)
				if err != nil || !check {
					return err
				}
				return checkStatus(s)
			}
			if err := c.printStatus(s); err != nil || !check {
				return err
			}
			return checkStatus(s)
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "wait for servers that are starting; exit with 3 if one is faulted, with 1 if one is not ready in time")
	return cmd
}

// statusOf returns the status of a server.
func statusOf(s *overview.Status, id string) (status.Server, error) {
	var names []string
	for _, one := range s.Servers {
		if one.Server == id {
			return one, nil
		}
		names = append(names, one.Server)
	}
	return status.Server{}, shell.Exit(shell.ExitMisuse, fmt.Errorf("no server %q; there are %s", id, strings.Join(names, ", ")))
}

// newLogs shows what a server has written on its standard error.
func (c statusCommands) newLogs() *cobra.Command {
	return &cobra.Command{
		Use:   "logs SERVER",
		Short: "Show the last lines of a server on standard error",
		Long: `Shows the last lines that a server's process has written on standard error, from the running gateway. The
gateway's own log has all lines; those of processes of a single client are at the level debug.`,
		Example: "  wasmgate logs files",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			cfg, err := c.Open()
			if err != nil {
				return err
			}
			g, err := c.Ask(cmd.Context(), cfg, "")
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, g.End(cmd.Context())) }()
			s, err := overview.Show.Ask(cmd.Context(), g, operation.None{})
			if err != nil {
				return err
			}
			one, err := statusOf(s, args[0])
			switch {
			case err != nil:
				return err
			case c.JSON:
				return c.PrintJSON(append([]string{}, one.Said...))
			}
			for _, line := range one.Said {
				fmt.Fprintln(c.Out, show.Visible(line))
			}
			return nil
		},
	}
}

const (
	// settleTime is how long --check waits for modules, and for servers at least, and
	// lookEvery how often it looks.
	settleTime = 5 * time.Second
	lookEvery  = 100 * time.Millisecond
)

// settled returns the status once all servers are ready or faulted, or those that are not
// have had their time to start.
func (c statusCommands) settled(ctx context.Context, cfg *config.Config, g shell.Gateway) (*overview.Status, error) {
	for began, told := time.Now(), false; ; {
		s, err := overview.Show.Ask(ctx, g, operation.None{})
		if err != nil {
			return nil, err
		}
		wait := settleTime
		for _, one := range cfg.Servers {
			if slices.Contains(s.Unready(), one.ID) {
				wait = max(wait, one.StartTime())
			}
		}
		waited := time.Since(began)
		if len(s.Unready()) == 0 || waited > wait {
			return s, nil
		}
		if !told && waited > shell.SlowStart {
			fmt.Fprintf(c.Err, "waiting for %s, for %s at most\n", strings.Join(s.Unready(), ", "), wait)
			told = true
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// checkStatus returns an error that names the servers that cannot be used.
func checkStatus(s *overview.Status) error {
	if names := s.Faulted(); len(names) > 0 {
		return shell.Exit(shell.ExitFalse, fmt.Errorf("faulted: %s", strings.Join(names, ", ")))
	}
	if names := s.Unready(); len(names) > 0 {
		return fmt.Errorf("not ready yet: %s; they are still starting: ask again, or see `wasmgate logs`", strings.Join(names, ", "))
	}
	return nil
}

// statusOfRunning shows the gateway that runs on a configuration whose file has been
// spoilt since it was read, if one does.
func (c statusCommands) statusOfRunning(ctx context.Context) error {
	cwd, err := os.Getwd()
	if err != nil {
		return err
	}
	cfg, ok := config.Running(c.ConfigFile, cwd, config.Options{})
	if !ok {
		return nil
	}
	r, err := app.Dial(ctx, cfg)
	if err != nil {
		return nil // none runs
	}
	defer r.Close()
	s, err := overview.Show.Ask(ctx, r, operation.None{})
	if err != nil {
		return err
	}
	return c.printStatus(s)
}

func (c statusCommands) printStatus(s *overview.Status) error {
	if c.JSON {
		return c.PrintJSON(s)
	}
	how := "not running; asked once"
	if s.Running {
		how = "running, pid " + strconv.Itoa(s.PID)
	}
	fmt.Fprintf(c.Out, "wasmgate %s, %s\n", s.Version, how)
	if s.URL != "" {
		fmt.Fprintf(c.Out, "MCP at %s\n", s.URL)
	}
	if s.Config != "" && s.Running {
		fmt.Fprintf(c.Out, "configuration %s, read %s\n", show.Visible(s.Config), s.Read.Local().Format(time.DateTime))
	}
	if err := c.printServers(s.Servers); err != nil {
		return err
	}
	c.printNotes(s.Servers)
	c.printUnenforced(s.Servers)
	c.printPolicies(s)
	if s.Approvals > 0 {
		fmt.Fprintf(c.Out, "%s for approval: wasmgate approvals list\n", approvalcommands.Waits(s.Approvals))
	}
	if j := s.Jobs; j.Running+j.Kept > 0 {
		fmt.Fprintf(c.Out, "jobs: %d running, %d kept\n", j.Running, j.Kept)
	}
	if len(s.Nodes) > 0 {
		fmt.Fprintf(c.Out, "gateways of the database: %s\n", strings.Join(nodes(s), ", "))
	}
	if len(s.OwnProcesses) > 0 {
		fmt.Fprintf(c.Out, "each client gets its own process of: %s (set `sessions: shared` to share one)\n", strings.Join(s.OwnProcesses, ", "))
	}
	for _, m := range s.Modules {
		if m.Progress != "" {
			fmt.Fprintf(c.Out, "module %s %s\n", show.Visible(m.Module), m.Progress)
		}
	}
	for _, b := range s.Broken {
		fmt.Fprintf(c.Out, "refused by schema: %s: %d calls; the last: %s\n", show.Visible(b.Tool), b.Calls, show.Visible(show.Short(b.Last, 200)))
	}
	for _, t := range s.Altered {
		fmt.Fprintln(c.Out, "often changed: "+show.Visible(t.String()))
	}
	for _, p := range s.Problems {
		fmt.Fprintln(c.Out, show.Paint(c.Out, show.Bad, "problem: "+show.Visible(p)))
	}
	return nil
}

// printServers prints a row for each server, with the columns that any of them needs.
func (c statusCommands) printServers(servers []status.Server) error {
	columns := []string{"SERVER", "PHASE", "TOOLS", "FAULT"}
	more := slices.ContainsFunc(servers, func(s status.Server) bool { return s.Prompts+s.Resources+s.Templates > 0 })
	methods := slices.ContainsFunc(servers, func(s status.Server) bool { return s.Methods > 0 })
	if more {
		columns = []string{"SERVER", "PHASE", "TOOLS", "PROMPTS", "RESOURCES", "FAULT"}
	}
	if methods {
		columns = slices.Insert(columns, len(columns)-1, "METHODS")
	}
	t := show.NewTable(c.Out, columns...)
	for _, one := range servers {
		fault := ""
		if one.Fault != "" {
			fault = fmt.Sprintf("%s: %s", one.Fault, show.Short(one.Error, 200))
		}
		if one.Phase == status.Starting {
			fault = starting(one)
		}
		phase := string(one.Phase)
		if one.Confined && one.Phase == status.Ready {
			phase += ", confined"
		}
		if one.Circuit != "" {
			phase += ", circuit " + one.Circuit
		}
		counts := []string{strconv.Itoa(one.Tools)}
		if more {
			counts = append(counts, strconv.Itoa(one.Prompts), strconv.Itoa(one.Resources+one.Templates))
		}
		if methods {
			counts = append(counts, strconv.Itoa(one.Methods))
		}
		t.Row(append(append([]string{one.Server, phase}, counts...), fault)...)
	}
	return t.Flush()
}

// starting says how long a server has been starting, and what it has written last.
func starting(s status.Server) string {
	text := "for " + time.Since(s.Since).Round(time.Second).String()
	if len(s.Said) > 0 {
		text += "; it said: " + show.Short(s.Said[len(s.Said)-1], 120)
	}
	return text
}

// printServer tells all of one server.
func (c statusCommands) printServer(s status.Server) error {
	if c.JSON {
		return c.PrintJSON(s)
	}
	if err := c.printServers([]status.Server{s}); err != nil {
		return err
	}
	if s.Protocol != "" {
		fmt.Fprintf(c.Out, "calls itself %s, speaks MCP %s; declares: %s\n", strings.TrimSpace(cmp.Or(s.Name, "nothing")+" "+s.Version), s.Protocol, cmp.Or(strings.Join(s.Capabilities, ", "), "nothing"))
	}
	if s.Error != "" {
		fmt.Fprintf(c.Out, "fault: %s: %s\n", s.Fault, show.Visible(s.Error))
	}
	for _, name := range s.Quarantined {
		fmt.Fprintf(c.Out, "quarantined: %s\n", show.Visible(name))
	}
	c.printNotes([]status.Server{s})
	c.printUnenforced([]status.Server{s})
	if len(s.Said) > 0 {
		fmt.Fprintln(c.Out, "standard error, the last lines:")
		c.printSaid(s)
	}
	return nil
}

func (c statusCommands) printSaid(s status.Server) {
	for _, line := range s.Said {
		fmt.Fprintln(c.Out, "  "+show.Visible(line))
	}
}

// printPolicies prints the bundles, and the shadow policy that decides along with the one in use.
func (c statusCommands) printPolicies(s *overview.Status) {
	for _, b := range s.Bundles {
		how := "not verified"
		if b.Verified {
			how = "verified"
		}
		if b.Copy {
			how += ", the kept copy"
		}
		fmt.Fprintf(c.Out, "bundle %s: revision %q, %s\n", show.Visible(b.Source), show.Visible(b.Revision), how)
	}
	if d := s.Shadow; d != nil && d.Revision != "" {
		fmt.Fprintf(c.Out, "shadow policy %s: %d calls compared, %d differed, %d dropped\n", d.Revision, d.Compared, d.Differed, d.Dropped)
	}
}

// printUnenforced prints the servers whose confinement cannot be enforced completely.
func (c statusCommands) printUnenforced(servers []status.Server) {
	for _, one := range servers {
		for _, what := range one.Unenforced {
			fmt.Fprintln(c.Out, show.Paint(c.Out, show.Bad, fmt.Sprintf("not confined: %s: %s", one.Server, show.Visible(what))))
		}
	}
}

// maxAlike is how many notes on resources, templates or prompts of one server are
// printed; two servers of one kind have the same URIs, all of them. Of tools all are.
const maxAlike = 3

func (c statusCommands) printNotes(servers []status.Server) {
	for _, one := range servers {
		alike := make(map[gate.Feature]int)
		for _, n := range one.Notes {
			if alike[n.Feature]++; n.Feature != gate.FeatureTool && alike[n.Feature] > maxAlike {
				continue
			}
			word, colour := "note", show.Faint
			if n.Quarantined {
				word, colour = "quarantined", show.Bad
			}
			name := one.Server
			if n.Feature != gate.FeatureTool {
				name += " " + string(n.Feature)
			}
			if n.Tool != "" {
				name += " " + n.Tool
			}
			fmt.Fprintln(c.Out, show.Paint(c.Out, colour, fmt.Sprintf("%s: %s: %s", word, show.Visible(name), show.Visible(n.Text))))
		}
		for _, f := range slices.Sorted(maps.Keys(alike)) {
			if more := alike[f] - maxAlike; f != gate.FeatureTool && more > 0 {
				fmt.Fprintln(c.Out, show.Paint(c.Out, show.Faint, fmt.Sprintf("note: %s %s: %d more like these; status --json has all", show.Visible(one.Server), f, more)))
			}
		}
	}
}

// nodes names the gateways of the database, with what is remarkable of them.
func nodes(s *overview.Status) (all []string) {
	for _, n := range s.Nodes {
		name := show.Visible(n.Name)
		if n.Version != s.Version {
			name += " (version " + show.Visible(n.Version) + ")"
		}
		if n.Gone {
			name += " (gone)"
		}
		all = append(all, name)
	}
	return all
}
