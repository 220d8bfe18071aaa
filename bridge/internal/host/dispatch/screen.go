package dispatch

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/wasmgate/wasmgate/bridge/internal/host/message"
	"github.com/wasmgate/wasmgate/bridge/internal/host/sessions"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/gate/doc"
)

// Screen reads a client's message strictly before anything else reads it, and
// refuses what is no message of MCP. A tool call that it refuses is recorded. The refusal is nil if the message may pass.
func (d *Dispatcher) Screen(ctx context.Context, p sessions.Client, body []byte) (gate.Doc, *message.Refusal) {
	doc, err := gate.ParseDoc(body)
	if err != nil {
		return gate.Doc{}, d.Unreadable(ctx, p, body, err)
	}
	return doc, d.judge(ctx, p, doc)
}

func (d *Dispatcher) judge(ctx context.Context, p sessions.Client, msg gate.Doc) *message.Refusal {
	id, method, params := msg.Get("id"), msg.Get("method"), msg.Get("params")
	name := method.Text()
	switch {
	case msg.Kind() == doc.Array:
		return message.Refuse(http.StatusBadRequest, nil, mcp.CodeInvalidRequest, "invalid request: there are no batches in MCP since 2025-06-18")
	case !mcp.IsRPC(msg), method.IsZero() && id.IsZero(), !method.IsZero() && method.Kind() != doc.String:
		return message.Refuse(http.StatusBadRequest, nil, mcp.CodeInvalidRequest, "invalid request: it is not a message of JSON-RPC 2.0")
	case !message.ValidID(id):
		return message.Refuse(http.StatusBadRequest, nil, mcp.CodeInvalidRequest, "invalid request: an id is a string or an integer of 64 bits")
	case method.IsZero():
		return nil // an answer
	case !id.IsZero() && d.calls.Closed() && name != "ping": // a client without an answer to it ends its connection, with the calls under way
		return message.Refuse(http.StatusServiceUnavailable, id.Raw(), message.ErrDraining.Code, message.ErrDraining.Message)
	case !d.serves(ctx, p, name, !id.IsZero()):
		return d.unserved(ctx, p, id, name, params)
	}
	used, err := message.CheckParams(gate.Action(name), params)
	if err == nil {
		return nil
	}
	if action, acts := message.ActionOf(name); acts {
		d.Malformed(ctx, p, action, used, err)
	}
	return message.Refuse(statusOf(p, id.Raw()), id.Raw(), mcp.CodeInvalidParams, "invalid parameters: "+err.Error())
}

// statusOf returns the HTTP status of an error in the words of JSON-RPC. In a session the error
// that answers a request is an answer like others: clients of the official SDKs and bridges
// between transports drop the body of an answer with another status.
func statusOf(p sessions.Client, id []byte) int {
	if p.Stateless || len(id) == 0 {
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// serves reports whether there is an answer to the requests of a method, or use for its
// notifications.
func (d *Dispatcher) serves(ctx context.Context, p sessions.Client, method string, request bool) bool {
	switch {
	case p.Stateless && (message.Subscribes(method) || message.OnlyWithSessions(method)), !d.offers(ctx, method):
		return false
	case slices.Contains(message.Served, method):
		return true
	default:
		return request && d.offersMethod(ctx, p, method)
	}
}

// unserved answers a method that is not served. A notification has no answer.
func (d *Dispatcher) unserved(ctx context.Context, p sessions.Client, id gate.Doc, method string, params gate.Doc) *message.Refusal {
	if id.IsZero() {
		return &message.Refusal{Status: http.StatusAccepted}
	}
	status := http.StatusOK
	if p.Stateless {
		status = http.StatusNotFound // MCP 2026-07-28, basic/transports
	}
	_, err := d.dispatch(ctx, p, message.Message{ID: id, Method: method, Params: params})
	var rpc *mcp.Error
	if !errors.As(err, &rpc) {
		rpc = &mcp.Error{Code: mcp.CodeMethodNotFound, Message: "method not found"}
	}
	return message.Refuse(status, id.Raw(), rpc.Code, rpc.Message)
}

// Unreadable refuses what is no acceptable JSON.
func (d *Dispatcher) Unreadable(ctx context.Context, p sessions.Client, body []byte, why error) *message.Refusal {
	id, method, name := message.Peek(body)
	code := int64(mcp.CodeParse)
	if method != "" {
		code = mcp.CodeInvalidParams
	}
	if slices.Contains(message.Acting, gate.Action(method)) {
		d.Malformed(ctx, p, gate.Action(method), name, why)
	} else if d.method(ctx, method) != nil {
		d.Malformed(ctx, p, actions.OfMethod(method), method, why)
	}
	if method == "" {
		return message.Refuse(http.StatusBadRequest, id, code, "message refused: "+why.Error())
	}
	return message.Refuse(statusOf(p, id), id, code, "message refused: "+why.Error())
}
