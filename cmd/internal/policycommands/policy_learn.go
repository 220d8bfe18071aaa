package policycommands

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/cmd/internal/shell"
	"github.com/wasmgate/wasmgate/cmd/internal/show"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/draft"
	"github.com/wasmgate/wasmgate/internal/draft/learn"
	"github.com/wasmgate/wasmgate/internal/replay"
)

func (c commands) newPolicyLearn() *cobra.Command {
	var out, definitions string
	cmd := &cobra.Command{
		Use:   "learn [--out DIR] [--tools FILE] TRACE|AUDIT-LOG",
		Short: "Propose a policy that allows the recorded calls",
		Long: `Reads recorded sessions or an audit log, with the arguments that audit.arguments keeps. It proposes
grants of the tools that each principal has used, and rates of twice what was seen. It also proposes rules
that hold arguments to what was seen: paths to a folder, URLs to hosts, texts to a list. With --tools it
drafts labels of the used tools, as policy label does.

It learns only from calls that were allowed. Each line of the proposal says what it lets pass, and from
how many calls it comes. The proposal ends with a test: calls of the last fifth of sessions that a
proposal from the others would have refused.

Nothing is applied. --out writes files for policy test and policy replay --policy.`,
		Example: "  wasmgate policy learn --out proposed/ audit.jsonl\n  wasmgate policy replay --policy proposed/ --pack grants audit.jsonl",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := learn.From(replay.Recorded(cmd.Context(), c.In, args[0], nil, c.documents(args[0])))
			if err != nil {
				return shell.NameError(fmt.Errorf("%s: %w", args[0], err))
			}
			if c.JSON {
				return c.PrintJSON(p)
			}
			now, err := c.Open()
			if err != nil {
				return err
			}
			of, err := c.policy(cmd.Context(), now)
			if err != nil {
				return err
			}
			type file struct{ name, text string }
			files := []file{{"grants.yaml", p.GrantsFile(of.Options.Grants)}, {"learned.rego", p.Rules()}, {"learned_test.rego", p.Tests()}}
			if limits := p.RateLimits(); limits != "" {
				files = append(files, file{"ratelimit.yaml", limits})
			}
			if definitions != "" {
				labels, err := c.learnedLabels(cmd.Context(), p, definitions, args[0])
				if err != nil {
					return err
				}
				files = append(files, file{"labels.yaml", labels})
			}
			for _, f := range files {
				if out == "" {
					fmt.Fprintf(c.Out, "# %s\n", f.name)
					for line := range strings.Lines(f.text) {
						fmt.Fprintln(c.Out, show.Visible(strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t", "    ")))
					}
				} else if err := os.MkdirAll(out, 0o700); err != nil {
					return err
				} else if err := os.WriteFile(filepath.Join(out, f.name), []byte(f.text), 0o600); err != nil {
					return err
				}
			}
			fmt.Fprintf(c.Err, "made of %s; nothing is learned from %d that were refused, and no bounds from %d whose arguments are not kept\n", show.Plural(p.Calls, "call"), p.Refused, p.Unseen)
			fmt.Fprintf(c.Err, "of %s in the last fifth of sessions, what the others show would have refused %d\n", show.Plural(p.Later, "call"), p.Held)
			for _, r := range p.Refusals {
				fmt.Fprintln(c.Err, show.Visible(fmt.Sprintf("  %s in session %s: %s", r.Tool, r.Session, r.Why)))
			}
			if more := p.Held - len(p.Refusals); more > 0 {
				fmt.Fprintf(c.Err, "  and %d more\n", more)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "folder to write the proposal to")
	cmd.Flags().StringVar(&definitions, "tools", "", `file with definitions of tools, {"tools": [...]}, by their full names; drafts labels of the used ones`)
	return cmd
}

// learnedLabels drafts labels of the tools that a proposal grants, as a labels file.
func (c commands) learnedLabels(ctx context.Context, p *learn.Proposal, definitions, recordings string) (string, error) {
	tools, err := readTools(definitions)
	if err != nil {
		return "", err
	}
	calls, err := recordedCalls(ctx, c.In, recordings)
	if err != nil {
		return "", err
	}
	results := resultsOf(calls)
	drafts := draft.Of(maps.Clone(tools))
	maps.DeleteFunc(tools, func(name string, _ gate.Doc) bool {
		return !slices.ContainsFunc(p.Grants, func(g learn.Grant) bool { return g.Tools[name] > 0 })
	})
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		fmt.Fprintf(&b, "%s: %s\n", name, learn.NewLabel(drafts.Label(name, results[name]...)).YAML())
	}
	return b.String(), nil
}
