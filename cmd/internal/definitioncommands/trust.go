package definitioncommands

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/cmd/internal/shell"
	"github.com/wasmgate/wasmgate/internal/config"
)

func (c commands) newTrust() *cobra.Command {
	var undo bool
	cmd := &cobra.Command{
		Use:   "trust [FILE]",
		Short: "Let a project's configuration take effect",
		Long: `A project's .wasmgate/wasmgate.yaml names programs to run, so it has no effect until you trust it. After
each change of the file you have to trust it again.`,
		Example: "  wasmgate trust\n  wasmgate trust --undo .wasmgate/wasmgate.yaml",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dirs, err := config.UserDirs()
			if err != nil {
				return err
			}
			cwd, err := os.Getwd()
			if err != nil {
				return err
			}
			file := config.Lookup("", cwd, dirs).Project
			if len(args) == 1 {
				file = args[0]
			}
			if file == "" {
				return shell.Misuse("there is no .wasmgate/wasmgate.yaml here or above")
			}
			if undo {
				was, err := config.Untrust(dirs.State, file)
				if err != nil {
					return err
				}
				if !was {
					return shell.Misuse("%s was not trusted", file)
				}
				return c.Said(map[string]any{"file": file, "trusted": false}, "no longer trusted: "+file)
			}
			sum, err := config.Trust(dirs.State, file)
			if err != nil {
				return shell.NameError(err)
			}
			return c.Said(map[string]any{"file": file, "trusted": true, "sha256": sum}, fmt.Sprintf("trusted: %s (sha256 %.12s)", file, sum))
		},
	}
	cmd.Flags().BoolVar(&undo, "undo", false, "remove the trust")
	return cmd
}
