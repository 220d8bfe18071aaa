package sandboxcommands

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/cmd/internal/shell"
	"github.com/wasmgate/wasmgate/cmd/internal/show"
	"github.com/wasmgate/wasmgate/cmd/internal/trial"
	"github.com/wasmgate/wasmgate/internal/config/cases"
	"github.com/wasmgate/wasmgate/internal/modules"
	"github.com/wasmgate/wasmgate/sandbox"
)

// defaultCases is the file of cases next to a module.
const defaultCases = "cases.yaml"

func (c commands) newSandboxCheck() *cobra.Command {
	var cases string
	cmd := &cobra.Command{
		Use:   "check MODULE",
		Short: "Check a WASM module as the gateway would, and run its cases",
		Long: `Checks the manifest and the schemas of a module, loads it, makes its sample call (warm), and runs the cases
of cases.yaml next to it. A case is a call with made-up secrets, values, folders and web answers. Arguments
and outputs are validated. The module gets what its manifest asks for (wants). Nothing leaves the machine.

Exits with 2 if the manifest or the cases are wrong, with 1 if the module does not load, and with 3 if a
case or the sample call fails.`,
		Example: "  wasmgate sandbox check words.wasm\n  wasmgate sandbox check words.wasm --cases test/cases.yaml --json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withSandbox(cmd.Context(), func(r *sandbox.Runtime, from moduleReader) error {
				return c.sandboxCheck(cmd.Context(), r, from, args[0], cases)
			})
		},
	}
	cmd.Flags().StringVar(&cases, "cases", "", "file of cases (default: cases.yaml next to the module, if it exists)")
	return cmd
}

// checked is what a check prints for machines.
type checked struct {
	Advice []string      `json:"advice,omitempty"`
	Cases  []trial.Ended `json:"cases"`
}

func (c commands) sandboxCheck(ctx context.Context, r *sandbox.Runtime, from moduleReader, module, file string) error {
	wasm, mc, err := from.read(module)
	if err != nil {
		return err
	}
	cases, err := casesOf(module, file)
	if err != nil {
		return shell.NameError(err)
	}
	manifest, err := trial.Manifest(wasm, mc)
	if err != nil {
		return err
	}
	for _, f := range modules.Flaws(manifest) { // of one that the module carries
		return shell.Misuse("%s: its manifest, %s: %s", module, f.Pointer, f.Message)
	}
	t, err := trial.New(ctx, r, wasm, mc, manifest, cases)
	if err != nil {
		return err
	}
	defer t.Close()
	return c.printChecked(checked{t.Advice(), t.Run(ctx)})
}

// casesOf reads the cases of a module; none if there is no file.
func casesOf(module, file string) (*cases.Cases, error) {
	if file != "" {
		return cases.Read(file)
	}
	all, err := cases.Read(filepath.Join(filepath.Dir(module), defaultCases))
	if errors.Is(err, fs.ErrNotExist) {
		return new(cases.Cases), nil
	}
	return all, err
}

func (c commands) printAdvice(advice []string) {
	for _, a := range advice {
		fmt.Fprintln(c.Err, show.Visible("advice: "+a))
	}
}

func (c commands) printChecked(out checked) error {
	failed := 0
	for _, one := range out.Cases {
		if !one.OK {
			failed++
		}
	}
	if c.JSON {
		if err := c.PrintJSON(out); err != nil {
			return err
		}
	} else {
		c.printAdvice(out.Advice)
		for _, one := range out.Cases {
			how := show.Paint(c.Out, show.Good, "ok  ")
			if !one.OK {
				how = show.Paint(c.Out, show.Bad, "FAIL")
			}
			fmt.Fprintf(c.Out, "%s  %s (%s)\n", how, show.Visible(one.Name), time.Duration(one.TookUS)*time.Microsecond)
			for _, p := range one.Problems {
				fmt.Fprintln(c.Out, "      "+show.Visible(p))
			}
		}
		if len(out.Cases) == 0 {
			fmt.Fprintln(c.Err, "it would be offered; to test it, write calls and their expected results to cases.yaml next to it")
		}
	}
	if failed > 0 {
		return shell.Exit(shell.ExitFalse, fmt.Errorf("%d of %s failed", failed, show.Plural(len(out.Cases), "case")))
	}
	return nil
}
