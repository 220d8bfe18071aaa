package shell

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/cmd/internal/show"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/app/approvals"
	"github.com/wasmgate/wasmgate/internal/app/calls"
	"github.com/wasmgate/wasmgate/internal/escaped"
)

// maxAnswer is how much is read of what a person types, in bytes.
const maxAnswer = 1 << 10

// CallAsking makes a call. If a person has to approve it and one is at the
// terminal, that one is asked, and the call is made again.
func (c *Shell) CallAsking(ctx context.Context, g Gateway, r calls.Request) (gate.Result, error) {
	res, err := calls.Call(ctx, g, r)
	e, ok := errors.AsType[*calls.Error](err)
	if !ok || e.Approval == "" {
		return res, err
	}
	if !c.AtTerminal() {
		if _, ends := g.(Own); ends {
			e.Remedy, e.Cause = "", errNoKeeper.Error()
		}
		return res, err
	}
	d, asking := c.confirm(e)
	if asking != nil || d.Verdict == gate.Dismissed {
		return res, errors.Join(err, asking)
	}
	d.As = r.As // who answers here has made the call
	if _, err := approvals.Decide.Ask(ctx, g, d); err != nil {
		return res, Unanswered(err)
	}
	return calls.Call(ctx, g, r)
}

// AtTerminal reports whether a person is there to answer.
func (c *Shell) AtTerminal() bool {
	in, ok := c.In.(*os.File)
	return ok && show.IsTerminal(in)
}

// confirm asks the person at the terminal. Anything but yes, no, destination and all is no
// answer.
func (c *Shell) confirm(e *calls.Error) (approvals.DecideRequest, error) {
	for line := range strings.Lines(e.Question) {
		fmt.Fprintln(c.Err, escaped.Text(strings.TrimSuffix(line, "\n")))
	}
	question := "Approve this call? [y/N]"
	var wider []string
	switch {
	case len(e.Beside) > 0:
		question, wider = "Approve this call, or with d its destination until the session ends, too, or with a also all that stand beside it? [y/d/a/N]", []string{"d", "a"}
	case len(e.Destinations) > 0:
		question, wider = "Approve this call, or with d its destination until the session ends, too? [y/d/N]", []string{"d"}
	}
	verdict, err := c.answer(question, wider...)
	d := approvals.DecideRequest{ID: e.Approval, Verdict: verdict}
	if slices.Contains(wider, string(verdict)) {
		d.Verdict, d.Destination, d.Beside = gate.Approved, true, verdict == "a"
	}
	return d, err
}

// answer puts a question to the person at the terminal. Others are further answers,
// which it returns as they are.
func (c *Shell) answer(question string, others ...string) (gate.Verdict, error) {
	fmt.Fprint(c.Err, question+" ")
	said, err := bufio.NewReader(io.LimitReader(c.In, maxAnswer)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return gate.Dismissed, fmt.Errorf("read the answer: %w", err)
	}
	switch said = strings.ToLower(strings.TrimSpace(said)); {
	case slices.Contains(others, said):
		return gate.Verdict(said), nil
	case said == "y" || said == "yes":
		return gate.Approved, nil
	case said == "n" || said == "no":
		return gate.Denied, nil
	default:
		return gate.Dismissed, nil
	}
}

// errNoKeeper says why a question to no one is not kept.
var errNoKeeper = errors.New("the approval question cannot be kept, because no gateway runs: start wasmgate serve, or call from a terminal")

// Unanswered tells an answer that does not count from a failure.
func Unanswered(err error) error {
	if n, ok := errors.AsType[*gate.NotApproved](err); ok {
		return Exit(ExitFalse, n)
	}
	return err
}
