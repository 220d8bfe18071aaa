package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/cmd/internal/browser"
	"github.com/wasmgate/wasmgate/cmd/internal/show"
	"github.com/wasmgate/wasmgate/internal/app"
	"github.com/wasmgate/wasmgate/internal/app/desks"
	"github.com/wasmgate/wasmgate/internal/app/operation"
	"github.com/wasmgate/wasmgate/internal/control"
)

func (c serveCommands) newConsole() *cobra.Command {
	var open bool
	cmd := &cobra.Command{
		Use:   "console",
		Short: "Sign a browser in to the console of the running gateway",
		Long: `Prints a link that signs a browser on this machine in to the console, and a code for its sign-in page.
Both are valid once, for a minute. With --open it opens the link, and ends when the browser has it.`,
		Example: "  wasmgate console --open",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := c.Open()
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
			s, err := desks.Open.Ask(cmd.Context(), r, operation.None{})
			if err != nil {
				return err
			}
			if err := c.Said(s, fmt.Sprintf("%s\nor paste the code %s at %s, within %s", s.URL, s.Code, s.At, show.Roughly(time.Until(s.Until)))); err != nil || !open {
				return err
			}
			ctx, cancel := context.WithDeadline(cmd.Context(), s.Until)
			defer cancel()
			if err := browser.Open(ctx, cfg.State, s.URL); err != nil && cmd.Context().Err() == nil {
				fmt.Fprintf(c.Err, "wasmgate: no browser opened the link: %v. Open the printed link, or run the command again.\n", err)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&open, "open", false, "open the link in a browser")
	return cmd
}
