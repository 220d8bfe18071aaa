package link

import (
	"context"
	"strconv"
	"sync"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/pace"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

// asTask reports whether a call of a tool is made as a task at its server (MCP 2025-11-25,
// basic/utilities/tasks, "Tool-Level Negotiation"). Whether the client makes it as a task is
// between the client and the gateway. If the server leaves it open, a call that its client does not
// wait for is made as a task: it may take as long as the server says that it goes on.
func (l sessions) asTask(t *gate.Tool, c *gate.Call) bool {
	if c.Action != gate.CallTool || l.Capabilities.At("/tasks/requests/tools/call").Kind() != doc.Object {
		return false
	}
	support := t.Definition.At("/execution/taskSupport").Text()
	return support == "required" || support == "optional" && c.Reach().Detached
}

// callAsTask calls a tool as a task and waits for its end, for as long as the server
// says in time that it goes on. What it asks for meanwhile comes with the request for
// the result.
func (l sessions) callAsTask(ctx *pace.Deadline, a outgoing) (gate.Doc, error) {
	ttl := strconv.FormatInt(((pace.MaxExtended + 1) * ctx.Timeout).Milliseconds(), 10)
	a.params = mcp.WithMember(a.params, `"task":`, []byte(`{"ttl":`+ttl+`}`))
	res, err := l.send(ctx, a)
	made := res.Get("task")
	if err != nil || made.Kind() != doc.Object {
		return res, err // a server may carry it out at once
	}
	state, err := newTask(made)
	if err != nil {
		return gate.Doc{}, err
	}
	a.of.BecomesTask(state.id)
	about := outgoing{of: a.of, params: state.params()}
	res, err = l.taskResult(ctx, about, &state, made)
	if err != nil && !state.ended() {
		l.cancelTask(ctx, about)
	}
	return mcp.WithoutTask(res), seen(err)
}

// taskResult waits until a task has ended, or wants something, and then for its result.
func (l sessions) taskResult(ctx *pace.Deadline, about outgoing, state *taskState, task gate.Doc) (gate.Doc, error) {
	for state.status == mcp.TaskWorking {
		var err error
		if task, err = l.taskLater(ctx, ctx.Timeout, about, task); err != nil {
			return gate.Doc{}, err
		}
		if err = state.next(task); err != nil {
			return gate.Doc{}, err
		}
		ctx.Extend()
	}
	if state.status == mcp.TaskInput {
		defer l.hearOn(ctx, about, task)()
	}
	about.method = mcp.MethodTaskResult
	return l.send(ctx, about)
}

// hearOn asks for a task until stop is called, while its result is waited for: the server
// may say nothing else for long.
func (l sessions) hearOn(d *pace.Deadline, about outgoing, task gate.Doc) (stop func()) {
	ctx, cancel := context.WithCancel(d)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			var err error
			if task, err = l.taskLater(ctx, d.Timeout, about, task); err != nil {
				return
			}
			d.Extend()
		}
	})
	return func() { cancel(); wg.Wait() }
}
