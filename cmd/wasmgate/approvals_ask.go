package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/app"
)

// maxAnswer is how much is read of what a person types, in bytes.
const maxAnswer = 1 << 10

// callAsking makes a call. If a person has to approve it and one is at the
// terminal, that one is asked, and the call is made again.
func (c *cli) callAsking(ctx context.Context, g asked, r app.CallRequest) (gate.Result, error) {
	res, err := g.Call(ctx, r)
	e, ok := errors.AsType[*app.CallError](err)
	if !ok || e.Approval == "" {
		return res, err
	}
	if !c.atTerminal() {
		if _, ends := g.(own); ends {
			e.Remedy, e.Cause = "", errNoKeeper.Error()
		}
		return res, err
	}
	verdict, asking := c.confirm(e)
	if asking != nil || verdict == gate.Dismissed {
		return res, errors.Join(err, asking)
	}
	if _, err := g.Decide(ctx, app.DecideRequest{ID: e.Approval, Verdict: verdict}); err != nil {
		return res, err
	}
	return g.Call(ctx, r)
}

// atTerminal reports whether a person is there to answer.
func (c *cli) atTerminal() bool {
	in, ok := c.in.(*os.File)
	return ok && isTerminal(in)
}

// confirm asks the person at the terminal. Anything but yes and no is no answer.
func (c *cli) confirm(e *app.CallError) (gate.Verdict, error) {
	for line := range strings.Lines(e.Question) {
		fmt.Fprintln(c.err, gate.Visible(strings.TrimSuffix(line, "\n")))
	}
	return c.answer("Approve this call?")
}

// answer puts a question to the person at the terminal.
func (c *cli) answer(question string) (gate.Verdict, error) {
	fmt.Fprint(c.err, question+" [y/N] ")
	said, err := bufio.NewReader(io.LimitReader(c.in, maxAnswer)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return gate.Dismissed, fmt.Errorf("read the answer: %w", err)
	}
	switch strings.ToLower(strings.TrimSpace(said)) {
	case "y", "yes":
		return gate.Approved, nil
	case "n", "no":
		return gate.Denied, nil
	default:
		return gate.Dismissed, nil
	}
}
