package sandboxcommands

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/cmd/internal/shell"
	"github.com/wasmgate/wasmgate/cmd/internal/show"
	"github.com/wasmgate/wasmgate/cmd/internal/trial"
	"github.com/wasmgate/wasmgate/internal/config/manifest"
	"github.com/wasmgate/wasmgate/internal/files"
	"github.com/wasmgate/wasmgate/internal/modules"
	"github.com/wasmgate/wasmgate/sandbox"
)

func (c commands) newSandboxManifest() *cobra.Command {
	var embed bool
	cmd := &cobra.Command{
		Use:   "manifest FILE",
		Short: "Write a first manifest for a WASM module, or put one into it",
		Long: `Writes a manifest next to a module that has none, X.yaml for X.wasm. It has one tool that is named after the
file, and asks for what the imports need. Fill in what the tool does and takes. An existing manifest stays
as it is.

--embed puts the manifest X.yaml into the module X.wasm, so that a digest, a pin or a signature of the
module covers both. Run it after each build.`,
		Example: "  wasmgate sandbox manifest words.wasm\n  wasmgate sandbox manifest --embed words.wasm",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if embed {
				return c.embedManifest(args[0])
			}
			return c.withSandbox(cmd.Context(), func(r *sandbox.Runtime, modules moduleReader) error {
				return c.sandboxManifest(cmd.Context(), r, modules, args[0])
			})
		},
	}
	cmd.Flags().BoolVar(&embed, "embed", false, "put the manifest file that is next to the module into the module")
	return cmd
}

// embedManifest puts the manifest next to a module into it.
func (c commands) embedManifest(module string) error {
	out, embedded, err := modules.WithManifest(module)
	if err != nil {
		return shell.NameError(err)
	}
	if !embedded {
		return shell.Misuse("there is no %s: `wasmgate sandbox manifest %s` writes a first one", show.Visible(manifest.File(module)), show.Visible(module))
	}
	if err := files.Replace(module, out, files.Mode(module, 0o644)); err != nil {
		return err
	}
	digest := fmt.Sprintf("%x", sha256.Sum256(out))
	return c.Said(map[string]string{"module": module, "sha256": digest}, fmt.Sprintf("%s carries its manifest now; sha256: %s", show.Visible(module), digest))
}

func (c commands) newSandboxPush() *cobra.Command {
	return &cobra.Command{
		Use:   "push FILE oci://REGISTRY/REPOSITORY:TAG",
		Short: "Push a WASM module and its manifest to a registry",
		Long: `Puts the manifest X.yaml into a copy of the module X.wasm, pushes the copy, and prints the reference for
your configuration. Credentials come from .docker/config.json, where docker login writes them.`,
		Example: "  wasmgate sandbox push words.wasm oci://ghcr.io/someone/words:v1",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withSandbox(cmd.Context(), func(r *sandbox.Runtime, reader moduleReader) error {
				wasm, _, err := modules.WithManifest(args[0])
				if err != nil {
					return shell.NameError(err)
				}
				report, err := sandbox.Inspect(cmd.Context(), r, wasm, sandbox.ModuleConfig{Name: args[0]})
				if err != nil {
					return err
				}
				if len(report.Problems) > 0 {
					return fmt.Errorf("%s was not pushed, because it does not load: %s", show.Visible(args[0]), show.Visible(strings.Join(report.Problems, "; ")))
				}
				ref, err := modules.Reader{Dir: reader.state, Log: reader.log}.Push(cmd.Context(), args[1], wasm)
				if err != nil {
					return err
				}
				return c.Said(map[string]string{"module": ref}, ref)
			})
		},
	}
}

func (c commands) sandboxManifest(ctx context.Context, r *sandbox.Runtime, reader moduleReader, module string) error {
	wasm, mc, err := reader.read(module)
	if err != nil {
		return err
	}
	report, err := sandbox.Inspect(ctx, r, wasm, mc)
	switch {
	case err != nil:
		return err
	case len(report.Problems) > 0 && !report.NoManifest:
		return fmt.Errorf("%s does not load, with or without a manifest: %s", show.Visible(module), show.Visible(strings.Join(report.Problems, "; ")))
	case !report.NoManifest:
		return fmt.Errorf("%s has a manifest, or lists its tools itself: `wasmgate sandbox inspect` shows them", show.Visible(module))
	}
	path := manifest.File(module)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return shell.NameError(err)
	}
	if _, err = f.Write(trial.FirstManifest(module, report)); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(map[string]string{"manifest": path})
	}
	fmt.Fprintf(c.Out, "wrote %s: write down there what the tool does and takes, then\n  echo '{}' | wasmgate sandbox run %s\n", show.Visible(path), show.Visible(module))
	return nil
}
