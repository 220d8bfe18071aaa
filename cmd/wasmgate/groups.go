package main

import (
	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/cmd/internal/shell"
	"github.com/wasmgate/wasmgate/internal/app/naming"
	"github.com/wasmgate/wasmgate/internal/config"
)

// checkGroups checks the groups that --group names. One that is not there would offer
// nothing, and none at all everything, which nobody means.
func checkGroups(cmd *cobra.Command, cfg *config.Config, names []string) error {
	if cmd.Flags().Changed("group") && len(names) == 0 {
		return shell.Misuse("--group is empty; name a group")
	}
	if err := naming.CheckGroups(cfg, names); err != nil {
		return shell.Misuse("--group: %v", err)
	}
	return nil
}
