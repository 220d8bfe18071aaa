package upstream

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
var errSuperseded = errors.New("the server wants no answer any more")

// taskInputs are what a task asks of the client of its call. Each is asked once. They are
// used by one goroutine.
type taskInputs struct {
	of      *calling
	ctx     context.Context
	stop    context.CancelFunc
	asked   map[string]taskQuestion // by key; of the task's whole life
	answers chan taskAnswer
	asking  sync.WaitGroup
}

// A taskQuestion is what was asked, and ends the question.
type taskQuestion struct {
	what string
	drop context.CancelCauseFunc
}

// A taskAnswer is what has come of a question.
type taskAnswer struct {
	key    string
	method gate.Action
	answer gate.Doc
	err    error
}

func newTaskInputs(ctx context.Context, of *calling) *taskInputs {
	q := &taskInputs{of: of, asked: make(map[string]taskQuestion), answers: make(chan taskAnswer)}
	q.ctx, q.stop = context.WithCancel(ctx)
	return q
}

// want takes what the task wants to know now. The client is asked what is new; what is not
// wanted any more it need not answer.
func (q *taskInputs) want(requests []inputRequest) error {
	wanted := make(map[string]bool)
	for _, r := range requests {
		wanted[r.key] = true
		what := string(r.method) + " " + r.params.Digest()
		before, twice := q.asked[r.key]
		switch {
		case twice && before.what == what:
			continue
		case twice:
			return &mcp.ProtocolError{Err: fmt.Errorf("the task asks for two things by the key %.100q", r.key)}
		case len(r.key) > maxInputKey:
			return &mcp.ProtocolError{Err: fmt.Errorf("a key of more than %d bytes", maxInputKey)}
		case len(q.asked) == maxTaskInputs:
			return &mcp.ProtocolError{Err: fmt.Errorf("the task asks for more than %d things", maxTaskInputs)}
		case !q.of.Hold():
			return wire.ErrUnasked
		}
		ctx, drop := context.WithCancelCause(q.ctx)
		q.asked[r.key] = taskQuestion{what, drop}
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
func (q *taskInputs) ask(ctx context.Context, r inputRequest) {
	defer q.of.Release()
	timed, stop := context.WithTimeout(ctx, wire.MaxAskedTime)
	defer stop()
	answer, err := q.of.permit.Request(timed, r.method, r.params)
	if err != nil && context.Cause(ctx) == errSuperseded {
		return
	}
	select {
	case q.answers <- taskAnswer{r.key, r.method, answer, err}:
	case <-q.ctx.Done():
	}
}

// end ends all questions, and waits until the client has been told.
func (q *taskInputs) end() {
	q.stop()
	q.asking.Wait()
}
