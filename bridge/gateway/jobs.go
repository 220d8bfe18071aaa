package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/host"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/jobs"
)

// Jobs says how calls are kept that outlive the request that started them.
type Jobs struct {
	// Open opens what they are kept in, which ends with the gateway, such as a file of
	// package bridge/sqlite; nil keeps them in memory.
	Open func(context.Context) (JobStore, error)
	// Offer has the tools of the server jobs offered: jobs__start and so on.
	Offer bool
	// NoTasks does not offer clients to call tools as tasks (MCP 2025-11-25,
	// basic/utilities/tasks; 2026-07-28, the extension of that name).
	NoTasks bool
	// Options bound them; New sets the Store and Public, and the Log if it is nil.
	Options jobs.Options
}

// A JobStore keeps jobs.
type JobStore interface {
	jobs.Store
	io.Closer
}

// JobServer is the server of the tools that start jobs and fetch their outcomes.
const JobServer = "jobs"

// Relays reports whether the tools of a server carry out calls of others: then it is of the
// gateway's own.
func Relays(server string) bool { return server == CatalogServer || server == JobServer }

// newJobs opens what jobs are kept in. Those that an earlier run has left are failed.
func (g *Gateway) newJobs(ctx context.Context) (err error) {
	if g.cfg.Jobs == nil {
		return nil
	}
	g.store = new(jobs.Memory)
	if open := g.cfg.Jobs.Open; open != nil {
		if g.store, err = open(ctx); err != nil {
			return err
		}
	}
	o := g.cfg.Jobs.Options
	o.Store, o.Public = g.store, Public
	if o.Log == nil {
		o.Log = g.cfg.Log
	}
	g.jobs, err = jobs.New(ctx, o)
	return err
}

// setJobs puts what is said of jobs in place, but where they are kept. The caller holds
// setting.
func (g *Gateway) setJobs(next *Jobs) error {
	if g.jobs == nil {
		return nil
	}
	if next == nil {
		next = &Jobs{NoTasks: true}
	}
	g.jobs.Change(next.Options.Keep, next.Options.Max, next.Options.MaxSize)
	before := g.jobsOffered
	if before == next.Offer {
		return nil
	}
	g.jobsOffered = next.Offer
	if before {
		return g.fleet.Remove(JobServer)
	}
	return g.addLocal(JobServer, g.jobTools())
}

// Jobs counts the jobs that run, and those whose outcome is kept.
func (g *Gateway) Jobs() (jobs.Counts, error) {
	if g.jobs == nil {
		return jobs.Counts{}, nil
	}
	return g.jobs.Counts(g.life)
}

const (
	// jobWait is how long jobs__wait waits at most: clients give up after a minute.
	jobWait = 55 * time.Second
	// jobPage is how many jobs are listed at once.
	jobPage = 50
)

// metaJob is the member of a result's _meta that says of which job it is.
const metaJob = "io.github.wasmgate/job"

// jobTools are the tools of the server jobs. They need no grant: what they start does.
func (g *Gateway) jobTools() []LocalTool {
	const (
		reads = `"annotations":{"readOnlyHint":true,"openWorldHint":false}`
		id    = `"job_id":{"type":"string","minLength":1,"maxLength":128,"description":"As jobs__start has returned it"}`
	)
	tools := []struct {
		definition string
		call       func(context.Context, *gate.Call, gate.Permit) (gate.Result, error)
	}{
		{`{"name":"start","title":"Start a job","description":"Calls a tool in the background and returns the handle of a job at once. Wait for it with jobs__wait, and fetch what came of it with jobs__result.",
			"inputSchema":{"type":"object","required":["tool"],"additionalProperties":false,"properties":{
				"tool":{"type":"string","minLength":1,"maxLength":256,"description":"Name of the tool, as it is listed"},
				"arguments":{"type":"object","description":"Its arguments"},
				"ttl_ms":{"type":"integer","minimum":1,"description":"How long the outcome is to be kept after the end, in milliseconds; as long as the gateway does if it is absent"}}},
			"annotations":{"openWorldHint":true}}`, g.startJob},
		{`{"name":"status","title":"How a job is","description":"Returns at once how a job is: running, completed, failed or cancelled.",
			"inputSchema":{"type":"object","required":["job_id"],"additionalProperties":false,"properties":{` + id + `}},` + reads + `}`, g.jobStatus},
		{`{"name":"wait","title":"Wait for a job","description":"Waits until a job has ended, and returns how it is. If it still runs after timeout_ms, call this again.",
			"inputSchema":{"type":"object","required":["job_id"],"additionalProperties":false,"properties":{` + id + `,
				"timeout_ms":{"type":"integer","minimum":0,"maximum":55000,"default":55000,"description":"How long to wait, in milliseconds"}}},` + reads + `}`, g.waitForJob},
		{`{"name":"result","title":"What came of a job","description":"Returns the result of the tool that a job has called, once it has ended.",
			"inputSchema":{"type":"object","required":["job_id"],"additionalProperties":false,"properties":{` + id + `}},` + reads + `}`, g.jobResult},
		{`{"name":"cancel","title":"Cancel a job","description":"Ends a job that runs. One that has ended stays as it is.",
			"inputSchema":{"type":"object","required":["job_id"],"additionalProperties":false,"properties":{` + id + `}},
			"annotations":{"readOnlyHint":false,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}}`, g.cancelJob},
		{`{"name":"list","title":"List jobs","description":"Lists your jobs, the newest first, in pages.",
			"inputSchema":{"type":"object","additionalProperties":false,"properties":{
				"after":{"type":"string","maxLength":128,"description":"The job_id after which to go on: next of the page before"}}},` + reads + `}`, g.listJobs},
	}
	locals := make([]LocalTool, len(tools))
	for i, t := range tools {
		locals[i] = LocalTool{Definition: gate.MustDoc(t.definition), Relay: true, Call: t.call}
	}
	return locals
}

func (g *Gateway) startJob(ctx context.Context, c *gate.Call, p gate.Permit) (gate.Result, error) {
	inner := *c
	inner.Peer = nil // the client's answer would come to a call that has ended
	inner.ID, inner.Name, inner.Args = "", c.Args.Get("tool").Text(), c.Args.Get("arguments")
	relay := func(ctx context.Context, c gate.Call) (gate.Result, error) { // which outlives the call that starts it
		ctx, done := g.held.begin(ctx, c.Who)
		defer done()
		return p.Relay(ctx, c)
	}
	j, err := g.jobs.Start(ctx, relay, inner, milliseconds(c.Args.Get("ttl_ms"), 0))
	if err != nil {
		return gate.Result{}, err
	}
	return told(statusOf(j), false)
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

// offers reports whether the client of a call may know of the calls of a tool.
func (g *Gateway) offers(ctx context.Context, c *gate.Call, tool string) bool {
	return host.Offered(ctx, g.fleet.Lookup, tool, c.Who.Groups, c.Groups)
}

// jobOf returns the job that a call is about. For a client that is not offered its tool
// there is none.
func (g *Gateway) jobOf(ctx context.Context, c *gate.Call) (jobs.Job, error) {
	id := c.Args.Get("job_id").Text()
	j, err := g.jobs.Status(ctx, c.Who.Owner, id)
	if err == nil && !g.offers(ctx, c, j.Tool) {
		err = &jobs.HandleError{ID: id}
	}
	return j, err
}

func (g *Gateway) jobStatus(ctx context.Context, c *gate.Call, _ gate.Permit) (gate.Result, error) {
	return toldOf(g.jobOf(ctx, c))
}

func (g *Gateway) waitForJob(ctx context.Context, c *gate.Call, _ gate.Permit) (gate.Result, error) {
	waits, cancel := context.WithTimeout(ctx, min(milliseconds(c.Args.Get("timeout_ms"), jobWait), jobWait))
	defer cancel()
	j, err := g.jobOf(ctx, c)
	if err == nil {
		j, err = g.jobs.Wait(waits, c.Who.Owner, j.ID)
	}
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		j, err = g.jobOf(ctx, c)
	}
	return toldOf(j, err)
}

func (g *Gateway) cancelJob(ctx context.Context, c *gate.Call, _ gate.Permit) (gate.Result, error) {
	j, err := g.jobOf(ctx, c)
	if err == nil {
		j, err = g.jobs.Cancel(ctx, c.Who.Owner, j.ID)
	}
	return toldOf(j, err)
}

func (g *Gateway) listJobs(ctx context.Context, c *gate.Call, _ gate.Permit) (gate.Result, error) {
	all, err := g.jobs.List(ctx, c.Who.Owner, c.Args.Get("after").Text(), jobPage)
	if err != nil {
		return toldOf(jobs.Job{}, err)
	}
	list := make([]map[string]any, 0, len(all))
	for _, j := range all {
		if g.offers(ctx, c, j.Tool) {
			list = append(list, statusOf(j))
		}
	}
	page := map[string]any{"jobs": list}
	if len(all) == jobPage {
		page["next"] = all[jobPage-1].ID
	}
	return told(page, false)
}

// jobResult returns the result of a job's call as it was, with a word in _meta of which
// job it is. The session that reads it learns its labels.
func (g *Gateway) jobResult(ctx context.Context, c *gate.Call, p gate.Permit) (gate.Result, error) {
	j, err := g.jobOf(ctx, c)
	if err != nil {
		return toldOf(j, err)
	}
	j, kept, err := g.jobs.Result(ctx, c.Who.Owner, j.ID)
	if errors.Is(err, jobs.ErrRunning) {
		status := statusOf(j)
		status["code"], status["message"] = "job_not_finished", "The job is running. Wait for it with jobs__wait."
		return told(status, true)
	}
	if err != nil {
		return toldOf(j, err)
	}
	if kept.Doc.IsZero() {
		kept.Doc, kept.IsError = host.NoResult(j), true
	}
	of := map[string]any{"job_id": j.ID, "status": j.State, "lifecycle_status": j.State, "is_terminal": true, "record_id": j.Call}
	if j.Reason != "" {
		of["error"] = j.Reason
	}
	meta := kept.Doc.Get("_meta")
	if meta.Kind() != gate.Object {
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
