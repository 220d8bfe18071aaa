package policycommands

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/cmd/internal/shell"
	"github.com/wasmgate/wasmgate/cmd/internal/show"
	"github.com/wasmgate/wasmgate/internal/app"
	"github.com/wasmgate/wasmgate/internal/app/operation"
	"github.com/wasmgate/wasmgate/internal/app/policies"
	"github.com/wasmgate/wasmgate/internal/app/unknown"
	"github.com/wasmgate/wasmgate/internal/cluster/members"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/config/policydata"
	"github.com/wasmgate/wasmgate/internal/files/state"
	"github.com/wasmgate/wasmgate/policy"
)

// grants give and take grants.
type grants struct{ *shell.Shell }

// Grant returns the command that gives a grant.
func Grant(c *shell.Shell) *cobra.Command { return grants{c}.newGrant() }

// Revoke returns the command that takes a grant back.
func Revoke(c *shell.Shell) *cobra.Command { return grants{c}.newRevoke() }

func (c grants) newGrant() *cobra.Command {
	var g policydata.Grant
	var to string
	var yes, force bool
	cmd := &cobra.Command{
		Use:   "grant [PATTERN]...",
		Short: "Grant tools, prompts, resources or whole servers to a principal",
		Long: `Adds a grant to the grants file. PATTERN is a tool's name, or the beginning of names and *. --server grants
everything of a server: tools, prompts, resources, skills and methods. wasmgate tools --all lists them.
A name that nothing has is refused, unless --force is given.

For a whole server it asks on a terminal. Without a terminal it needs --yes.`,
		Example: "  wasmgate grant 'files__read_*'\n  wasmgate grant --server files --asks roots --yes\n  wasmgate grant tickets__create --to role:dev",
		RunE: func(cmd *cobra.Command, args []string) error {
			g.To, g.Tools = []string{to}, args
			if len(args)+len(g.Servers)+len(g.Groups)+len(g.Resources)+len(g.Prompts)+len(g.Skills)+len(g.Methods)+len(g.Agents) == 0 {
				return shell.Misuse("name what to grant: a pattern of tools, or --server, --group, --prompt, --resource, --skills, --method; see %s --help", cmd.CommandPath())
			}
			if err := checkGrant(g); err != nil {
				return err
			}
			cfg, err := c.Open()
			if err != nil {
				return err
			}
			if none := unknown.In(cmd.Context(), cfg, g); len(none) > 0 && !force {
				return shell.Misuse("%s\nadd --force to grant it before it exists", strings.Join(none, "\n"))
			}
			if wholeServer(g) {
				preview := func() error {
					fmt.Fprintf(c.Err, "this grants %s to %s, with all that is added to it later\n", show.Visible(grantWords(g)), show.Visible(to))
					return nil
				}
				if err := c.Confirmed(yes, preview, "Grant it?"); err != nil {
					return err
				}
			}
			return members.WithGrants(cmd.Context(), cfg, func(at state.Document) error {
				added, err := policydata.AddGrant(cmd.Context(), at, g)
				if err != nil {
					return err
				}
				said := fmt.Sprintf("granted %s to %s", grantWords(g), to)
				if !added {
					said = fmt.Sprintf("%s is granted to %s already", grantWords(g), to)
				}
				return c.edited(cmd, cfg, at, said, grantJSON(g, map[string]any{"added": added, "to": to}))
			})
		},
	}
	cmd.Flags().StringVar(&to, "to", "local", "principal, role:NAME, or * for everyone")
	shell.YesFlag(cmd, &yes)
	cmd.Flags().BoolVar(&force, "force", false, "grant what does not exist yet")
	grantFlags(cmd, &g)
	cmd.Flags().StringSliceVar(&g.Asks, "asks", nil, "what its servers may ask the client for: roots, sampling, secrets")
	return cmd
}

// wholeServer reports whether a grant has all tools of a server, or of more than one.
func wholeServer(g policydata.Grant) bool {
	return len(g.Servers) > 0 || slices.ContainsFunc(g.Tools, func(pattern string) bool {
		start, more := strings.CutSuffix(pattern, "*")
		return more && (strings.HasSuffix(start, "__") || !strings.Contains(start, "__"))
	})
}

// grantFlags adds the flags that name what is granted besides tools.
func grantFlags(cmd *cobra.Command, g *policydata.Grant) {
	f := cmd.Flags()
	f.StringSliceVar(&g.Servers, "server", nil, "all of this server; may be repeated, as the others may")
	f.StringSliceVar(&g.Groups, "group", nil, "all in this group")
	f.StringSliceVar(&g.Prompts, "prompt", nil, "prompts: server__prompt, or its beginning and *")
	f.StringArrayVar(&g.Resources, "resource", nil, "resources: a URI, or its beginning and *") // a URI may hold a comma
	f.StringSliceVar(&g.Skills, "skills", nil, "skills: SERVER/PATH, or its beginning and *")
	f.StringSliceVar(&g.Methods, "method", nil, "methods that MCP does not have: method, or server__method")
	f.StringSliceVar(&g.Agents, "agent", nil, "an agent's own tools: agent__tool, or its beginning and *; see wasmgate hook")
}

// grantKinds are what a grant names, and how it is said.
func grantKinds(g policydata.Grant) [][2]string {
	var said [][2]string
	for _, k := range []struct {
		kind   string
		values []string
	}{{"", g.Tools}, {"server", g.Servers}, {"group", g.Groups}, {"prompt", g.Prompts}, {"resource", g.Resources}, {"skill", g.Skills}, {"method", g.Methods}, {"agent", g.Agents}} {
		for _, v := range k.values {
			said = append(said, [2]string{k.kind, v})
		}
	}
	return said
}

func grantWords(g policydata.Grant) string {
	var words []string
	for _, k := range grantKinds(g) {
		words = append(words, strings.TrimSpace(k[0]+" "+k[1]))
	}
	text := strings.Join(words, ", ")
	if len(g.Asks) > 0 {
		text += " (asks: " + strings.Join(g.Asks, ", ") + ")"
	}
	return text
}

// grantJSON adds what a grant names to a result for programs. A single pattern of tools
// has the key that it had when grants knew nothing else.
func grantJSON(g policydata.Grant, result map[string]any) map[string]any {
	if len(g.Tools) == 1 {
		result["pattern"] = g.Tools[0]
	}
	for key, values := range map[string][]string{
		"tools": g.Tools, "servers": g.Servers, "groups": g.Groups, "prompts": g.Prompts, "resources": g.Resources, "skills": g.Skills, "methods": g.Methods, "agents": g.Agents, "asks": g.Asks,
	} {
		if len(values) > 0 {
			result[key] = values
		}
	}
	return result
}

func checkGrant(g policydata.Grant) error {
	if problems := policy.CheckGrants([]policy.Grant{policy.Grant(g)}); len(problems) > 0 {
		return shell.Misuse("%v", problems[0].Err)
	}
	return nil
}

func (c grants) newRevoke() *cobra.Command {
	var g policydata.Grant
	cmd := &cobra.Command{
		Use:   "revoke [PATTERN]",
		Short: "Remove a grant",
		Long: `Removes the pattern from the grants file. If no grant has exactly this pattern, it becomes an exception
of the grants that cover it. --server and the other flags remove grants of that kind.`,
		Example: "  wasmgate revoke 'files__read_*'\n  wasmgate revoke files__write_file\n  wasmgate revoke --server files",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			g.To, g.Tools = []string{"local"}, args
			if len(grantKinds(g)) == 0 || len(args) > 0 && len(grantKinds(g)) > 1 {
				return shell.Misuse("name what to remove: one pattern of tools, or --server, --group, --prompt, --resource, --skills, --method; see %s --help", cmd.CommandPath())
			}
			if err := checkGrant(g); err != nil {
				return err
			}
			cfg, err := c.Open()
			if err != nil {
				return err
			}
			return members.WithGrants(cmd.Context(), cfg, func(at state.Document) error {
				if len(args) == 0 {
					return c.revokeNamed(cmd, cfg, at, g)
				}
				return c.revokePattern(cmd, cfg, at, args[0])
			})
		},
	}
	grantFlags(cmd, &g)
	return cmd
}

// revokeNamed takes back what grants name besides tools.
func (c grants) revokeNamed(cmd *cobra.Command, cfg *config.Config, at state.Document, g policydata.Grant) error {
	removed, err := policydata.RevokeNamed(cmd.Context(), at, g)
	switch {
	case err != nil:
		return err
	case removed == 0:
		return shell.Misuse("no grant in %s names %s%s", at.Name(), grantWords(g), inFile(cfg))
	}
	return c.edited(cmd, cfg, at, fmt.Sprintf("removed %s from %s", grantWords(g), show.Plural(removed, "grant")), grantJSON(g, map[string]any{"removed": removed}))
}

// revokePattern takes back a pattern of tools.
func (c grants) revokePattern(cmd *cobra.Command, cfg *config.Config, at state.Document, pattern string) error {
	r, err := policydata.RevokeGrant(cmd.Context(), at, pattern)
	if err != nil {
		return err
	}
	said := fmt.Sprintf("removed %s from %s", pattern, show.Plural(r.Removed, "grant"))
	switch {
	case r == policydata.Revoked{}:
		return shell.Misuse("no grant in %s covers %s%s", at.Name(), pattern, inFile(cfg))
	case r.Removed == 0:
		said = fmt.Sprintf("added %s as an exception to %s", pattern, show.Plural(r.Excepted, "grant"))
	case r.Left > 0:
		fmt.Fprintf(c.Err, "what it matches is still covered by %s; revoke it again to make it an exception there\n", show.Plural(r.Left, "other grant"))
	}
	return c.edited(cmd, cfg, at, said, map[string]any{"removed": r.Removed, "excepted": r.Excepted, "left": r.Left, "pattern": pattern})
}

// inFile says where grants are that gateways do not share.
func inFile(cfg *config.Config) string {
	if !cfg.Store.On() {
		return ""
	}
	return "; take what " + cfg.Policy.Grants + " grants out of that file, at each gateway"
}

// edited tells the running gateway, if there is one, and says what was done.
func (c grants) edited(cmd *cobra.Command, cfg *config.Config, at state.Document, said string, result map[string]any) error {
	if r, err := app.Dial(cmd.Context(), cfg); err == nil {
		defer r.Close()
		if _, err := policies.Reload.Ask(cmd.Context(), r, operation.None{}); err != nil {
			return fmt.Errorf("%s, but the running gateway refuses the policy: %w", said, err)
		}
	}
	result["grants"] = at.Name()
	return c.Said(result, said+", in "+at.Name())
}
