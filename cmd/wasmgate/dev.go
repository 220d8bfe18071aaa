package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/internal/app"
)

func (c *cli) newDev() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "dev MODULE",
		Short: "Run the gateway while you write a WASM tool",
		Long: `Runs the gateway as "serve" does, on this machine alone, with a module that is being written: whenever
its file or its manifest has changed, its tools are others within a second, and what is wrong is told
here. If the configuration has the module, it is offered and granted what stands there; else as a
tool of the server local that is granted nothing.

The file is not held against pins, and neither is a sha256 of the configuration. The definitions of
its tools are: one that changes while the gateway runs is quarantined until it is approved, or until
this command is started again. Policy, schemas and the audit log are those of "serve".`,
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

// toldReload says what became of a module that has changed.
func (c *cli) toldReload(_ context.Context, a *app.App, err error) {
	at := time.Now().Format(time.TimeOnly)
	lines := a.Developed()
	if err != nil {
		for line := range strings.Lines(err.Error()) {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	for _, line := range lines {
		if c.json {
			_ = printLine(c.out, map[string]string{"at": at, "development": line})
			continue
		}
		fmt.Fprintln(c.out, at+"   "+visible(line))
	}
}
