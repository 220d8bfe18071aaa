package policycommands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/cmd/internal/shell"
	"github.com/wasmgate/wasmgate/cmd/internal/show"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/internal/app/inventory"
	"github.com/wasmgate/wasmgate/internal/app/naming"
	"github.com/wasmgate/wasmgate/internal/config/policydata"
	"github.com/wasmgate/wasmgate/internal/draft"
	"github.com/wasmgate/wasmgate/internal/draft/learn"
	"github.com/wasmgate/wasmgate/internal/match"
	"github.com/wasmgate/wasmgate/internal/policyfiles"
	"github.com/wasmgate/wasmgate/internal/replay"
	"github.com/wasmgate/wasmgate/internal/structure"
	"github.com/wasmgate/wasmgate/policy"
	"github.com/wasmgate/wasmgate/policy/study"
)

func (c commands) newPolicyLabel() *cobra.Command {
	var file, recordings string
	var check bool
	cmd := &cobra.Command{
		Use:   "label SERVER | --tools FILE",
		Short: "Draft labels for the tools of a server",
		Long: `Drafts labels of tools from their names, schemas and annotations, and prints them as a labels file.
Correct them: they are guesses. No tool is called, and every result counts as untrusted. With --recorded
the drafts also name the places of ids, people and titles in results. It then also reports the places in
your labels file that no recorded result has.

With --check it drafts nothing. It prints what the recorded calls contradict in your labels, or in the drafts
of tools that have none, and exits with 3 if there is something.`,
		Example: "  wasmgate policy label tickets >>labels.yaml\n  wasmgate policy label tickets --check --recorded audit.jsonl",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 1) == (file != "") {
				return shell.Misuse("name a server, or a file with --tools")
			}
			if check && recordings == "" {
				return shell.Misuse("--check needs recorded sessions: --recorded FILE")
			}
			var tools map[string]gate.Doc
			var err error
			if file != "" {
				var data []byte
				if data, err = os.ReadFile(file); err == nil {
					tools, err = study.ReadTools(data)
				}
				if err != nil {
					return shell.Misuse("--tools %s: %v", file, err)
				}
			} else if tools, err = c.toolsOf(cmd.Context(), args[0]); err != nil {
				return err
			}
			calls, err := recordedCalls(cmd.Context(), c.In, recordings)
			if err != nil {
				return err
			}
			if check {
				return c.checkLabels(tools, calls, file != "")
			}
			results := resultsOf(calls)
			if file == "" {
				if err := c.printMissing(tools, results); err != nil {
					return err
				}
			}
			return c.printDraft(tools, results)
		},
	}
	cmd.Flags().StringVar(&file, "tools", "", `file with definitions of tools, {"tools": [...]}, by their full names`)
	cmd.Flags().BoolVar(&check, "check", false, "print what recorded calls contradict in the labels, instead of drafts")
	cmd.Flags().StringVar(&recordings, "recorded", "", "recorded sessions, as policy replay reads them; also drafts labels of results")
	return cmd
}

// recordedCalls returns the calls in recorded sessions, by tool.
func recordedCalls(ctx context.Context, in io.Reader, file string) (map[string][]study.RecordedCall, error) {
	calls := make(map[string][]study.RecordedCall)
	if file == "" {
		return calls, nil
	}
	for s, err := range replay.Recorded(ctx, in, file, nil, nil) {
		if err != nil {
			return nil, shell.NameError(fmt.Errorf("%s: %w", file, err))
		}
		for _, call := range s.Calls {
			calls[call.Tool] = append(calls[call.Tool], call)
		}
	}
	return calls, nil
}

// resultsOf returns what tools have said in recorded calls, as documents, by tool.
func resultsOf(calls map[string][]study.RecordedCall) map[string][]gate.Doc {
	results := make(map[string][]gate.Doc)
	for tool, all := range calls {
		for _, call := range all {
			if structured := call.Result.Get("structuredContent"); !structured.IsZero() {
				results[tool] = append(results[tool], structured)
				continue
			}
			for block := range call.Result.Get("content").Elements() {
				if d, ok := structure.Of(block.Get("text").Text()); ok {
					results[tool] = append(results[tool], d)
				}
			}
		}
	}
	return results
}

// checkLabels prints what recorded calls contradict in the labels of tools: those of the labels file,
// and drafts of tools that it does not have. Of drafts alone there is no file.
func (c commands) checkLabels(tools map[string]gate.Doc, calls map[string][]study.RecordedCall, drafts bool) error {
	var said []policy.Label
	if !drafts {
		cfg, err := c.Open()
		if err != nil {
			return err
		}
		labels, err := policydata.ReadLabels(cfg.Policy.Labels)
		if err != nil {
			return err
		}
		said = policyfiles.Labels(labels)
	}
	guesses, found := draft.Of(tools), make(map[string][]provenance.Contradiction)
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		for _, one := range guesses.Check(name, said, calls[name]) {
			found[name] = append(found[name], one)
			if !c.JSON {
				call := ""
				if one.Call > 0 {
					call = fmt.Sprintf(" (call %d of %d)", one.Call, one.Calls)
				}
				fmt.Fprintf(c.Out, "%s: %s: %s%s\n", show.Visible(name), show.Visible(one.At), one.Why, call)
			}
		}
	}
	if c.JSON {
		if err := c.PrintJSON(found); err != nil {
			return err
		}
	}
	if len(found) > 0 {
		return shell.Exit(shell.ExitFalse, nil)
	}
	return nil
}

// toolsOf returns the definitions of a server's tools, by their qualified names.
func (c commands) toolsOf(ctx context.Context, server string) (_ map[string]gate.Doc, err error) {
	cfg, err := c.Open()
	if err != nil {
		return nil, err
	}
	if !shell.IsServer(cfg, server) {
		return nil, shell.NameError(naming.NoServer(cfg, server))
	}
	g, err := c.Ask(ctx, cfg, server)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.End(ctx)) }()
	all, err := inventory.Tools.Ask(ctx, g, inventory.Request{All: true})
	if err != nil {
		return nil, err
	}
	tools, err := inventory.Definitions(all, server)
	if err != nil {
		return nil, err
	}
	if len(tools) == 0 {
		return nil, fmt.Errorf("server %s has no tools; see `wasmgate status%s`", server, c.ConfigFlag())
	}
	return tools, nil
}

// printMissing reports the labelled places that no recorded result has.
func (c commands) printMissing(tools map[string]gate.Doc, results map[string][]gate.Doc) error {
	cfg, err := c.Open()
	if err != nil {
		return err
	}
	labels, err := policydata.ReadLabels(cfg.Policy.Labels)
	if err != nil {
		return err
	}
	for _, l := range policyfiles.Labels(labels) {
		for _, name := range slices.Sorted(maps.Keys(tools)) {
			if docs := results[name]; len(docs) > 0 && match.Pattern(l.Pattern).Matches(name) {
				for _, place := range provenance.MissingIn(l.ToolLabels, docs) {
					fmt.Fprintf(c.Err, "labels.%s: no result of %s had %s (%d looked at); correct it in %s\n", l.Pattern, name, show.Visible(string(place)), len(docs), cfg.Policy.Labels)
				}
			}
		}
	}
	return nil
}

func (c commands) printDraft(tools map[string]gate.Doc, results map[string][]gate.Doc) error {
	guesses, drafts := draft.Of(tools), make(map[string]learn.Label)
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		d := learn.NewLabel(guesses.Label(name, results[name]...))
		drafts[name] = d
		if c.JSON {
			continue
		}
		if about := show.Short(tools[name].Get("description").Text(), 100); about != "" {
			fmt.Fprintln(c.Out, "# "+show.Visible(about))
		}
		fmt.Fprintln(c.Out, name+": "+d.YAML())
	}
	if c.JSON {
		return c.PrintJSON(drafts)
	}
	return nil
}
