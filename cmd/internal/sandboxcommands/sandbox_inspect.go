package sandboxcommands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/bridge/dial"
	"github.com/wasmgate/wasmgate/cmd/internal/show"
	"github.com/wasmgate/wasmgate/cmd/internal/trial"
	"github.com/wasmgate/wasmgate/sandbox"
)

func (c commands) newSandboxInspect() *cobra.Command {
	return &cobra.Command{
		Use:   "inspect MODULE",
		Short: "Show what a WASM module imports, what it asks for and how it runs",
		Long: `Shows what a module imports, offers and wants, its limits, and how a call gets its instance. The module
is compiled as if all its imports were granted. No code of it runs, except of an Extism plug-in without a
manifest, which is asked for its tools.
` + moduleHelp + `

If the module does not load, it says why and what it needs, and exits with 1. If only the manifest is
missing, it exits with 0.`,
		Example: "  wasmgate sandbox inspect tool.wasm\n  wasmgate sandbox inspect embedded:files --json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withSandbox(cmd.Context(), func(r *sandbox.Runtime, modules moduleReader) error {
				return c.sandboxInspect(cmd.Context(), r, modules, args[0])
			})
		},
	}
}

func (c commands) sandboxInspect(ctx context.Context, r *sandbox.Runtime, modules moduleReader, module string) error {
	wasm, mc, err := modules.read(module)
	if err != nil {
		return err
	}
	report, err := sandbox.Inspect(ctx, r, wasm, mc)
	if err != nil {
		return err
	}
	var advice []string
	if !report.NoManifest {
		advice = trial.Advice(report.Tools)
	}
	if c.JSON {
		err = c.PrintJSON(inspected{report, newLimits(report.Limits), advice})
	} else {
		err = c.printInspected(module, report)
		c.printAdvice(advice)
	}
	if err == nil && len(report.Problems) > 0 && !report.NoManifest {
		err = fmt.Errorf("%s does not load: %s", show.Visible(module), show.Visible(report.Problems[0]))
	}
	return err
}

// inspected is a report with its limits under the names that they have in the
// configuration.
type inspected struct {
	sandbox.Report
	Limits limits   `json:"limits"`
	Advice []string `json:"advice,omitempty"`
}

type limits struct {
	Timeout    string `json:"timeout"`
	Fuel       uint64 `json:"fuel"`
	Memory     int64  `json:"memory"` // bytes, like those below
	Stack      int64  `json:"stack"`
	Output     int64  `json:"output"`
	Log        int64  `json:"log"`
	HostCalls  int    `json:"host_calls"`
	FilesBytes int64  `json:"files_bytes"`
}

func newLimits(l sandbox.Limits) limits {
	return limits{l.Timeout.String(), l.Fuel, l.Memory, l.Stack, l.Output, l.Log, l.HostCalls, l.Files}
}

func (l limits) String() string {
	return fmt.Sprintf("timeout %s, fuel %d, memory %s, stack %s, output %s, log %s, host calls %d, files %s", l.Timeout, l.Fuel,
		show.SizeText(l.Memory), show.SizeText(l.Stack), show.SizeText(l.Output), show.SizeText(l.Log), l.HostCalls, show.SizeText(l.FilesBytes))
}

func (c commands) printInspected(module string, r sandbox.Report) error {
	t := show.NewTable(c.Out, "module", module)
	t.Row("sha256", r.SHA256)
	t.Row("size", show.SizeText(int64(r.Size)))
	if r.ABI == "" {
		return errors.Join(t.Flush(), c.printImports(r), c.printRefusal(r))
	}
	t.Row("abi", r.ABI)
	t.Row("instance", r.Instance)
	t.Row("isolation", explained(string(r.Isolation), isolations[r.Isolation]))
	t.Row("snapshot", explained(string(r.Snapshot), snapshots[r.Snapshot]))
	if r.Note != "" {
		t.Row("note", r.Note)
	}
	t.Row("memory", show.SizeText(r.Memory)+" to begin with")
	t.Row("limits", newLimits(r.Limits).String())
	if err := t.Flush(); err != nil {
		return err
	}
	for _, print := range []func(sandbox.Report) error{c.printImports, c.printWishes, c.printOffered, c.printRefusal} {
		if err := print(r); err != nil {
			return err
		}
	}
	return nil
}

func explained(word, meaning string) string {
	if meaning == "" {
		return word
	}
	return word + ": " + meaning
}

var isolations = map[sandbox.Isolation]string{
	sandbox.IsolationCall:     "each call begins in the state of the snapshot",
	sandbox.IsolationInstance: "each call has an instance that no other call had",
	sandbox.IsolationSession:  "the calls of a session share their state",
}

var snapshots = map[sandbox.Snapshot]string{
	sandbox.SnapshotInst:  "calls begin before any code of the module has run",
	sandbox.SnapshotInit:  "calls begin after _initialize, with the random seeds and the time that it has seen",
	sandbox.SnapshotInput: "calls begin where the program first reads its input: an instance goes back there after each, or another is started before the next",
	sandbox.SnapshotWarm:  "calls begin after a sample call, with the random seeds and the time that it has seen",
}

// functionsWidth is how many characters of functions a line has.
const functionsWidth = 80

func (c commands) printImports(r sandbox.Report) error {
	if len(r.Imports) == 0 {
		return nil
	}
	fmt.Fprintln(c.Out)
	t := show.NewTable(c.Out, "IMPORTS FROM", "GRANT NEEDED", "FUNCTIONS")
	for _, n := range r.Imports {
		from, grant := n.Module, strings.Join(n.Grant, ", ")
		if grant == "" {
			grant = "none"
		}
		if len(n.Missing) > 0 {
			grant = fmt.Sprintf("%d are not here", len(n.Missing))
			n.Functions = n.Missing
		}
		functions := slices.Compact(slices.Sorted(slices.Values(n.Functions))) // some are listed twice
		for _, line := range show.Wrapped(functions, functionsWidth) {
			t.Row(from, grant, line)
			from, grant = "", ""
		}
	}
	return t.Flush()
}

// printWishes prints what the module wishes for, in the words of the
// configuration that would grant it.
func (c commands) printWishes(r sandbox.Report) error {
	if r.Wants == nil {
		return nil
	}
	fmt.Fprintln(c.Out)
	t := show.NewTable(c.Out, "WISH", "AS A GRANT")
	for _, h := range r.Wants.HTTP {
		t.Row("http", dial.Rule{Origin: h.Origin, Methods: h.Methods, Path: h.Path}.String())
	}
	if r.Wants.Dirs != nil && len(r.Wants.Dirs) == 0 {
		t.Row("dirs", dirGrant(sandbox.WantedDir{}))
	}
	for _, d := range r.Wants.Dirs {
		t.Row("dirs", dirGrant(d))
	}
	for _, s := range r.Wants.Secrets {
		t.Row("secrets", s)
	}
	if r.Wants.KV {
		t.Row("kv", "true")
	}
	return t.Flush()
}

func dirGrant(d sandbox.WantedDir) string {
	if d.Path == "" {
		return fmt.Sprintf("{path: PATH, write: %t}, with a PATH of yours", d.Write)
	}
	return fmt.Sprintf("{path: %q, write: %t}", d.Path, d.Write)
}

// printRefusal prints what it would take for the module to load.
func (c commands) printRefusal(r sandbox.Report) error {
	for _, p := range r.Problems {
		fmt.Fprintln(c.Out, "\n"+show.Paint(c.Out, show.Bad, "problem: "+show.Visible(p)))
	}
	return nil
}

func (c commands) printOffered(r sandbox.Report) error {
	if len(r.Tools) == 0 {
		return nil
	}
	fmt.Fprintln(c.Out)
	t := show.NewTable(c.Out, "TOOL", "DESCRIPTION")
	for _, tool := range r.Tools {
		t.Row(tool.Name, show.Short(show.FirstSentence(tool.Description), 90))
	}
	return t.Flush()
}
