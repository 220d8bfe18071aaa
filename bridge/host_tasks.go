package bridge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/jobs"
)

// The requests about tasks (MCP 2025-11-25, basic/utilities/tasks). Clients are not told
// of changes, which is optional there: the SDK sends no notification that it does not know.
const (
	methodTaskGet    = "tasks/get"
	methodTaskResult = "tasks/result"
	methodTaskList   = "tasks/list"
	methodTaskCancel = "tasks/cancel"
)

var taskMethods = []string{methodTaskGet, methodTaskResult, methodTaskList, methodTaskCancel}

// metaRelatedTask names the task that a message is of, in its _meta.
const metaRelatedTask = "io.modelcontextprotocol/related-task"

// metaTask is where the task that a call asks for is put while the SDK has the call,
// which drops what it does not know beside the arguments.
const metaTask = "io.github.wasmgate/task"

const (
	// taskPoll is how often clients are advised to ask for a task.
	taskPoll = time.Second
	// taskPage is how many tasks are listed at once.
	taskPage = 100
)

// taskCapability is what a host with jobs declares.
const taskCapability = `{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}`

// declareTasks says to a client that connects that tools can be called as tasks.
func (h *Host) declareTasks(res mcp.Result, err error) (mcp.Result, error) {
	if h.cfg.Jobs == nil || err != nil {
		return res, err
	}
	doc, err := gate.ParseDoc(mustJSON(res))
	if err != nil {
		return nil, err
	}
	return &rawResult{doc: doc.With("capabilities", doc.Get("capabilities").With("tasks", []byte(taskCapability)).Raw())}, nil
}

// definition is how a tool is listed. Every tool can be called as a task, for it is
// the host that keeps it; what a server says of that itself stays as it is. Without a
// word of it clients must not (MCP 2025-11-25, basic/utilities/tasks, "Tool-Level
// Negotiation").
func (h *Host) definition(p peerInfo, t *gate.Tool) []byte {
	raw := t.Definition.Raw()
	if h.cfg.Jobs == nil || p.stateless || t.Feature != gate.FeatureTool || t.Relay || !t.Definition.Get("execution").IsZero() {
		return raw
	}
	return append(bytes.Clone(raw[:len(raw)-1]), `,"execution":{"taskSupport":"optional"}}`...)
}

// addTasks registers the methods with the SDK, which would not pass them on
// otherwise. They are answered by dispatch.
func (h *Host) addTasks(s *mcp.Server) {
	if h.cfg.Jobs == nil {
		return
	}
	for _, method := range taskMethods {
		err := mcp.AddReceivingCustomMethod(s, method, func(context.Context, *mcp.ServerSession, *taskParams) (*rawResult, error) {
			return nil, errors.New("not dispatched")
		})
		if err != nil {
			panic(err) // the SDK has come to know tasks: then it must be told otherwise
		}
	}
}

// taskParams are the parameters of a request about tasks, as they came.
type taskParams struct {
	mcp.ParamsBase
	doc gate.Doc
}

// UnmarshalJSON implements [json.Unmarshaler].
func (p *taskParams) UnmarshalJSON(b []byte) (err error) {
	p.doc, err = gate.ParseDoc(bytes.Clone(b))
	return err
}

// stowTask returns a message with the task that a call asks for where the SDK keeps it.
func stowTask(msg gate.Doc) []byte {
	params := msg.Get("params")
	task := params.Get("task")
	if task.IsZero() || msg.Get("method").Text() != string(gate.CallTool) {
		return msg.Raw()
	}
	meta := params.Get("_meta").With(metaTask, task.Raw())
	return msg.With("params", params.With("_meta", meta.Raw()).Raw()).Raw()
}

// stowTaskLine is stowTask for a line that is no document yet.
func stowTaskLine(text []byte) []byte {
	if !bytes.Contains(text, []byte(`"task"`)) {
		return text
	}
	msg, err := gate.ParseDoc(text)
	if err != nil {
		return text
	}
	return stowTask(msg)
}

// unstowTask undoes stowTask in the parameters of a call.
func unstowTask(params gate.Doc) gate.Doc {
	meta := params.Get("_meta")
	task := meta.Get(metaTask)
	if task.IsZero() {
		return params
	}
	return params.With("_meta", without(meta, metaTask, metaTask).Raw()).With("task", task.Raw())
}

// startTask carries out a call as a task, if its client asks for one: the answer is
// the task.
func (h *Host) startTask(ctx context.Context, p peerInfo, c gate.Call, task gate.Doc) (gate.Doc, error) {
	keep, ok := taskTTL(task)
	if !ok {
		return gate.Doc{}, &rpcError{code: codeInvalidParams, message: "invalid parameters: task is no object with a ttl in milliseconds, or without one"}
	}
	if h.cfg.Lookup != nil {
		if t, err := h.cfg.Lookup(ctx, c.Action, c.Name); err == nil && t.Relay {
			return gate.Doc{}, &rpcError{code: codeMethodNotFound, message: fmt.Sprintf("tool %.200q cannot be called as a task", c.Name)}
		}
	}
	j, err := h.cfg.Jobs.Start(ctx, h.cfg.Do, c, keep)
	if err != nil {
		return gate.Doc{}, h.unstarted(ctx, p, c, err)
	}
	return gate.MustDoc(`{"task":` + string(taskJSON(j)) + `}`), nil
}

// unstarted is the error of a task that was refused before there was one. A client that
// has asked for a task takes no result of a tool for the answer.
func (h *Host) unstarted(ctx context.Context, p peerInfo, c gate.Call, err error) error {
	if _, other := h.failed(ctx, p, c, err); other != nil {
		return other
	}
	return &rpcError{code: codeRefused, message: Public(err), data: mustJSON(map[string]any{gate.MetaRefusal: refusalOf(c.ID, err)})}
}

// maxTTL bounds what is made of a ttl, in milliseconds: a year, far beyond what is kept.
const maxTTL = 365 * 24 * 3600 * 1000

// taskTTL returns how long a client wants a task to be kept; zero if it does not say.
func taskTTL(task gate.Doc) (time.Duration, bool) {
	ttl := task.Get("ttl")
	if ttl.IsZero() || ttl.Kind() == gate.Null {
		return 0, task.Kind() == gate.Object
	}
	ms, err := strconv.ParseFloat(ttl.String(), 64)
	if ttl.Kind() != gate.Number || err != nil || ms <= 0 {
		return 0, false
	}
	return max(time.Millisecond, time.Duration(min(ms, maxTTL)*float64(time.Millisecond))), true
}

// taskJSON is a job as a task of MCP.
func taskJSON(j jobs.Job) []byte {
	const form = "2006-01-02T15:04:05.000Z"
	task := map[string]any{
		"taskId": j.ID, "status": taskStatus(j), "createdAt": j.Started.UTC().Format(form),
		"lastUpdatedAt": j.Started.UTC().Format(form), "ttl": j.Keep.Milliseconds(), "pollInterval": taskPoll.Milliseconds(),
	}
	if j.Terminal() {
		task["lastUpdatedAt"] = j.Ended.UTC().Format(form)
	}
	if j.Reason != "" {
		task["statusMessage"] = j.Reason
	}
	return mustJSON(task)
}

func taskStatus(j jobs.Job) string {
	if j.State == jobs.Running {
		return "working"
	}
	return string(j.State)
}

// tasks answers a request about tasks. To all but the principal who started one it
// does not exist.
func (h *Host) tasks(ctx context.Context, p peerInfo, method string, params gate.Doc) (gate.Doc, error) {
	if method == methodTaskList {
		return h.listTasks(ctx, p, params.Get("cursor"))
	}
	id := params.Get("taskId")
	if id.Kind() != gate.String {
		return gate.Doc{}, &rpcError{code: codeInvalidParams, message: "invalid parameters: taskId is no string"}
	}
	j, err := h.cfg.Jobs.Status(ctx, p.who.Owner, id.Text())
	if err == nil && method == methodTaskResult {
		return h.taskResult(ctx, p, j.ID)
	}
	if err == nil && method == methodTaskCancel {
		if j.Terminal() {
			return gate.Doc{}, &rpcError{code: codeInvalidParams, message: "the task has ended already: it is " + taskStatus(j)}
		}
		j, err = h.cfg.Jobs.Cancel(ctx, p.who.Owner, j.ID)
	}
	if err == nil && j.Expired {
		err = &jobs.HandleError{ID: j.ID, Expired: true}
	}
	if err != nil {
		return gate.Doc{}, h.taskError(ctx, err)
	}
	return gate.MustDoc(string(taskJSON(j))), nil
}

// taskError is the answer to a request about a task that cannot be answered.
func (h *Host) taskError(ctx context.Context, err error) error {
	if handle, ok := errors.AsType[*jobs.HandleError](err); ok {
		if handle.Expired {
			return &rpcError{code: codeInvalidParams, message: "the task has expired"}
		}
		return &rpcError{code: codeInvalidParams, message: "there is no such task"}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	h.cfg.Log.Error("tasks failed", "error", err)
	return &rpcError{code: codeInternal, message: "the tasks cannot be read"}
}

func (h *Host) listTasks(ctx context.Context, p peerInfo, cursor gate.Doc) (gate.Doc, error) {
	if !cursor.IsZero() && cursor.Kind() != gate.String {
		return gate.Doc{}, &rpcError{code: codeInvalidParams, message: "invalid parameters: cursor is no string"}
	}
	all, err := h.cfg.Jobs.List(ctx, p.who.Owner, cursor.Text(), taskPage)
	if err != nil {
		return gate.Doc{}, h.taskError(ctx, err)
	}
	out := []byte(`{"tasks":[`)
	n := 0
	for _, j := range all {
		if j.Expired {
			continue
		}
		if n++; n > 1 {
			out = append(out, ',')
		}
		out = append(out, taskJSON(j)...)
	}
	out = append(out, ']')
	if len(all) == taskPage {
		out = append(append(out, `,"nextCursor":`...), mustJSON(all[taskPage-1].ID)...)
	}
	return gate.MustDoc(string(append(out, '}'))), nil
}

// taskResult waits for the end of a task and answers what its call would have been
// answered. The session that reads it learns what the result teaches.
func (h *Host) taskResult(ctx context.Context, p peerInfo, id string) (gate.Doc, error) {
	if _, err := h.cfg.Jobs.Wait(ctx, p.who.Owner, id); err != nil {
		return gate.Doc{}, h.taskError(ctx, err)
	}
	j, res, err := h.cfg.Jobs.Result(ctx, p.who.Owner, id)
	if err != nil {
		return gate.Doc{}, h.taskError(ctx, err)
	}
	if err := h.cfg.Recall(ctx, p.key(), j.Call, res); err != nil {
		return gate.Doc{}, h.taskError(ctx, err)
	}
	doc := res.Doc
	if doc.IsZero() {
		doc = NoResult(j)
	}
	return stamped(withoutTask(p.complete(doc)), metaRelatedTask, mustJSON(map[string]string{"taskId": j.ID})), nil
}

// NoResult is the result of a job that has none: that of a call which failed.
func NoResult(j jobs.Job) gate.Doc {
	return failureResult(j.Reason, map[string]any{"code": j.Code, "reason": j.Reason, "record_id": j.Call})
}
