package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/cmd/internal/trial"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/sandbox"
)

func (c *cli) newSandboxManifest() *cobra.Command {
	return &cobra.Command{
		Use:   "manifest FILE",
		Short: "Write a first manifest for a WASM module",
		Long: `Writes a manifest beside a module that has none, X.yaml for X.wasm, with one tool that is named after
the file, and the wishes that its imports tell of. What the tool does and takes is to be filled in.
A manifest that stands there is left as it is.`,
		Example: "  wasmgate sandbox manifest words.wasm",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withSandbox(cmd.Context(), func(r *sandbox.Runtime, modules moduleReader) error {
				return c.sandboxManifest(cmd.Context(), r, modules, args[0])
			})
		},
	}
}

func (c *cli) sandboxManifest(ctx context.Context, r *sandbox.Runtime, modules moduleReader, module string) error {
	wasm, mc, err := modules.read(module)
	if err != nil {
		return err
	}
	report, err := sandbox.Inspect(ctx, r, wasm, mc)
	switch {
	case err != nil:
		return err
	case len(report.Problems) > 0 && !report.NoManifest:
		return fmt.Errorf("%s does not load, with or without a manifest: %s", visible(module), visible(strings.Join(report.Problems, "; ")))
	case !report.NoManifest:
		return fmt.Errorf("%s has a manifest, or lists its tools itself: `wasmgate sandbox inspect` shows them", visible(module))
	}
	path := config.ManifestFile(module)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return named(err)
	}
	if _, err = f.Write(trial.FirstManifest(module, report)); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return err
	}
	if c.json {
		return c.printJSON(map[string]string{"manifest": path})
	}
	fmt.Fprintf(c.out, "wrote %s: write down there what the tool does and takes, then\n  echo '{}' | wasmgate sandbox run %s\n", visible(path), visible(module))
	return nil
}
