package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/internal/doctor"
)

func (c *cli) newDoctor() *cobra.Command {
	var upgrade bool
	cmd := &cobra.Command{
		Use:   "doctor [--upgrade]",
		Short: "Look a set-up over, and say what to do about what is wrong",
		Long: `Looks whether the configuration and the state folder are safe from others, the policy compiles, the
addresses are free, the disk has room and the clock is right, whether each server and module starts
and who is told of something answers. A gateway that runs is asked; without one, the servers are
started once. Exits with 3 if something does not work.

With --upgrade it prints the lines of the configuration and of the policies that mean something else
now than they did to an earlier version, and what to write for the old meaning; nothing is started
then. UPGRADING.md has all that has changed.`,
		Example: "  wasmgate doctor\n  wasmgate doctor --upgrade --config wasmgate.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.doctor(cmd, upgrade)
		},
	}
	cmd.Flags().BoolVar(&upgrade, "upgrade", false, "what an upgrade changes for your files")
	return cmd
}

func (c *cli) doctor(cmd *cobra.Command, upgrade bool) error {
	cfg, err := c.open()
	if err != nil {
		return err
	}
	log, err := c.logger(cfg, true)
	if err != nil {
		return err
	}
	if upgrade {
		lines, err := doctor.Upgrade(cmd.Context(), cfg, log)
		if err != nil {
			return &exitError{exitFalse, err}
		}
		return c.said(append([]doctor.UpgradeLine{}, lines...), doctor.UpgradeText(lines))
	}
	checks := doctor.Look(cmd.Context(), cfg, log)
	text, faults := doctor.Text(checks)
	if err := c.said(checks, text); err != nil || faults == 0 {
		return err
	}
	return &exitError{exitFalse, fmt.Errorf("%s", plural(faults, "fault"))}
}
