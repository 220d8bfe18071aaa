package host

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// checkHeaders holds the headers of a request of [mcp.Stateless] against what the message
// says of tools and tasks (MCP 2026-07-28, basic/transports/streamable-http, "Server
// Validation"); [Host.checkPost] does the rest. A name that the client has encoded is
// decoded for whoever reads it next.
func (h *Host) checkHeaders(r *http.Request, p client, msg gate.Doc) *refusal {
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
	if isMethod(method) && !slices.Equal(r.Header[mcp.HeaderMethod], []string{method}) {
		return refuse(http.StatusBadRequest, msg.Get("id").Raw(), mcp.CodeHeaderMismatch, "header mismatch: "+mcp.HeaderMethod+" does not say once what the message says")
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
func (h *Host) paramsDiffer(r *http.Request, p client, name string, args gate.Doc) error {
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

// unknownRevision refuses a request whose headers name a revision of sessions that there is
// not.
func unknownRevision(w http.ResponseWriter, r *http.Request) bool {
	revision := r.Header.Get(mcp.HeaderProtocol)
	if revision == "" || revision >= mcp.Stateless || slices.Contains(revisions, revision) {
		return false
	}
	http.Error(w, "Bad Request: Unsupported protocol version (supported versions: "+strings.Join(revisions, ",")+")", http.StatusBadRequest)
	return true
}

// unacceptable refuses a message of another type than JSON, and one whose client does not
// take both kinds of answers.
func unacceptable(w http.ResponseWriter, r *http.Request) bool {
	if kind := r.Header.Get("Content-Type"); kind != "application/json" {
		if base, _, err := mime.ParseMediaType(kind); err != nil || base != "application/json" {
			http.Error(w, "Content-Type must be 'application/json'", http.StatusUnsupportedMediaType)
			return true
		}
	}
	if takes := accepts(r.Header); !takes.json || !takes.stream {
		http.Error(w, "Accept must contain both 'application/json' and 'text/event-stream'", http.StatusBadRequest)
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

// checkPost checks what a message and the headers around it say of its era.
func (h *Host) checkPost(r *http.Request, p client, m message) *refusal {
	if p.session != nil && r.Header[mcp.HeaderLastEvent] != nil {
		return &refusal{status: http.StatusBadRequest, plain: "can't send Last-Event-ID for POST request"}
	}
	if why := m.misshapen(); why != "" {
		return &refusal{status: http.StatusBadRequest, plain: why}
	}
	header, meta := r.Header.Get(mcp.HeaderProtocol), m.params.Get("_meta").Get(mcp.MetaProtocol).Text()
	bad := func(code int64, why string) *refusal {
		return refuse(http.StatusBadRequest, m.id.Raw(), code, why)
	}
	switch asks := m.isRequest() && header >= mcp.Stateless || meta != ""; {
	case m.method == "":
		return nil
	case asks && !p.stateless:
		if header == "" {
			header = "2025-03-26" // which is meant then: MCP 2025-11-25, basic/transports
		}
		err := unsupported(fmt.Sprintf("protocol version %q is not supported by this server", header), older, header)
		return &refusal{status: http.StatusBadRequest, body: h.reply(p, m, gate.Doc{}, err)}
	case asks && meta == "":
		return bad(mcp.CodeInvalidParams, fmt.Sprintf("missing or invalid _meta field %q", mcp.MetaProtocol))
	case asks && meta != header:
		return bad(mcp.CodeHeaderMismatch, fmt.Sprintf("%s header %q does not match request %s %q", mcp.HeaderProtocol, header, mcp.MetaProtocol, meta))
	case p.stateless:
		if why := namesDiffer(r.Header, m); why != "" {
			return bad(mcp.CodeHeaderMismatch, why)
		}
	}
	return nil
}

// namesDiffer returns how the headers of a message without a session name another method
// than the message, or another thing.
func namesDiffer(h http.Header, m message) string {
	if method := h.Get(mcp.HeaderMethod); method == "" {
		return "missing required " + mcp.HeaderMethod + " header"
	} else if method != m.method {
		return fmt.Sprintf("header mismatch: %s header value '%s' does not match body value '%s'", mcp.HeaderMethod, method, m.method)
	}
	member := ""
	switch m.method {
	case string(gate.CallTool), string(gate.GetPrompt):
		member = "name"
	case string(gate.ReadResource):
		member = "uri"
	default:
		return ""
	}
	name := h.Get(mcp.HeaderName)
	if name == "" {
		return fmt.Sprintf("missing required %s header for method %q", mcp.HeaderName, m.method)
	}
	if has := m.params.Get(member).Text(); name != has {
		return fmt.Sprintf("header mismatch: %s header value '%s' does not match body value '%s'", mcp.HeaderName, name, has)
	}
	return ""
}
