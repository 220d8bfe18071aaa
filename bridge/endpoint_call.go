package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/wasmgate/wasmgate/gate"
)

// ready returns the connection, after an attempt to make it again if a fault is
// old enough to be worth one.
func (e *Endpoint) ready(ctx context.Context) (*link, error) {
	if e.retry(ctx) {
		if err := e.Connect(ctx); err != nil {
			return nil, notConnected(ctx, e.cfg.Server, err)
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.phase != Ready {
		cause := error(errors.New("the endpoint is " + string(e.phase)))
		if e.fault != nil {
			cause = e.fault
		}
		return nil, &Fault{NotConnected, e.cfg.Server, "call", cause}
	}
	return e.link, nil
}

// retry begins another attempt to connect if a fault is old enough to be worth
// one, and reports whether any attempt is under way.
func (e *Endpoint) retry(ctx context.Context) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.phase == Faulted && time.Since(e.since) >= reconnectAfter {
		e.begin(ctx)
	}
	return e.phase == Connecting
}

// notConnected is the fault of a call, whose cause is the fault of connecting.
func notConnected(ctx context.Context, server string, err error) error {
	if ctx.Err() != nil {
		return err
	}
	return &Fault{NotConnected, server, "call", err}
}

var _ gate.Upstream = (*Endpoint)(nil)

// Lookup implements [gate.Upstream]. A name that is not known may be so because
// the server could not be reached, which is tried again then. It is not waited
// for: the time that the answer takes would tell of a server.
func (e *Endpoint) Lookup(ctx context.Context, action gate.Action, name string) (*gate.Tool, error) {
	e.mu.Lock()
	tools := e.tools
	e.mu.Unlock()
	t, err := tools.lookup(action, name)
	if err != nil {
		e.retry(ctx)
	}
	return t, err
}

// Tools implements [gate.Upstream]. The tools of a server that is faulted are
// those it had.
func (e *Endpoint) Tools(context.Context) []*gate.Tool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.tools.tools
}

// Invoke implements [gate.Upstream]: one request, sent at most once.
func (e *Endpoint) Invoke(ctx context.Context, p gate.Permit) (gate.Result, error) {
	c, tool, ok := p.Open()
	if !ok {
		return gate.Result{}, errNoPermit
	}
	l, err := e.ready(ctx)
	if err != nil {
		return gate.Result{}, err
	}
	timed, cancel := context.WithTimeout(ctx, e.cfg.CallTimeout)
	defer cancel()
	doc, err := e.request(timed, l, p, c, tool)
	return e.result(ctx, doc, err)
}

var errNoPermit = errors.New("a call without a permit")

func callParams(name string, args []byte) []byte {
	b := append([]byte(`{"name":`), mustJSON(name)...)
	b = append(append(b, `,"arguments":`...), args...)
	return append(b, '}')
}

// result makes the outcome of a call of what the server answered. A JSON-RPC
// error is the tool's failure, in the form that tools report one: its text is
// the server's, and goes the way of all texts.
func (e *Endpoint) result(ctx context.Context, doc gate.Doc, err error) (gate.Result, error) {
	var rpc *RPCError
	switch {
	case errors.As(err, &rpc):
		return errorResult(rpc), nil
	case err != nil:
		return gate.Result{}, fault(ctx, Fault{kindOf(err, Transport), e.cfg.Server, "call", err})
	case doc.Kind() != gate.Object:
		return gate.Result{}, &Fault{Protocol, e.cfg.Server, "call", errors.New("the result is no object")}
	}
	return gate.Result{Doc: doc, IsError: doc.Get("isError").True()}, nil
}

// MetaError is the member of a result's _meta that holds {code, data} of a
// JSON-RPC error that a server answered a call with. The server has chosen what
// is in it, so that it has none of the names that are the gate's own.
const MetaError = "jsonrpc_error"

func errorResult(e *RPCError) gate.Result {
	detail := map[string]any{"code": e.Code}
	text := e.Message
	if text == "" {
		text = fmt.Sprintf("the server answered with error %d", e.Code)
	}
	result := map[string]any{
		"content": []any{map[string]string{"type": "text", "text": text}},
		"isError": true,
		"_meta":   map[string]any{MetaError: detail},
	}
	if e.Data != nil {
		detail["data"] = json.RawMessage(e.Data)
		if doc, err := gate.ParseDoc(mustJSON(result)); err == nil {
			return gate.Result{IsError: true, Doc: doc}
		}
		delete(detail, "data") // nested too deep to be nested deeper
	}
	return gate.Result{IsError: true, Doc: gate.MustDoc(string(mustJSON(result)))}
}
