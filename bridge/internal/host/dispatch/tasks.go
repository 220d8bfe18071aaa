package dispatch

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/host/message"
	"github.com/wasmgate/wasmgate/bridge/internal/host/sessions"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/jobs"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

// Requests about tasks of 2026-07-28 are in tasks_ext.go. Clients of 2025-11-25 are not
// told of changes, which is optional there.

// taskPage is how many tasks are listed at once.
const taskPage = 100

// taskCapability is what a host with jobs declares.
const taskCapability = `{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}`

// tasks answers requests about calls that outlive their requests.
type tasks struct{ *carrier }

// startTask carries out a call as a task, if its client asks for one: the answer is
// the task.
func (t *tasks) startTask(ctx context.Context, p sessions.Client, c gate.Call, task gate.Doc) (gate.Doc, error) {
	keep, ok := taskTTL(task)
	if !ok {
		return gate.Doc{}, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "invalid parameters: task is not an object with a ttl in milliseconds, or without one"}
	}
	if t.relays(ctx, &c) {
		return gate.Doc{}, &mcp.Error{Code: mcp.CodeMethodNotFound, Message: fmt.Sprintf("tool %.200q cannot be called as a task", c.Name)}
	}
	k := &parked{carrier: t.carrier, call: c, client: c.Client, reach: c.Reach(), mayBeTask: true, task: true}
	c.Client = k
	do := func(ctx context.Context, c gate.Call) (gate.Result, error) {
		t.taskCalls.enter(k)
		defer t.taskCalls.leave(k)
		return t.cfg.Do(ctx, c)
	}
	j, err := t.cfg.Jobs.Start(ctx, do, c, keep)
	if err != nil {
		return gate.Doc{}, t.startError(ctx, p, c, err)
	}
	return gate.MustDoc(`{"task":` + string(t.taskCalls.json(j)) + `}`), nil
}

// startError is the error of a task that was refused before there was one. A client that
// has asked for a task takes no result of a tool for the answer.
func (t *tasks) startError(ctx context.Context, p sessions.Client, c gate.Call, err error) error {
	if _, other := t.failed(ctx, p, c, err); other != nil {
		return other
	}
	return &mcp.Error{Code: message.CodeRefused, Message: message.Public(err), Data: mcp.MustJSON(map[string]any{gate.MetaRefusal: message.RefusalOf(c.ID, err)})}
}

// maxTTL bounds what is made of a ttl, in milliseconds: a year, far beyond what is kept.
const maxTTL = 365 * 24 * 3600 * 1000

// taskTTL returns how long a client wants a task to be kept; zero if it does not say.
func taskTTL(task gate.Doc) (time.Duration, bool) {
	ttl := task.Get("ttl")
	if ttl.IsZero() || ttl.Kind() == doc.Null {
		return 0, task.Kind() == doc.Object
	}
	ms, err := strconv.ParseFloat(ttl.String(), 64)
	if ttl.Kind() != doc.Number || err != nil || ms <= 0 {
		return 0, false
	}
	return max(time.Millisecond, time.Duration(min(ms, maxTTL)*float64(time.Millisecond))), true
}

// answer answers a request about tasks. To all but the principal who started one it
// does not exist, nor does it for a client that is not offered its tool.
func (t *tasks) answer(ctx context.Context, p sessions.Client, m message.Message) (gate.Doc, error) {
	method, params := m.Method, m.Params
	if !answersTasks(p, method) {
		return gate.Doc{}, message.ErrNoMethod
	}
	if p.Stateless && !message.DeclaresTasks(params.Get("_meta")) {
		return gate.Doc{}, message.LacksTasks()
	}
	if method == mcp.MethodTaskList {
		return t.listTasks(ctx, p, params.Get("cursor"))
	}
	id := params.Get("taskId")
	if id.Kind() != doc.String {
		return gate.Doc{}, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "invalid parameters: taskId is not a string"}
	}
	j, err := t.task(ctx, p, id.Text())
	switch {
	case err != nil:
	case p.Stateless:
		return t.extTask(ctx, p, j, method, params)
	case method == mcp.MethodTaskResult:
		return t.taskResult(ctx, p, j)
	case method == mcp.MethodTaskCancel && j.Terminal():
		return gate.Doc{}, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "the task has ended already: it is " + string(j.State)}
	case method == mcp.MethodTaskCancel:
		j, err = t.cfg.Jobs.Cancel(ctx, p.Who.Owner, j.ID, "")
	}
	if err != nil {
		return gate.Doc{}, t.taskError(ctx, err)
	}
	return gate.MustDoc(string(t.taskCalls.json(j))), nil
}

func (t *tasks) listTasks(ctx context.Context, p sessions.Client, cursor gate.Doc) (gate.Doc, error) {
	if !cursor.IsZero() && cursor.Kind() != doc.String {
		return gate.Doc{}, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "invalid parameters: cursor is not a string"}
	}
	all, err := t.cfg.Jobs.List(ctx, p.Who.Owner, cursor.Text(), taskPage)
	if err != nil {
		return gate.Doc{}, t.taskError(ctx, err)
	}
	out := []byte(`{"tasks":[`)
	n := 0
	for _, j := range all {
		if j.Expired || !Offered(ctx, t.cfg.Lookup, j.Tool, p.Who.Groups, p.Groups) {
			continue
		}
		if n++; n > 1 {
			out = append(out, ',')
		}
		out = append(out, t.taskCalls.json(j)...)
	}
	out = append(out, ']')
	if len(all) == taskPage {
		out = append(append(out, `,"nextCursor":`...), mcp.MustJSON(all[taskPage-1].ID)...)
	}
	return gate.MustDoc(string(append(out, '}'))), nil
}

// taskResult waits for the end of a task and answers what its call would have been
// answered. Meanwhile the client is asked what the task's server asks.
func (t *tasks) taskResult(ctx context.Context, p sessions.Client, j jobs.Job) (gate.Doc, error) {
	stop := t.askFor(ctx, p, j)
	_, err := t.cfg.Jobs.Wait(ctx, p.Who.Owner, j.ID)
	stop()
	if err != nil {
		return gate.Doc{}, t.taskError(ctx, err)
	}
	doc, err := t.recalled(ctx, p, j)
	if err != nil {
		return gate.Doc{}, t.taskError(ctx, err)
	}
	return mcp.Stamp(doc, mcp.MetaRelatedTask, relatedTask(j)), nil
}
