package bridge

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/wasmgate/wasmgate/gate"
)

const (
	// minPoll and maxPoll bound how often a server is asked for a task, whatever it
	// advises; askPoll is how often without advice.
	minPoll = 50 * time.Millisecond
	askPoll = time.Second
	maxPoll = 5 * time.Second
	// maxTaskID bounds the id of a server's task, in bytes: it is sent back.
	maxTaskID = 1 << 10
	// cancelTaskTime is how long a server gets to be told that nobody waits for a task.
	cancelTaskTime = 2 * time.Second
)

// asTask reports whether a tool must be called as a task at its server (MCP 2025-11-25,
// basic/utilities/tasks, "Tool-Level Negotiation"). Whether its client does so is
// between the client and the gateway.
func (l *link) asTask(t *gate.Tool) bool {
	return t.Definition.At("/execution/taskSupport").Text() == "required" &&
		l.capabilities.At("/tasks/requests/tools/call").Kind() == gate.Object
}

// callAsTask calls a tool as a task and waits for its end, for as long as the server
// says in time that it goes on. What it asks for meanwhile comes with the request for
// the result.
func (l *link) callAsTask(ctx *deadline, a asking) (gate.Doc, error) {
	ttl := strconv.FormatInt(((maxExtended + 1) * ctx.timeout).Milliseconds(), 10)
	a.params = withMembers(a.params, `"task":`, []byte(`{"ttl":`+ttl+`}`))
	res, err := l.send(ctx, a)
	task := res.Get("task")
	if err != nil || task.Kind() != gate.Object {
		return res, err // a server may carry it out at once
	}
	id := task.Get("taskId")
	if id.Kind() != gate.String || len(id.Raw()) > maxTaskID {
		return gate.Doc{}, &nonsense{errors.New("a task without an acceptable taskId")}
	}
	about := asking{of: a.of, params: []byte(`{"taskId":` + id.String() + `}`)}
	res, err = l.taskResult(ctx, about, task)
	if ctx.Err() != nil {
		l.cancelTask(ctx, about)
	}
	if never, ok := errors.AsType[*unseen](err); ok { // of a later request: the server has the call
		err = never.err
	}
	return withoutTask(res), err
}

// taskResult waits until a task has ended, or wants something, and then for its result.
func (l *link) taskResult(ctx *deadline, about asking, task gate.Doc) (gate.Doc, error) {
	for task.Get("status").Text() == "working" {
		select {
		case <-time.After(pollAfter(task)):
		case <-ctx.Done():
			return gate.Doc{}, ctx.Err()
		}
		about.method = methodTaskGet
		var err error
		if task, err = l.send(ctx, about); err != nil {
			return gate.Doc{}, err
		}
		ctx.extend()
	}
	about.method = methodTaskResult
	return l.send(ctx, about)
}

// pollAfter returns when to ask for a task again.
func pollAfter(task gate.Doc) time.Duration {
	ms, err := strconv.ParseFloat(task.Get("pollInterval").String(), 64)
	if err != nil || task.Get("pollInterval").Kind() != gate.Number {
		return askPoll
	}
	return max(minPoll, time.Duration(min(ms, float64(maxPoll.Milliseconds()))*float64(time.Millisecond)))
}

// cancelTask tells the server that nobody waits for a task any more.
func (l *link) cancelTask(ctx context.Context, about asking) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTaskTime)
	defer cancel()
	about.method = methodTaskCancel
	_, _ = l.send(ctx, about) // it may have ended, or not know of it
}

// withoutTask returns a result that does not name the server's task: its client, if it
// knows of a task at all, knows the gateway's.
func withoutTask(res gate.Doc) gate.Doc {
	meta := res.Get("_meta")
	if meta.Get(metaRelatedTask).IsZero() {
		return res
	}
	return res.With("_meta", without(meta, metaRelatedTask, metaRelatedTask).Raw())
}
