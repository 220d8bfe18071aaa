package identitycommands

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/cmd/internal/browser"
	"github.com/wasmgate/wasmgate/cmd/internal/shell"
	"github.com/wasmgate/wasmgate/cmd/internal/show"
	"github.com/wasmgate/wasmgate/internal/app/logins"
	"github.com/wasmgate/wasmgate/internal/app/operation"
	"github.com/wasmgate/wasmgate/internal/login"
)

func (c commands) newLogin() *cobra.Command {
	var r logins.Request
	var noBrowser bool
	cmd := &cobra.Command{
		Use:   "login SERVER",
		Short: "Log in to a server",
		Long: `Opens a browser at the authorization server of a server with auth: oauth, and keeps the tokens in the
vault. The gateway uses them only for calls of this principal. With auth: {mode: id_jag} it opens the
browser at the identity provider, once for all its servers. If this machine has no browser, use
--no-browser: it reads the address at which another browser ends. --token stores a token that you have: a
personal access token, or with id_jag an ID token.`,
		Example: "  wasmgate login jira\n  wasmgate login github --token - <token.txt\n  wasmgate login jira --no-browser --as acme/alice",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if r.Token, err = c.ReadToken(r.Token); err != nil {
				return err
			}
			r.Server = args[0]
			return c.withGatekeeper(cmd, func(g operation.Gateway) error {
				done, err := c.logIn(cmd, g, r, noBrowser)
				if err != nil {
					return err
				}
				said := "logged in to " + done.Server
				if r.Token != "" { // which has not been used yet
					said = fmt.Sprintf("the token for %[1]s is kept; whether %[1]s takes it: wasmgate status %[1]s%[2]s", done.Server, c.ConfigFlag())
				}
				if len(done.Scopes) > 0 {
					said += ", for " + show.Visible(strings.Join(done.Scopes, " "))
				}
				return c.Said(done, said)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.As, "as", "", "principal of the login, ID or TENANT/ID (default: local)")
	f.StringSliceVar(&r.Scopes, "scope", nil, "request this scope too; may be repeated")
	f.StringVar(&r.Token, "token", "", "- reads a token from standard input and stores it")
	f.BoolVar(&noBrowser, "no-browser", false, "open no browser; read from standard input the address at which another one ends")
	return cmd
}

func (c commands) logIn(cmd *cobra.Command, g operation.Gateway, r logins.Request, noBrowser bool) (*login.Login, error) {
	ctx := cmd.Context()
	if r.Token != "" {
		return logins.End.Ask(ctx, g, r)
	}
	back, err := login.Listen(ctx)
	if err != nil {
		return nil, err
	}
	defer back.Close()
	r.Redirect = back.URL
	begun, err := logins.Begin.Ask(ctx, g, r)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(c.Err, "open this at %s:\n\n%s\n\n", show.Visible(begun.Issuer), show.Visible(begun.URL))
	if noBrowser {
		_ = back.Close() // a browser on this machine ends at an error, and does not wait for an answer
		fmt.Fprintln(c.Err, "and paste the address that the browser ends at, also if it shows an error:")
		line, err := c.Line()
		if err != nil {
			return nil, err
		}
		at, err := url.Parse(line)
		if err != nil || at.RawQuery == "" {
			return nil, shell.Misuse("that is not an address with an answer: copy the whole line of the browser, including everything after the question mark")
		}
		r.Query = at.RawQuery
		return logins.End.Ask(ctx, g, r)
	}
	cfg, err := c.Open()
	if err != nil {
		return nil, err
	}
	opening, cancel := context.WithCancel(ctx)
	var opened sync.WaitGroup
	opened.Go(func() {
		if err := browser.Open(opening, cfg.State, begun.URL); err != nil && opening.Err() == nil {
			fmt.Fprintln(c.Err, "wasmgate: no browser could be opened: "+err.Error())
		}
	})
	r.Query, err = back.Wait(ctx, begun.State)
	cancel() // the person may have opened the address by hand
	opened.Wait()
	if err != nil {
		return nil, err
	}
	return logins.End.Ask(ctx, g, r)
}

func (c commands) newLogout() *cobra.Command {
	var r logins.Request
	cmd := &cobra.Command{
		Use: "logout SERVER", Short: "Delete a login, and revoke it at the authorization server", Args: cobra.ExactArgs(1),
		Example: "  wasmgate logout jira\n  wasmgate logout jira --as acme/alice",
		RunE: func(cmd *cobra.Command, args []string) error {
			r.Server = args[0]
			return c.withGatekeeper(cmd, func(g operation.Gateway) error {
				l, err := logins.Out.Ask(cmd.Context(), g, r)
				if err != nil {
					return err
				}
				return c.Said(l, "logged out of "+l.Server)
			})
		},
	}
	cmd.Flags().StringVar(&r.As, "as", "", "principal of the login, ID or TENANT/ID (default: local)")
	return cmd
}

func (c commands) newLogins() *cobra.Command {
	return &cobra.Command{
		Use: "logins", Short: "List the logins at servers, by server and principal", Args: cobra.NoArgs, Example: "  wasmgate logins --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withGatekeeper(cmd, func(g operation.Gateway) error {
				all, err := logins.All.Ask(cmd.Context(), g, operation.None{})
				if err != nil || c.JSON {
					return errors.Join(err, c.PrintJSON(all))
				}
				t := show.NewTable(c.Out, "SERVER", "PRINCIPAL", "ISSUER", "SINCE", "SCOPES", "PROBLEM")
				for _, l := range all {
					since := ""
					if !l.Made.IsZero() { // else it does not open
						since = l.Made.UTC().Format(time.RFC3339)
					}
					t.Row(l.Server, l.Whose(), l.Issuer, since, strings.Join(l.Scopes, " "), l.Problem)
				}
				return t.Flush()
			})
		},
	}
}
