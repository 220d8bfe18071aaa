package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/internal/app"
)

func (c *cli) newDoctor() *cobra.Command {
	var upgrade bool
	cmd := &cobra.Command{
		Use:   "doctor --upgrade",
		Short: "Say which lines of your files mean something else since an earlier version",
		Long: `Prints the lines of the configuration and of the policies that mean something else now than they did
to an earlier version, and what to write for the old meaning. Nothing is started, and nothing is
changed. UPGRADING.md has all that has changed.`,
		Example: "  wasmgate doctor --upgrade --config wasmgate.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !upgrade {
				return misuse("say what to look for: wasmgate doctor --upgrade")
			}
			return c.doctor(cmd)
		},
	}
	cmd.Flags().BoolVar(&upgrade, "upgrade", false, "what an upgrade changes for your files")
	return cmd
}

func (c *cli) doctor(cmd *cobra.Command) error {
	cfg, err := c.open()
	if err != nil {
		return err
	}
	log, err := c.logger(cfg, true)
	if err != nil {
		return err
	}
	lines, err := app.Upgrade(cmd.Context(), cfg, log)
	if err != nil {
		return &exitError{exitFalse, err}
	}
	if c.json {
		return c.printJSON(append([]app.UpgradeLine{}, lines...))
	}
	if len(lines) == 0 {
		return c.said(nil, "nothing in your files means something else")
	}
	for _, l := range lines {
		at := l.File
		if l.Line > 0 {
			at += fmt.Sprintf(":%d", l.Line)
		}
		fmt.Fprintln(c.out, visible(at+": "+l.Changed))
		if l.Write != "" {
			fmt.Fprintln(c.out, "    as before: "+visible(l.Write))
		}
	}
	return nil
}
