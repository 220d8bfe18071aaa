package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/cmd/internal/approvalcommands"
	"github.com/wasmgate/wasmgate/cmd/internal/auditcommands"
	"github.com/wasmgate/wasmgate/cmd/internal/clientconfig"
	"github.com/wasmgate/wasmgate/cmd/internal/clustercommands"
	"github.com/wasmgate/wasmgate/cmd/internal/definitioncommands"
	"github.com/wasmgate/wasmgate/cmd/internal/hookcommands"
	"github.com/wasmgate/wasmgate/cmd/internal/identitycommands"
	"github.com/wasmgate/wasmgate/cmd/internal/memory"
	"github.com/wasmgate/wasmgate/cmd/internal/policycommands"
	"github.com/wasmgate/wasmgate/cmd/internal/sandboxcommands"
	"github.com/wasmgate/wasmgate/cmd/internal/serverconfig"
	"github.com/wasmgate/wasmgate/cmd/internal/shell"
	"github.com/wasmgate/wasmgate/cmd/internal/skillcommands"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/app/calls"
	"github.com/wasmgate/wasmgate/internal/app/naming"
	"github.com/wasmgate/wasmgate/internal/config/tree"
	"github.com/wasmgate/wasmgate/internal/escaped"
	"github.com/wasmgate/wasmgate/internal/lock"
	"github.com/wasmgate/wasmgate/internal/policyfiles"
	"github.com/wasmgate/wasmgate/internal/product"
	"github.com/wasmgate/wasmgate/policy"
)

// run is the program.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	memory.Tune()
	ctx, stop := untilSignal(ctx)
	defer stop()
	c := &shell.Shell{In: stdin, Out: stdout, Err: stderr}
	root := newRoot(c)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return shell.ExitDone
	}
	if text := err.Error(); text != "" {
		fmt.Fprintln(stderr, "wasmgate: "+escaped.Lines(text)) // servers and files have a say in it
	}
	return exitCode(err)
}

// untilSignal returns a context that ends with the first signal to end. By then the second one ends
// the process at once: a user that sees that it drains can rely on that. The supervisors end the
// servers.
func untilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	first := make(chan os.Signal, 1)
	signal.Notify(first, os.Interrupt, syscall.SIGTERM)
	go func() { // ends with ctx
		select {
		case <-first:
		case <-ctx.Done():
		}
		signal.Stop(first)
		cancel()
	}()
	return ctx, cancel
}

func exitCode(err error) int {
	var e *shell.ExitError
	var problems tree.Problems
	var who *naming.PrincipalError
	var compile *policy.CompileError
	var call *calls.Error
	var module *gateway.ModuleError
	var lockfile *lock.SyntaxError
	var bundle *policyfiles.BundleError
	var denied *gate.Refusal
	switch {
	case errors.As(err, &e):
		return e.Code
	case errors.As(err, &problems), errors.As(err, &compile), errors.As(err, &who), errors.As(err, &module), errors.As(err, &lockfile), errors.As(err, &bundle):
		return shell.ExitMisuse
	case errors.As(err, &call) && call.Refused(), call == nil && errors.As(err, &denied):
		return shell.ExitFalse
	default:
		return shell.ExitFailed
	}
}

func newRoot(c *shell.Shell) *cobra.Command {
	root := &cobra.Command{
		Use:   "wasmgate",
		Short: "A gateway between AI agents and their tools",
		Long: `wasmgate sits between AI agents and their tools. It checks every MCP call against your policy,
validates and sanitizes what goes in and out, and logs it.

Exit codes: 0 done, 1 failed, 2 wrong command line or configuration, 3 refused or found to be false.`,
		Example:       "  wasmgate serve\n  wasmgate call files__list_directory '{\"path\":\"docs\"}'",
		Version:       product.Version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if c.ConfigFile == "" && cmd.Flags().Changed("config") {
				return shell.Misuse("--config is empty; leave it out for the user's own configuration")
			}
			return nil
		},
	}
	root.SetVersionTemplate("wasmgate {{.Version}}\n")
	flags := root.PersistentFlags()
	flags.StringVar(&c.ConfigFile, "config", "", "configuration file: wasmgate.yaml, or an mcp.json")
	flags.BoolVar(&c.JSON, "json", false, "print results as JSON")
	flags.StringVar(&c.LogLevel, "log-level", "", "debug, info, warn or error (default: the configuration's)")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return shell.Misuse("%v; see %s --help", err, cmd.CommandPath())
	})
	connect, disconnect := clientconfig.Commands(c)
	addGroup(root, "Start here:", serveCommands{c}.newInit(), serverconfig.Add(c), connect, serveCommands{c}.newServe(), serveCommands{c}.newDoctor())
	addGroup(root, "Daily:", statusCommands{c}.newStatus(), callCommands{c}.newTools(), skillcommands.Command(c), callCommands{c}.newCall(), policycommands.Grant(c), policycommands.Revoke(c), approvalcommands.Command(c), auditcommands.Audit(c), serveCommands{c}.newConsole())
	addGroup(root, "Policy and definitions:", policycommands.Command(c), definitioncommands.Pin(c), definitioncommands.Scan(c), auditcommands.Findings(c), auditcommands.Sessions(c), definitioncommands.Trust(c))
	addGroup(root, "Identity:", identitycommands.Commands(c)...)
	addGroup(root, "Modules and confinement:", sandboxcommands.Command(c), serveCommands{c}.newDev(), serveCommands{c}.newConfine())
	addGroup(root, "Operation:", statusCommands{c}.newLogs(), statusCommands{c}.newRestart(), statusCommands{c}.newPause(), statusCommands{c}.newResume(), clustercommands.Cluster(c), clustercommands.Store(c), hookcommands.Command(c), disconnect, serverconfig.Remove(c), serverconfig.Outdated(c), serverconfig.Upgrade(c), probeCommands{c}.newProbe(), newVersion(c), newCompletion(root))
	root.SetHelpCommand(newHelp(root))
	root.SetHelpCommandGroupID("Operation:")
	complete(c, root)
	misuseArgs(root)
	return root
}

func addGroup(root *cobra.Command, title string, commands ...*cobra.Command) {
	cobra.EnableCommandSorting = false // the order is that of use
	root.AddGroup(&cobra.Group{ID: title, Title: title})
	for _, cmd := range commands {
		cmd.GroupID = title
	}
	root.AddCommand(commands...)
}

// misuseArgs makes wrong arguments of any command a misuse error that shows how to write the
// command.
func misuseArgs(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			switch err := check(cmd, args); {
			case err == nil:
				return nil
			case cmd.HasAvailableSubCommands():
				return noCommand(cmd, args[0])
			default:
				_, written, _ := strings.Cut(cmd.Use, " ")
				return shell.Misuse("usage: %s; see %s --help", strings.TrimSpace(cmd.CommandPath()+" "+written), cmd.CommandPath())
			}
		}
	}
	for _, sub := range cmd.Commands() {
		misuseArgs(sub)
	}
}

// suggested is how many letters a command that is meant may differ by.
const suggested = 2

// noCommand says that cmd has no such command, and which ones are meant perhaps.
func noCommand(cmd *cobra.Command, name string) error {
	cmd.SuggestionsMinimumDistance = suggested
	meant := ""
	if like := cmd.SuggestionsFor(name); len(like) > 0 {
		meant = "; did you mean " + strings.Join(like, " or ") + "?"
	}
	return shell.Misuse("%s has no command %q%s; see %s --help", cmd.CommandPath(), name, meant, cmd.CommandPath())
}

func newVersion(c *shell.Shell) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs, Example: "  wasmgate version --json",
		RunE: func(*cobra.Command, []string) error {
			return c.Said(map[string]string{"version": product.Version()}, "wasmgate "+product.Version())
		},
	}
}
