package auditcommands

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/cmd/internal/shell"
	"github.com/wasmgate/wasmgate/cmd/internal/show"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/background"
	"github.com/wasmgate/wasmgate/internal/background/ship"
	"github.com/wasmgate/wasmgate/internal/match"
	"github.com/wasmgate/wasmgate/internal/product"
)

// commands read and verify the audit log.
type commands struct{ *shell.Shell }

// maxRequest is the width of a column, in characters.
const maxRequest = 100

// lastRecords is how many records are shown if neither a number nor a time is asked for.
const lastRecords = 50

// Audit returns audit with its commands.
func Audit(c *shell.Shell) *cobra.Command { return commands{c}.newAudit() }

func (c commands) newAudit() *cobra.Command {
	var f audit.Filter
	var since time.Duration
	var format string
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Read the audit log",
		Long: `Shows the records of calls, the newest last. Each call that has ended or was refused is one line. Lines
before it, with the same RECORD, are requests of a sandboxed tool to its host and answers to approval
questions. The outcome "shadow" marks what the shadow policy would have decided. --json prints all
records as they were written.

--format decision-log prints each decision in the format of OPA's decision logs. What policies saw but
the audit log does not hold is listed under erased.`,
		Example: "  wasmgate audit --denied --since 24h\n  wasmgate audit --tool 'files__*' --follow\n  wasmgate audit --call 01a1ffdb-74c9-7693-9d20-39fefe540e4e\n  wasmgate audit verify audit.jsonl",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := c.Open()
			if err != nil {
				return err
			}
			_, bad := path.Match(f.Tool, "")
			switch {
			case bad != nil:
				return shell.Misuse("--tool %q is not a pattern: %v", f.Tool, bad)
			case format != "" && format != DecisionLog, format != "" && c.JSON:
				return shell.Misuse("--format is %s, and stands without --json", DecisionLog)
			case f.Last < 0 || since < 0:
				return shell.Misuse("--last and --since are positive")
			case since > 0:
				f.Since = time.Now().Add(-since)
			case !cmd.Flags().Changed("last") && format == "":
				f.Last = lastRecords
			}
			return c.readAudit(cmd, cfg.Audit.Path, f, format)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.Denied, "denied", false, "only refused calls")
	flags.StringVar(&f.Call, "call", "", "only the call with this RECORD, and the requests of its tool")
	flags.StringVar(&f.Tool, "tool", "", "only calls of this tool, or of tools that match a pattern")
	flags.StringVar(&f.Principal, "principal", "", "only calls of a principal")
	flags.StringVar(&f.Session, "session", "", "only calls of a session")
	flags.DurationVar(&since, "since", 0, "only records of this last time, such as 1h")
	flags.IntVar(&f.Last, "last", 0, fmt.Sprintf("only this many records (default %d, or all of --since)", lastRecords))
	flags.BoolVar(&f.Follow, "follow", false, "wait for further records")
	flags.StringVar(&format, "format", "", DecisionLog+": the format of OPA's decision logs")
	cmd.AddCommand(c.newAuditVerify())
	return cmd
}

func (c commands) readAudit(cmd *cobra.Command, file string, f audit.Filter, format string) error {
	ctx := cmd.Context()
	if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) && !f.Follow {
		return fmt.Errorf("there is no audit log at %s yet", file)
	}
	t := func(audit.Entry) {}
	switch { // here and not in the loop, so that --last counts what is shown
	case format == DecisionLog:
		f.Choose = func(e *audit.Entry) bool { _, is := ship.DecisionOf(*e, product.RelaysCalls); return is }
	case !c.JSON:
		f.Choose = func(e *audit.Entry) bool { return e.Event != gate.Granted && e.Event != audit.Opened }
		t = c.auditTable(f.Follow)
	}
	broken, shown := 0, 0
	for e, err := range audit.Read(ctx, file, f) {
		var chain *audit.ChainError
		switch {
		case errors.As(err, &chain):
			broken++
			fmt.Fprintln(c.Err, "wasmgate: "+chain.Error())
		case err != nil && ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case c.JSON:
			fmt.Fprintf(c.Out, "%s\n", e.Raw)
		case format == DecisionLog:
			if err := c.printDecision(e); err != nil {
				return err
			}
		default:
			shown++
			t(e)
		}
	}
	t(audit.Entry{})
	if shown == 0 && !c.JSON && format == "" {
		fmt.Fprintln(c.Err, "no record of that kind")
	}
	if broken > 0 {
		return fmt.Errorf("%d lines of %s are not records; see wasmgate audit verify", broken, file)
	}
	return nil
}

// auditTable returns a printer of rows; the zero entry ends the table. Rows that
// are waited for come one by one.
func (c commands) auditTable(follow bool) func(audit.Entry) {
	t := show.NewTable(c.Out, "TIME", "PRINCIPAL", "TOOL", "OUTCOME", "TOOK", "WHY", "RECORD")
	if follow {
		_ = t.Flush()
	}
	return func(e audit.Entry) {
		if e.Seq != 0 {
			t.Row(auditRow(e)...)
		}
		if follow || e.Seq == 0 {
			_ = t.Flush()
		}
	}
}

func auditRow(e audit.Entry) []string {
	tool, why, record := show.Short(e.Tool, shell.MaxTool), audit.Why(&e), e.ID
	if why == "" {
		why = news(e)
	}
	switch {
	case e.Event == gate.HostCall:
		tool, record = tool+": "+show.Short(hostRequest(e), maxRequest), e.Parent
		if e.Count > 1 {
			tool += fmt.Sprintf(" (%d times)", e.Count)
		}
	case actions.IsPeerRequest(e.Action):
		tool += ": " + string(e.Action)
	case tool != "" && e.Event == "connect": // no call, but a login because of one
		tool += ": connect"
	case tool == "":
		tool = string(e.Event) + " " + e.Server
	}
	outcome := e.Code
	if a := e.Approval; e.Event == gate.EventApproval {
		outcome = "approval " + a.State
		if a.By != "" {
			why = strings.TrimSuffix(a.By+": "+a.Note, ": ")
		}
	} else if a.By != "" { // the call passed by it
		why = strings.TrimPrefix(why+"; approved by "+a.By, "; ")
	}
	if e.Event == audit.Shadow {
		outcome, why = "shadow", shadowed(e)
	}
	took := ""
	if e.TookUS > 0 {
		took = taken(time.Duration(e.TookUS) * time.Microsecond)
	}
	return []string{
		e.Time.Local().Format("2006-01-02 15:04:05"), match.Name(e.Tenant, e.Principal), tool, outcome, took, show.Short(why, shell.MaxWhy), record,
	}
}

// news says what an event is about that is not a call, and that gives no reason.
func news(e audit.Entry) string {
	switch {
	case e.Event == audit.Server:
		return "ready"
	case e.Event == audit.Policy && e.PolicyRevision != "":
		return "revision " + e.PolicyRevision + " is in use"
	}
	return ""
}

// taken is a time with the digits that matter.
func taken(d time.Duration) string {
	for unit := time.Second; unit > time.Microsecond; unit /= 1000 {
		if d >= unit {
			return d.Round(unit / 100).String()
		}
	}
	return d.String()
}

// shadowed says what the shadow policy would have decided otherwise.
func shadowed(e audit.Entry) string {
	d := e.Shadow
	text := fmt.Sprintf("%s here, %s by the shadow policy", e.Effect, d.Effect)
	if d.Effect == e.Effect {
		text = fmt.Sprintf("%s by both, with other %s", e.Effect, strings.Join(d.Differs, " and "))
	}
	if why := strings.Join(d.Reasons, "; ") + d.Error; why != "" {
		text += ": " + why
	}
	return text
}

// hostRequest says what a sandboxed tool asked its host for: the action and, if the
// log has it, the request.
func hostRequest(e audit.Entry) string {
	var r struct {
		Method, Scheme, Host, Path string // of sandbox/http; sandbox/file has a path, too
		Port                       int
		Name, Origin               string // of sandbox/secret
		Op, Key                    string // of sandbox/kv; sandbox/file has an op, too
	}
	if json.Unmarshal(e.Arguments, &r) != nil {
		return string(e.Action)
	}
	if r.Host != "" {
		r.Origin = r.Scheme + "://" + net.JoinHostPort(r.Host, strconv.Itoa(r.Port))
	}
	return strings.Join([]string{string(e.Action), r.Method, r.Op, r.Name, r.Origin + r.Path + r.Key}, " ")
}

func (c commands) newAuditVerify() *cobra.Command {
	var head, anchor string
	cmd := &cobra.Command{
		Use:   "verify [FILE...]",
		Short: "Check the hash chain of an audit log",
		Long: `Checks that no record was changed, removed, inserted or moved. Without FILE it reads the log of the
configuration. Give several files in the order in which they were written.

It prints the head: number and hash of the last record. Keep the head elsewhere. Only with an earlier
head (--head, or --anchor for the file that audit.anchor writes) can it find that records were cut off
the end, or that the last one was changed.

Exits with 0 if the chain holds. Exits with 3 if it does not, or if there is no record.`,
		Example: "  wasmgate audit verify\n  wasmgate audit verify audit-000001.jsonl audit.jsonl\n  wasmgate audit verify audit.jsonl --head 1042:9f2c...",
		Args:    cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				cfg, err := c.Open()
				if err != nil {
					return err
				}
				if args, err = audit.Files(cfg.Audit.Path); err != nil {
					return shell.Misuse("there is no log yet to verify: %v; name the files of another, the oldest first", err)
				}
			}
			var want audit.Head
			if head != "" {
				var err error
				if want, err = audit.ParseHead(head); err != nil {
					return shell.Misuse("--head: %v", err)
				}
			}
			if anchor != "" {
				var err error
				if want, err = background.LastAnchor(anchor); err != nil {
					return shell.NameError(err)
				}
			}
			report, err := audit.VerifyFiles(args, want)
			var chain *audit.ChainError
			if errors.As(err, &chain) {
				return shell.Exit(shell.ExitFalse, err)
			}
			if err != nil {
				return shell.NameError(err)
			}
			if report.Records == 0 {
				return shell.Exit(shell.ExitFalse, fmt.Errorf("%s: no record: nothing was verified. A log that someone emptied looks like one that has recorded nothing; compare with a head that was kept elsewhere (--head)", strings.Join(args, ", ")))
			}
			return c.printReport(report, want != audit.Head{})
		},
	}
	cmd.Flags().StringVar(&head, "head", "", "head of an earlier check, SEQ:HASH; the log must contain it")
	cmd.Flags().StringVar(&anchor, "anchor", "", "file that audit.anchor writes; the log must contain its last head")
	cmd.MarkFlagsMutuallyExclusive("head", "anchor")
	return cmd
}

func (c commands) printReport(r audit.Report, against bool) error {
	if c.JSON {
		return c.PrintJSON(map[string]any{"records": r.Records, "head": r.Last.String(), "torn_bytes": r.Torn, "against_head": against})
	}
	fmt.Fprintf(c.Out, "%d records, chain holds\n", r.Records)
	if r.Torn > 0 {
		fmt.Fprintf(c.Out, "a line of %d bytes at the end was not written to its end: its writer was killed; no call passed on it\n", r.Torn)
	}
	if _, err := fmt.Fprintf(c.Out, "head %s\n", r.Last); err != nil || against {
		return err
	}
	_, err := fmt.Fprintln(c.Err, "not seen without --head: whether records were cut off the end, and whether the last one was changed")
	return err
}

// DecisionLog is the name of OPA's format for decisions.
const DecisionLog = "decision-log"

// printDecision prints the decision in a record on one line.
func (c commands) printDecision(e audit.Entry) error {
	d, ok := ship.DecisionOf(e, product.RelaysCalls)
	if !ok {
		return nil
	}
	return shell.PrintLine(c.Out, d)
}
