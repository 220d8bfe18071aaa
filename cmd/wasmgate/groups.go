package main

import (
	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/cmd/internal/shell"
	"github.com/wasmgate/wasmgate/internal/app/naming"
	"github.com/wasmgate/wasmgate/internal/config"
)

// checkGroups checks the groups that --group names. A group that does not exist would offer
// nothing, and no group at all everything: neither can be meant.
func checkGroups(cmd *cobra.Command, cfg *config.Config, names []string) error {
	if cmd.Flags().Changed("group") && len(names) == 0 {
		return shell.Misuse("--group is empty; name a group")
	}
	if err := naming.CheckGroups(cfg, names); err != nil {
		return shell.Misuse("--group: %v", err)
	}
	return nil
}
