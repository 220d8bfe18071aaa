package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/cmd/internal/probe"
	"github.com/wasmgate/wasmgate/cmd/internal/shell"
	"github.com/wasmgate/wasmgate/cmd/internal/show"
)

// probeCommands probe other gateways.
type probeCommands struct{ *shell.Shell }

func (c probeCommands) newProbe() *cobra.Command {
	return shell.WithCommands(&cobra.Command{
		Use:   "probe",
		Short: "Test what a gateway lets through, this one or any other",
		Long: "Put `wasmgate probe serve` behind a gateway as a server, allow its tools, and point `wasmgate probe run`\n" +
			"at the gateway. Any gateway will do: both ends speak only MCP, in revisions 2025-11-25 and 2026-07-28.",
		Example: "  # servers: {liar: {command: wasmgate, args: [probe, serve]}}\n  wasmgate probe run http://127.0.0.1:7420/mcp",
	}, c.newProbeServe(), c.newProbeRun())
}

func (c probeCommands) newProbeServe() *cobra.Command {
	var listen string
	liar := new(probe.Liar)
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve tools that attack, over stdio or HTTP",
		Long: "With --module it also writes a WASM tool and its manifest, which changes while the check \"module\" runs.\n" +
			"Have the gateway offer that file as a tool.",
		Example: "  wasmgate probe serve\n  wasmgate probe serve --listen 127.0.0.1:7421\n  wasmgate probe serve --module probe.wasm",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if liar.Module != "" {
				if err := probe.WriteModule(liar.Module); err != nil {
					return err
				}
			}
			if listen == "" {
				return liar.ServeStdio(cmd.InOrStdin(), c.Out)
			}
			return c.serveLiar(cmd.Context(), liar, listen)
		},
	}
	cmd.Flags().StringVar(&liar.Module, "module", "", "also write a WASM tool to this file, NAME.wasm, and change its manifest")
	cmd.Flags().StringVar(&listen, "listen", "", "serve streamable HTTP at this loopback address, instead of stdio")
	return cmd
}

// drainTime is how long a server that ends waits for what is under way.
const drainTime = 2 * time.Second

func (c probeCommands) serveLiar(ctx context.Context, liar *probe.Liar, listen string) error {
	host, _, err := net.SplitHostPort(listen)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		return shell.Misuse("--listen %s: write an address of the loopback, such as 127.0.0.1:7421: the probe answers any caller", listen)
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	s := &http.Server{Handler: liar, ReadHeaderTimeout: drainTime, BaseContext: func(net.Listener) context.Context { return ctx }}
	where := fmt.Sprintf("http://%s/mcp", l.Addr())
	if c.JSON {
		err = c.PrintJSON(map[string]string{"url": where})
	} else {
		_, err = fmt.Fprintf(c.Out, "lying at %s\n", where)
	}
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() {
		timed, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
		defer cancel()
		_ = s.Shutdown(timed)
	})
	defer stop()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (c probeCommands) newProbeRun() *cobra.Command {
	var headers []string
	cmd := &cobra.Command{
		Use:   "run URL",
		Short: "Test the gateway at URL, with `probe serve` behind it",
		Long: "Prints for each revision of MCP which attacks were stopped or came through, and which honest texts were\n" +
			"kept or lost. Exits with 3 if anything came through or was lost.",
		Example: "  wasmgate probe run http://127.0.0.1:7420/mcp\n  wasmgate probe run https://gateway.example/mcp --header - --json <headers.txt",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			u, err := url.Parse(args[0])
			if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
				return shell.Misuse("%s is not an http or https URL of an MCP endpoint", args[0])
			}
			o := probe.Options{URL: args[0]}
			if o.Header, err = c.headers(headers); err != nil {
				return err
			}
			if show.IsTerminal(c.Err) {
				o.Progress = func(check, revision string) { fmt.Fprintf(c.Err, "\r\x1b[K%s, %s", revision, check) }
			}
			found, err := probe.Run(cmd.Context(), o)
			if show.IsTerminal(c.Err) {
				fmt.Fprint(c.Err, "\r\x1b[K")
			}
			if err != nil {
				return err
			}
			return c.printProbe(found)
		},
	}
	cmd.Flags().StringArrayVar(&headers, "header", nil, "send this header with each request: NAME: VALUE, or - for lines of them on standard input; may be repeated")
	return cmd
}

// headers reads those of the command line. Credentials come on standard input.
func (c probeCommands) headers(flags []string) (http.Header, error) {
	all := make(http.Header)
	for _, flag := range flags {
		lines := flag
		if flag == "-" {
			b, err := c.Input(flag)
			if err != nil {
				return nil, err
			}
			lines = strings.TrimSpace(string(b))
		}
		for line := range strings.Lines(lines) {
			name, value, ok := strings.Cut(line, ":")
			name = http.CanonicalHeaderKey(strings.TrimSpace(name))
			if !ok {
				return nil, shell.Misuse("--header: write NAME: VALUE")
			}
			if flag != "-" && slices.Contains([]string{"Authorization", "Proxy-Authorization", "Cookie", "X-Api-Key"}, name) {
				return nil, shell.Misuse("--header %s: every user of this machine can read the arguments of a process; write --header - and the header on standard input", name)
			}
			all.Add(name, strings.TrimSpace(value))
		}
	}
	return all, nil
}

func (c probeCommands) printProbe(found []probe.Finding) error {
	fine, wrong, untried := probe.Summary(found)
	if c.JSON {
		if err := c.PrintJSON(map[string]any{"findings": found, "good": fine, "bad": wrong, "not_tried": untried}); err != nil {
			return err
		}
	} else if err := c.tableProbe(found, fine, wrong, untried); err != nil {
		return err
	}
	if wrong > 0 {
		return shell.Exit(shell.ExitFalse, fmt.Errorf("%d checks found that something came through or was lost", wrong))
	}
	return nil
}

func (c probeCommands) tableProbe(found []probe.Finding, fine, wrong, untried int) error {
	probe.Sort(found)
	t := show.NewTable(c.Out, "CHECK", "REVISION", "VERDICT", "WHAT")
	for _, f := range found {
		what := f.Title
		if f.Seen != "" {
			what += ": " + show.Short(f.Seen, 100)
		}
		t.Row(f.Check, f.Revision, string(f.Verdict), what)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(c.Out, "%d good, %d bad, %d not tried\n", fine, wrong, untried)
	return nil
}
