package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/cmd/internal/shell"
	"github.com/wasmgate/wasmgate/cmd/internal/show"
	"github.com/wasmgate/wasmgate/confine"
	"github.com/wasmgate/wasmgate/internal/app"
	"github.com/wasmgate/wasmgate/internal/app/calls"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/config/edit"
	"github.com/wasmgate/wasmgate/internal/control"
)

const defaultWatch = 5 * time.Second

func (c serveCommands) newConfine() *cobra.Command {
	return shell.WithCommands(&cobra.Command{
		Use:     "confine",
		Short:   "Find out what a server needs, and confine it",
		Example: "  wasmgate confine learn files",
	}, c.newConfineLearn())
}

func (c serveCommands) newConfineLearn() *cobra.Command {
	r := app.LearnRequest{For: defaultWatch}
	var made []string
	cmd := &cobra.Command{
		Use:   "learn SERVER",
		Short: "Propose a confine block from what a server uses",
		Long: `Starts a server without confinement, lists its tools, and makes the calls of --call, which must be granted.
It watches which files the server opens, what it executes and which ports it connects to. Then it prints a
confine block that allows these.

The block covers only what the server did while it was watched, so call each tool once, and read the block
before you use it. The server is not confined meanwhile: do not watch one that you suspect.`,
		Example: "  wasmgate confine learn files --call 'list_directory {\"path\":\"/srv/docs\"}'\n  wasmgate confine learn fetch --for 30s",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.Server = args[0]
			for _, call := range made {
				tool, arguments, _ := strings.Cut(strings.TrimSpace(call), " ")
				if !strings.Contains(tool, "__") {
					tool = r.Server + "__" + tool
				}
				if arguments == "" {
					arguments = "{}"
				}
				r.Calls = append(r.Calls, calls.Request{Tool: tool, Args: arguments})
			}
			if r.For < 0 || r.For > time.Hour {
				return shell.Misuse("--for %s is not from 0s to 1h", r.For)
			}
			return c.learn(cmd, r)
		},
	}
	cmd.Flags().DurationVar(&r.For, "for", r.For, "how long to go on watching the server after the calls")
	cmd.Flags().StringArrayVar(&made, "call", nil, "a call to make: TOOL and its arguments as JSON; may be repeated")
	return cmd
}

func (c serveCommands) learn(cmd *cobra.Command, r app.LearnRequest) error {
	cfg, err := c.Open()
	if err != nil {
		return err
	}
	log, err := c.Logger(cfg, true)
	if err != nil {
		return err
	}
	p, err := app.Learn(cmd.Context(), cfg, log, r, func(err error) {
		fmt.Fprintf(c.Err, "a call did not work, and what it needs may be missing below: %s\n", show.Visible(err.Error()))
	})
	if errors.Is(err, control.ErrHeld) {
		return errors.New("a gateway runs on this configuration; stop it first")
	}
	if err != nil {
		return shell.NameError(err)
	}
	if len(r.Calls) == 0 {
		fmt.Fprintln(c.Err, "no tool was called, so that what tools use is missing below: the folders that they serve, for example; name calls with --call")
	}
	return c.printProposal(r.Server, p)
}

// proposed is a proposal as JSON, with the keys of the configuration.
type proposed struct {
	Read    []string `json:"read,omitempty"`
	Write   []string `json:"write,omitempty"`
	Execute []string `json:"execute,omitempty"`
	Connect []uint16 `json:"connect,omitempty"`
	DNS     bool     `json:"dns,omitempty"`
	Left    []string `json:"left_out,omitempty"`
}

func (c serveCommands) printProposal(server string, p confine.Proposal) error {
	r := p.Rules
	if c.JSON {
		return c.PrintJSON(proposed{r.Read, r.Write, r.Execute, r.Connect, r.DNS, p.Left})
	}
	fmt.Fprintf(c.Out, "# What %s was seen to use. Read it before you put it into wasmgate.yaml.\n%s", server,
		edit.RenderConfine(server, config.Confine{Read: r.Read, Write: r.Write, Execute: r.Execute, Connect: r.Connect, DNS: r.DNS}))
	for _, left := range p.Left {
		fmt.Fprintf(c.Out, "# left out: %s\n", show.Visible(left))
	}
	return nil
}
