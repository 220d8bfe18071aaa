package main

import (
	"io"

	"github.com/spf13/cobra"
)

// newCompletion replaces cobra's own command, which takes an unknown shell for a wish for help.
func newCompletion(root *cobra.Command) *cobra.Command {
	shells := map[string]func(io.Writer) error{
		"bash":       func(w io.Writer) error { return root.GenBashCompletionV2(w, true) },
		"zsh":        root.GenZshCompletion,
		"fish":       func(w io.Writer) error { return root.GenFishCompletion(w, true) },
		"powershell": root.GenPowerShellCompletionWithDesc,
	}
	return &cobra.Command{
		Use:     "completion bash|zsh|fish|powershell",
		Short:   "Print a script that completes commands in a shell",
		Example: "  source <(wasmgate completion bash)\n  wasmgate completion fish > ~/.config/fish/completions/wasmgate.fish",
		Args:    cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs), ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		RunE: func(cmd *cobra.Command, args []string) error { return shells[args[0]](cmd.OutOrStdout()) },
	}
}

// newHelp replaces cobra's own command, which accepts an unknown command as if none was named.
func newHelp(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "Help about a command",
		Example: "  wasmgate help audit verify",
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, _ := root.Find(args)
			if len(rest) > 0 {
				return noCommand(cmd, rest[0])
			}
			return cmd.Help()
		},
	}
}
