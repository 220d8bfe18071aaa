package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/bridge/fault"
	"github.com/wasmgate/wasmgate/bridge/internal/listing"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/link"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/pace"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/rounds"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/underway"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

var _ gate.Upstream = (*Endpoint)(nil)

// Lookup implements [gate.Upstream]. A name that is not known may be so because
// the server cannot be reached. It is not waited for: the time that the answer takes
// would tell of a server.
func (e *Endpoint) Lookup(_ context.Context, action gate.Action, name string) (*gate.Tool, error) {
	e.mu.RLock()
	tools := e.tools
	e.mu.RUnlock()
	return tools.Lookup(action, name)
}

// Features implements [gate.Upstream]: an endpoint alone offers tools.
func (e *Endpoint) Features(ctx context.Context, f gate.Feature) []*gate.Tool {
	if f != gate.FeatureTool {
		return nil
	}
	return e.Tools(ctx)
}

// Tools returns the server's tools. The tools of a server that is faulted are
// those it had.
func (e *Endpoint) Tools(context.Context) []*gate.Tool {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.tools.All
}

// ListedFeatures returns what the server lists in addition to tools; nil if that is not known.
func (e *Endpoint) ListedFeatures() *listing.Features {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.tools.Features
}

// Methods returns what stands for the methods that MCP does not have and the server does.
func (e *Endpoint) Methods() []*gate.Tool { return e.methods }

// Invoke implements [gate.Upstream]: one request, sent again if the server cannot have seen
// it, or may see it twice (see [options.Endpoint.Retry] and [options.Endpoint.Retries]).
func (e *Endpoint) Invoke(ctx context.Context, p gate.Permit) (gate.Result, error) {
	c, _, ok := p.Open()
	if !ok {
		return gate.Result{}, ErrNoPermit
	}
	if e.ownership.owns(c) {
		return e.invokeOwn(ctx, p, c)
	}
	return e.invoke(ctx, p)
}

// invoke carries out a call over the endpoint's own connection.
func (e *Endpoint) invoke(ctx context.Context, p gate.Permit) (gate.Result, error) {
	c, tool, ok := p.Open()
	if !ok {
		return gate.Result{}, ErrNoPermit
	}
	if e.cfg.Authorize != nil {
		ctx = context.WithValue(ctx, permitKey{}, p)
	}
	timed := pace.NewDeadline(ctx, e.cfg.timeoutOf(tool.Local))
	defer timed.End()
	of := e.calls.Begin(timed, p, c, e.levels.Of(c))
	defer of.End()
	doc, err := e.send(timed, of, tool, false)
	var used gate.Usage
	pauses := pace.Backoff{First: e.cfg.RetryWait, Most: maxPause}
	for used.Repeats < max(1, e.cfg.Retries) && e.repeats(err, tool) && pace.Sleep(timed, pauses.Next()) {
		e.cfg.Log.Info("call repeated", "tool", tool.Name.String(), "call", c.ID, "error", err)
		used.Repeats++
		doc, err = e.send(timed, of, tool, true)
	}
	res, err := e.result(ctx, of, tool, doc, err)
	res.Usage, res.InputRequired = used, of.More
	return res, err
}

// send sends the request of a call once, if the circuit lets it, and tells the circuit
// what came of it. Again says that it was tried before: the server may be another one since.
func (e *Endpoint) send(ctx *pace.Deadline, of *underway.Call, t *gate.Tool, again bool) (gate.Doc, error) {
	trial, ok := e.circuit.Enter(time.Now())
	if !ok {
		return gate.Doc{}, e.circuitFault(e.circuit.OpenUntil())
	}
	began, what := time.Time{}, pace.Silent
	leave := sync.OnceFunc(func() {
		if e.circuit.Leave(trial, began, time.Now(), what) {
			e.changed()
		}
	})
	defer leave()
	of.Answered = func() { what = pace.Answered; leave() }
	if err := e.ownership.connect(ctx, of); err != nil {
		return gate.Doc{}, ctx.Of(err)
	}
	l, waited, err := e.ready(ctx, trial)
	if err == nil {
		err = e.ownership.approves(ctx, l, t, waited || again)
	}
	if err == nil {
		err = of.Permit().Approved() // the connection may be newer than the permit
	}
	if err != nil {
		return gate.Doc{}, ctx.Of(err)
	}
	began = time.Now()
	doc, err := e.request(ctx, l, of, t)
	err = ctx.Of(err)
	if what = outcomeOf(ctx, err); what == pace.Answered {
		l.Useful.Store(true)
	}
	return doc, err
}

// LongestCall is how long a call may take if the server tells of its progress.
func (e *Endpoint) LongestCall() time.Duration {
	longest := e.cfg.CallTimeout
	for _, t := range e.cfg.CallTimeouts {
		longest = max(longest, t.Timeout)
	}
	return pace.MaxExtended * longest
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
func (e *Endpoint) result(ctx context.Context, of *underway.Call, t *gate.Tool, d gate.Doc, err error) (gate.Result, error) {
	if err == nil && d.Kind() == doc.Object {
		if d = repaired(d); t.Feature == gate.FeatureTool && !of.More && d.Get("content").Kind() != doc.Array { // which strict clients demand
			content := contentOf(d)
			if content == nil {
				return gate.Result{}, fault.New(fault.Protocol, e.cfg.Server, "call", errors.New("the content of the result is not a list"))
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
		return gate.Result{}, fault.New(fault.Limit, e.cfg.Server, "call", large)
	case rounds.OfClient(err):
		return gate.Result{}, err
	case err != nil:
		_, unseen := errors.AsType[*wire.Unseen](err)
		return gate.Result{}, fault.Called(fault.Wrap(ctx, fault.New(fault.KindOf(err, fault.Transport), e.cfg.Server, "call", err)), unseen || repeatable(t))
	}
	return gate.Result{}, fault.New(fault.Protocol, e.cfg.Server, "call", errors.New("the result is not an object"))
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

// Offers reports why a call that was permitted for a tool must not be made, since
// the tool has become another one while it was decided.
func (e *Endpoint) Offers(t *gate.Tool) error {
	if t.Feature == gate.FeatureMethod && !slices.Contains(e.cfg.Methods, t.Local) {
		return fault.New(fault.NotConnected, e.cfg.Server, "call", &fault.NotConnectedError{Words: "the server has the method no more"})
	}
	if t.Feature != gate.FeatureTool {
		return nil
	}
	e.mu.RLock()
	now, known := e.tools.ByName[t.Name.String()]
	e.mu.RUnlock()
	if known && now.Digest == t.Digest {
		return nil
	}
	return fault.New(fault.NotConnected, e.cfg.Server, "call", &fault.NotConnectedError{Words: "the server has changed the tool since it was listed; list the tools and call again"})
}

type permitKey struct{}

// remote is the server that URL says.
func (e *Endpoint) remote(ctx context.Context) (wire.Remote, error) {
	c := &e.cfg
	headers, err := c.headers(ctx)
	if err != nil {
		return wire.Remote{}, err
	}
	r := wire.Remote{URL: c.URL, Headers: headers, DialContext: c.DialContext, PinTLS: c.PinTLS, MaxMessage: c.MaxMessage}
	if c.Authorize == nil {
		return r, nil
	}
	r.Authorize = func(ctx context.Context, refused *http.Response) (string, error) {
		p, _ := ctx.Value(permitKey{}).(gate.Permit)
		who, p := e.ownership.caller(p)
		return c.Authorize(ctx, who, p, refused)
	}
	return r, nil
}

// nothingToComplete is the answer to completion/complete of a server that completes
// nothing.
var nothingToComplete = gate.MustDoc(`{"completion":{"values":[]}}`)

// request sends the request of a call to the server, in the words of its method.
func (e *Endpoint) request(ctx *pace.Deadline, l *link.Link, of *underway.Call, t *gate.Tool) (gate.Doc, error) {
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
		return e.subscribe(ctx, l, of, c.URI(t))
	case t.Feature == gate.FeatureMethod && string(c.Action) == t.Local:
		params = methodParamsOf(c.Args)
	default:
		return gate.Doc{}, fmt.Errorf("%.200q cannot be called with the action %s; a tool needs %s, a prompt %s and a resource %s", c.Name, c.Action, gate.CallTool, gate.GetPrompt, gate.ReadResource)
	}
	e.ownership.prepare(ctx, l, of)
	return l.Call(ctx, of, t, params)
}
