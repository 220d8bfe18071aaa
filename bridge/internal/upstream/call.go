package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/bridge/fault"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/link"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/pace"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/rounds"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/underway"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wants"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

// A caller carries out calls over the connection of an endpoint.
type caller struct {
	*connector
	levels *wants.Levels // of a whole fleet
}

// invoke carries out a call over the endpoint's own connection.
func (ca *caller) invoke(ctx context.Context, p gate.Permit) (gate.Result, error) {
	c, tool, ok := p.Open()
	if !ok {
		return gate.Result{}, ErrNoPermit
	}
	if ca.cfg.Authorize != nil {
		ctx = context.WithValue(ctx, permitKey{}, p)
	}
	timed := pace.NewDeadline(ctx, ca.cfg.timeoutOf(tool.Local))
	defer timed.End()
	of := ca.calls.Begin(timed, p, c, ca.levels.Of(c))
	defer of.End()
	doc, err := ca.send(timed, of, tool, false)
	var used gate.Usage
	pauses := pace.Backoff{First: ca.cfg.RetryWait, Most: maxPause}
	for used.Repeats < max(1, ca.cfg.Retries) && ca.repeats(err, tool) && pace.Sleep(timed, pauses.Next()) {
		ca.cfg.Log.Info("call repeated", "tool", tool.Name.String(), "call", c.ID, "error", err)
		used.Repeats++
		doc, err = ca.send(timed, of, tool, true)
	}
	res, err := ca.result(ctx, of, tool, doc, err)
	res.Usage, res.InputRequired = used, of.More
	return res, err
}

// send sends the request of a call once, if the circuit lets it, and tells the circuit
// what came of it. Again says that it was tried before: the server may be another one since.
func (ca *caller) send(ctx *pace.Deadline, of *underway.Call, t *gate.Tool, again bool) (gate.Doc, error) {
	trial, ok := ca.circuit.Enter(time.Now())
	if !ok {
		return gate.Doc{}, ca.circuitFault(ca.circuit.OpenUntil())
	}
	began, what := time.Time{}, pace.Silent
	leave := sync.OnceFunc(func() {
		if ca.circuit.Leave(trial, began, time.Now(), what) {
			ca.changed()
		}
	})
	defer leave()
	of.Answered = func() { what = pace.Answered; leave() }
	if err := ca.ownership.connect(ctx, of); err != nil {
		return gate.Doc{}, ctx.Of(err)
	}
	l, waited, err := ca.ready(ctx, trial)
	if err == nil {
		err = ca.ownership.approves(ctx, l, t, waited || again)
	}
	if err == nil {
		err = of.Permit().Approved() // the connection may be newer than the permit
	}
	if err != nil {
		return gate.Doc{}, ctx.Of(err)
	}
	began = time.Now()
	doc, err := ca.request(ctx, l, of, t)
	err = ctx.Of(err)
	if what = outcomeOf(ctx, err); what == pace.Answered {
		l.Useful.Store(true)
	}
	return doc, err
}

// outcomeOf returns what the error of a request shows about its server.
func outcomeOf(ctx *pace.Deadline, err error) pace.Outcome {
	if err == nil {
		return pace.Answered
	}
	var rpc *wire.RPCError
	var never *wire.Unseen
	var large *mcp.TooLarge
	switch kind := fault.KindOf(err, fault.Transport); {
	case errors.As(err, &rpc), errors.As(err, &large):
		return pace.Answered
	case errors.As(err, &never): // the cause shows when it is connected again
		return pace.Silent
	case kind == fault.TimedOut && context.Cause(ctx) == pace.ErrLate:
		return pace.Late
	case kind == fault.Transport && ctx.Err() == nil:
		return pace.Broke
	default:
		return pace.Silent
	}
}

// ErrNoPermit is the error of a call that the gate has not permitted.
var ErrNoPermit = errors.New("the call has no permit of the gate")

// result makes the outcome of a call of what the server answered. A JSON-RPC
// error is the tool's failure, in the form that tools report one: its text is
// the server's, and goes the way of all texts.
func (ca *caller) result(ctx context.Context, of *underway.Call, t *gate.Tool, d gate.Doc, err error) (gate.Result, error) {
	if err == nil && d.Kind() == doc.Object {
		if d = repaired(d); t.Feature == gate.FeatureTool && !of.More && d.Get("content").Kind() != doc.Array { // which strict clients demand
			content := contentOf(d)
			if content == nil {
				return gate.Result{}, fault.New(fault.Protocol, ca.cfg.Server, "call", errors.New("the content of the result is not a list"))
			}
			d = d.With("content", content)
		}
		return gate.Result{Doc: d, IsError: d.Get("isError").True()}, nil
	}
	var rpc *wire.RPCError
	var large *mcp.TooLarge
	switch {
	case errors.As(err, &rpc):
		return errorResult(rpc), nil
	case errors.As(err, &large):
		return gate.Result{}, fault.New(fault.Limit, ca.cfg.Server, "call", large)
	case rounds.OfClient(err):
		return gate.Result{}, err
	case err != nil:
		_, unseen := errors.AsType[*wire.Unseen](err)
		return gate.Result{}, fault.Called(fault.Wrap(ctx, fault.New(fault.KindOf(err, fault.Transport), ca.cfg.Server, "call", err)), unseen || repeatable(t))
	}
	return gate.Result{}, fault.New(fault.Protocol, ca.cfg.Server, "call", errors.New("the result is not an object"))
}

func errorResult(e *wire.RPCError) gate.Result {
	detail := map[string]any{"code": e.Code}
	text := e.Message
	if text == "" {
		text = fmt.Sprintf("the server answered with error %d", e.Code)
	}
	result := map[string]any{
		"content": []any{map[string]string{"type": "text", "text": text}},
		"isError": true,
		"_meta":   map[string]any{mcp.MetaError: detail},
	}
	if e.Data != nil {
		detail["data"] = json.RawMessage(e.Data)
		if doc, err := gate.ParseDoc(mcp.MustJSON(result)); err == nil {
			return gate.Result{IsError: true, Doc: doc}
		}
		delete(detail, "data") // nested too deep to be nested deeper
	}
	return gate.Result{IsError: true, Doc: gate.MustDoc(string(mcp.MustJSON(result)))}
}

// nothingToComplete is the answer to completion/complete of a server that completes
// nothing.
var nothingToComplete = gate.MustDoc(`{"completion":{"values":[]}}`)

// request sends the request of a call to the server, in the words of its method.
func (ca *caller) request(ctx *pace.Deadline, l *link.Link, of *underway.Call, t *gate.Tool) (gate.Doc, error) {
	c := of.Call
	var params []byte
	switch {
	case c.Action == gate.CallTool && t.Feature == gate.FeatureTool, c.Action == gate.GetPrompt && t.Feature == gate.FeaturePrompt:
		params = mcp.CallParams(t.Local, c.Args.Raw())
	case c.Action == gate.ReadResource && (t.Feature == gate.FeatureResource || t.Feature == gate.FeatureTemplate):
		params = mcp.URIParams(c.URI(t))
	case c.Action == gate.ReadDirectory && t.Feature == gate.FeatureSkill:
		params = mcp.URIParams(t.URI)
	case c.Action == gate.Complete && (t.Feature == gate.FeaturePrompt || t.Feature == gate.FeatureTemplate):
		if l.Capabilities.Get("completions").Kind() != doc.Object {
			return nothingToComplete, nil
		}
		params = completeParams(t, c.Args)
	case c.Action == gate.Subscribe && (t.Feature == gate.FeatureResource || t.Feature == gate.FeatureTemplate):
		return ca.hearing.subscribe(ctx, l, of, c.URI(t))
	case t.Feature == gate.FeatureMethod && string(c.Action) == t.Local:
		params = methodParamsOf(c.Args)
	default:
		return gate.Doc{}, fmt.Errorf("%.200q cannot be called with the action %s; a tool needs %s, a prompt %s and a resource %s", c.Name, c.Action, gate.CallTool, gate.GetPrompt, gate.ReadResource)
	}
	ca.ownership.prepare(ctx, l, of)
	return l.Call(ctx, of, t, params)
}

// repeats reports whether a call that failed with err is sent again: if the server
// cannot have seen it, or if it may be seen twice and the connection broke.
func (ca *caller) repeats(err error, t *gate.Tool) bool {
	if err == nil {
		return false
	}
	if _, never := errors.AsType[*wire.Unseen](err); never {
		return true
	}
	if f, ours := errors.AsType[*fault.Fault](err); ours {
		ca.mu.Lock()
		defer ca.mu.Unlock()
		return ca.cfg.Retries > 0 && f.Kind == fault.NotConnected && ca.mayConnect()
	}
	return ca.cfg.Retry == options.RetryIdempotent && t.Feature == gate.FeatureTool && repeatable(t) && fault.KindOf(err, fault.Transport) == fault.Transport
}

// repeatable reports whether calling twice is as calling once: what is read is, and a tool if the
// server declares it (MCP 2025-11-25, server/tools, ToolAnnotations).
func repeatable(t *gate.Tool) bool {
	switch t.Feature {
	case gate.FeatureTool:
		hints := t.Definition.Get("annotations")
		return hints.Get("idempotentHint").True() || hints.Get("readOnlyHint").True()
	case gate.FeatureMethod:
		return false
	default:
		return true
	}
}
