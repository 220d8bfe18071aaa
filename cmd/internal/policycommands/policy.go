package policycommands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/cmd/internal/shell"
	"github.com/wasmgate/wasmgate/cmd/internal/show"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/internal/app"
	"github.com/wasmgate/wasmgate/internal/app/naming"
	"github.com/wasmgate/wasmgate/internal/app/policies"
	"github.com/wasmgate/wasmgate/internal/cluster/members"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/config/tree"
	"github.com/wasmgate/wasmgate/internal/policyfiles"
	"github.com/wasmgate/wasmgate/internal/replay"
	"github.com/wasmgate/wasmgate/policy"
)

// commands check, test, explain and learn policies.
type commands struct{ *shell.Shell }

// Command returns policy with its commands.
func Command(c *shell.Shell) *cobra.Command { return commands{c}.newPolicy() }

func (c commands) newPolicy() *cobra.Command {
	return shell.WithCommands(&cobra.Command{
		Use:     "policy",
		Short:   "Check, test and evaluate the policy",
		Example: "  wasmgate policy check\n  wasmgate policy test\n  wasmgate policy eval input.json",
	}, c.newPolicyCheck(), c.newPolicyTest(), c.newPolicyEval(), c.newPolicyExplain(), c.newPolicyReplay(), c.newPolicyLabel(), c.newPolicyLearn())
}

func (c commands) newPolicyCheck() *cobra.Command {
	return &cobra.Command{
		Use:     "check",
		Short:   "Compile the policy and report mistakes",
		Long:    "Compiles packs, rules and grants. It also names slow rules, names that do not exist, and rules that\ncompare paths as text. Exits with 3 if the policy would not load.",
		Example: "  wasmgate policy check --config wasmgate.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := c.Open()
			if err != nil {
				return err
			}
			p, unread, err := c.newestPolicy(cmd.Context(), cfg)
			var grants tree.Problems
			if errors.As(err, &grants) {
				return c.printProblems(ofGrants(grants))
			}
			if err = errors.Join(err, unread); err != nil {
				return shell.Exit(shell.ExitFalse, err)
			}
			problems, err := checkPolicy(cmd.Context(), cfg, p)
			if err != nil {
				return shell.Exit(shell.ExitFalse, err)
			}
			return c.printProblems(append(problems, labelWarnings(cfg, p.Options.Labels)...))
		},
	}
}

// policy reads the policy of a configuration; a bundle that cannot be read is the
// copy that was kept of it.
func (c commands) policy(ctx context.Context, cfg *config.Config) (gateway.Policy, error) {
	p, _, err := c.newestPolicy(ctx, cfg)
	return p, err
}

// newestPolicy says also which bundles cannot be read.
func (c commands) newestPolicy(ctx context.Context, cfg *config.Config) (p gateway.Policy, unread, err error) {
	log, err := c.Logger(cfg, true)
	if err != nil {
		return gateway.Policy{}, nil, err
	}
	if cfg.Store.On() {
		if cfg.Policy.Shared, err = members.Grants(ctx, cfg); err != nil {
			return gateway.Policy{}, nil, err
		}
	}
	return policyfiles.Read(ctx, cfg, log)
}

// checkPolicy returns what is wrong with a policy. Of one that compiles the tests of
// its bundles may yet fail, for which it does not load; its rules are held against the
// tools that are known.
func checkPolicy(ctx context.Context, cfg *config.Config, p gateway.Policy) ([]policy.Problem, error) {
	problems, err := policy.Check(p.Files, p.Options)
	if err != nil || slices.ContainsFunc(problems, func(p policy.Problem) bool { return !p.Warning }) {
		return problems, err
	}
	engine, err := policy.Load(ctx, p.Files, p.Options)
	if failed, ok := errors.AsType[*policy.CompileError](err); ok {
		return append(problems, failed.Problems...), nil
	}
	if err != nil {
		return problems, err
	}
	tools, err := app.Declared(ctx, cfg)
	return slices.Concat(problems, policy.Unconfigured(engine, naming.Policy(cfg, tools)), policy.Overlooked(engine, tools), policies.RelayWarnings(ctx, cfg, engine)), err
}

// ofGrants puts what is wrong with the grants file into the words of a policy.
func ofGrants(from tree.Problems) []policy.Problem {
	var to []policy.Problem
	for _, p := range from {
		to = append(to, policy.Problem{File: p.File, Line: p.Line, Message: strings.TrimPrefix(p.Path+": "+p.Message, ": ")})
	}
	return to
}

func (c commands) printProblems(problems []policy.Problem) error {
	wrong := 0
	for _, p := range problems {
		if !p.Warning {
			wrong++
		}
		if !c.JSON {
			fmt.Fprintln(c.Out, show.Visible(p.String()))
		}
	}
	if c.JSON {
		if problems == nil {
			problems = []policy.Problem{}
		}
		if err := c.PrintJSON(problems); err != nil {
			return err
		}
	} else if len(problems) == 0 {
		fmt.Fprintln(c.Out, "the policy is good")
	}
	if wrong > 0 {
		return shell.Exit(shell.ExitFalse, fmt.Errorf("the policy does not load: %s", show.Plural(wrong, "problem")))
	}
	return nil
}

func (c commands) newPolicyTest() *cobra.Command {
	var uncovered, watch bool
	cmd := &cobra.Command{
		Use:   "test",
		Short: "Run the tests of the policy, with coverage",
		Long: `Runs the rules whose names begin with test_: of the packs, of the bundles and of your *_test.rego files.
Exits with 3 if one fails. With --watch it runs them again whenever a file of the policy changes.`,
		Example: "  wasmgate policy test --uncovered\n  wasmgate policy test --watch",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := c.Open()
			if err != nil {
				return err
			}
			if !watch {
				return c.testPolicy(cmd.Context(), cfg, uncovered)
			}
			policyfiles.Watch(cmd.Context(), cfg, func() {
				if err := c.testPolicy(cmd.Context(), cfg, uncovered); err != nil {
					fmt.Fprintln(c.Err, "wasmgate: "+err.Error())
				}
				fmt.Fprintln(c.Err, "waiting for changes; interrupt to end")
			})
			return nil
		},
	}
	cmd.Flags().BoolVar(&uncovered, "uncovered", false, "also list the lines that no test evaluates")
	cmd.Flags().BoolVar(&watch, "watch", false, "run them again whenever a file changes")
	return cmd
}

func (c commands) testPolicy(ctx context.Context, cfg *config.Config, uncovered bool) error {
	p, err := c.policy(ctx, cfg)
	if err != nil {
		return shell.Exit(shell.ExitFalse, err)
	}
	results, coverage, err := policy.Test(ctx, p.Files, p.Options)
	var compile *policy.CompileError
	if errors.As(err, &compile) {
		return shell.Exit(shell.ExitFalse, err)
	}
	if err != nil {
		return err
	}
	return c.printTests(results, coverage, uncovered)
}

func (c commands) printTests(results []policy.TestResult, coverage policy.Coverage, uncovered bool) error {
	counts := make(map[policy.TestOutcome]int)
	for _, r := range results {
		counts[r.Outcome]++
		if !c.JSON && r.Outcome != policy.Passed {
			fmt.Fprintf(c.Out, "%s  %s  %s:%d  %s\n", show.Paint(c.Out, show.Bad, string(r.Outcome)), r.Name, r.File, r.Line, r.Took.Round(time.Microsecond))
			for _, text := range []string{r.Error, r.Output} {
				if text != "" {
					fmt.Fprintln(c.Out, "  "+show.Visible(text))
				}
			}
		}
	}
	failed := counts[policy.Failed] + counts[policy.Errored]
	if c.JSON {
		if err := c.PrintJSON(map[string]any{"tests": results, "coverage": coverage, "covered_percent": coverage.Percent()}); err != nil {
			return err
		}
	} else {
		t := show.NewTable(c.Out, "FILE", "LINES", "COVERED")
		for _, f := range coverage.Files {
			t.Row(f.File, fmt.Sprint(f.Lines), fmt.Sprint(f.Covered))
			if uncovered {
				for _, l := range f.Uncovered {
					t.Row(fmt.Sprintf("  not covered: %s:%d-%d", f.File, l.From, l.To))
				}
			}
		}
		if err := t.Flush(); err != nil {
			return err
		}
		fmt.Fprintf(c.Out, "%d passed, %d failed, %d skipped%s\n", counts[policy.Passed], failed, counts[policy.Skipped], ownCoverage(results, coverage))
	}
	if failed > 0 {
		return shell.Exit(shell.ExitFalse, fmt.Errorf("%s failed", show.Plural(failed, "test")))
	}
	return nil
}

// ownCoverage says how much of the user's own lines the tests evaluate: those of packs are
// tested whatever the user writes.
func ownCoverage(results []policy.TestResult, all policy.Coverage) string {
	ofPack := func(file string) bool { return strings.HasPrefix(file, "pack://") }
	own := policy.Coverage{Files: slices.DeleteFunc(slices.Clone(all.Files), func(f policy.FileCoverage) bool { return ofPack(f.File) })}
	tests := slices.DeleteFunc(slices.Clone(results), func(r policy.TestResult) bool { return ofPack(r.File) })
	switch {
	case len(own.Files) == 0:
		return ", all of packs: there is no policy of yours"
	case len(tests) == 0:
		return ", all of packs: your rules have no tests"
	default:
		return fmt.Sprintf(", %d of yours; %.0f %% of your lines covered", len(tests), own.Percent())
	}
}

func (c commands) newPolicyEval() *cobra.Command {
	var tools string
	cmd := &cobra.Command{
		Use:   "eval [--tools FILE] [FILE|-]",
		Short: "Decide on one input, without calling anything",
		Long: `Reads a policy input from a file or from standard input, and prints the decision. With --tools the
arguments are first converted to the tool's schema, as the gateway does. Exits with 3 if the decision
is not "allow".`,
		Example: "  echo '{\"action\":\"tools/call\",\"principal\":{\"id\":\"local\"},\"tool\":{\"name\":\"files__read\"}}' | wasmgate policy eval",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := c.Open()
			if err != nil {
				return err
			}
			p, err := c.policy(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			input, err := c.Input(append(args, "-")[0])
			if err != nil {
				return err
			}
			if !json.Valid(input) {
				return shell.Misuse("the input is not JSON")
			}
			known, err := readTools(tools)
			if err != nil {
				return err
			}
			input = coerced(input, known)
			p.Options.Print = c.Err
			engine, err := policy.Load(cmd.Context(), p.Files, p.Options)
			if err != nil {
				return shell.Exit(shell.ExitFalse, err)
			}
			b, err := policy.Eval(cmd.Context(), engine, input)
			if err != nil {
				return shell.Exit(shell.ExitFalse, err)
			}
			if err := c.PrintJSON(json.RawMessage(b)); err != nil {
				return err
			}
			var decision struct{ Effect gate.Effect }
			if err := json.Unmarshal(b, &decision); err != nil {
				return err
			}
			if decision.Effect != gate.Allow {
				return shell.Exit(shell.ExitFalse, nil)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&tools, "tools", "", `file with definitions of tools, {"tools": [...]}, by their full names`)
	return cmd
}

// coerced returns an input whose arguments are what the schema of its tool says.
func coerced(input []byte, tools map[string]gate.Doc) []byte {
	d, err := gate.ParseDoc(input)
	if err != nil || d.Kind() != doc.Object {
		return input
	}
	definition, ok := tools[d.At("/tool/name").Text()]
	if !ok || d.Get("arguments").Kind() != doc.Object {
		return input
	}
	by := replay.InputSchema(definition)
	if by == nil {
		return input
	}
	args, _ := by.Coerce(d.Get("arguments"))
	return d.With("arguments", args.Raw()).Raw()
}

// labelWarnings warns of labels for servers that the configuration does not have.
// Which tools a server has, only a gateway knows: see [overview.Status].
func labelWarnings(cfg *config.Config, labels []policy.Label) []policy.Problem {
	known := naming.Policy(cfg, nil).Servers
	var problems []policy.Problem
	for _, l := range labels {
		server, _, whole := strings.Cut(l.Pattern, "__")
		begins := func(id string) bool {
			return id == server || !whole && strings.HasPrefix(id+"__", strings.TrimSuffix(server, "*"))
		}
		if !slices.ContainsFunc(known, begins) {
			said := "labels." + l.Pattern + ": matches no tool: the configuration has no such server; see " + cfg.Policy.Labels
			problems = append(problems, policy.Problem{Warning: true, Message: said})
		}
	}
	return problems
}
