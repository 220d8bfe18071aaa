package dispatch

import (
	"context"
	"errors"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/host/elicit"
	"github.com/wasmgate/wasmgate/bridge/internal/host/message"
	"github.com/wasmgate/wasmgate/bridge/internal/host/sessions"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/jobs"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

// In MCP 2026-07-28 tasks are an extension (ext-tasks, "Tasks"). It is the server that
// makes a task of a call, if the client says with the call that it knows of them: here,
// when the call's own server does, and when the call goes on for long. Until then the call
// is answered as any other.

// answersTasks reports whether a request about tasks is one that a client has, where there are tasks.
func answersTasks(p sessions.Client, method string) bool {
	if p.Stateless {
		return !message.OnlyWithSessions(method)
	}
	return method != mcp.MethodTaskUpdate
}

// toBeTask returns what says that the call is to become a task: its server, or that it
// goes on for long. Both never do if it may not.
func (k *parked) toBeTask(by *waiter) (tasked <-chan struct{}, long <-chan time.Time) {
	if k.tasked == nil || !by.tasks {
		return nil, nil
	}
	return k.tasked, time.After(k.carrier.cfg.TaskAfter)
}

// becomeTask leaves the call to the jobs and returns the answer to the request that waits for it. A
// call that cannot become a task, because there are too many, goes on as it is.
func (k *parked) becomeTask(ctx context.Context) (created gate.Doc, is bool) {
	k.turn.Lock()
	defer k.turn.Unlock()
	j, err := k.carrier.cfg.Jobs.Adopt(ctx, jobs.UnderWay{
		Call: k.call, Life: k.life, Cancel: k.cancel,
		Outcome: func() (gate.Result, error) {
			<-k.done
			return k.res, k.err
		},
	})
	if err != nil {
		if _, busy := errors.AsType[*gate.Refusal](err); !busy && ctx.Err() == nil {
			k.carrier.cfg.Log.Error("task not begun", "call", k.call.ID, "error", err)
		}
		return gate.Doc{}, false
	}
	k.task, k.waiter = true, nil
	k.carrier.parking.Leave(k)
	k.left()
	if ctx.Err() != nil { // no client learns of the task
		k.cancel(ctx.Err())
	}
	v, _ := k.carrier.taskCalls.view(j)
	v.Status = mcp.TaskWorking // its questions go only to a client that asks for the task
	return v.extended(j, mcp.ResultTask), true
}

// extended is how a job is, as a result of MCP 2026-07-28 of a type.
func (v taskView) extended(j jobs.Job, resultType string) gate.Doc {
	v.TTLMs, v.PollMs = new(j.Keep.Milliseconds()), taskPoll.Milliseconds()
	return gate.MustDoc(string(mcp.MustJSON(v))).With("resultType", mcp.MustJSON(resultType))
}

// extTask answers a request about a task of a client without a session.
func (t *tasks) extTask(ctx context.Context, p sessions.Client, j jobs.Job, method string, params gate.Doc) (gate.Doc, error) {
	var err error
	switch method {
	case mcp.MethodTaskGet:
		var doc gate.Doc
		if doc, err = t.detailed(ctx, p, j); err == nil {
			return doc, nil
		}
	case mcp.MethodTaskUpdate:
		err = t.updateTask(j, params.Get("inputResponses"))
	case mcp.MethodTaskCancel:
		_, err = t.cfg.Jobs.Cancel(ctx, p.Who.Owner, j.ID, "")
	}
	if err != nil {
		return gate.Doc{}, t.taskError(ctx, err)
	}
	return gate.MustDoc(`{"resultType":"complete"}`), nil
}

// detailed is a task with what it asks, or what came of it. A result of a tool is that,
// also one that reports a failure; what a request would be answered by a JSON-RPC error,
// has failed. The session that reads it learns what it teaches.
func (t *tasks) detailed(ctx context.Context, p sessions.Client, j jobs.Job) (gate.Doc, error) {
	v, requests := t.taskCalls.view(j)
	switch {
	case !requests.IsZero():
		return v.extended(j, mcp.ResultComplete).With("inputRequests", requests.Raw()), nil
	case !j.Terminal() || j.State == jobs.Cancelled:
		return v.extended(j, mcp.ResultComplete), nil
	case j.Lost():
		v.Status = mcp.TaskFailed
		lost := &mcp.Error{Code: mcp.CodeInternal, Message: j.Reason}
		return v.extended(j, mcp.ResultComplete).With("error", lost.JSON()), nil
	}
	res, err := t.recalled(ctx, p, j)
	if err != nil {
		return gate.Doc{}, err
	}
	if failed, ok := errors.AsType[*mcp.Error](answeredByError(res)); ok {
		v.Status = mcp.TaskFailed
		return v.extended(j, mcp.ResultComplete).With("error", failed.JSON()), nil
	}
	v.Status = mcp.TaskCompleted
	return v.extended(j, mcp.ResultComplete).With("result", res.Raw()), nil
}

// answeredByError returns the JSON-RPC error that a server has answered with, nil if its
// answer was a result, whatever a server has put into one that reports no failure.
func answeredByError(res gate.Doc) error {
	if !res.Get("isError").True() || res.Get("_meta").Get(mcp.MetaError).IsZero() {
		return nil
	}
	return message.ServerError(res)
}

// updateTask gives a task what its client answers. What answers no question that is open
// is passed over.
func (t *tasks) updateTask(j jobs.Job, responses gate.Doc) error {
	if responses.Kind() != doc.Object {
		return &mcp.Error{Code: mcp.CodeInvalidParams, Message: "invalid parameters: inputResponses is not an object"}
	}
	k := t.taskCalls.of(j)
	if k == nil {
		return nil
	}
	requests, _, _ := k.Requests()
	for key := range requests.Members() {
		if r := responses.Get(key); !r.IsZero() && !elicit.IsResponse(r) {
			return &mcp.Error{Code: mcp.CodeInvalidParams, Message: "invalid parameters: " + key + " in inputResponses is not a result of " + requests.Get(key).Get("method").Text()}
		}
	}
	k.Answer(responses)
	return nil
}
