package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/cmd/internal/shell"
	"github.com/wasmgate/wasmgate/cmd/internal/show"
	"github.com/wasmgate/wasmgate/internal/app"
	"github.com/wasmgate/wasmgate/internal/app/desks"
	"github.com/wasmgate/wasmgate/internal/app/inventory"
	"github.com/wasmgate/wasmgate/internal/app/operation"
	"github.com/wasmgate/wasmgate/internal/app/overview"
	"github.com/wasmgate/wasmgate/internal/app/translation"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/console"
	"github.com/wasmgate/wasmgate/internal/find"
)

type serveFlags struct {
	as     string
	listen []string
	groups []string
	replay string
	dev    string // the module that is being written
	stdio  bool
	shared bool // owns the gateway for the processes of clients on standard input
}

func (c serveCommands) newServe() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the gateway",
		Long: `Runs the gateway: over HTTP, or with --stdio for one client on standard input and output.
Without a configuration it serves the embedded tools.

One process on a configuration owns the servers and the audit log. "serve --stdio" connects its
client to that process. If none runs it starts one, which ends with its last client.

With --group clients see only what is in these groups. Over HTTP a client sees a single group at
/mcp/GROUP.

With --replay calls are answered from a recording, and no server is called. Each recorded answer is
used once, for the same tool and equal arguments. A call that is not in the recording fails. The key
replay of a server or module makes exceptions. Such a gateway has its own state and audit log.

The first SIGTERM or interrupt lets calls in progress end, then ends the servers. The second ends
the gateway at once.`,
		Example: "  wasmgate serve\n  wasmgate serve --config wasmgate.yaml --stdio --as alice",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.serve(cmd, f) },
	}
	cmd.Flags().StringSliceVar(&f.listen, "listen", nil, "address for HTTP, host:port or unix:PATH; may be repeated (default: the configuration's, "+config.DefaultListen+" if it has none)")
	cmd.Flags().BoolVar(&f.stdio, "stdio", false, "serve one client on standard input and output; HTTP only with --listen")
	cmd.Flags().StringVar(&f.as, "as", "", "principal of the client on standard input")
	cmd.Flags().StringSliceVar(&f.groups, "group", nil, "offer clients only what is in this group; may be repeated")
	cmd.Flags().BoolVar(&f.shared, "shared", false, "")
	_ = cmd.Flags().MarkHidden("shared") // for the process that --stdio starts
	cmd.Flags().StringVar(&f.replay, "replay", "", "answer from this recording: an audit log with record: full, or a trace")
	return cmd
}

func (c serveCommands) serve(cmd *cobra.Command, f serveFlags) error {
	switch {
	case cmd.Flags().Changed("replay") && f.replay == "":
		return shell.Misuse("--replay is empty; name the recording")
	case f.as != "" && !f.stdio:
		return shell.Misuse("--as names who is on standard input; it needs --stdio")
	}
	cfg, err := c.Open()
	if err != nil {
		return err
	}
	if f.dev != "" {
		if err := cfg.Develop(f.dev); err != nil {
			return shell.Misuse("%v", err)
		}
	}
	if f.replay != "" {
		if cfg, err = translation.Replaying(cfg, f.replay); err != nil {
			return shell.NameError(err)
		}
	}
	if err := checkGroups(cmd, cfg, f.groups); err != nil {
		return err
	}
	if f.listen == nil && !f.stdio {
		f.listen = cfg.Listen
	}
	for _, addr := range f.listen {
		if err := cfg.CheckListen(addr); err != nil {
			return shell.Misuse("--listen: %v", err)
		}
		if f.dev != "" && !config.Loopback(addr) {
			return shell.Misuse("a module in development is served to this machine alone: %s is reached by others; name another address with --listen", addr)
		}
	}
	log, err := c.Logger(cfg, false)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	banner := map[bool]io.Writer{false: c.Out, true: c.Err}[f.stdio] // standard output is the client's
	front := app.Front{
		Console: desks.Address(cfg, f.stdio), Desk: func(a *app.App) desks.Desk { return console.New(a) },
		Listen: f.listen, Stdio: f.stdio, As: f.as, Groups: f.groups, In: c.In, Out: c.Out, Err: c.Err,
		Ready: func(ctx context.Context, a *app.App, url string) { c.welcome(ctx, a, url, f.groups, banner) },
	}
	if f.dev != "" {
		front.Reloaded = c.toldReload
	}
	find := func() (*app.App, *app.Remote, error) { return app.Find(ctx, cfg, log, "") }
	switch alone := len(f.listen) > 0 || f.replay != "" || os.Getpid() == 1 || c.In != os.Stdin; {
	case f.shared:
		front.Stdio, front.Groups, front.Shared = false, nil, true
		app.Outlive()
	case f.stdio && !alone:
		front.Owner = func() *exec.Cmd { return app.Again("--shared") }
		find = func() (*app.App, *app.Remote, error) { r, err := app.Shared(ctx, cfg, front); return nil, r, err }
	}
	if !f.stdio || len(f.listen) > 0 { // else it can serve through any
		find = func() (*app.App, *app.Remote, error) {
			return app.Own(ctx, cfg, log, func(pid int) {
				fmt.Fprintf(c.Err, "waiting for a command of wasmgate, pid %d, that has started the servers of this configuration\n", pid)
			})
		}
	}
	a, r, err := find()
	switch {
	case err != nil:
		return reported(err)
	case a != nil:
		return errors.Join(a.Run(ctx, front), a.Close(ctx))
	case f.shared:
		return nil // another one does
	case f.stdio && len(f.listen) == 0:
		return reported(app.Follow(ctx, cfg, log, r, front))
	}
	defer r.Close()
	return runsAlready(ctx, cfg, r)
}

// reported is the error of a process that has printed why it ended.
func reported(err error) error {
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		return shell.Exit(ended.ExitCode(), nil)
	}
	return err
}

// runsAlready says which process has the state folder.
func runsAlready(ctx context.Context, cfg *config.Config, r *app.Remote) error {
	s, err := overview.Show.Ask(ctx, r, operation.None{})
	if err != nil {
		return err
	}
	at, on := "without HTTP", "this configuration already"
	if s.URL != "" {
		at = "at " + s.URL
	}
	if s.Config != cfg.File {
		on = fmt.Sprintf("the state folder %s already, with %s", cfg.State, cmp.Or(s.Config, "no configuration"))
	}
	return fmt.Errorf("a wasmgate runs on %s, pid %d, %s; connect to it, or end it first", on, s.PID, at)
}

// welcome tells the operator where clients connect, and once the servers have
// settled what is served.
func (c serveCommands) welcome(ctx context.Context, a *app.App, url string, groups []string, out io.Writer) {
	s := a.Overview.Status()
	if public := a.Settings.Config().PublicURL; public != "" && url != "" { // tokens are for it
		url = public + "/mcp"
	}
	if c.JSON {
		_ = shell.PrintLine(out, map[string]any{"url": url, "grants": s.Grants, "audit": s.Audit, "pid": s.PID})
	} else {
		if url != "" {
			fmt.Fprintf(out, "MCP at     %s\n", url)
		}
		fmt.Fprintf(out, "grants in  %s\naudit in   %s\n", s.Grants, s.Audit)
		if s.Console != "" {
			fmt.Fprintf(out, "console    %s/ui/, after: wasmgate console --open\n", s.Console)
		}
		if s.Replays != "" {
			fmt.Fprintf(out, "replays    %s\n", show.Visible(s.Replays))
		}
	}
	var tools, others []inventory.Tool
	for range 3 { // a server that gets ready while the lists are made is not in them yet
		unready := s.Unready()
		var err, also error
		tools, err = a.Inventory.Tools(ctx, "", false)
		others, also = a.Inventory.Features(ctx, "", false)
		if err != nil || also != nil || ctx.Err() != nil {
			return // the gateway is ending
		}
		if s = a.Overview.Status(); slices.Equal(s.Unready(), unready) {
			break
		}
	}
	granted := slices.Concat(tools, others)
	tools = slices.DeleteFunc(tools, func(t inventory.Tool) bool { return !t.Matches(groups, find.Search{}) })
	names := make([]string, 0, len(tools))
	for _, t := range tools {
		names = append(names, t.Name)
	}
	if c.JSON {
		_ = shell.PrintLine(out, map[string]any{"tools": names, "servers": s.Servers, "problems": s.Problems})
		return
	}
	fmt.Fprintf(out, "tools      %d offered to local: %s\n", len(names), show.Short(strings.Join(names, " "), 200))
	if len(names) > manyTools {
		fmt.Fprintln(out, "           `wasmgate tools --cost` shows what they cost a model, and how to offer fewer")
	}
	for _, p := range s.Problems {
		fmt.Fprintln(out, "problem    "+show.Visible(p))
	}
	c.printShut(out, s, granted, a.Settings.Config().Auth.On())
	if url != "" {
		fmt.Fprintf(out, "\nAdd it to a client, for example with:\n  claude mcp add --transport http wasmgate %s\n  {\"mcpServers\": {\"wasmgate\": {\"type\": \"http\", \"url\": %q}}}\n", url, url)
	}
}

// manyTools is how many tools may be offered before their cost to a model is pointed out.
const manyTools = 40

// printShut names the servers that cannot be used, or not yet, and what would change that.
func (c serveCommands) printShut(out io.Writer, s *overview.Status, granted []inventory.Tool, auth bool) {
	to := ""
	if auth { // local calls nothing
		to = " --to role:NAME"
	}
	open := make(map[string]bool)
	for _, t := range granted {
		open[t.Server] = true
	}
	var commands []string
	for _, one := range s.Servers {
		switch {
		case one.Fault != "":
			fmt.Fprintf(out, "faulted    %s: %s: %s\n", one.Server, one.Fault, show.Short(show.Visible(one.Error), 160))
		case one.Tools+one.Prompts+one.Resources+one.Templates+one.Methods > 0 && !open[one.Server]:
			commands = append(commands, fmt.Sprintf("  wasmgate grant --server %s%s%s", one.Server, to, c.ConfigFlag()))
		}
	}
	if names := s.Unready(); len(names) > 0 {
		fmt.Fprintf(out, "not ready  %s; once they are, `wasmgate tools --all%s` lists their tools that are not granted\n", strings.Join(names, ", "), c.ConfigFlag())
	}
	if len(commands) > 0 {
		fmt.Fprintf(out, "\nNothing of these servers is granted yet. To open one, with its tools, prompts and resources:\n%s\n", strings.Join(commands, "\n"))
	}
}

// toldReload says what became of a module that has changed.
func (c serveCommands) toldReload(_ context.Context, a *app.App, err error) {
	at := time.Now().Format(time.TimeOnly)
	lines := a.Overview.Developed()
	if err != nil {
		for line := range strings.Lines(err.Error()) {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	for _, line := range lines {
		if c.JSON {
			_ = shell.PrintLine(c.Out, map[string]string{"at": at, "development": line})
			continue
		}
		fmt.Fprintln(c.Out, at+"   "+show.Visible(line))
	}
}
