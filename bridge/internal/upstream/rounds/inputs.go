package rounds

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
	"github.com/wasmgate/wasmgate/gate"
)

const (
	// maxTaskInputs bounds what a task asks its client for in all its life, and maxInputKey
	// the names that it gives to that, in bytes: they are kept as long.
	maxTaskInputs = 100
	maxInputKey   = 256
)

// errSuperseded is the cause of the end of a question to which its task wants no answer
// any more.
var errSuperseded = errors.New("the server no longer waits for an answer")

// Inputs are what a task asks of the client of its call. Each is asked once. They are
// used by one goroutine.
type Inputs struct {
	of      wire.Call
	ctx     context.Context
	stop    context.CancelFunc
	asked   map[string]taskQuestion // by key; of the task's whole life
	answers chan Answer
	asking  sync.WaitGroup
}

// A taskQuestion is what was asked, and ends the question.
type taskQuestion struct {
	what string
	drop context.CancelCauseFunc
}

// An Answer is the outcome of a question.
type Answer struct {
	Key    string
	Method gate.Action
	Answer gate.Doc
	Err    error
}

// NewInputs returns those of a call that a task carries out, which end with ctx.
func NewInputs(ctx context.Context, of wire.Call) *Inputs {
	q := &Inputs{of: of, asked: make(map[string]taskQuestion), answers: make(chan Answer)}
	q.ctx, q.stop = context.WithCancel(ctx)
	return q
}

// Answers returns the channel of the client's answers.
func (q *Inputs) Answers() <-chan Answer { return q.answers }

// Want takes the questions that the task has now. The client is asked the new ones; it need not
// answer those that are no longer wanted.
func (q *Inputs) Want(requests []Request) error {
	wanted := make(map[string]bool)
	for _, r := range requests {
		wanted[r.Key] = true
		what := string(r.Method) + " " + r.Params.Digest()
		before, twice := q.asked[r.Key]
		switch {
		case twice && before.what == what:
			continue
		case twice:
			return &mcp.ProtocolError{Err: fmt.Errorf("the task has two questions with the key %.100q", r.Key)}
		case len(r.Key) > maxInputKey:
			return &mcp.ProtocolError{Err: fmt.Errorf("a question has a key of more than %d bytes", maxInputKey)}
		case len(q.asked) == maxTaskInputs:
			return &mcp.ProtocolError{Err: fmt.Errorf("the task asks more than %d questions", maxTaskInputs)}
		case !q.of.Hold():
			return wire.ErrUnasked
		}
		ctx, drop := context.WithCancelCause(q.ctx)
		q.asked[r.Key] = taskQuestion{what, drop}
		q.asking.Go(func() { q.ask(ctx, r) })
	}
	for key, one := range q.asked {
		if !wanted[key] {
			one.drop(errSuperseded)
		}
	}
	return nil
}

// ask asks the client, within the time that a person gets.
func (q *Inputs) ask(ctx context.Context, r Request) {
	defer q.of.Release()
	timed, stop := context.WithTimeout(ctx, wire.MaxAskedTime)
	defer stop()
	answer, err := q.of.Permit().Request(timed, r.Method, r.Params)
	if err != nil && context.Cause(ctx) == errSuperseded {
		return
	}
	select {
	case q.answers <- Answer{r.Key, r.Method, answer, err}:
	case <-q.ctx.Done():
	}
}

// End ends all questions, and waits until the client has been told.
func (q *Inputs) End() {
	q.stop()
	q.asking.Wait()
}
