package approvalcommands

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/cmd/internal/shell"
	"github.com/wasmgate/wasmgate/cmd/internal/show"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/app"
	"github.com/wasmgate/wasmgate/internal/app/approvals"
	"github.com/wasmgate/wasmgate/internal/app/operation"
	"github.com/wasmgate/wasmgate/internal/escaped"
)

// commands decide on calls that wait for approval.
type commands struct{ *shell.Shell }

// Command returns approvals with its commands.
func Command(c *shell.Shell) *cobra.Command { return commands{c}.newApprovals() }

func (c commands) newApprovals() *cobra.Command {
	return shell.WithCommands(&cobra.Command{
		Use:   "approvals",
		Short: "Show and answer calls that wait for approval",
		Long: `A call that the policy asks about waits for approval. An approval lets one call pass: the one that is
shown, with these arguments, under this policy. If the client has stopped waiting, the call passes
when the client repeats it.

These commands ask the running gateway.`,
		Example: "  wasmgate approvals list\n  wasmgate approvals show ID\n  wasmgate approvals approve ID\n  wasmgate approvals deny ID --reason 'not to them'",
	}, c.newApprovalsList(), c.newApprovalsShow(), c.newApprovalsApprove(), c.newApprovalsDeny(), c.newApprovalsDestinations(), c.newApprovalsRevoke())
}

// withRunning gives do the gateway that runs on the configuration: what waits, waits
// there.
func (c commands) withRunning(cmd *cobra.Command, do func(operation.Gateway) error) error {
	cfg, err := c.Open()
	if err != nil {
		return err
	}
	r, err := app.Dial(cmd.Context(), cfg)
	if err != nil {
		return fmt.Errorf("%w, and calls wait for approval only in one that runs: wasmgate serve", err)
	}
	defer r.Close()
	return do(r)
}

func (c commands) newApprovalsList() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the calls that wait, the oldest first",
		Example: "  wasmgate approvals list --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withRunning(cmd, func(g operation.Gateway) error {
				all, err := approvals.All.Ask(cmd.Context(), g, operation.None{})
				if err != nil {
					return err
				}
				if c.JSON {
					return c.PrintJSON(all)
				}
				if len(all) == 0 {
					fmt.Fprintln(c.Err, "no call waits for approval")
					return nil
				}
				t := show.NewTable(c.Out, "ID", "AGE", "EXPIRES", "PRINCIPAL", "SERVER", "TOOL", "WHY")
				now := time.Now()
				for _, a := range all {
					t.Row(a.ID, show.Roughly(now.Sub(a.Asked)), "in "+show.Roughly(a.Expires.Sub(now)), a.Principal, a.Server,
						show.Short(a.Tool, shell.MaxTool), show.Short(a.Why(), shell.MaxWhy))
				}
				return t.Flush()
			})
		},
	}
}

func (c commands) newApprovalsShow() *cobra.Command {
	return &cobra.Command{
		Use:     "show ID",
		Short:   "Show a call that waits, with its arguments and the reason",
		Long:    "Shows the arguments as they will be sent. Characters that a terminal would hide or act on are shown as\nescapes such as \\u202e.",
		Example: "  wasmgate approvals show ID",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withRunning(cmd, func(g operation.Gateway) error {
				a, err := approvals.Show.Ask(cmd.Context(), g, approvals.DecideRequest{ID: args[0]})
				if err != nil {
					return shell.Unanswered(err)
				}
				if c.JSON {
					return c.PrintJSON(a)
				}
				return c.printApproval(a)
			})
		},
	}
}

func (c commands) printApproval(a *approvals.Approval) error {
	read := strings.Join(a.Labels, ", ")
	switch {
	case a.Top:
		read = "more than could be kept, so everything"
	case read == "":
		read = "nothing that is labelled"
	}
	for _, line := range [][2]string{
		{"approval", a.ID + ", " + a.State}, {"principal", a.Principal}, {"client", a.Client},
		{"server", a.Server}, {"tool", a.Tool}, {"why", a.Why()},
		{"session", cmp.Or(a.Session, "the principal's one")}, {"has read", read},
		{"asked", a.Asked.Local().Format(time.DateTime)}, {"expires", a.Expires.Local().Format(time.DateTime)},
		{"may answer", a.MayAnswer()}, {"answered by", a.By}, {"because", a.Note},
	} {
		if line[1] != "" {
			fmt.Fprintf(c.Out, "%-12s %s\n", line[0], escaped.Text(line[1]))
		}
	}
	for _, to := range a.Destinations {
		fmt.Fprintf(c.Out, "%-12s %s\n", "destination", show.Visible(to))
	}
	for _, other := range a.Beside {
		fmt.Fprintf(c.Out, "%-12s %s, at %s\n", "beside it", show.Visible(other), show.Visible(a.BesideAt))
	}
	for _, met := range a.MetBefore() {
		fmt.Fprintf(c.Out, "%-12s %s\n", "met", show.Visible(met))
	}
	if len(a.Calls) == 0 {
		return c.printArguments(a.ID, "arguments", a.Arguments)
	}
	for i, one := range a.Calls {
		if err := c.printArguments(a.ID, fmt.Sprintf("%-12s %s", fmt.Sprintf("call %d", i+1), escaped.Text(one.Tool)), one.Arguments); err != nil {
			return err
		}
	}
	return nil
}

// printArguments prints the arguments of a call below a line.
func (c commands) printArguments(id, line string, args json.RawMessage) error {
	var indented bytes.Buffer
	if err := json.Indent(&indented, args, "", "  "); err != nil {
		return fmt.Errorf("arguments of approval %s: %w", id, err)
	}
	fmt.Fprintln(c.Out, line)
	for line := range strings.Lines(indented.String()) {
		fmt.Fprintln(c.Out, "  "+escaped.Text(strings.TrimSuffix(line, "\n")))
	}
	return nil
}

func (c commands) newApprovalsApprove() *cobra.Command {
	var always, destination, beside, yes bool
	var who answerer
	cmd := &cobra.Command{
		Use:   "approve ID",
		Short: "Let the call pass",
		Long: `Lets the call pass once. On a terminal it shows the call and asks. Without a terminal it needs --yes.

--always also writes a grant, so that the pack approve does not ask about this tool again, whatever the
arguments. --destination also approves the call's destinations: until the session ends, they cause no
question for tools of this server. --beside also approves the other destinations that the question lists.`,
		Example: "  wasmgate approvals approve ID\n  wasmgate approvals approve ID --always\n  wasmgate approvals approve ID --yes --token - < token",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.confirmApproval(cmd, args[0], yes); err != nil {
				return err
			}
			return c.decide(cmd, approvals.DecideRequest{ID: args[0], Verdict: gate.Approved, Always: always, Destination: destination, Beside: beside}, who)
		},
	}
	who.flags(cmd)
	shell.YesFlag(cmd, &yes)
	cmd.Flags().BoolVar(&always, "always", false, "do not ask this principal about this tool again")
	cmd.Flags().BoolVar(&destination, "destination", false, "do not ask about these destinations again in this session")
	cmd.Flags().BoolVar(&beside, "beside", false, "with --destination: also approve the other destinations that the question lists")
	return cmd
}

// confirmApproval shows a call that waits, and asks whether it is to pass.
func (c commands) confirmApproval(cmd *cobra.Command, id string, yes bool) error {
	preview := func() error {
		return c.withRunning(cmd, func(g operation.Gateway) error {
			a, err := approvals.Show.Ask(cmd.Context(), g, approvals.DecideRequest{ID: id})
			if err != nil {
				return shell.Unanswered(err)
			}
			beside := *c.Shell
			beside.Out = c.Err // the answer to programs is on the other
			return commands{&beside}.printApproval(a)
		})
	}
	return c.Confirmed(yes, preview, "Approve this call?")
}

func (c commands) newApprovalsDeny() *cobra.Command {
	var why string
	var who answerer
	cmd := &cobra.Command{
		Use:     "deny ID",
		Short:   "Refuse the call, and equal calls until the question expires",
		Example: "  wasmgate approvals deny ID --reason 'not to them'",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.decide(cmd, approvals.DecideRequest{ID: args[0], Verdict: gate.Denied, Note: why}, who)
		},
	}
	who.flags(cmd)
	cmd.Flags().StringVar(&why, "reason", "", "why, for the audit log")
	return cmd
}

func (c commands) newApprovalsDestinations() *cobra.Command {
	return &cobra.Command{
		Use: "destinations", Short: "List the destinations that are approved for sessions", Args: cobra.NoArgs,
		Long:    "Lists destinations that were approved with --destination or in the client. An approved destination is\nvalid for one server in one session, and ends with the session.",
		Example: "  wasmgate approvals destinations\n  wasmgate approvals revoke ID",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withRunning(cmd, func(g operation.Gateway) error {
				all, err := approvals.Destinations.Ask(cmd.Context(), g, operation.None{})
				if err != nil {
					return err
				}
				if c.JSON {
					return c.PrintJSON(all)
				}
				if len(all) == 0 {
					fmt.Fprintln(c.Err, "no destination is approved for a session")
					return nil
				}
				t := show.NewTable(c.Out, "ID", "AGE", "PRINCIPAL", "SESSION", "SERVER", "DESTINATION", "BY")
				for _, d := range all {
					t.Row(d.ID, show.Roughly(time.Since(d.Since)), d.Session.Owner.ID, d.Session.ID, d.Server, show.Short(show.Visible(d.Value), shell.MaxWhy), d.By)
				}
				return t.Flush()
			})
		},
	}
}

func (c commands) newApprovalsRevoke() *cobra.Command {
	return &cobra.Command{
		Use: "revoke ID", Short: "Remove the approval of destinations", Args: cobra.ExactArgs(1),
		Example: "  wasmgate approvals destinations\n  wasmgate approvals revoke ID",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withRunning(cmd, func(g operation.Gateway) error {
				gone, err := approvals.Revoke.Ask(cmd.Context(), g, approvals.RevokeRequest{ID: args[0]})
				if err != nil {
					return shell.Unanswered(err)
				}
				if c.JSON {
					return c.PrintJSON(gone)
				}
				for _, d := range gone {
					fmt.Fprintf(c.Out, "revoked %s at %s\n", show.Visible(d.Value), show.Visible(d.Server))
				}
				return nil
			})
		},
	}
}

// answerer is who answers, where approvals.by, approvals.not_self or a policy says who may.
type answerer struct{ as, token string }

func (a *answerer) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.as, "as", "", "principal who answers (default: local)")
	cmd.Flags().StringVar(&a.token, "token", "", "- reads the approver's token or API key from standard input")
}

func (c commands) decide(cmd *cobra.Command, d approvals.DecideRequest, who answerer) (err error) {
	d.As = who.as
	if d.Token, err = c.ReadToken(who.token); err != nil {
		return err
	}
	return c.withRunning(cmd, func(g operation.Gateway) error {
		done, err := approvals.Decide.Ask(cmd.Context(), g, d)
		if err != nil {
			return shell.Unanswered(err)
		}
		if c.JSON {
			return c.PrintJSON(done)
		}
		a := done.Approval
		fmt.Fprintf(c.Out, "%s %s: %s by %s\n", a.State, a.ID, show.Visible(a.Tool), show.Visible(a.Principal))
		c.printAlways(a, done.Always)
		return nil
	})
}

func (c commands) printAlways(a approvals.Approval, w *approvals.Always) {
	if w == nil {
		return
	}
	if w.Still != "" {
		fmt.Fprintf(c.Err, "No grant was written: your policy will still ask next time (%s). A grant does not change that; change the rule.\n", show.Visible(w.Still))
		return
	}
	said := "granted for good"
	if !w.Added {
		said = "is granted for good already"
	}
	fmt.Fprintf(c.Out, "%s %s to %s, in %s; wasmgate revoke %s takes it back\n", show.Visible(a.Tool), said, show.Visible(a.Principal), w.Grants, show.Visible(a.Tool))
}

// Waits says how many calls do.
func Waits(n int) string {
	if n == 1 {
		return "1 call waits"
	}
	return fmt.Sprintf("%d calls wait", n)
}
