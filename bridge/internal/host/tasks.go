package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/doc"
	"github.com/wasmgate/wasmgate/internal/jobs"
	"github.com/wasmgate/wasmgate/internal/meta"
)

// Requests about tasks of 2026-07-28 are in tasks_ext.go. Clients of 2025-11-25 are not
// told of changes, which is optional there.

const (
	// taskPoll is how often clients are advised to ask for a task.
	taskPoll = time.Second
	// taskPage is how many tasks are listed at once.
	taskPage = 100
)

// taskCapability is what a host with jobs declares.
const taskCapability = `{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}`

// startTask carries out a call as a task, if its client asks for one: the answer is
// the task.
func (h *Host) startTask(ctx context.Context, p client, c gate.Call, task gate.Doc) (gate.Doc, error) {
	keep, ok := taskTTL(task)
	if !ok {
		return gate.Doc{}, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "invalid parameters: task is no object with a ttl in milliseconds, or without one"}
	}
	if h.relays(ctx, &c) {
		return gate.Doc{}, &mcp.Error{Code: mcp.CodeMethodNotFound, Message: fmt.Sprintf("tool %.200q cannot be called as a task", c.Name)}
	}
	k := &parked{host: h, call: c, client: c.Client, reach: c.Reach(), mayBeTask: true, task: true}
	c.Client = k
	do := func(ctx context.Context, c gate.Call) (gate.Result, error) {
		h.taskCalls.enter(k)
		defer h.taskCalls.leave(k)
		return h.cfg.Do(ctx, c)
	}
	j, err := h.cfg.Jobs.Start(ctx, do, c, keep)
	if err != nil {
		return gate.Doc{}, h.startError(ctx, p, c, err)
	}
	return gate.MustDoc(`{"task":` + string(h.taskJSON(j)) + `}`), nil
}

// relays reports whether a call is one of a tool that makes calls itself: such a tool is
// no task.
func (h *Host) relays(ctx context.Context, c *gate.Call) bool {
	if h.cfg.Lookup == nil {
		return false
	}
	t, err := h.cfg.Lookup(ctx, c.Action, c.Name)
	return err == nil && t.Relay
}

// startError is the error of a task that was refused before there was one. A client that
// has asked for a task takes no result of a tool for the answer.
func (h *Host) startError(ctx context.Context, p client, c gate.Call, err error) error {
	if _, other := h.failed(ctx, p, c, err); other != nil {
		return other
	}
	return &mcp.Error{Code: codeRefused, Message: Public(err), Data: mcp.MustJSON(map[string]any{meta.Refusal: refusalOf(c.ID, err)})}
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

// A taskView is how a job is, as a task of MCP.
type taskView struct {
	ID      string `json:"taskId"`
	Status  string `json:"status"`
	Message string `json:"statusMessage,omitempty"`
	Created string `json:"createdAt"`
	Updated string `json:"lastUpdatedAt"`
	// In milliseconds; only those of one revision are set.
	TTL    *int64 `json:"ttl,omitempty"`
	Poll   int64  `json:"pollInterval,omitempty"`
	TTLMs  *int64 `json:"ttlMs,omitempty"`
	PollMs int64  `json:"pollIntervalMs,omitempty"`
}

// view returns how a job is, and what its server waits for, if it waits for its client.
func (h *Host) view(j jobs.Job) (v taskView, requests gate.Doc) {
	const form = "2006-01-02T15:04:05.000Z"
	v = taskView{ID: j.ID, Status: mcp.TaskWorking, Message: j.Reason, Created: j.Started.UTC().Format(form)}
	updated := j.Started
	switch k := h.taskCalls.of(j); {
	case j.Terminal():
		v.Status, updated = string(j.State), j.Ended
	case k != nil:
		all, asks, at := k.Requests()
		if asks {
			v.Status, requests = mcp.TaskInput, all
		}
		if at.After(updated) {
			updated = at
		}
	}
	v.Updated = updated.UTC().Format(form)
	return v, requests
}

// taskJSON is a job as a task of MCP 2025-11-25.
func (h *Host) taskJSON(j jobs.Job) []byte {
	v, _ := h.view(j)
	v.TTL, v.Poll = new(j.Keep.Milliseconds()), taskPoll.Milliseconds()
	return mcp.MustJSON(v)
}

// tasks answers a request about tasks. To all but the principal who started one it
// does not exist, nor does it for a client that is not offered its tool.
func (h *Host) tasks(ctx context.Context, p client, method string, params gate.Doc) (gate.Doc, error) {
	if p.stateless && !declaresTasks(params.Get("_meta")) {
		return gate.Doc{}, lacksTasks()
	}
	if method == mcp.MethodTaskList {
		return h.listTasks(ctx, p, params.Get("cursor"))
	}
	id := params.Get("taskId")
	if id.Kind() != doc.String {
		return gate.Doc{}, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "invalid parameters: taskId is no string"}
	}
	j, err := h.task(ctx, p, id.Text())
	switch {
	case err != nil:
	case p.stateless:
		return h.extTask(ctx, p, j, method, params)
	case method == mcp.MethodTaskResult:
		return h.taskResult(ctx, p, j)
	case method == mcp.MethodTaskCancel && j.Terminal():
		return gate.Doc{}, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "the task has ended already: it is " + string(j.State)}
	case method == mcp.MethodTaskCancel:
		j, err = h.cfg.Jobs.Cancel(ctx, p.who.Owner, j.ID)
	}
	if err != nil {
		return gate.Doc{}, h.taskError(ctx, err)
	}
	return gate.MustDoc(string(h.taskJSON(j))), nil
}

// task returns a task of a client's principal that the client may know of.
func (h *Host) task(ctx context.Context, p client, id string) (jobs.Job, error) {
	j, err := h.cfg.Jobs.Status(ctx, p.who.Owner, id)
	switch {
	case err != nil:
		return jobs.Job{}, err
	case !Offered(ctx, h.cfg.Lookup, j.Tool, p.who.Groups, p.groups):
		return jobs.Job{}, &jobs.HandleError{ID: id}
	case j.Expired:
		return jobs.Job{}, &jobs.HandleError{ID: id, Expired: true}
	}
	return j, nil
}

// Offered reports whether a client that is offered what is in some groups may know of the
// calls of a tool: who is not offered the tool is to learn nothing of what came of it. A
// tool that is there no more is in no group.
func Offered(ctx context.Context, lookup func(context.Context, gate.Action, string) (*gate.Tool, error), tool string, groups ...gate.Groups) bool {
	if !slices.ContainsFunc(groups, func(g gate.Groups) bool { return len(g) > 0 }) {
		return true
	}
	if lookup == nil {
		return false
	}
	t, err := lookup(ctx, gate.CallTool, tool)
	return err == nil && !slices.ContainsFunc(groups, func(g gate.Groups) bool { return !g.Has(t) })
}

// taskError is the answer to a request about a task that cannot be answered.
func (h *Host) taskError(ctx context.Context, err error) error {
	if handle, ok := errors.AsType[*jobs.HandleError](err); ok {
		if handle.Expired {
			return &mcp.Error{Code: mcp.CodeInvalidParams, Message: "the task has expired"}
		}
		return &mcp.Error{Code: mcp.CodeInvalidParams, Message: "there is no such task"}
	}
	if rpc, ok := errors.AsType[*mcp.Error](err); ok {
		return rpc
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	h.cfg.Log.Error("tasks not read", "error", err)
	return &mcp.Error{Code: mcp.CodeInternal, Message: "the tasks cannot be read"}
}

func (h *Host) listTasks(ctx context.Context, p client, cursor gate.Doc) (gate.Doc, error) {
	if !cursor.IsZero() && cursor.Kind() != doc.String {
		return gate.Doc{}, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "invalid parameters: cursor is no string"}
	}
	all, err := h.cfg.Jobs.List(ctx, p.who.Owner, cursor.Text(), taskPage)
	if err != nil {
		return gate.Doc{}, h.taskError(ctx, err)
	}
	out := []byte(`{"tasks":[`)
	n := 0
	for _, j := range all {
		if j.Expired || !Offered(ctx, h.cfg.Lookup, j.Tool, p.who.Groups, p.groups) {
			continue
		}
		if n++; n > 1 {
			out = append(out, ',')
		}
		out = append(out, h.taskJSON(j)...)
	}
	out = append(out, ']')
	if len(all) == taskPage {
		out = append(append(out, `,"nextCursor":`...), mcp.MustJSON(all[taskPage-1].ID)...)
	}
	return gate.MustDoc(string(append(out, '}'))), nil
}

// taskResult waits for the end of a task and answers what its call would have been
// answered. Meanwhile the client is asked what the task's server asks.
func (h *Host) taskResult(ctx context.Context, p client, j jobs.Job) (gate.Doc, error) {
	stop := h.askFor(ctx, p, j)
	_, err := h.cfg.Jobs.Wait(ctx, p.who.Owner, j.ID)
	stop()
	if err != nil {
		return gate.Doc{}, h.taskError(ctx, err)
	}
	doc, err := h.recalled(ctx, p, j)
	if err != nil {
		return gate.Doc{}, h.taskError(ctx, err)
	}
	return mcp.Stamp(doc, mcp.MetaRelatedTask, relatedTask(j)), nil
}

// relatedTask says of which task something is.
func relatedTask(j jobs.Job) []byte { return mcp.MustJSON(map[string]string{"taskId": j.ID}) }

// recalled returns the result of a task that has ended. The session that reads it learns
// what it teaches.
func (h *Host) recalled(ctx context.Context, p client, j jobs.Job) (gate.Doc, error) {
	j, res, err := h.cfg.Jobs.Result(ctx, p.who.Owner, j.ID)
	if err != nil {
		return gate.Doc{}, err
	}
	if err := h.cfg.Recall(ctx, p.key(), j.Call, res); err != nil {
		return gate.Doc{}, err
	}
	doc := res.Doc
	if doc.IsZero() {
		doc = NoResult(j)
	}
	return mcp.WithoutTask(p.complete(doc)), nil
}

// NoResult is the result of a job that has none: that of a call which failed.
func NoResult(j jobs.Job) gate.Doc {
	return failureResult(j.Reason, map[string]any{"code": j.Code, "reason": j.Reason, "record_id": j.Call})
}

// mayBeTask reports whether a call of a client without a session may become a task.
func (h *Host) mayBeTask(ctx context.Context, c *gate.Call) bool {
	return c.Action == gate.CallTool && declaresTasks(c.Meta) && h.OffersTasks() && !h.relays(ctx, c)
}
