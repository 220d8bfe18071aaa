package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/internal/doctor"
)

func (c *cli) newDoctor() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Check the installation and say how to fix what is wrong",
		Long: `Checks that the configuration and the state folder are safe from other users, the policy compiles,
the addresses are free, the disk has room and the clock is right, each server and module starts, the
hooks of each configured agent work, and each target of notices, traces and records answers. It asks a gateway that runs; if none runs, it
starts the servers once. Exits with 3 if something does not work.`,
		Example: "  wasmgate doctor\n  wasmgate doctor --config wasmgate.yaml",
		Args:    cobra.NoArgs,
		RunE:    c.doctor,
	}
}

func (c *cli) doctor(cmd *cobra.Command, _ []string) error {
	cfg, err := c.open()
	if err != nil {
		return err
	}
	log, err := c.logger(cfg, true)
	if err != nil {
		return err
	}
	checks := doctor.Look(cmd.Context(), cfg, log, nil)
	text, faults := doctor.Text(checks)
	if err := c.said(checks, text); err != nil || faults == 0 {
		return err
	}
	return &exitError{exitFalse, fmt.Errorf("%s", plural(faults, "fault"))}
}
