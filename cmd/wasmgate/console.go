package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/cmd/internal/show"
	"github.com/wasmgate/wasmgate/internal/app"
	"github.com/wasmgate/wasmgate/internal/control"
)

func (c *cli) newConsole() *cobra.Command {
	var open bool
	cmd := &cobra.Command{
		Use:   "console",
		Short: "Sign a browser in to the console of the running gateway",
		Long: `Prints a link by which a browser on this machine signs in to the console, and a code to paste at its
sign-in page; both are good once, for a minute. With --open it opens the link.`,
		Example: "  wasmgate console --open",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := c.open()
			if err != nil {
				return err
			}
			r, err := app.Dial(cmd.Context(), cfg)
			if errors.Is(err, control.ErrNotRunning) {
				return fmt.Errorf("%w: start it with `wasmgate serve`", err)
			}
			if err != nil {
				return err
			}
			defer r.Close()
			s, err := r.SignIn(cmd.Context())
			if err != nil {
				return err
			}
			if open {
				if err := show.OpenBrowser(s.URL); err != nil {
					fmt.Fprintln(c.err, "wasmgate: no browser could be opened: "+err.Error())
				}
			}
			return c.said(s, fmt.Sprintf("%s\nor paste the code %s at %s, within %s", s.URL, s.Code, s.At, roughly(time.Until(s.Until))))
		},
	}
	cmd.Flags().BoolVar(&open, "open", false, "open the link in a browser")
	return cmd
}
