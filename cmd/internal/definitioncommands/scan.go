package definitioncommands

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/cmd/internal/sarif"
	"github.com/wasmgate/wasmgate/cmd/internal/shell"
	"github.com/wasmgate/wasmgate/cmd/internal/show"
	"github.com/wasmgate/wasmgate/internal/app/inventory"
	"github.com/wasmgate/wasmgate/internal/app/naming"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/scan"
	"github.com/wasmgate/wasmgate/internal/scan/report"
)

// The formats in which findings are printed.
const (
	FormatTable = "table"
	FormatJSON  = "json"
	FormatSARIF = "sarif"
)

func (c commands) newScan() *cobra.Command {
	var failOn, format string
	cmd := &cobra.Command{
		Use:   "scan [SERVER|FILE|URL]",
		Short: "Look for attacks in the definitions of tools",
		Long: `Searches definitions of tools for hidden text, instructions to the model, parameters that a tool does not
need, and the like. It scans

  - a server of the configuration, or all of them
  - a file: a result of tools/list, one definition on each line, or a configuration whose servers it starts
  - the MCP server at a URL
  - standard input (-)

Findings are advice and block nothing. The rules search for words, so an attack in other words passes.
Exits with 3 if a finding is at least as severe as --fail-on.`,
		Example: "  wasmgate scan files\n  wasmgate scan tools.json --format sarif >scan.sarif\n  wasmgate scan https://example.com/mcp --fail-on medium",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			least, err := failure(failOn)
			if err != nil {
				return err
			}
			if c.JSON && !cmd.Flags().Changed("format") {
				format = FormatJSON
			}
			print, ok := map[string]func(*report.Report) error{FormatTable: c.printScan, FormatJSON: c.printScanJSON, FormatSARIF: func(s *report.Report) error { return c.PrintJSON(sarif.Of(s, toolOf)) }}[format]
			if !ok || c.JSON && format != FormatJSON {
				return shell.Misuse("--format %s: choose one of table, json, sarif", format)
			}
			s, err := c.scan(cmd.Context(), append(args, "")[0])
			if err != nil {
				return err
			}
			if err := print(s); err != nil {
				return err
			}
			fmt.Fprintln(c.Err, "this is advice: what it finds may be harmless, and an attack in plain prose passes")
			return verdict(s, least)
		},
	}
	cmd.Flags().StringVar(&failOn, "fail-on", scan.High.String(), "exit with 3 if a finding is at least this severe: high, medium, low, or none")
	cmd.Flags().StringVar(&format, "format", FormatTable, "table, json or sarif")
	return cmd
}

// never is above all severities.
const never = scan.High + 1

func failure(s string) (scan.Severity, error) {
	if s == "none" {
		return never, nil
	}
	least, err := scan.ParseSeverity(s)
	if err != nil {
		return 0, shell.Misuse("--fail-on %s: choose one of high, medium, low, none", s)
	}
	return least, nil
}

// verdict is the error of a scan: something was found, or could not be looked at.
func verdict(s *report.Report, least scan.Severity) error {
	n := 0
	for _, f := range s.Findings {
		if f.Severity >= least {
			n++
		}
	}
	if n > 0 {
		return shell.Exit(shell.ExitFalse, fmt.Errorf("%d of %d findings have severity %s or above", n, len(s.Findings), least))
	}
	if len(s.Faults) > 0 {
		return fmt.Errorf("not everything was scanned: %s", strings.Join(s.Faults, "; "))
	}
	return nil
}

var serverName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)

// scan scans what a word of the command line names.
func (c commands) scan(ctx context.Context, target string) (*report.Report, error) {
	switch {
	case target == "" || serverName.MatchString(target):
		return c.scanServers(ctx, target)
	case strings.Contains(target, "://"):
		if !strings.HasPrefix(target, "https://") && !strings.HasPrefix(target, "http://") {
			return nil, shell.Misuse("%s: only http and https are connected to", show.Visible(target))
		}
		log, err := c.Logger(new(config.Config), true)
		if err != nil {
			return nil, err
		}
		return report.URL(ctx, target, log)
	default:
		return c.scanFile(ctx, target)
	}
}

func (c commands) scanServers(ctx context.Context, server string) (_ *report.Report, err error) {
	cfg, err := c.Open()
	if err != nil {
		return nil, err
	}
	if server != "" && !shell.IsServer(cfg, server) {
		return nil, shell.Misuse("%v; a file is named with its folder, such as ./%s", naming.NoServer(cfg, server), server)
	}
	g, err := c.Ask(ctx, cfg, server)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.End(ctx)) }()
	return inventory.Scan.Ask(ctx, g, inventory.ScanRequest{Server: server})
}

// scanFile scans a file of definitions, or the servers of a configuration.
func (c commands) scanFile(ctx context.Context, file string) (*report.Report, error) {
	in := c.In
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, shell.NameError(err)
		}
		defer f.Close()
		in = f
	}
	content, err := report.ReadListing(in)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	s, err := report.Listing(file, content)
	if !errors.Is(err, report.ErrNoListing) || file == "-" {
		return s, err
	}
	if _, bad := config.Load(file, config.Options{}); bad != nil {
		return nil, shell.Misuse("%v; it is not a configuration either: %v", err, bad)
	}
	asked := *c.Shell
	asked.ConfigFile = file
	return commands{&asked}.scanServers(ctx, "")
}

func (c commands) printScanJSON(s *report.Report) error { return c.PrintJSON(s) }

// printScan prints a line for each finding, the worst first, and what the rules
// mean.
func (c commands) printScan(s *report.Report) error {
	fmt.Fprintf(c.Out, "%d definitions scanned, %d findings\n", s.Definitions, len(s.Findings))
	if len(s.Findings) == 0 {
		return nil
	}
	found := slices.Clone(s.Findings)
	slices.SortStableFunc(found, func(a, b report.Finding) int { return int(b.Severity - a.Severity) })
	var lines bytes.Buffer
	t := show.NewTable(&lines, "SEVERITY", "RULE", "TOOL", "PLACE", "EXCERPT")
	for _, f := range found {
		t.Row(f.Severity.String(), f.Rule, scan.Visible(toolOf(f)), scan.Visible(f.At), f.Excerpt)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	head, rest, _ := strings.Cut(lines.String(), "\n")
	fmt.Fprintln(c.Out, head)
	for i, line := range strings.Split(strings.TrimSuffix(rest, "\n"), "\n") {
		fmt.Fprintln(c.Out, show.Paint(c.Out, show.SeverityColour[found[i].Severity], line))
	}
	fmt.Fprintln(c.Out)
	said := make(map[string]bool)
	for _, f := range found {
		if !said[f.Rule] {
			said[f.Rule] = true
			fmt.Fprintf(c.Out, "%s: %s\n", f.Rule, f.Help)
		}
	}
	return nil
}

// toolOf names what a finding is about.
func toolOf(f report.Finding) string {
	switch {
	case f.Tool == "":
		return f.Server
	case f.Server == "":
		return f.Tool
	case strings.Contains(f.Tool, "://"): // a page
		return f.Server + " " + f.Tool
	default:
		return f.Server + "__" + f.Tool
	}
}
