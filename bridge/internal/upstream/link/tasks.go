package link

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

const (
	// minPoll and maxPoll bound how often a server is asked for a task, whatever it
	// advises; askPoll is how often without advice.
	minPoll = 50 * time.Millisecond
	askPoll = time.Second
	maxPoll = 5 * time.Second
	// maxTaskID bounds the id of a server's task, in bytes: it is sent back.
	maxTaskID = 1 << 10
	// cancelTaskTime bounds the request that cancels a task which is no longer waited for.
	cancelTaskTime = 2 * time.Second
)

// A taskState is the last known state of a task.
type taskState struct{ id, status string }

// newTask reads the task that a call was answered by.
func newTask(made gate.Doc) (taskState, error) {
	id := made.Get("taskId")
	if id.Kind() != doc.String || id.Text() == "" || len(id.Raw()) > maxTaskID {
		return taskState{}, &mcp.ProtocolError{Err: errors.New("the task has no valid taskId")}
	}
	s := taskState{id: id.Text()}
	return s, s.next(made)
}

// next compares a new state of the task with the last one.
func (s *taskState) next(task gate.Doc) error {
	status := task.Get("status").Text()
	switch {
	case task.Get("taskId").Text() != s.id:
		return &mcp.ProtocolError{Err: errors.New("the server was asked for one task, and answers with another")}
	case !slices.Contains([]string{mcp.TaskWorking, mcp.TaskInput, mcp.TaskCompleted, mcp.TaskFailed, mcp.TaskCancelled}, status):
		return &mcp.ProtocolError{Err: fmt.Errorf("the task has the status %s, which MCP does not define", mcp.Quote(task.Get("status").Raw()))}
	case s.ended() && status != s.status:
		return &mcp.ProtocolError{Err: fmt.Errorf("a task that was %s became %s again", s.status, status)}
	}
	s.status = status
	return nil
}

func (s *taskState) ended() bool {
	return s.status != "" && s.status != mcp.TaskWorking && s.status != mcp.TaskInput
}

// params returns the parameters of a request about the task.
func (s *taskState) params() []byte {
	return mcp.WithMember([]byte("{}"), `"taskId":`, mcp.MustJSON(s.id))
}

// pollAfter returns when to ask for a task again. The server advises a time in milliseconds;
// pollAfter keeps it short enough for a call with a timeout.
func pollAfter(advice gate.Doc, timeout time.Duration) time.Duration {
	after := askPoll
	if ms, err := strconv.ParseFloat(advice.String(), 64); err == nil && advice.Kind() == doc.Number {
		after = time.Duration(min(ms, float64(maxPoll.Milliseconds())) * float64(time.Millisecond))
	}
	return max(minPoll, min(after, timeout/2))
}

// seen returns the error of a request about a task: its server has seen the call.
func seen(err error) error {
	if never, ok := errors.AsType[*wire.Unseen](err); ok {
		return never.Err
	}
	return err
}

// taskLater asks for a task when it is time to ask again.
func (l *Link) taskLater(ctx context.Context, timeout time.Duration, about outgoing, task gate.Doc) (gate.Doc, error) {
	select {
	case <-time.After(pollAfter(task.Get("pollInterval"), timeout)):
	case <-ctx.Done():
		return gate.Doc{}, ctx.Err()
	}
	about.method = mcp.MethodTaskGet
	return l.send(ctx, about)
}

// cancelTask cancels a task at the server, because its client no longer waits for it.
func (l *Link) cancelTask(ctx context.Context, about outgoing) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTaskTime)
	defer cancel()
	about.method = mcp.MethodTaskCancel
	_, _ = l.send(ctx, about) // it may have ended, or not know of it
}
