package main

import "github.com/spf13/cobra"

func (c serveCommands) newDev() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "dev MODULE",
		Short: "Run the gateway while you write a WASM tool",
		Long: `Runs the gateway as "serve" does, only for this machine, with a module that you are writing. After each
change of the file or its manifest, the new version is used within a second, and mistakes are printed here.
If the configuration has the module, its entry applies; otherwise the module belongs to the server local
and is granted nothing.

The file is not compared with pins or with a sha256 of the configuration. Definitions of tools are: one that
changes while the gateway runs is quarantined until you approve it or restart this command. Policy, schemas
and audit log are the same as with "serve".`,
		Example: "  wasmgate dev words.wasm\n  wasmgate dev build/words.wasm --config wasmgate.yaml",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.dev = args[0]
			return c.serve(cmd, f)
		},
	}
	cmd.Flags().StringSliceVar(&f.listen, "listen", nil, "loopback address for HTTP (default: the configuration's)")
	return cmd
}
