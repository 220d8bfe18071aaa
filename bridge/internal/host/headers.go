package host

import (
	"errors"
	"net/http"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// checkHeaders holds the headers of a request of [mcp.Stateless] against what the message
// says (MCP 2026-07-28, basic/transports/streamable-http, "Server Validation"), as far as
// the SDK does not: it knows none of the tools. A name that the client has encoded is
// decoded for whoever reads it next.
func (h *Host) checkHeaders(r *http.Request, p peerInfo, msg gate.Doc) *refusal {
	params := msg.Get("params")
	if names := r.Header[mcp.HeaderName]; len(names) > 0 {
		name, err := mcp.DecodeHeader(names[0])
		if err != nil || len(names) > 1 {
			return refuse(http.StatusBadRequest, msg.Get("id").Raw(), mcp.CodeHeaderMismatch, "header mismatch: "+mcp.HeaderName+" is not there once, in the form that MCP gives it")
		}
		r.Header[mcp.HeaderName] = []string{name}
	}
	if namesTask(msg.Get("method").Text()) && r.Header.Get(mcp.HeaderName) != params.Get("taskId").Text() {
		return refuse(http.StatusBadRequest, msg.Get("id").Raw(), mcp.CodeHeaderMismatch, "header mismatch: "+mcp.HeaderName+" is not the taskId of the message")
	}
	method := msg.Get("method").Text()
	if err := methodDiffers(r.Header, method); err != nil {
		return refuse(http.StatusBadRequest, msg.Get("id").Raw(), mcp.CodeHeaderMismatch, err.Error())
	}
	if method != string(gate.CallTool) || h.cfg.Lookup == nil {
		return nil
	}
	name := params.Get("name").Text()
	err := h.paramsDiffer(r, p, name, params.Get("arguments"))
	if err == nil {
		return nil
	}
	h.malformed(r.Context(), p, gate.CallTool, name, err)
	return refuse(http.StatusBadRequest, msg.Get("id").Raw(), mcp.CodeHeaderMismatch, err.Error())
}

// paramsDiffer returns how the headers differ from the arguments of a call. Only who
// is offered a tool learns what it wants in headers.
func (h *Host) paramsDiffer(r *http.Request, p peerInfo, name string, args gate.Doc) error {
	t, err := h.cfg.Lookup(r.Context(), gate.CallTool, name)
	if err != nil || mcp.CheckParamHeaders(mcp.OfferedHeaders(t), args, r.Header) == nil {
		return nil // what nobody knows is the gate's to refuse
	}
	offered, err := h.listed(r.Context(), p, gate.FeatureTool)
	if err != nil {
		return errors.New("header mismatch: what the headers have to say cannot be told")
	}
	for _, its := range offered {
		if its.Name == t.Name && its.Local == t.Local {
			return mcp.CheckParamHeaders(mcp.OfferedHeaders(its), args, r.Header)
		}
	}
	return nil
}

// timeToLive returns how long a server lets the answer to resources/read be kept, in
// milliseconds; 0 if it does not say. Whoever keeps it, keeps it for its principal alone.
func timeToLive(res gate.Doc) []byte {
	if ttl := res.Get("ttlMs"); ttl.Kind() == gate.Number {
		if n, ok := mcp.Integer(ttl.String()); ok && n > 0 {
			return ttl.Raw()
		}
	}
	return []byte("0")
}
