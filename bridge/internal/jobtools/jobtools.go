// Package jobtools implements the tools of the server jobs. With them clients start calls that
// outlive their requests, wait for them, and fetch their results.
//
// The tools need no grant: the calls that they start do. Package bridge/jobs implements the jobs
// themselves. Clients that know MCP's tasks use those instead, from package host.
package jobtools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/host/dispatch"
	"github.com/wasmgate/wasmgate/bridge/jobs"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

// Parts are what the tools need in addition to jobs.
type Parts struct {
	// Offered reports whether the client of a call may know of the calls of a tool.
	Offered func(ctx context.Context, c *gate.Call, tool string) bool
	// Hold returns the context of what somebody has started, until done is called: it ends
	// with their credential.
	Hold func(ctx context.Context, c *gate.Call) (_ context.Context, done func())
}

type tools struct {
	jobs *jobs.Runner
	Parts
}

const (
	// maxWait is how long jobs__wait waits at most: clients give up after a minute.
	maxWait = 55 * time.Second
	// perPage is how many jobs are listed at once.
	perPage = 50
)

// metaJob is the member of a result's _meta that names its job.
const metaJob = "io.github.wasmgate/job"

// New returns the tools.
func New(of *jobs.Runner, p Parts) []options.LocalTool {
	t := &tools{of, p}
	const (
		reads = `"annotations":{"readOnlyHint":true,"openWorldHint":false}`
		id    = `"job_id":{"type":"string","minLength":1,"maxLength":128,"description":"As jobs__start has returned it"}`
	)
	all := []struct {
		definition string
		call       func(context.Context, *gate.Call, gate.Permit) (gate.Result, error)
	}{
		{`{"name":"start","title":"Start a job","description":"Calls a tool in the background and returns the handle of a job at once. Wait for it with jobs__wait, and fetch what came of it with jobs__result.",
			"inputSchema":{"type":"object","required":["tool"],"additionalProperties":false,"properties":{
				"tool":{"type":"string","minLength":1,"maxLength":256,"description":"Name of the tool, as it is listed"},
				"arguments":{"type":"object","description":"Its arguments"},
				"ttl_ms":{"type":"integer","minimum":1,"description":"How long the outcome is to be kept after the end, in milliseconds; as long as the gateway does if it is absent"}}},
			"annotations":{"openWorldHint":true}}`, t.start},
		{`{"name":"status","title":"How a job is","description":"Returns at once how a job is: running, completed, failed or cancelled.",
			"inputSchema":{"type":"object","required":["job_id"],"additionalProperties":false,"properties":{` + id + `}},` + reads + `}`, t.status},
		{`{"name":"wait","title":"Wait for a job","description":"Waits until a job has ended, and returns how it is. If it still runs after timeout_ms, call this again.",
			"inputSchema":{"type":"object","required":["job_id"],"additionalProperties":false,"properties":{` + id + `,
				"timeout_ms":{"type":"integer","minimum":0,"maximum":55000,"default":55000,"description":"How long to wait, in milliseconds"}}},` + reads + `}`, t.wait},
		{`{"name":"result","title":"What came of a job","description":"Returns the result of the tool that a job has called, once it has ended.",
			"inputSchema":{"type":"object","required":["job_id"],"additionalProperties":false,"properties":{` + id + `}},` + reads + `}`, t.result},
		{`{"name":"cancel","title":"Cancel a job","description":"Ends a job that runs. One that has ended stays as it is.",
			"inputSchema":{"type":"object","required":["job_id"],"additionalProperties":false,"properties":{` + id + `,
				"reason":{"type":"string","maxLength":500,"description":"Why, which is kept with the job"}}},
			"annotations":{"readOnlyHint":false,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}}`, t.cancel},
		{`{"name":"list","title":"List jobs","description":"Lists your jobs, the newest first, in pages.",
			"inputSchema":{"type":"object","additionalProperties":false,"properties":{
				"after":{"type":"string","maxLength":128,"description":"The job_id after which to go on: next of the page before"}}},` + reads + `}`, t.list},
	}
	locals := make([]options.LocalTool, len(all))
	for i, one := range all {
		locals[i] = options.LocalTool{Definition: gate.MustDoc(one.definition), Relay: true, Call: one.call}
	}
	return locals
}

func (t *tools) start(ctx context.Context, c *gate.Call, p gate.Permit) (gate.Result, error) {
	inner := *c
	if c.Client != nil {
		inner.Client = approving{c.Client}
	}
	inner.ID, inner.Name, inner.Args = "", c.Args.Get("tool").Text(), c.Args.Get("arguments")
	relay := func(ctx context.Context, c gate.Call) (gate.Result, error) { // which outlives the call that starts it
		ctx, done := t.Hold(ctx, &c)
		defer done()
		return p.Relay(ctx, c)
	}
	j, err := t.jobs.Start(ctx, relay, inner, milliseconds(c.Args.Get("ttl_ms"), 0))
	if err != nil {
		return gate.Result{}, err
	}
	return told(statusOf(j), false)
}

// approving is the client of a call, without the capability to answer servers: a server's question
// would come after the call has ended.
type approving struct{ gate.Client }

// Reach implements [gate.Client].
func (a approving) Reach() gate.Reach {
	r := a.Client.Reach()
	r.Capabilities = gate.Doc{}
	return r
}

// milliseconds reads a duration that the schema has found to be an integer. One that
// is longer than a year is a year.
func milliseconds(d gate.Doc, otherwise time.Duration) time.Duration {
	const year = 365 * 24 * time.Hour
	if d.IsZero() {
		return otherwise
	}
	var n float64
	if _, err := fmt.Sscan(d.String(), &n); err != nil || n > float64(year.Milliseconds()) {
		return year
	}
	return time.Duration(n) * time.Millisecond
}

// jobOf returns the job that a call is about. For a client that is not offered its tool
// there is none.
func (t *tools) jobOf(ctx context.Context, c *gate.Call) (jobs.Job, error) {
	id := c.Args.Get("job_id").Text()
	j, err := t.jobs.Status(ctx, c.Who.Owner, id)
	if err == nil && !t.Offered(ctx, c, j.Tool) {
		err = &jobs.HandleError{ID: id}
	}
	return j, err
}

func (t *tools) status(ctx context.Context, c *gate.Call, _ gate.Permit) (gate.Result, error) {
	return toldOf(t.jobOf(ctx, c))
}

func (t *tools) wait(ctx context.Context, c *gate.Call, _ gate.Permit) (gate.Result, error) {
	waits, cancel := context.WithTimeout(ctx, min(milliseconds(c.Args.Get("timeout_ms"), maxWait), maxWait))
	defer cancel()
	j, err := t.jobOf(ctx, c)
	if err == nil {
		j, err = t.jobs.Wait(waits, c.Who.Owner, j.ID)
	}
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		j, err = t.jobOf(ctx, c)
	}
	return toldOf(j, err)
}

func (t *tools) cancel(ctx context.Context, c *gate.Call, _ gate.Permit) (gate.Result, error) {
	j, err := t.jobOf(ctx, c)
	if err == nil {
		j, err = t.jobs.Cancel(ctx, c.Who.Owner, j.ID, c.Args.Get("reason").Text())
	}
	return toldOf(j, err)
}

func (t *tools) list(ctx context.Context, c *gate.Call, _ gate.Permit) (gate.Result, error) {
	all, err := t.jobs.List(ctx, c.Who.Owner, c.Args.Get("after").Text(), perPage)
	if err != nil {
		return toldOf(jobs.Job{}, err)
	}
	list := make([]map[string]any, 0, len(all))
	for _, j := range all {
		if t.Offered(ctx, c, j.Tool) {
			list = append(list, statusOf(j))
		}
	}
	page := map[string]any{"jobs": list}
	if len(all) == perPage {
		page["next"] = all[perPage-1].ID
	}
	return told(page, false)
}

// maxError bounds the words of a tool in the state of its job, in bytes.
const maxError = 500

// result returns the result of a job's call as it was, except that _meta names the job. The session
// that reads it learns its labels.
func (t *tools) result(ctx context.Context, c *gate.Call, p gate.Permit) (gate.Result, error) {
	j, err := t.jobOf(ctx, c)
	if err != nil {
		return toldOf(j, err)
	}
	j, kept, err := t.jobs.Result(ctx, c.Who.Owner, j.ID)
	if errors.Is(err, jobs.ErrRunning) {
		status := statusOf(j)
		status["code"], status["message"] = "job_not_finished", "The job is running. Wait for it with jobs__wait."
		return told(status, true)
	}
	if err != nil {
		return toldOf(j, err)
	}
	if kept.Doc.IsZero() {
		kept.Doc, kept.IsError = dispatch.NoResult(j), true
	}
	of := map[string]any{"job_id": j.ID, "status": j.State, "lifecycle_status": j.State, "is_terminal": true, "record_id": j.Call}
	if j.Reason != "" {
		of["error"] = j.Reason
	}
	if text := kept.Doc.At("/content/0/text").Text(); kept.IsError && text != "" { // the tool's own words, which only the result has
		of["error"] = strings.ToValidUTF8(text[:min(len(text), maxError)], "")
	}
	meta := kept.Doc.Get("_meta")
	if meta.Kind() != doc.Object {
		meta = gate.Doc{}
	}
	word, err := document(of)
	if err != nil {
		return gate.Result{}, err
	}
	kept.Doc = kept.Doc.With("_meta", meta.With(metaJob, word.Raw()).Raw())
	return p.Recall(ctx, kept)
}

// statusOf is how a job is, in the words of its tools.
func statusOf(j jobs.Job) map[string]any {
	status := map[string]any{
		"job_id": j.ID, "tool": j.Tool, "lifecycle_status": j.State, "is_terminal": j.Terminal(),
		"result_available": j.Terminal() && j.Size > 0, "started": j.Started.UTC().Format(time.RFC3339Nano), "record_id": j.Call,
	}
	if j.Terminal() {
		status["ended"] = j.Ended.UTC().Format(time.RFC3339Nano)
		status["expires"] = j.Expires().UTC().Format(time.RFC3339Nano)
		status["expired"] = j.Expired
	}
	if j.Reason != "" {
		status["reason"] = j.Reason
	}
	return status
}

// toldOf tells how a job is, or that there is none.
func toldOf(j jobs.Job, err error) (gate.Result, error) {
	handle, ok := errors.AsType[*jobs.HandleError](err)
	switch {
	case ok && handle.Expired:
		return told(handleWords(handle, "expired", "Job handle expired: %s. Result unavailable.", "expired"), true)
	case ok:
		return told(handleWords(handle, "invalid", "Job handle not found: %s. Result unavailable.", "not_found"), true)
	case err != nil:
		return gate.Result{}, err
	}
	return told(statusOf(j), false)
}

// handleWords say that a handle is of no use. Scripts hold on to them.
func handleWords(h *jobs.HandleError, status, message, reason string) map[string]any {
	return map[string]any{
		"code": h.Code(), "message": fmt.Sprintf(message, h.ID), "job_id": h.ID, "lifecycle_status": status,
		"is_terminal": true, "result_available": false, "reason": reason,
	}
}

// told is a result that says something as structured content, and as text: its message
// if there is one.
func told(v map[string]any, failed bool) (gate.Result, error) {
	content, err := document(v)
	if err != nil {
		return gate.Result{}, err
	}
	text := content.String()
	if message, ok := v["message"].(string); ok {
		text = message
	}
	doc, err := document(map[string]any{
		"content": []any{map[string]string{"type": "text", "text": text}}, "structuredContent": content, "isError": failed,
	})
	return gate.Result{Doc: doc, IsError: failed}, err
}

func document(v any) (gate.Doc, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return gate.Doc{}, err
	}
	return gate.ParseDoc(b)
}
