package transport

import (
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/bridge/internal/host/message"
	"github.com/wasmgate/wasmgate/bridge/internal/host/sessions"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// checkHeaders compares the headers of a request of [mcp.Stateless] with what the message says of
// tools and tasks (MCP 2026-07-28, basic/transports/streamable-http, "Server Validation");
// [Front.checkPost] does the rest. It replaces a name that the client has encoded by the decoded
// one, for later readers.
func (f *Front) checkHeaders(r *http.Request, p sessions.Client, msg gate.Doc) *message.Refusal {
	params := msg.Get("params")
	if names := r.Header[mcp.HeaderName]; len(names) > 0 {
		name, err := mcp.DecodeHeader(names[0])
		if err != nil || len(names) > 1 {
			return message.Refuse(http.StatusBadRequest, msg.Get("id").Raw(), mcp.CodeHeaderMismatch, "header mismatch: "+mcp.HeaderName+" must be present exactly once, in the form that MCP specifies")
		}
		r.Header[mcp.HeaderName] = []string{name}
	}
	if namesTask(msg.Get("method").Text()) && r.Header.Get(mcp.HeaderName) != params.Get("taskId").Text() {
		return message.Refuse(http.StatusBadRequest, msg.Get("id").Raw(), mcp.CodeHeaderMismatch, "header mismatch: "+mcp.HeaderName+" is not the taskId of the message")
	}
	method := msg.Get("method").Text()
	if message.IsMethod(method) && !slices.Equal(r.Header[mcp.HeaderMethod], []string{method}) {
		return message.Refuse(http.StatusBadRequest, msg.Get("id").Raw(), mcp.CodeHeaderMismatch, "header mismatch: "+mcp.HeaderMethod+" does not say once what the message says")
	}
	if method != string(gate.CallTool) {
		return nil
	}
	name := params.Get("name").Text()
	err := f.dispatch.CheckParamHeaders(r, p, name, params.Get("arguments"))
	if err == nil {
		return nil
	}
	f.dispatch.Malformed(r.Context(), p, gate.CallTool, name, err)
	return message.Refuse(http.StatusBadRequest, msg.Get("id").Raw(), mcp.CodeHeaderMismatch, err.Error())
}

// unknownRevision refuses a request whose headers name a revision of sessions that there is
// not.
func unknownRevision(w http.ResponseWriter, r *http.Request) bool {
	revision := r.Header.Get(mcp.HeaderProtocol)
	if revision == "" || revision >= mcp.Stateless || slices.Contains(message.Revisions, revision) {
		return false
	}
	http.Error(w, "Bad Request: Unsupported protocol version (supported versions: "+strings.Join(message.Revisions, ",")+")", http.StatusBadRequest)
	return true
}

// codeTransport is that of errors of HTTP itself, as the official SDKs have it.
const codeTransport = -32000

// unacceptable refuses a message of another type than JSON, and one whose client does not
// take both kinds of answers.
func unacceptable(w http.ResponseWriter, r *http.Request) bool {
	if kind := r.Header.Get("Content-Type"); kind != "application/json" {
		if base, _, err := mime.ParseMediaType(kind); err != nil || base != "application/json" {
			message.Refuse(http.StatusUnsupportedMediaType, nil, codeTransport, "Content-Type must be 'application/json'").Write(w)
			return true
		}
	}
	if takes := accepts(r.Header); !takes.json || !takes.stream {
		message.Refuse(http.StatusNotAcceptable, nil, codeTransport, "Accept must contain both 'application/json' and 'text/event-stream'").Write(w)
		return true
	}
	return false
}

// acceptance is which answers a client takes.
type acceptance struct{ json, stream bool }

func accepts(h http.Header) (a acceptance) {
	for _, value := range h["Accept"] {
		for one := range strings.SplitSeq(value, ",") {
			kind, _, _ := strings.Cut(one, ";")
			switch kind = strings.TrimSpace(kind); {
			case kind == "*/*":
				return acceptance{true, true}
			case strings.EqualFold(kind, "application/json"), strings.EqualFold(kind, "application/*"):
				a.json = true
			case strings.EqualFold(kind, "text/event-stream"), strings.EqualFold(kind, "text/*"):
				a.stream = true
			}
		}
	}
	return a
}

// checkPost checks that a message and its headers agree on the protocol revision.
func (f *Front) checkPost(r *http.Request, p sessions.Client, m message.Message) *message.Refusal {
	if p.Session != nil && r.Header[mcp.HeaderLastEvent] != nil {
		return &message.Refusal{Status: http.StatusBadRequest, Plain: "can't send Last-Event-ID for POST request"}
	}
	if why := m.Misshapen(); why != "" {
		return &message.Refusal{Status: http.StatusBadRequest, Plain: why}
	}
	header, meta := r.Header.Get(mcp.HeaderProtocol), m.Params.Get("_meta").Get(mcp.MetaProtocol).Text()
	bad := func(code int64, why string) *message.Refusal {
		return message.Refuse(http.StatusBadRequest, m.ID.Raw(), code, why)
	}
	switch asks := m.IsRequest() && header >= mcp.Stateless || meta != ""; {
	case m.Method == "":
		return nil
	case asks && !p.Stateless:
		if header == "" {
			header = "2025-03-26" // which is meant then: MCP 2025-11-25, basic/transports
		}
		err := message.Unsupported(fmt.Sprintf("protocol version %q is not supported by this server", header), message.Older, header)
		return &message.Refusal{Status: http.StatusBadRequest, Body: f.dispatch.Reply(p, m, gate.Doc{}, err)}
	case asks && meta == "":
		return bad(mcp.CodeInvalidParams, fmt.Sprintf("missing or invalid _meta field %q", mcp.MetaProtocol))
	case asks && meta != header:
		return bad(mcp.CodeHeaderMismatch, fmt.Sprintf("%s header %q does not match request %s %q", mcp.HeaderProtocol, header, mcp.MetaProtocol, meta))
	case p.Stateless:
		if why := namesDiffer(r.Header, m); why != "" {
			return bad(mcp.CodeHeaderMismatch, why)
		}
	}
	return nil
}

// namesDiffer returns how the headers of a message without a session name another method
// than the message, or another thing.
func namesDiffer(h http.Header, m message.Message) string {
	if method := h.Get(mcp.HeaderMethod); method == "" {
		return "missing required " + mcp.HeaderMethod + " header"
	} else if method != m.Method {
		return fmt.Sprintf("header mismatch: %s header value '%s' does not match body value '%s'", mcp.HeaderMethod, method, m.Method)
	}
	member := ""
	switch m.Method {
	case string(gate.CallTool), string(gate.GetPrompt):
		member = "name"
	case string(gate.ReadResource):
		member = "uri"
	default:
		return ""
	}
	name := h.Get(mcp.HeaderName)
	if name == "" {
		return fmt.Sprintf("missing required %s header for method %q", mcp.HeaderName, m.Method)
	}
	if has := m.Params.Get(member).Text(); name != has {
		return fmt.Sprintf("header mismatch: %s header value '%s' does not match body value '%s'", mcp.HeaderName, name, has)
	}
	return ""
}

// namesTask reports whether the headers of a request have to name its task.
func namesTask(method string) bool {
	return method == mcp.MethodTaskGet || method == mcp.MethodTaskUpdate || method == mcp.MethodTaskCancel
}
