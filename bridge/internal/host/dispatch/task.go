package dispatch

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/host/message"
	"github.com/wasmgate/wasmgate/bridge/internal/host/sessions"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/jobs"
	"github.com/wasmgate/wasmgate/gate"
)

// taskPoll is how often clients are advised to ask for a task.
const taskPoll = time.Second

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
func (t *taskCalls) view(j jobs.Job) (v taskView, requests gate.Doc) {
	const form = "2006-01-02T15:04:05.000Z"
	v = taskView{ID: j.ID, Status: mcp.TaskWorking, Message: j.Reason, Created: j.Started.UTC().Format(form)}
	updated := j.Started
	switch k := t.of(j); {
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

// json is a job as a task of MCP 2025-11-25.
func (t *taskCalls) json(j jobs.Job) []byte {
	v, _ := t.view(j)
	v.TTL, v.Poll = new(j.Keep.Milliseconds()), taskPoll.Milliseconds()
	return mcp.MustJSON(v)
}

// task returns a task of a client's principal that the client may know of.
func (t *tasks) task(ctx context.Context, p sessions.Client, id string) (jobs.Job, error) {
	j, err := t.cfg.Jobs.Status(ctx, p.Who.Owner, id)
	switch {
	case err != nil:
		return jobs.Job{}, err
	case !Offered(ctx, t.cfg.Lookup, j.Tool, p.Who.Groups, p.Groups):
		return jobs.Job{}, &jobs.HandleError{ID: id}
	case j.Expired:
		return jobs.Job{}, &jobs.HandleError{ID: id, Expired: true}
	}
	return j, nil
}

// Offered reports whether a client that is offered some groups may know of the calls of a tool: a
// client that is not offered the tool must not learn their results. A tool that no longer exists is
// in no group.
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
func (t *tasks) taskError(ctx context.Context, err error) error {
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
	t.cfg.Log.Error("tasks not read", "error", err)
	return &mcp.Error{Code: mcp.CodeInternal, Message: "the tasks cannot be read"}
}

// relatedTask is the value of a message's _meta that names its task.
func relatedTask(j jobs.Job) []byte { return mcp.MustJSON(map[string]string{"taskId": j.ID}) }

// recalled returns the result of a task that has ended. The session that reads it learns
// what it teaches.
func (t *tasks) recalled(ctx context.Context, p sessions.Client, j jobs.Job) (gate.Doc, error) {
	j, res, err := t.cfg.Jobs.Result(ctx, p.Who.Owner, j.ID)
	if err != nil {
		return gate.Doc{}, err
	}
	c := p.Call("", "")
	c.ID = j.Call
	if err := t.cfg.Recall(ctx, c, res); err != nil {
		return gate.Doc{}, err
	}
	doc := res.Doc
	if doc.IsZero() {
		doc = NoResult(j)
	}
	return mcp.WithoutTask(p.Complete(doc)), nil
}

// NoResult is the result of a job that has none: that of a call which failed.
func NoResult(j jobs.Job) gate.Doc {
	return message.FailureResult(j.Reason, map[string]any{"code": j.Code, "record_id": j.Call})
}
