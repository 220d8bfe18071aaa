package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/internal/learn"
	"github.com/wasmgate/wasmgate/internal/replay"
)

func (c *cli) newPolicyLearn() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "learn [--out DIR] TRACE|AUDIT-LOG",
		Short: "Propose a policy that allows what was seen, for a person to review",
		Long: `Reads recorded sessions, or an audit log with the arguments that are kept beside it (audit.arguments),
and proposes grants of the tools that each principal has used, and rules that hold arguments to what they
were: paths to a folder, URLs to hosts, texts that come again to a list. It learns from calls that were
allowed alone. Each line says how many calls it is made of; at the end stands how many calls of the last
fifth of sessions a proposal of the others would have refused.

Nothing of it is applied. --out writes files for policy test and policy replay --policy.`,
		Example: "  wasmgate policy learn --out proposed/ audit.jsonl\n  wasmgate policy replay --policy proposed/ --pack grants audit.jsonl",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := learn.From(replay.Recorded(cmd.Context(), c.in, args[0], nil, c.documents(args[0])))
			if err != nil {
				return named(fmt.Errorf("%s: %w", args[0], err))
			}
			if c.json {
				return c.printJSON(p)
			}
			now, err := c.open()
			if err != nil {
				return err
			}
			of, err := c.policy(cmd.Context(), now)
			if err != nil {
				return err
			}
			files := []struct{ name, text string }{{"grants.yaml", p.GrantsFile(of.Options.Grants)}, {"learned.rego", p.Rules()}, {"learned_test.rego", p.Tests()}}
			for _, f := range files {
				if out == "" {
					fmt.Fprintf(c.out, "# %s\n", f.name)
					for line := range strings.Lines(f.text) {
						fmt.Fprintln(c.out, visible(strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t", "    ")))
					}
				} else if err := os.MkdirAll(out, 0o700); err != nil {
					return err
				} else if err := os.WriteFile(filepath.Join(out, f.name), []byte(f.text), 0o600); err != nil {
					return err
				}
			}
			fmt.Fprintf(c.err, "made of %s; nothing is learned from %d that were refused, and no bounds from %d whose arguments are not kept\n", plural(p.Calls, "call"), p.Refused, p.Unseen)
			fmt.Fprintf(c.err, "of %s in the last fifth of sessions, what the others show would have refused %d\n", plural(p.Later, "call"), p.Held)
			return nil
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "folder to write the proposal to")
	return cmd
}
