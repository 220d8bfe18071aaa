package identitycommands

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/cmd/internal/shell"
	"github.com/wasmgate/wasmgate/cmd/internal/show"
	"github.com/wasmgate/wasmgate/internal/app"
	"github.com/wasmgate/wasmgate/internal/app/approvals"
	"github.com/wasmgate/wasmgate/internal/app/callers"
	"github.com/wasmgate/wasmgate/internal/app/operation"
	"github.com/wasmgate/wasmgate/internal/auth"
	"github.com/wasmgate/wasmgate/internal/match"
)

// commands make keys and logins, and say who is who.
type commands struct{ *shell.Shell }

// Commands returns key, auth, whoami, login, logout and logins.
func Commands(c *shell.Shell) []*cobra.Command {
	all := commands{c}
	return []*cobra.Command{all.newKey(), all.newAuth(), all.newWhoami(), all.newLogin(), all.newLogout(), all.newLogins()}
}

func (c commands) newWhoami() *cobra.Command {
	var token, group string
	cmd := &cobra.Command{
		Use:   "whoami",
		Short: "Show the principal of a token, or why it is refused",
		Long: `Shows the principal of a bearer token or an API key, its roles and what it is offered. If it is refused,
it shows which check fails, and what to do. It reads the token from standard input, so that no shell
history keeps it. Without --token it shows the local operator.`,
		Example: "  wasmgate whoami\n  wasmgate whoami --token - < token",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := c.ReadToken(token)
			if err != nil {
				return err
			}
			r := callers.WhoRequest{Token: text, Group: group}
			return c.withGatekeeper(cmd, func(g operation.Gateway) error {
				who, err := callers.WhoAmI.Ask(cmd.Context(), g, r)
				if err != nil {
					return err
				}
				if err := c.printWho(who); err != nil || who.Refused == 0 {
					return err
				}
				return shell.Exit(shell.ExitFalse, nil)
			})
		},
	}
	cmd.Flags().StringVar(&token, "token", "", "- reads a token from standard input")
	cmd.Flags().StringVar(&group, "group", "", "the group at whose endpoint the token is used")
	return cmd
}

func (c commands) printWho(w *callers.Who) error {
	if c.JSON {
		return c.PrintJSON(w)
	}
	if w.Refused != 0 {
		_, err := fmt.Fprintf(c.Out, "refused (%d): %s\nwhat to do: %s\n", w.Refused, show.Visible(w.Reason), show.Visible(w.Fix))
		return err
	}
	for _, line := range w.Lines() {
		fmt.Fprintf(c.Out, "%-11s%s\n", line[0], show.Visible(line[1]))
	}
	return nil
}

func (c commands) newAuth() *cobra.Command {
	return shell.WithCommands(&cobra.Command{
		Use:     "auth",
		Short:   "Check authentication, and revoke tokens",
		Long:    "Looks for common mistakes in the authentication of HTTP callers, and revokes tokens.",
		Example: "  wasmgate auth check\n  wasmgate auth revoke --principal alice",
	}, c.newAuthCheck(), c.newAuthRevoke(), c.newBreakGlass())
}

func (c commands) newAuthCheck() *cobra.Command {
	return &cobra.Command{
		Use: "check", Short: "Look for common mistakes in authentication, and say how to fix them", Args: cobra.NoArgs,
		Long: `Checks the metadata, keys and clock of each issuer, the public_url, the certificate, API keys, and roles
without a grant. For servers with auth it checks whether the gateway can get tokens, and who can read its
keys. To find out why a token is refused, use wasmgate whoami --token -. It exits with 3 if something is
wrong.`,
		Example: "  wasmgate auth check --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withGatekeeper(cmd, func(g operation.Gateway) error {
				all, err := callers.Check.Ask(cmd.Context(), g, operation.None{})
				if err != nil {
					return err
				}
				if err := c.printFindings(all); err != nil {
					return err
				}
				if slices.ContainsFunc(all, func(f callers.Finding) bool { return !f.OK }) {
					return shell.Exit(shell.ExitFalse, nil)
				}
				return nil
			})
		},
	}
}

func (c commands) printFindings(all []callers.Finding) error {
	if c.JSON {
		return c.PrintJSON(all)
	}
	for _, f := range all {
		level := "problem"
		if f.OK && f.Problem == "" {
			fmt.Fprintf(c.Out, "ok       %s\n", show.Visible(f.Check))
			continue
		} else if f.OK {
			level = "warning"
		}
		fmt.Fprintf(c.Out, "%s  %s: %s\n         %s\n", level, show.Visible(f.Check), show.Visible(f.Problem), show.Visible(f.Fix))
	}
	return nil
}

func (c commands) newAuthRevoke() *cobra.Command {
	var r callers.RevokeRequest
	cmd := &cobra.Command{
		Use: "revoke", Short: "Revoke tokens, and end their calls in progress", Args: cobra.NoArgs,
		Long: `Revokes tokens of issuers: one by its id (jti), or all tokens of a subject (sub) or principal that were
issued until now. Their streams, waiting calls and jobs end. Also disable the account at the issuer;
otherwise its owner can sign in again. --principal also revokes its API keys, unless --issuer is given.
To revoke a single key, use wasmgate key revoke.`,
		Example: "  wasmgate auth revoke --principal alice\n  wasmgate auth revoke --issuer corp --jti 2d9c",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if r.TokenID == "" && r.Subject == "" && r.Principal == "" {
				return shell.Misuse("name what ends: --principal, --sub or --jti")
			}
			return c.withGatekeeper(cmd, func(g operation.Gateway) error {
				done, err := callers.Revoke.Ask(cmd.Context(), g, r)
				if err != nil {
					return err
				}
				if c.JSON {
					return c.PrintJSON(done)
				}
				_, err = fmt.Fprintf(c.Out, "revoked, with %s; %s in use a moment ago\n", show.Plural(len(done.Keys), "API key"), show.Plural(done.Seen, "credential"))
				return err
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.Principal, "principal", "", "tokens of this principal, ID or TENANT/ID")
	f.StringVar(&r.Subject, "sub", "", "tokens of this subject")
	f.StringVar(&r.TokenID, "jti", "", "the token of this id")
	f.StringVar(&r.Issuer, "issuer", "", "only those of this issuer, by its name in the configuration")
	return cmd
}

func (c commands) newBreakGlass() *cobra.Command {
	var r approvals.GlassRequest
	var end bool
	cmd := &cobra.Command{
		Use: "break-glass", Short: "Answer any question as the operator for a time, in an emergency", Args: cobra.NoArgs,
		Long: `For a limited time, the operator of this machine can answer every approval question, with wasmgate
approvals or on the console. approvals.by, not_self and rules of the policy about approvers do not apply
to these answers. Nothing else changes: denied calls stay denied. It is recorded, and wasmgate status
shows it. It ends after its time, with --end, or when the gateway ends. It needs a running gateway.`,
		Example: "  wasmgate auth break-glass --for 1h --reason 'no lead can be reached'\n  wasmgate auth break-glass --end",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if end == (r.For > 0) || r.For < 0 {
				return shell.Misuse("give the duration, such as --for 1h, or --end")
			}
			cfg, err := c.Open()
			if err != nil {
				return err
			}
			g, err := app.Dial(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			defer g.Close()
			until, err := approvals.Break.Ask(cmd.Context(), g, r)
			if err != nil {
				return keyed(err)
			}
			if end {
				return c.Said(map[string]any{"break_glass": nil}, "break-glass has ended")
			}
			return c.Said(map[string]any{"break_glass": until}, "until "+until.Local().Format(time.DateTime)+" the operator answers any question; wasmgate auth break-glass --end ends it")
		},
	}
	cmd.Flags().DurationVar(&r.For, "for", 0, "how long, at most 24h")
	cmd.Flags().StringVar(&r.Reason, "reason", "", "why, for the record")
	cmd.Flags().BoolVar(&end, "end", false, "end it")
	return cmd
}

func (c commands) newKey() *cobra.Command {
	return shell.WithCommands(&cobra.Command{
		Use:   "key",
		Short: "Make and revoke API keys",
		Long: `A program with an API key can call the gateway over HTTP as a principal of the configuration. It sends
the key as a bearer token in Authorization, or in X-API-Key. The configuration needs auth: {keys: true}.
The gateway keeps only the key's digest.`,
		Example: "  wasmgate key create ci --as builder --role ci --expires 720h\n  wasmgate key list\n  wasmgate key revoke pPx0mZ3qA1bC",
	}, c.newKeyCreate(), c.newKeyList(), c.newKeyRevoke())
}

// withGatekeeper gives f the gateway that is asked who is let in: see [shell.Shell.WithState].
func (c commands) withGatekeeper(cmd *cobra.Command, f func(operation.Gateway) error) error {
	return keyed(c.WithState(cmd.Context(), f))
}

// keyed makes misuse of what a command has named that is not there.
func keyed(err error) error {
	if _, ok := errors.AsType[*operation.MisuseError](err); ok {
		return shell.Misuse("%v", err)
	}
	return err
}

func (c commands) newKeyCreate() *cobra.Command {
	var r callers.KeyRequest
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Make an API key, which is shown once",
		Long: `Makes an API key for a principal that is listed under principals. NAME is your name for the key. The key
has the roles of its principal; --role, --group and --server give it less.`,
		Example: "  wasmgate key create ci --as builder --expires 720h\n  wasmgate key create reports --as reporter --server files --json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch r.Name = args[0]; {
			case r.As == "":
				return shell.Misuse("--as names the principal whose key it is")
			case r.Expires < 0, r.Expires == 0 && cmd.Flags().Changed("expires"):
				return shell.Misuse("--expires is a time from now, such as 720h")
			}
			return c.withGatekeeper(cmd, func(g operation.Gateway) error {
				k, err := callers.CreateKey.Ask(cmd.Context(), g, r)
				if err != nil {
					return err
				}
				if c.JSON {
					return c.PrintJSON(k)
				}
				fmt.Fprintf(c.Err, "key %s of %s, %s; it is not shown again:\n", k.ID, show.Visible(match.Name(k.Tenant, k.Principal)), endsAt(k.Expires))
				_, err = fmt.Fprintln(c.Out, k.Secret)
				return err
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.As, "as", "", "principal of the key, ID or TENANT/ID")
	f.StringSliceVar(&r.Roles, "role", nil, "the key has only this role of the principal; may be repeated, as the others may")
	f.StringSliceVar(&r.Groups, "group", nil, "the key reaches only what is in this group")
	f.StringSliceVar(&r.Servers, "server", nil, "the key reaches only what this server has")
	f.DurationVar(&r.Expires, "expires", 0, "time until it expires, such as 720h (default: never)")
	return cmd
}

func endsAt(at time.Time) string {
	if at.IsZero() {
		return "without an end"
	}
	return "until " + at.UTC().Format(time.RFC3339)
}

func (c commands) newKeyList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the API keys, the oldest first", Args: cobra.NoArgs,
		Example: "  wasmgate key list --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withGatekeeper(cmd, func(g operation.Gateway) error {
				all, err := callers.Keys.Ask(cmd.Context(), g, operation.None{})
				if err != nil || c.JSON {
					return errors.Join(err, c.printKeys(all))
				}
				if len(all) == 0 {
					fmt.Fprintln(c.Err, "there are no API keys")
					return nil
				}
				return c.printKeys(all)
			})
		},
	}
}

func (c commands) printKeys(all []callers.Key) error {
	if c.JSON {
		return c.PrintJSON(all)
	}
	t := show.NewTable(c.Out, "ID", "NAME", "PRINCIPAL", "STATE", "ENDS", "ONLY")
	for _, k := range all {
		t.Row(k.Cells()...)
	}
	return t.Flush()
}

func (c commands) newKeyRevoke() *cobra.Command {
	return &cobra.Command{
		Use: "revoke ID", Short: "Revoke an API key for good, and end its calls in progress", Args: cobra.ExactArgs(1),
		Example: "  wasmgate key revoke pPx0mZ3qA1bC",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withGatekeeper(cmd, func(g operation.Gateway) error {
				k, err := callers.RevokeKey.Ask(cmd.Context(), g, callers.KeyID{ID: args[0]})
				if err != nil {
					if err.Error() == auth.ErrNoKey.Error() {
						return shell.Misuse("there is no key %s: see wasmgate key list", show.Visible(args[0]))
					}
					return err
				}
				if c.JSON {
					return c.PrintJSON(k)
				}
				_, err = fmt.Fprintf(c.Out, "revoked %s (%s) of %s\n", k.ID, show.Visible(k.Name), show.Visible(match.Name(k.Tenant, k.Principal)))
				return err
			})
		},
	}
}
