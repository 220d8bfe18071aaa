package policycommands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/cmd/internal/shell"
	"github.com/wasmgate/wasmgate/cmd/internal/show"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/gate/codes"
	"github.com/wasmgate/wasmgate/internal/app"
	"github.com/wasmgate/wasmgate/internal/app/inventory"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/match"
	"github.com/wasmgate/wasmgate/internal/replay"
	"github.com/wasmgate/wasmgate/policy/study"
)

func (c commands) newPolicyExplain() *cobra.Command {
	return &cobra.Command{
		Use:   "explain [ID]",
		Short: "Explain the decision on a recorded call",
		Long: `Takes the ID of a record in the audit log, or its beginning. Without an ID it takes the newest refused
call. It shows

  - the rules that decided, by file and line
  - the first failed condition of each rule that nearly allowed the call
  - what would have allowed the call

A grant cannot override a rule that denied. For such a rule it shows the conditions, and the decision
without it.

It uses the current policy, and says so if another one decided. The log has no arguments unless the
configuration has "audit: {record: full}"; rules about them are then shown as rules that may apply.`,
		Example: "  wasmgate policy explain\n  wasmgate policy explain 0199f3a2-6f0e-7c1b-9a54-2f9d3f1c7b10",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := c.Open()
			if err != nil {
				return err
			}
			why := reasoned{}
			if why.Record, err = replay.FindRecord(cmd.Context(), cfg.Audit.Path, strings.Join(args, "")); err != nil {
				return shell.NameError(err)
			}
			if replay.Decided(why.Record) {
				if why.Explanation, err = c.explain(cmd.Context(), cfg, why.Record); err != nil {
					return err
				}
			}
			return c.printExplained(why)
		},
	}
}

// explain explains the decision in a record.
func (c commands) explain(ctx context.Context, cfg *config.Config, record audit.Entry) (*study.Explanation, error) {
	p, err := c.policy(ctx, cfg)
	if err != nil {
		return nil, err
	}
	x := replay.Explainer{Log: cfg.Audit.Path, Policy: p, Groups: len(cfg.AllGroups()) > 0, Tools: func(ctx context.Context) ([]inventory.Tool, error) {
		r, err := app.Dial(ctx, cfg)
		if err != nil {
			return nil, err
		}
		defer r.Close()
		return inventory.Tools.Ask(ctx, r, inventory.Request{All: true})
	}}
	why, err := x.Explain(ctx, record)
	switch {
	case errors.Is(err, replay.ErrExplain):
		return nil, shell.Exit(shell.ExitFalse, err)
	case err != nil:
		return nil, shell.NameError(err)
	}
	return why, nil
}

// reasoned is a record and why it was decided so.
type reasoned struct {
	Record      audit.Entry
	Explanation *study.Explanation // nil if no policy was asked
}

func (c commands) printExplained(x reasoned) error {
	e := x.Record
	if c.JSON {
		out := map[string]any{
			"id": e.ID, "time": e.Time, "action": e.Action, "tenant": e.Tenant, "principal": e.Principal, "tool": e.Tool, "session": e.Session,
			"code": e.Code, "effect": e.Effect, "reasons": e.Reasons, "error": e.Error, "policy_revision": e.PolicyRevision,
			"labels_before": e.LabelsBefore, "met": e.Met, "remedy": x.remedy(), "explanation": x.Explanation,
		}
		return c.PrintJSON(out)
	}
	say := func(format string, args ...any) { fmt.Fprintln(c.Out, show.Visible(fmt.Sprintf(format, args...))) }
	say("%s by %s at %s: %s", subjectOf(e), match.Name(e.Tenant, e.Principal), e.Time.Local().Format(time.DateTime), outcomeOf(e))
	if len(e.LabelsBefore) > 0 {
		say("the session had read: %s", strings.Join(e.LabelsBefore, ", "))
	}
	for _, at := range e.Met {
		say("met before: %s", at)
	}
	if x.Explanation == nil {
		say("the call was refused before a policy decided: %s", e.Error)
		return nil
	}
	p := x.Explanation
	switch {
	case e.PolicyRevision == "":
		say("the call ended before a policy decided: %s", e.Error)
	case e.PolicyRevision != p.Revision:
		say("the policy has changed since (%s, now %s): this is the decision of the current policy", e.PolicyRevision, p.Revision)
	}
	if len(e.Reasons) > 0 && (p.Effect == "" || len(p.Open) > 0 || e.PolicyRevision != p.Revision) {
		say("decided then: %s, for: %s", e.Effect, strings.Join(e.Reasons, "; "))
	}
	c.printRules(p)
	if remedy := x.remedy(); remedy != "" {
		say("%s%s", codes.Advice(e.Code), c.ToAllow(remedy))
	}
	if e.Effect == gate.Allow && e.Code != "" && e.Code != codes.OK {
		say("the policy did not stop it: %s", cmp.Or(e.Error, "the tool reported an error"))
	}
	return nil
}

// subjectOf says what a record is about: what was used, and what else was done than to
// call it or to use it.
func subjectOf(e audit.Entry) string {
	if e.Action == gate.CallTool {
		return e.Tool
	}
	return fmt.Sprintf("%s of %s", e.Action, e.Tool)
}

func outcomeOf(e audit.Entry) string {
	if e.Code == "" {
		return "granted, and not ended"
	}
	return e.Code
}

// remedy is the command that would allow the call now, or would have then.
func (x reasoned) remedy() string {
	if x.Explanation != nil && x.Explanation.Remedy != "" {
		return x.Explanation.Remedy
	}
	return x.Record.Remedy
}

func (c commands) printRules(p *study.Explanation) {
	list := func(head string, rules []study.Explained) {
		if len(rules) == 0 {
			return
		}
		fmt.Fprintln(c.Out, head)
		for _, r := range rules {
			fmt.Fprintln(c.Out, "  "+show.Visible(strings.TrimRight(fmt.Sprintf("%-5s %s:%d  %s", r.Set, r.File, r.Line, r.Reason), " ")))
			conditions := r.Holds
			if r.Condition != nil {
				conditions = []study.Condition{*r.Condition}
			}
			for _, w := range conditions {
				fmt.Fprintln(c.Out, "        "+show.Visible(fmt.Sprintf("%s:%d: %s", w.File, w.Line, w.Text)))
				if w.Error != "" {
					fmt.Fprintln(c.Out, "        "+show.Visible(w.Error))
				}
			}
			if len(r.Unknown) > 0 {
				fmt.Fprintln(c.Out, "        "+show.Visible(strings.Join(r.Unknown, "; ")))
			}
		}
	}
	switch {
	case p.Error != "":
		list("denied, because a rule cannot be evaluated:", p.Decided)
	case p.Effect == "":
		fmt.Fprintln(c.Out, "the decision depends on values that the record does not have")
		list("if no rule below applies, decided by:", p.Decided)
	case len(p.Decided) == 0:
		fmt.Fprintln(c.Out, "denied, because no rule allows it")
	default:
		list("decided: "+string(p.Effect)+", by", p.Decided)
	}
	if p.Otherwise != nil {
		fmt.Fprintln(c.Out, show.Visible(replay.Otherwise(p.Otherwise)))
	}
	list("may apply:", p.Open)
	if p.Effect != gate.Allow && (p.Otherwise == nil || p.Otherwise.Effect == gate.Deny) {
		list("nearly applied, but for the condition below each:", p.Nearly)
	}
}
