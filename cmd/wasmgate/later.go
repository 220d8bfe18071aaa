package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// later returns the commands that are promised and not built.
func later() []*cobra.Command {
	var all []*cobra.Command
	for _, name := range []string{"approvals", "sessions", "pin", "scan", "confine", "probe"} {
		all = append(all, notYet(name))
	}
	return all
}

func notYet(name string) *cobra.Command {
	return &cobra.Command{
		Use: name, Hidden: true, DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return misuse("%s: not in this version", strings.TrimPrefix(cmd.CommandPath(), "wasmgate "))
		},
	}
}
