package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/cmd/internal/shell"
	"github.com/wasmgate/wasmgate/internal/app"
	"github.com/wasmgate/wasmgate/internal/app/naming"
	"github.com/wasmgate/wasmgate/internal/app/operation"
	"github.com/wasmgate/wasmgate/internal/app/overview"
	"github.com/wasmgate/wasmgate/internal/app/paused"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/control"
	"github.com/wasmgate/wasmgate/internal/files/state"
	"github.com/wasmgate/wasmgate/internal/spelling"
)

func (c statusCommands) newPause() *cobra.Command {
	var server string
	cmd := &cobra.Command{
		Use:   "pause",
		Short: "Refuse every new call at once",
		Long: `Refuses every new call with refused_busy until wasmgate resume. With --server it refuses the calls of one
server. Calls in progress end normally. A pause survives restarts. If no gateway runs, it applies from
the next start.`,
		Example: "  wasmgate pause\n  wasmgate pause --server mail",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.pause(cmd, server, false) },
	}
	cmd.Flags().StringVar(&server, "server", "", "only this server")
	return cmd
}

func (c statusCommands) newResume() *cobra.Command {
	var server string
	cmd := &cobra.Command{
		Use:     "resume",
		Short:   "End a pause",
		Long:    "Ends a pause of all calls, or with --server the pause of that server.",
		Example: "  wasmgate resume\n  wasmgate resume --server mail",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.pause(cmd, server, true) },
	}
	cmd.Flags().StringVar(&server, "server", "", "only this server")
	return cmd
}

func (c statusCommands) newRestart() *cobra.Command {
	return &cobra.Command{
		Use:     "restart SERVER",
		Short:   "Restart a server of the running gateway",
		Long:    "Ends the process or connection of a server and begins another, with the same configuration. Calls in progress\nend normally. Exits with 1 if the server does not come up.",
		Example: "  wasmgate restart mail",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := c.Open()
			if err != nil {
				return err
			}
			if known := naming.Servers(cfg); !slices.Contains(known, args[0]) {
				return shell.Misuse("the configuration has no server %s%s", args[0], spelling.Suggest(args[0], known))
			}
			r, err := app.Dial(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			defer r.Close()
			if _, err := paused.Restart.Ask(cmd.Context(), r, paused.Request{Server: args[0]}); err != nil {
				return err
			}
			return c.Said(map[string]any{"restarted": args[0]}, args[0]+" has restarted")
		},
	}
}

func (c statusCommands) pause(cmd *cobra.Command, server string, resume bool) error {
	if server == "" && cmd.Flags().Changed("server") {
		return shell.Misuse("--server is empty; name a server")
	}
	cfg, err := c.Open()
	if err != nil {
		return err
	}
	if known := naming.Servers(cfg); server != "" && !slices.Contains(known, server) {
		return shell.Misuse("the configuration has no server %s%s", server, spelling.Suggest(server, known))
	}
	before, now, err := pauseNow(cmd, cfg, server, resume)
	if err != nil {
		return err
	}
	if resume && len(now) > 0 && !slices.Contains(before, server) {
		return fmt.Errorf("nothing was resumed; paused: %s. Run: %s", paused.Words(now), paused.Resume(now))
	}
	said := "nothing is paused"
	if words := paused.Words(now); words != "" {
		said = fmt.Sprintf("paused: %s; to let calls pass again: %s", words, paused.Resume(now))
	}
	return c.Said(map[string]any{"paused": now}, said)
}

// pauseNow asks the gateway that runs, or else writes down what the next one starts with. It returns
// what was paused before, and what is now.
func pauseNow(cmd *cobra.Command, cfg *config.Config, server string, resume bool) (before, now []string, err error) {
	r, err := app.Dial(cmd.Context(), cfg)
	if errors.Is(err, control.ErrNotRunning) {
		return paused.Change(cmd.Context(), state.File(filepath.Join(cfg.State, paused.File)), server, resume)
	}
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	s, err := overview.Show.Ask(cmd.Context(), r, operation.None{})
	if err != nil {
		return nil, nil, err
	}
	now, err = paused.Pause.Ask(cmd.Context(), r, paused.Request{Server: server, Resume: resume})
	return s.Paused, now, err
}
