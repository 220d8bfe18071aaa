package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/cmd/internal/shell"
	"github.com/wasmgate/wasmgate/cmd/internal/show"
	"github.com/wasmgate/wasmgate/internal/doctor"
)

func (c serveCommands) newDoctor() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Check the installation and say how to fix what is wrong",
		Long: `Checks permissions of files, the policy, addresses, the disk and the clock. Checks that each server and
module starts, that the hooks of agents work, and that notices, traces and records arrive. If no gateway
runs, it starts the servers once. It exits with 3 if something does not work.`,
		Example: "  wasmgate doctor\n  wasmgate doctor --config wasmgate.yaml",
		Args:    cobra.NoArgs,
		RunE:    c.doctor,
	}
}

func (c serveCommands) doctor(cmd *cobra.Command, _ []string) error {
	cfg, err := c.Open()
	if err != nil {
		return err
	}
	log, err := c.Logger(cfg, true)
	if err != nil {
		return err
	}
	checks := doctor.Look(cmd.Context(), cfg, log, nil, c.Coming)
	text, faults := doctor.Text(checks)
	if err := c.Said(checks, text); err != nil || faults == 0 {
		return err
	}
	return shell.Exit(shell.ExitFalse, fmt.Errorf("%s", show.Plural(faults, "fault")))
}
