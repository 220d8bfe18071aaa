package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/cmd/internal/app"
	"github.com/wasmgate/wasmgate/cmd/internal/config"
	"github.com/wasmgate/wasmgate/policy"
)

func (c *cli) newGrant() *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:     "grant PATTERN",
		Short:   "Grant tools to a principal",
		Long:    "Adds a grant to the grants file. PATTERN is a tool's name, or the start of names with * at its end.",
		Example: "  wasmgate grant 'files__read_*'\n  wasmgate grant tickets__create --to role:dev",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkGrant(to, args[0]); err != nil {
				return err
			}
			cfg, err := c.open()
			if err != nil {
				return err
			}
			if to != "*" && !strings.HasPrefix(to, "role:") && !app.Knows(cfg, to) {
				fmt.Fprintf(c.err, "nobody is %s yet: list it under principals in the configuration\n", to)
			}
			added, err := config.AddGrant(cfg.Policy.Grants, args[0], to)
			if err != nil {
				return err
			}
			said := fmt.Sprintf("granted %s to %s", args[0], to)
			if !added {
				said = fmt.Sprintf("%s is granted to %s already", args[0], to)
			}
			return c.edited(cmd, cfg, said, map[string]any{"added": added, "pattern": args[0], "to": to})
		},
	}
	cmd.Flags().StringVar(&to, "to", "local", "principal, role:NAME, or * for everybody")
	return cmd
}

func checkGrant(to, pattern string) error {
	problems := policy.CheckGrants([]policy.Grant{{To: []string{to}, Tools: []string{pattern}}})
	if len(problems) > 0 {
		return misuse("%v", problems[0].Err)
	}
	return nil
}

func (c *cli) newRevoke() *cobra.Command {
	return &cobra.Command{
		Use:   "revoke PATTERN",
		Short: "Take a grant back",
		Long: `Removes the pattern from the grants file. If no grant names exactly this pattern, it is added
as an exception to those that cover it.`,
		Example: "  wasmgate revoke 'files__read_*'\n  wasmgate revoke files__write_file",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkGrant("local", args[0]); err != nil {
				return err
			}
			cfg, err := c.open()
			if err != nil {
				return err
			}
			r, err := config.RevokeGrant(cfg.Policy.Grants, args[0])
			if err != nil {
				return err
			}
			said := fmt.Sprintf("removed %s from %s", args[0], plural(r.Removed, "grant"))
			switch {
			case r == config.Revoked{}:
				return misuse("no grant in %s covers %s", cfg.Policy.Grants, args[0])
			case r.Removed == 0:
				said = fmt.Sprintf("added %s as an exception to %s", args[0], plural(r.Excepted, "grant"))
			case r.Left > 0:
				fmt.Fprintf(c.err, "what it matches is still covered by %s; revoke it again to make it an exception there\n", plural(r.Left, "other grant"))
			}
			return c.edited(cmd, cfg, said, map[string]any{"removed": r.Removed, "excepted": r.Excepted, "left": r.Left, "pattern": args[0]})
		},
	}
}

// edited tells the running gateway, if there is one, and says what was done.
func (c *cli) edited(cmd *cobra.Command, cfg *config.Config, said string, result map[string]any) error {
	if r, err := app.Dial(cmd.Context(), cfg); err == nil {
		defer r.Close()
		if err := r.Reload(cmd.Context()); err != nil {
			return fmt.Errorf("%s, but the running gateway refuses the policy: %w", said, err)
		}
	}
	result["grants"] = cfg.Policy.Grants
	return c.said(result, said+", in "+cfg.Policy.Grants)
}
