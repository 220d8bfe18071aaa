package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/cmd/internal/serverconfig"
	"github.com/wasmgate/wasmgate/cmd/internal/shell"
	"github.com/wasmgate/wasmgate/cmd/internal/show"
	"github.com/wasmgate/wasmgate/internal/app/inventory"
	"github.com/wasmgate/wasmgate/internal/clients"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/config/extract"
	"github.com/wasmgate/wasmgate/internal/config/tree"
	"github.com/wasmgate/wasmgate/internal/doctor"
	"github.com/wasmgate/wasmgate/internal/setup"
)

// serveCommands set a gateway up and run it.
type serveCommands struct{ *shell.Shell }

// initFlags are the answers of who wants to be asked nothing.
type initFlags struct {
	from, servers, grant []string
	tokens, arguments    bool
	noCheck              bool
	add                  bool // a person wants servers added to a configuration that is there
}

func (c serveCommands) newInit() *cobra.Command {
	var f initFlags
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Make a first configuration of the servers that your clients have",
		Long: `Finds the MCP servers in the settings of your clients. It asks which ones to protect, which to grant to
you, and whether to store arguments. Then it writes the configuration and the grants, checks them as
wasmgate doctor does, and prints what is left to do. It overwrites nothing and changes no file of a client.

A package that npx runs without a fixed version is pinned to the newest one, as npm names it. Tokens go into
the gateway's vault, unless you leave them in the configuration.

It grants only tools that read, judged by their names, texts and arguments. It lists the tools that it
leaves out; grant those with wasmgate grant. A server that does not start gets no grant, and with
--no-check none does.

With --from or --server it asks nothing, and moves literal tokens into the gateway's vault unless you give
--keep-tokens. It exits with 3 if something does not work. To add servers later, use wasmgate add.`,
		Example: "  wasmgate init\n  wasmgate init --from claude --grant all --keep-tokens\n  wasmgate init --server 'files=npx -y @modelcontextprotocol/server-filesystem /srv/docs' --grant files",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.init(cmd, f) },
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.from, "from", nil, "take the servers of this client ("+strings.Join(clients.Names(), ", ")+") or file; may be repeated")
	flags.StringArrayVar(&f.servers, "server", nil, "a server: NAME=COMMAND WORD... or NAME=https://...; may be repeated")
	flags.StringSliceVar(&f.grant, "grant", nil, "grant yourself the tools of this server that only read; all means every server; may be repeated")
	flags.BoolVar(&f.tokens, "keep-tokens", false, "leave tokens in the configuration, which you alone can read")
	flags.BoolVar(&f.arguments, "arguments", false, "store arguments and results of calls for 14 days, encrypted")
	flags.BoolVar(&f.noCheck, "no-check", false, "do not start the servers; grants nothing")
	return cmd
}

func (c serveCommands) init(cmd *cobra.Command, f initFlags) error {
	cwd, err := os.Getwd()
	if err != nil {
		return err
	}
	p, from, err := c.initPlan(&f)
	if err != nil {
		return shell.Exit(shell.ExitMisuse, err)
	}
	var stored, left []extract.Moved
	var pinned []string
	p.Complete = func(cfg *config.Config, servers []config.Server) (err error) {
		pinned = setup.PinVersions(cmd.Context(), servers)
		if !p.Tokens {
			stored, left, err = serverconfig.Store(cfg, servers)
		}
		return err
	}
	made, err := setup.Write(c.ConfigFile, cwd, p, f.add)
	if errors.Is(err, setup.ErrThere) {
		return shell.Misuse("%v; `wasmgate add` adds servers to it", err)
	}
	if err != nil {
		return err
	}
	made.Moved = left
	cfg, err := c.Open()
	if err != nil {
		return err
	}
	checks := []doctor.Check{}
	if !f.noCheck {
		log, err := c.Logger(cfg, true)
		if err != nil {
			return err
		}
		checks = doctor.Look(cmd.Context(), cfg, log, func(tools []inventory.Tool) error {
			for _, id := range p.Granted {
				if len(f.grant) == 0 && !slices.Contains(made.Added, id) {
					continue // what was granted of it before, or taken back, stays
				}
				definitions, err := inventory.Definitions(tools, id)
				if err == nil {
					err = made.Grant(definitions)
				}
				if err != nil {
					return err
				}
			}
			return nil
		}, c.Coming)
	}
	text, faults := doctor.Text(checks)
	var notes []tree.Problem
	for _, s := range from {
		notes = append(notes, s.Notes...)
	}
	advice := serverconfig.Advice(cfg, len(stored) > 0)
	next := made.Next(c.ConfigFile, "http://"+cfg.Listen[0]+"/mcp", from)
	if c.JSON {
		said, moved := serverconfig.Noted(notes, made.Moved)
		said = slices.Concat(said, pinned, serverconfig.InVault(stored), advice)
		err = c.PrintJSON(map[string]any{
			"file": made.File, "new": made.New, "added": append([]string{}, made.Added...), "granted": append([]string{}, made.Granted...), "grants": made.Grants, "left": append([]setup.Left{}, made.Left...),
			"arguments": len(cfg.Audit.Arguments.Tools) > 0, "notes": said, "moved": moved, "checks": checks, "next": next,
		})
	} else {
		for _, n := range notes {
			fmt.Fprintln(c.Err, show.Visible(n.String()))
		}
		for _, n := range slices.Concat(pinned, serverconfig.InVault(stored), advice) {
			fmt.Fprintln(c.Out, show.Visible(n))
		}
		fmt.Fprintf(c.Out, "%s has %s\n", made.File, strings.Join(append([]string{"the servers"}, made.Added...), " "))
		for _, line := range made.Text() {
			fmt.Fprintln(c.Out, show.Visible(line))
		}
		fmt.Fprintln(c.Out, text)
		for _, line := range next {
			fmt.Fprintln(c.Out, "  "+show.Visible(line))
		}
	}
	if err == nil && faults > 0 {
		return shell.Exit(shell.ExitFalse, fmt.Errorf("%s", show.Plural(faults, "fault")))
	}
	return err
}

// initPlan returns what the flags want, or what a person answers if there are none.
func (c serveCommands) initPlan(f *initFlags) (p setup.Plan, from []setup.Source, err error) {
	p = setup.Plan{Tokens: f.tokens, Arguments: f.arguments}
	if len(f.from)+len(f.servers) == 0 {
		if c.JSON {
			return p, nil, setup.ErrUnanswered
		}
		file, err := setup.File(c.ConfigFile)
		if err != nil {
			return p, nil, err
		}
		_, err = os.Stat(file)
		f.add = err == nil
		sources, notes := setup.Sources()
		for _, note := range notes {
			fmt.Fprintln(c.Err, show.Visible(note))
		}
		return setup.Ask(c.In, c.Out, file, f.add, sources)
	}
	for _, name := range f.from {
		sources, err := setup.From(name)
		if err != nil {
			return p, nil, err
		}
		from = append(from, sources...)
	}
	var differ []string
	p.Servers, differ = setup.Merged(from)
	for _, note := range differ {
		fmt.Fprintln(c.Err, show.Visible(note))
	}
	for _, written := range f.servers {
		one, err := setup.Own(written)
		if err != nil {
			return p, nil, err
		}
		p.Servers = append(p.Servers, one)
	}
	if len(p.Servers) == 0 {
		return p, nil, fmt.Errorf("no servers there: %w", setup.ErrUnwanted)
	}
	p.Granted = f.grant
	if slices.Contains(f.grant, "all") {
		p.Granted = setup.IDs(p.Servers)
	}
	for _, id := range p.Granted {
		if !slices.Contains(setup.IDs(p.Servers), id) {
			return p, nil, fmt.Errorf("--grant %s names none of the servers: %s", id, strings.Join(setup.IDs(p.Servers), ", "))
		}
	}
	return p, from, nil
}
