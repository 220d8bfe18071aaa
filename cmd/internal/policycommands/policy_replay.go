package policycommands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/cmd/internal/shell"
	"github.com/wasmgate/wasmgate/cmd/internal/show"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/app/inventory"
	"github.com/wasmgate/wasmgate/internal/background"
	"github.com/wasmgate/wasmgate/internal/replay"
	"github.com/wasmgate/wasmgate/policy"
	"github.com/wasmgate/wasmgate/policy/study"
)

// replayFlags are those of policy replay.
type replayFlags struct {
	policy  string
	packs   []string
	grants  string
	labels  string
	tools   string
	approve bool
	beside  bool
}

func (c commands) newPolicyReplay() *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay [--policy DIR] [--pack NAME]... [--grants FILE] [--labels FILE] [--tools FILE] [--approve-asks | --approve-beside] [TRACE|AUDIT-LOG]",
		Short: "Decide recorded calls by another policy, without calling anything",
		Long: `Decides the calls of recorded sessions in their order, as the gateway would. The session does not see
the result of a call that is refused. Without --policy the configuration's policy decides. DIR holds
.rego files, grants.yaml and labels.yaml; --grants and --labels replace those files.

Without a file, it takes the audit log of the configuration.

For an audit log it compares each decision with the one that was made. It leaves out prompts,
and resources except skills. If the log has no arguments, rules that need them count as unknown.
Definitions of tools and skills come from the running gateway, or from the servers, which are started for
it. A call whose definition has changed counts as unknown.

A TRACE has one session on each line. For it, and with --tools, tools have the definitions in FILE or
none, and count as not sandboxed, not pinned and without findings. Reads of skills are left out.

Exits with 3 if a call would pass that did not pass then, or if no recorded call could be decided.`,
		Example: "  wasmgate policy replay --policy next/ --pack grants --pack flow",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				cfg, err := c.Open()
				if err != nil {
					return err
				}
				args = []string{cfg.Audit.Path}
			}
			return c.policyReplay(cmd.Context(), f, args[0])
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.policy, "policy", "", "folder of the policy (default: the configuration's)")
	flags.StringArrayVar(&f.packs, "pack", nil, "built-in pack to use with it; may be repeated (default: grants, or the configuration's)")
	flags.StringVar(&f.grants, "grants", "", "file of grants, instead of the policy's")
	flags.StringVar(&f.labels, "labels", "", "file of labels, instead of the policy's")
	flags.StringVar(&f.tools, "tools", "", `file with definitions of tools, {"tools": [...]}, by their full names`)
	flags.BoolVar(&f.approve, "approve-asks", false, "continue as if each question had been approved")
	flags.BoolVar(&f.beside, "approve-beside", false, "like --approve-asks; each approval also covers, until the session ends, all destinations that its question shows")
	return cmd
}

func (c commands) policyReplay(ctx context.Context, f replayFlags, file string) error {
	engine, err := c.replayEngine(ctx, f)
	if err != nil {
		return err
	}
	o := replay.Replayed()
	o.ApproveAsks, o.ApproveBeside = f.approve, f.beside
	if o.Tools, err = readTools(f.tools); err != nil {
		return err
	}
	count := make(replay.Tally)
	var definitions func() map[replay.Key]*gate.Tool
	if f.tools == "" {
		definitions = sync.OnceValue(func() map[replay.Key]*gate.Tool { return c.definitions(ctx) })
	}
	for s, err := range replay.Recorded(ctx, c.In, file, definitions, c.documents(file)) {
		if err != nil {
			return shell.NameError(fmt.Errorf("%s: %w", file, err))
		}
		r, err := study.Replay(ctx, engine, o, s)
		if err != nil {
			return err
		}
		count.Add(r)
		if c.JSON {
			r.ID = cmp.Or(r.ID, r.Principal) // a principal's one session has no name of its own
			if err := shell.PrintLine(c.Out, r); err != nil {
				return err
			}
		}
	}
	return c.printTally(count)
}

// readTools reads the definitions in a file, or none.
func readTools(file string) (map[string]gate.Doc, error) {
	if file == "" {
		return nil, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, shell.Misuse("--tools %s: %v", file, err)
	}
	tools, err := study.ReadTools(data)
	if err != nil {
		return nil, shell.Misuse("--tools %s: %v", file, err)
	}
	return tools, nil
}

// definitions asks the gateway of the configuration what its tools are. It has none
// if that cannot be known, and says why.
func (c commands) definitions(ctx context.Context) map[replay.Key]*gate.Tool {
	known, err := c.askDefinitions(ctx)
	if err != nil {
		fmt.Fprintln(c.Err, show.Visible(fmt.Sprintf("the definitions of the tools cannot be read: %v", err)))
	}
	return known
}

func (c commands) askDefinitions(ctx context.Context) (_ map[replay.Key]*gate.Tool, err error) {
	cfg, err := c.Open()
	if err != nil {
		return nil, err
	}
	g, err := c.Ask(ctx, cfg, "")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.End(ctx)) }()
	tools, err := inventory.Tools.Ask(ctx, g, inventory.Request{All: true})
	if err != nil {
		return nil, err
	}
	skills, err := inventory.Skills.Ask(ctx, g, inventory.Request{})
	if err != nil {
		return nil, err
	}
	return replay.DefinitionsOf(tools, skills)
}

// replayEngine loads the policy that the flags name.
func (c commands) replayEngine(ctx context.Context, f replayFlags) (*policy.Engine, error) {
	var p gateway.Policy
	if f.policy != "" {
		var err error
		if p, err = replay.Folder(f.policy); err != nil {
			return nil, shell.Exit(shell.ExitMisuse, err)
		}
	} else {
		cfg, err := c.Open()
		if err != nil {
			return nil, err
		}
		if p, err = c.policy(ctx, cfg); err != nil {
			return nil, shell.Exit(shell.ExitMisuse, err)
		}
	}
	if f.packs != nil {
		p.Options.Packs = f.packs
	}
	for _, file := range []string{f.grants, f.labels} {
		if _, err := os.Stat(file); file != "" && err != nil {
			return nil, shell.Misuse("%v", err)
		}
	}
	if err := replay.Put(&p, f.grants, f.labels); err != nil {
		return nil, shell.Exit(shell.ExitMisuse, err)
	}
	p.Options.Timeout = replay.Timeout
	engine, err := policy.Load(ctx, p.Files, p.Options)
	if err != nil {
		return nil, shell.Exit(shell.ExitMisuse, err)
	}
	return engine, nil
}

// documents returns the documents that are kept next to a log file, if it is that of the
// configuration; else nil.
func (c commands) documents(file string) replay.Documents {
	cfg, err := c.Open()
	if err != nil {
		return nil
	}
	is, err := os.Stat(file)
	of, cerr := os.Stat(cfg.Audit.Path)
	if err != nil || cerr != nil || !os.SameFile(is, of) {
		return nil
	}
	return func(wanted map[string]bool) (map[string][]byte, error) { return background.Documents(cfg, wanted, 0) }
}

// printTally prints the table, and the summary on standard error.
func (c commands) printTally(t replay.Tally) error {
	all := t.At("", "")
	delete(t, [2]string{})
	if !c.JSON {
		table := show.NewTable(c.Out, "TOOL", "PRINCIPAL", "CALLS", "ALLOW", "ASK", "DENY", "UNKNOWN", "NOW PASS", "NOW REFUSED")
		for _, k := range slices.SortedFunc(maps.Keys(t), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
			n := t[k]
			table.Row(k[0], k[1], fmt.Sprint(n.Calls), fmt.Sprint(n.Allow), fmt.Sprint(n.Ask), fmt.Sprint(n.Deny), fmt.Sprint(n.Unknown), fmt.Sprint(n.Looser), fmt.Sprint(n.Stricter))
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	fmt.Fprintf(c.Err, "%s, %s: %d allow, %d ask, %d deny, %d unknown\n",
		show.Plural(all.Sessions, "session"), show.Plural(all.Calls, "call"), all.Allow, all.Ask, all.Deny, all.Unknown)
	if all.Undefined > 0 {
		fmt.Fprintf(c.Err, "%s could not be decided, because their tools' definitions are not known or have changed; give them with --tools FILE, or start the gateway\n",
			show.Plural(all.Undefined, "call"))
	}
	if all.Unrecorded > 0 {
		fmt.Fprintf(c.Err, "%s could not be decided, because the log does not have their arguments; with audit.record: full, or the obligation {\"record\": \"full\"} for some tools, later ones are decided\n",
			show.Plural(all.Unrecorded, "call"))
	}
	if all.Compared > 0 {
		fmt.Fprintf(c.Err, "of %d decided before: %d would pass that did not, %d would not pass that did\n", all.Compared, all.Looser, all.Stricter)
	}
	switch {
	case all.Calls > 0 && all.Unknown == all.Calls:
		return shell.Exit(shell.ExitFalse, errors.New("no recorded call could be decided"))
	case all.Looser > 0:
		return shell.Exit(shell.ExitFalse, nil)
	}
	return nil
}
