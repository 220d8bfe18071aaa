package host

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/actions"
	"github.com/wasmgate/wasmgate/internal/doc"
)

// screen reads a client's message strictly before anything else reads it, and
// refuses what is no message of MCP. A tool call that it refuses is recorded. The refusal is nil if the message may pass.
func (h *Host) screen(ctx context.Context, p client, body []byte) (gate.Doc, *refusal) {
	doc, err := gate.ParseDoc(body)
	if err != nil {
		return gate.Doc{}, h.unreadable(ctx, p, body, err)
	}
	return doc, h.judge(ctx, p, doc)
}

func (h *Host) judge(ctx context.Context, p client, msg gate.Doc) *refusal {
	id, method, params := msg.Get("id"), msg.Get("method"), msg.Get("params")
	name := method.Text()
	switch {
	case msg.Kind() == doc.Array:
		return refuse(http.StatusBadRequest, nil, mcp.CodeInvalidRequest, "invalid request: there are no batches in MCP since 2025-06-18")
	case !mcp.IsRPC(msg), method.IsZero() && id.IsZero(), !method.IsZero() && method.Kind() != doc.String:
		return refuse(http.StatusBadRequest, nil, mcp.CodeInvalidRequest, "invalid request: no message of JSON-RPC 2.0")
	case !validID(id):
		return refuse(http.StatusBadRequest, nil, mcp.CodeInvalidRequest, "invalid request: an id is a string or an integer up to 2^53")
	case method.IsZero():
		return nil // an answer
	case !h.serves(ctx, p, name, !id.IsZero()):
		return h.unserved(ctx, p, id, name, params)
	}
	used, err := checkParams(gate.Action(name), params)
	if err == nil {
		return nil
	}
	if action, acts := actionOf(name); acts {
		h.malformed(ctx, p, action, used, err)
	}
	return refuse(http.StatusBadRequest, id.Raw(), mcp.CodeInvalidParams, "invalid parameters: "+err.Error())
}

// serves reports whether there is an answer to the requests of a method, or use for its
// notifications.
func (h *Host) serves(ctx context.Context, p client, method string, request bool) bool {
	switch {
	case p.stateless && (subscribes(method) || onlyWithSessions(method)), !h.offers(ctx, method):
		return false
	case slices.Contains(served, method):
		return true
	default:
		return request && h.offersMethod(ctx, p, method)
	}
}

// unserved answers a method that is not served. A notification has no answer.
func (h *Host) unserved(ctx context.Context, p client, id gate.Doc, method string, params gate.Doc) *refusal {
	if id.IsZero() {
		return &refusal{status: http.StatusAccepted}
	}
	status := http.StatusOK
	if p.stateless {
		status = http.StatusNotFound // MCP 2026-07-28, basic/transports
	}
	_, err := h.dispatch(ctx, p, method, params)
	var rpc *mcp.Error
	if !errors.As(err, &rpc) {
		rpc = &mcp.Error{Code: mcp.CodeMethodNotFound, Message: "method not found"}
	}
	return refuse(status, id.Raw(), rpc.Code, rpc.Message)
}

// unreadable refuses what is no acceptable JSON.
func (h *Host) unreadable(ctx context.Context, p client, body []byte, why error) *refusal {
	id, method, name := peek(body)
	code := int64(mcp.CodeParse)
	if method != "" {
		code = mcp.CodeInvalidParams
	}
	if slices.Contains(acting, gate.Action(method)) {
		h.malformed(ctx, p, gate.Action(method), name, why)
	} else if h.method(ctx, method) != nil {
		h.malformed(ctx, p, actions.OfMethod(method), method, why)
	}
	return refuse(http.StatusBadRequest, id, code, "message refused: "+why.Error())
}
