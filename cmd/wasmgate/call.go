package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/cmd/internal/shell"
	"github.com/wasmgate/wasmgate/cmd/internal/show"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/codes"
	"github.com/wasmgate/wasmgate/internal/app/calls"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/find"
	"github.com/wasmgate/wasmgate/internal/product"
)

// callCommands call tools and list them.
type callCommands struct{ *shell.Shell }

func (c callCommands) newCall() *cobra.Command {
	var as string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "call TOOL [JSON|-]",
		Short: "Call a tool through the gateway",
		Long: `Calls a tool with JSON arguments, or with those on standard input ("-"). You may leave out the server's
name if only one tool has the name. Prints the texts of the result, or the whole result with --json.

A call that needs approval asks you at the terminal. Without a terminal it is refused, and you can
approve it with wasmgate approvals.

Exits with 1 if the tool reports an error or its server fails, and with 3 if the call is refused.`,
		Example: "  wasmgate call files__list_directory '{\"path\":\"docs\"}'\n  wasmgate call files__read_text_file - --as alice < arguments.json",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			r := calls.Request{Tool: args[0], As: as, Args: "{}"}
			if len(args) == 2 {
				r.Args = args[1]
			}
			if r.Args == "-" {
				b, err := c.Input("-")
				if err != nil {
					return err
				}
				r.Args = string(b)
			}
			return c.call(cmd.Context(), r, timeout)
		},
	}
	cmd.Flags().StringVar(&as, "as", "", "principal (default: local)")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "stop waiting for the call after this time, such as 10s (default: the timeout of its server)")
	return cmd
}

func (c callCommands) call(ctx context.Context, r calls.Request, timeout time.Duration) (err error) {
	cfg, err := c.Open()
	if err != nil {
		return err
	}
	g, err := c.Ask(ctx, cfg, serverOf(cfg, r.Tool))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.End(ctx)) }()
	if _, ends := g.(shell.Own); ends && r.Tool == startJob && cfg.Jobs.Offer {
		return errors.New("a job ends with its gateway, and none runs that would carry it out: start one with wasmgate serve" + c.ConfigFlag())
	}
	draw, done := c.progress()
	r.Progress = draw
	calling, giveUp := ctx, context.CancelFunc(func() {})
	if timeout > 0 {
		calling, giveUp = context.WithTimeout(ctx, timeout)
	}
	defer giveUp()
	res, err := c.CallAsking(calling, g, r)
	done()
	if err != nil && ctx.Err() == nil && calling.Err() != nil {
		return fmt.Errorf("%s: no answer within %s (--timeout); it may have been carried out", r.Tool, timeout)
	}
	if several, ok := errors.AsType[*find.AmbiguousError](err); ok {
		return shell.Misuse("%v", several)
	}
	if e, ok := errors.AsType[*calls.Error](err); ok && e.Code == "refused_lookup" {
		e.Cause = c.missing(ctx, cfg, g, r)
	}
	if err != nil {
		return c.callFailed(err)
	}
	return c.printResult(res)
}

// serverOf returns the only server that a call of a tool needs; "" if any may have it.
func serverOf(cfg *config.Config, tool string) string {
	anyName := func(s config.Server) bool { return !s.Prefix } // of tools
	server, _, qualified := strings.Cut(tool, "__")
	if !qualified || product.RelaysCalls(server) || slices.ContainsFunc(cfg.Servers, anyName) {
		return ""
	}
	return server
}

// startJob is the tool that starts a job.
const startJob = product.JobsServer + "__start"

// callFailed says on standard error why a call was not carried out.
func (c callCommands) callFailed(err error) error {
	var e *calls.Error
	if !errors.As(err, &e) {
		return err
	}
	code := shell.ExitFailed
	if e.Refused() {
		code = shell.ExitFalse
	}
	if c.JSON {
		if err := shell.PrintLine(c.Err, e); err != nil {
			return err
		}
		return shell.Exit(code, nil)
	}
	if !strings.Contains(e.Reason, e.Cause) { // or the last line says it
		fmt.Fprintln(c.Err, show.Visible(e.Cause))
	}
	switch {
	case e.Remedy != "":
		fmt.Fprintln(c.Err, codes.Advice(e.Code)+c.ToAllow(e.Remedy))
	case e.Code == "refused_authorize":
		fmt.Fprintf(c.Err, "which rule, and why: wasmgate policy explain %s%s\n", e.RecordID, c.ConfigFlag())
	case e.Refused():
		fmt.Fprintf(c.Err, "about %s: %s\n", e.Code, product.Help(e.Code))
	}
	return shell.Exit(code, err)
}

// printResult prints what a tool answered, and fails if that is an error.
func (c callCommands) printResult(res gate.Result) error {
	if c.JSON {
		fmt.Fprintln(c.Out, res.Doc.String())
	} else {
		for block := range res.Doc.Get("content").Elements() {
			if block.Get("type").Text() == "text" {
				fmt.Fprintln(c.Out, block.Get("text").Text())
			} else {
				fmt.Fprintln(c.Out, show.Short(block.String(), 200))
			}
		}
	}
	if res.IsError {
		return shell.Exit(shell.ExitFailed, errors.New("the tool reports an error"))
	}
	return nil
}
