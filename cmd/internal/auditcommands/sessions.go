package auditcommands

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/cmd/internal/shell"
	"github.com/wasmgate/wasmgate/cmd/internal/show"
	"github.com/wasmgate/wasmgate/internal/app/operation"
	"github.com/wasmgate/wasmgate/internal/app/sessions"
	"github.com/wasmgate/wasmgate/internal/audit/flow"
	"github.com/wasmgate/wasmgate/internal/match"
)

func (c findings) newSessions() *cobra.Command {
	return shell.WithCommands(&cobra.Command{
		Use:   "sessions",
		Short: "Show what sessions have read, and reset them",
		Long: `A session gets labels from what it reads, such as untrusted, and policies decide by them. Labels end
when the session has not been used for sessions.ttl, or when you reset it. Sessions without labels are
not shown.`,
		Example: "  wasmgate sessions list\n  wasmgate sessions show alice\n  wasmgate sessions reset alice",
	}, c.newSessionsList(), c.newSessionsShow(), c.newSessionsReset())
}

// sessionNamed returns the session that a command names.
func sessionNamed(ctx context.Context, g operation.Gateway, id string) (sessions.Session, error) {
	list, err := sessions.All.Ask(ctx, g, operation.None{})
	if err != nil {
		return sessions.Session{}, err
	}
	s, err := sessions.Find(list, id)
	return s, shell.NameError(err)
}

func (c findings) newSessionsList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the sessions that have read something, the last used one first", Args: cobra.NoArgs,
		Example: "  wasmgate sessions list --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.WithState(cmd.Context(), func(g operation.Gateway) error {
				list, err := sessions.All.Ask(cmd.Context(), g, operation.None{})
				if err != nil {
					return err
				}
				return c.printSessions(list)
			})
		},
	}
}

func (c findings) printSessions(list []sessions.Session) error {
	if c.JSON {
		return c.PrintJSON(list)
	}
	if len(list) == 0 {
		fmt.Fprintln(c.Err, "no session has read anything that is labelled")
		return nil
	}
	now := time.Now()
	t := show.NewTable(c.Out, "ID", "USED", "AGE", "VALUES", "LABELS")
	for _, s := range list {
		t.Row(s.ID, show.Roughly(now.Sub(s.Used)), show.Roughly(now.Sub(s.Began)), strconv.Itoa(s.Values), labelsOf(s))
	}
	return t.Flush()
}

func labelsOf(s sessions.Session) string {
	switch {
	case s.Everything:
		return "everything"
	case len(s.Labels) == 0:
		return "none"
	default:
		return strings.Join(s.Labels, ", ")
	}
}

func (c findings) newSessionsShow() *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Show what a session has read, and by which calls", Args: cobra.ExactArgs(1),
		Long: `Shows the labels of a session and the calls that brought them. For each call that was refused or asked
about, it shows where the session had met the values in the arguments. ID is from wasmgate sessions list,
or the session's name in the audit log.`,
		Example: "  wasmgate sessions show alice\n  wasmgate sessions show alice --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.WithState(cmd.Context(), func(g operation.Gateway) error {
				s, err := sessionNamed(cmd.Context(), g, args[0])
				if err != nil {
					return err
				}
				cfg, err := c.Open()
				if err != nil {
					return err
				}
				f, err := flow.Read(cmd.Context(), cfg.Audit.Path, s.Key(), s.Began, s.Raised)
				if err != nil {
					return err
				}
				return c.printSession(s, f)
			})
		},
	}
}

func (c findings) printSession(s sessions.Session, f flow.Flow) error {
	if c.JSON {
		return c.PrintJSON(struct {
			sessions.Session
			Flow flow.Flow `json:"flow"`
		}{s, f})
	}
	fmt.Fprintf(c.Out, "session %s of %s, version %d\n", show.Visible(s.ID), show.Visible(match.Name(s.Tenant, s.Principal)), s.Version)
	fmt.Fprintf(c.Out, "first read %s, last used %s, %s with a known origin\n",
		s.Began.Format(time.RFC3339), s.Used.Format(time.RFC3339), show.Plural(s.Values, "value"))
	t := show.NewTable(c.Out, "LABEL", "CAME WITH CALL")
	if s.Everything {
		t.Row("everything: not all of its state could be kept", orUnknown(s.Raised[""]))
	}
	for _, l := range s.Labels {
		t.Row(l, orUnknown(s.Raised[l]))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, missing := range s.Missing {
		tool, _, _ := strings.Cut(missing, ":")
		if slices.ContainsFunc(slices.Concat(f.Read, f.Did), func(call flow.Call) bool { return call.Tool == tool }) {
			fmt.Fprintln(c.Out, "labels: "+show.Visible(missing))
		}
	}
	return c.printMet(f)
}

// printMet prints where the session had met values of the calls that were stopped.
func (c findings) printMet(f flow.Flow) error {
	t := show.NewTable(c.Out, "CALL", "TOOL", "OUTCOME", "ARGUMENT", "MET BEFORE")
	met := false
	for _, call := range slices.Concat(f.Read, f.Did) {
		for _, v := range call.Values {
			met = true
			t.Row(call.Call, call.Tool, call.Code, v.Argument, strings.TrimPrefix(v.Said, v.Argument+": "))
		}
	}
	if !met {
		return nil
	}
	fmt.Fprintln(c.Out)
	return t.Flush()
}

func orUnknown(call string) string {
	if call == "" {
		return "not known any more"
	}
	return call
}

func (c findings) newSessionsReset() *cobra.Command {
	return &cobra.Command{
		Use: "reset ID", Short: "Remove all labels from a session", Args: cobra.ExactArgs(1),
		Long: `Removes the labels of a session and the origins of values, so that policies trust it again. The agent
still has what it has read: reset a session only when the agent starts anew. The audit log records the
reset (event label). Calls in progress are not affected.`,
		Example: "  wasmgate sessions reset alice",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.WithState(cmd.Context(), func(g operation.Gateway) error {
				s, err := sessionNamed(cmd.Context(), g, args[0])
				if err != nil {
					return err
				}
				s.Version = 0 // it was named, not looked at
				was, err := sessions.Reset.Ask(cmd.Context(), g, sessions.ResetRequest{Session: s})
				if err != nil {
					return err
				}
				if c.JSON {
					return c.PrintJSON(was)
				}
				_, err = fmt.Fprintf(c.Out, "reset %s: labels %s, and %s\n", show.Visible(was.ID), show.Visible(labelsOf(was)), show.Plural(was.Values, "value"))
				return err
			})
		},
	}
}
