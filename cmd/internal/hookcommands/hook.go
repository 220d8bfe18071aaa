package hookcommands

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/cmd/internal/shell"
	"github.com/wasmgate/wasmgate/cmd/internal/show"
	"github.com/wasmgate/wasmgate/internal/app"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/control"
	"github.com/wasmgate/wasmgate/internal/hook"
	"github.com/wasmgate/wasmgate/internal/hook/install"
)

// commands answer the hooks of agents, and install them.
type commands struct{ *shell.Shell }

func agentNames() string {
	var names []string
	for _, a := range install.Agents() {
		names = append(names, a.ID)
	}
	return strings.Join(names, "|")
}

// Command returns hook with its commands.
func Command(c *shell.Shell) *cobra.Command { return commands{c}.newHook() }

func (c commands) newHook() *cobra.Command {
	var o hook.Options
	cmd := &cobra.Command{
		Use:   "hook " + agentNames(),
		Short: "Decide calls of an agent's own tools",
		Long: `Agents start this command before and after each use of their own tools, such as a shell. It passes the
event on standard input to the running gateway, and answers in the agent's format. The gateway decides the
call as the action agent/tools/call, and records it. If anything fails, or no gateway runs, the call is
denied, unless the hook only observes.

wasmgate hook install writes it into the agent's settings.`,
		Example: "  wasmgate hook install claude-code --observe\n  wasmgate hook doctor claude-code",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Agent = args[0]
			if _, ok := install.Of(o.Agent); !ok {
				return shell.Misuse("no agent %q is known; these are: %s", o.Agent, strings.ReplaceAll(agentNames(), "|", ", "))
			}
			if o.State == "" {
				cfg, err := c.Open()
				if err != nil {
					return err // a misuse, whose exit status denies
				}
				o.State = cfg.State
			}
			if status := hook.Run(cmd.Context(), o, c.In, c.Out, c.Err); status != shell.ExitDone {
				return shell.Exit(status, nil)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&o.State, "state", "", "state folder of the gateway, instead of the configuration's")
	cmd.Flags().BoolVar(&o.Observe, "observe", false, "deny nothing, and record what would be denied")
	cmd.Flags().DurationVar(&o.Within, "within", hook.DefaultWithin, "time for an answer, less than the agent's timeout")
	cmd.AddCommand(c.newHookInstall(), c.newHookUninstall(), c.newHookDoctor(), c.newHookLabels())
	return cmd
}

// oneAgent returns the agent that the arguments name.
func oneAgent(args []string) (install.Agent, error) {
	a, ok := install.Of(args[0])
	if !ok {
		return a, shell.Misuse("no agent %q is known; these are: %s", args[0], strings.ReplaceAll(agentNames(), "|", ", "))
	}
	return a, nil
}

func (c commands) newHookInstall() *cobra.Command {
	var managed, observe, printed bool
	cmd := &cobra.Command{
		Use:   "install " + agentNames(),
		Short: "Write the hooks into an agent's settings",
		Long: `Adds the hooks to your settings of an agent, or with --managed to those for all users of the machine.
Everything else in the file stays. A second run changes nothing.

Without --observe the agent's own tools are then denied unless a policy allows them, and while no gateway
runs.`,
		Example: "  wasmgate hook install claude-code --observe\n  wasmgate hook install codex --print",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			a, err := oneAgent(args)
			if err != nil {
				return err
			}
			cfg, err := c.Open()
			if err != nil {
				return err
			}
			line, err := install.NewLine(cfg.State, observe)
			if err != nil {
				return err
			}
			e, err := a.Edit(managed, &line)
			if err != nil {
				return err
			}
			if printed {
				_, err := c.Out.Write(e.After)
				return err
			}
			backups, err := config.Backups()
			if err != nil {
				return err
			}
			if err := e.Write(backups); err != nil {
				return err
			}
			next := hookNext(cfg, a, observe)
			if c.JSON {
				return c.PrintJSON(map[string]any{"agent": a.ID, "file": e.Path, "observe": observe, "next": append([]string{}, next...)})
			}
			fmt.Fprintf(c.Out, "the hooks of %s are in %s\n", a.ID, e.Path)
			for _, line := range next {
				fmt.Fprintln(c.Out, "  "+line)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&managed, "managed", false, "for all users of the machine")
	cmd.Flags().BoolVar(&observe, "observe", false, "deny nothing, and record what would be denied")
	cmd.Flags().BoolVar(&printed, "print", false, "print the settings instead of writing them")
	return cmd
}

// hookNext says what is left to do before the hooks do what they are for.
func hookNext(cfg *config.Config, a install.Agent, observe bool) (next []string) {
	if !configuredAgent(cfg, a.ID) {
		next = append(next, fmt.Sprintf("add to the configuration: agents: {%s: {}}", a.ID))
	}
	labels := cfg.Policy.Labels
	if labels == "" {
		labels = "labels.yaml"
		next = append(next, "add to the configuration: policy: {data: {labels: labels.yaml}}")
	}
	next = append(next, fmt.Sprintf("say what its tools are: wasmgate hook labels %s >> %s", a.ID, labels))
	if observe {
		next = append(next, "nothing is denied; wasmgate audit shows what would be")
	} else {
		next = append(next, fmt.Sprintf("its tools are denied now, unless granted: wasmgate grant --agent '%s__*'; and while no gateway runs", a.ID))
	}
	if off := a.SwitchedOff(); off != "" {
		next = append(next, "the agent does not start them: "+off)
	}
	if a.After != "" {
		next = append(next, a.After)
	}
	return append(next, fmt.Sprintf("to put the file back as it was: wasmgate hook uninstall %s --undo", a.ID))
}

func configuredAgent(cfg *config.Config, id string) bool {
	return slices.ContainsFunc(cfg.Agents, func(a config.Agent) bool { return a.ID == id })
}

func (c commands) newHookUninstall() *cobra.Command {
	var managed, undo bool
	cmd := &cobra.Command{
		Use:   "uninstall " + agentNames(),
		Short: "Remove the hooks from an agent's settings",
		Long: `Removes the hooks. Everything else in the file stays. --undo restores the file as it was before the last
install or uninstall, unless it has changed since.`,
		Example: "  wasmgate hook uninstall claude-code",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			a, err := oneAgent(args)
			if err != nil {
				return err
			}
			file, err := a.File(managed)
			if err != nil {
				return shell.Misuse("%v", err)
			}
			backups, err := config.Backups()
			if err != nil {
				return err
			}
			said := map[string]any{"agent": a.ID, "file": file.Path}
			if undo {
				if err := file.Undo(backups); err != nil {
					return err
				}
				return c.Said(said, file.Path+" is as it was")
			}
			e, err := a.Edit(managed, nil)
			if err != nil {
				return err
			}
			if e.Before == nil {
				return c.Said(said, "there is no "+file.Path)
			}
			if err := e.Write(backups); err != nil {
				return err
			}
			return c.Said(said, fmt.Sprintf("the hooks of %s were removed from %s", a.ID, file.Path))
		},
	}
	cmd.Flags().BoolVar(&managed, "managed", false, "for all users of the machine")
	cmd.Flags().BoolVar(&undo, "undo", false, "put the file back as it was before the last change")
	return cmd
}

func (c commands) newHookLabels() *cobra.Command {
	return &cobra.Command{
		Use:   "labels " + agentNames(),
		Short: "Print labels of an agent's own tools",
		Long: `Prints entries of a labels file for an agent's own tools. They are strict: anything that the tools read
counts as untrusted.`,
		Example: "  wasmgate hook labels claude-code >> labels.yaml",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			a, err := oneAgent(args)
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(c.Out, a.Labels)
			return err
		},
	}
}

func (c commands) newHookDoctor() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor " + agentNames(),
		Short: "Check whether the hooks of an agent work",
		Long: `Checks that the agent is configured, that its settings have all hooks, that their program starts, and that
the running gateway answers. It says how to fix what is wrong.`,
		Example: "  wasmgate hook doctor claude-code",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := oneAgent(args)
			if err != nil {
				return err
			}
			cfg, err := c.Open()
			if err != nil {
				return err
			}
			r, err := app.Dial(cmd.Context(), cfg)
			running := err == nil
			if running {
				r.Close()
			} else if !errors.Is(err, control.ErrNotRunning) {
				return err
			}
			line, err := install.NewLine(cfg.State, false)
			if err != nil {
				return err
			}
			checks, err := a.Doctor(cmd.Context(), line, configuredAgent(cfg, a.ID), running)
			if err != nil {
				return err
			}
			if c.JSON {
				err = c.PrintJSON(checks)
			} else {
				for _, one := range checks {
					mark := "ok  "
					if !one.OK {
						mark = "FAIL"
					}
					fmt.Fprintf(c.Out, "%s  %-14s  %s\n", mark, one.Check, show.Visible(one.Said))
				}
			}
			if err == nil && slices.ContainsFunc(checks, func(h install.Check) bool { return !h.OK }) {
				return shell.Exit(shell.ExitFalse, nil)
			}
			return err
		},
	}
}
