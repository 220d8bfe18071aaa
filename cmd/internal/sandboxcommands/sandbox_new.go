package sandboxcommands

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/cmd/internal/shell"
	"github.com/wasmgate/wasmgate/cmd/internal/show"
	"github.com/wasmgate/wasmgate/cmd/internal/starter"
)

func (c commands) newSandboxNew() *cobra.Command {
	languages := strings.Join(starter.Languages(), "|")
	return &cobra.Command{
		Use:   "new " + languages + " DIR",
		Short: "Write a starter project for a WASM tool",
		Long: `Writes a small tool with its manifest, test and README to a new or empty folder, and prints the next
commands. The tool is named after the folder and builds with the usual toolchain of its language.`,
		Example: "  wasmgate sandbox new go words\n  wasmgate sandbox new rust tools/slugs",
		Args:    cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			language, dir := args[0], args[1]
			if !slices.Contains(starter.Languages(), language) {
				return shell.Misuse("there is no starter for %q; write one of %s", language, languages)
			}
			return c.sandboxNew(language, dir)
		},
	}
}

func (c commands) sandboxNew(language, dir string) error {
	files, err := starter.Write(language, dir)
	if err != nil {
		return err
	}
	next, err := firstSteps(filepath.Join(dir, "README.md"))
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(map[string]any{"dir": dir, "files": files, "next": next})
	}
	fmt.Fprintf(c.Out, "wrote to %s:\n", show.Visible(dir))
	for _, f := range files {
		fmt.Fprintln(c.Out, "  "+f)
	}
	t := show.NewTable(c.Out, "next steps in that folder:")
	for _, s := range next {
		t.Row("  "+s.Command, "# "+s.Does)
	}
	return t.Flush()
}

// A step is a command, and what it does.
type step struct {
	Command string `json:"command"`
	Does    string `json:"does"`
}

// firstSteps returns the first block of commands of a README, which is where a
// starter says how it is built, tested and run.
func firstSteps(readme string) ([]step, error) {
	text, err := os.ReadFile(readme)
	if err != nil {
		return nil, err
	}
	_, rest, _ := strings.Cut(string(text), "```sh\n")
	block, _, found := strings.Cut(rest, "\n```")
	if !found {
		return nil, fmt.Errorf("%s has no block of commands", readme)
	}
	var steps []step
	for line := range strings.SplitSeq(block, "\n") {
		command, does, _ := strings.Cut(line, " # ")
		steps = append(steps, step{strings.TrimSpace(command), does})
	}
	return steps, nil
}
