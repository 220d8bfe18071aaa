package host

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// A message is what a client has sent, once it was screened.
type message struct {
	doc    gate.Doc
	id     gate.Doc // absent of a notification
	method string   // "" of an answer to a question of the host
	params gate.Doc
}

func messageOf(doc gate.Doc) message {
	return message{doc, doc.Get("id"), doc.Get("method").Text(), doc.Get("params")}
}

func (m message) isRequest() bool { return m.method != "" && !m.id.IsZero() }

// revisions are those that clients may speak, the newest first, and older those of them
// that have sessions.
var (
	revisions = []string{mcp.Stateless, mcp.Revision, "2025-06-18", "2025-03-26", "2024-11-05"}
	older     = revisions[1:]
)

// negotiated returns the revision that a session speaks whose client has asked for one.
func negotiated(asked string) string {
	if slices.Contains(older, asked) {
		return asked
	}
	return mcp.Revision
}

// needParams are the methods that mean nothing without parameters.
var needParams = []string{
	"initialize", string(gate.CallTool), string(gate.GetPrompt), string(gate.ReadResource), string(gate.Complete),
	mcp.MethodSetLevel, string(gate.Subscribe), mcp.MethodUnsubscribe, mcp.MethodListen, mcp.MethodProgress,
}

// misshapen returns what is wrong with a message that the host serves; "" if nothing is.
func (m message) misshapen() string {
	told := strings.HasPrefix(m.method, "notifications/")
	switch {
	case m.method == "":
		return ""
	case told && !m.id.IsZero():
		return fmt.Sprintf("invalid request: unexpected id for %q", m.method)
	case !told && m.id.IsZero():
		return fmt.Sprintf("invalid request: missing id for %q", m.method)
	case m.params.IsZero() && slices.Contains(needParams, m.method):
		return `invalid request: missing required "params"`
	}
	return ""
}

// respond answers a request of any revision. The error is an [*mcp.Error], or the end of
// ctx.
func (h *Host) respond(ctx context.Context, p peerInfo, m message) (res gate.Doc, err error) {
	defer h.recovers(m.method, &res, &err)
	if err := checkMeta(m.params); err != nil {
		return gate.Doc{}, err
	}
	if p.stateless = saysStateless(m.params); p.stateless {
		client := m.params.Get("_meta").Get(mcp.MetaClient)
		p.name, p.version, p.capabilities = client.Get("name").Text(), client.Get("version").Text(), gate.Doc{}
	}
	switch m.method {
	case "initialize", "ping", mcp.MethodSetLevel, string(gate.Subscribe), mcp.MethodUnsubscribe:
		if p.stateless {
			return gate.Doc{}, noMethod(m.method)
		}
	case mcp.MethodDiscover:
		if !p.stateless {
			return gate.Doc{}, noMethod(m.method)
		}
	default:
		if !p.stateless && p.of != nil && !p.of.begun() {
			return gate.Doc{}, &mcp.Error{Message: fmt.Sprintf("method %q is invalid during session initialization", m.method)}
		}
	}
	switch m.method {
	case "initialize":
		return h.initialize(ctx, p)
	case "ping":
		return gate.MustDoc("{}"), nil
	case mcp.MethodDiscover:
		return h.discover(ctx, p), nil
	case mcp.MethodListen:
		return h.listen(ctx, p, m)
	}
	if asksToHear(m.method) && p.of != nil && h.offers(ctx, m.method) {
		p.listener = h.listener(p.of)
	}
	return h.dispatch(ctx, p, m.method, m.params)
}

// recovers makes an error of a panic: a client cannot end the gateway.
func (h *Host) recovers(method string, res *gate.Doc, err *error) {
	if v := recover(); v != nil {
		h.cfg.Log.Error("request panicked", "method", method, "panic", v, "stack", string(debug.Stack()))
		*res, *err = gate.Doc{}, &mcp.Error{Code: mcp.CodeInternal, Message: "internal error"}
	}
}

// noMethod says that a client of its revision has no such method.
func noMethod(method string) *mcp.Error {
	return &mcp.Error{Code: mcp.CodeMethodNotFound, Message: fmt.Sprintf("method not found: %q", method)}
}

// saysStateless reports whether the parameters of a request say that its client has no
// session.
func saysStateless(params gate.Doc) bool {
	return params.Get("_meta").Get(mcp.MetaProtocol).Text() >= mcp.Stateless
}

// checkMeta checks what a request without a session has to say of its client (MCP
// 2026-07-28, basic, "_meta").
func checkMeta(params gate.Doc) error {
	meta := params.Get("_meta")
	revision := meta.Get(mcp.MetaProtocol).Text()
	if revision < mcp.Stateless {
		return nil
	}
	if client := meta.Get(mcp.MetaClient); !client.IsZero() && checkClient(client) != nil {
		return &mcp.Error{Code: mcp.CodeInvalidParams, Message: fmt.Sprintf("invalid _meta field %q", mcp.MetaClient)}
	}
	if !objects(meta.Get(mcp.MetaCapabilities)) {
		return &mcp.Error{Code: mcp.CodeInvalidParams, Message: fmt.Sprintf("missing or invalid _meta field %q", mcp.MetaCapabilities)}
	}
	if !slices.Contains(revisions, revision) {
		return unsupported("unsupported protocol version", revisions, revision)
	}
	return nil
}

// unsupported is the error that a revision is not spoken.
func unsupported(why string, supported []string, requested string) *mcp.Error {
	data := struct {
		Supported []string `json:"supported"`
		Requested string   `json:"requested"`
	}{supported, requested}
	return &mcp.Error{Code: mcp.CodeUnsupported, Message: why, Data: mcp.MustJSON(data)}
}

// checkClient checks what a client says that it is.
func checkClient(client gate.Doc) error {
	if client.Kind() != gate.Object {
		return errors.New("clientInfo is no object")
	}
	for _, name := range []string{"name", "version"} {
		if v := client.Get(name); !v.IsZero() && v.Kind() != gate.String {
			return fmt.Errorf("%s in clientInfo is no string", name)
		}
	}
	return nil
}

// checkInitialize checks the parameters of initialize.
func checkInitialize(params gate.Doc) error {
	if v := params.Get("protocolVersion"); !v.IsZero() && v.Kind() != gate.String {
		return errors.New("protocolVersion is no string")
	}
	if c := params.Get("capabilities"); !c.IsZero() && c.Kind() != gate.Object {
		return errors.New("capabilities is no object")
	}
	if client := params.Get("clientInfo"); !client.IsZero() {
		return checkClient(client)
	}
	return nil
}

// objects reports whether d is an object of objects, as capabilities are.
func objects(d gate.Doc) bool {
	for _, v := range d.Members() {
		if v.Kind() != gate.Object {
			return false
		}
	}
	return d.Kind() == gate.Object
}

// initialize answers the first request of a session.
func (h *Host) initialize(ctx context.Context, p peerInfo) (gate.Doc, error) {
	if p.of == nil || !p.of.begins() {
		return gate.Doc{}, &mcp.Error{Message: `duplicate "initialize" received`}
	}
	out := appendCapabilities([]byte(`{"capabilities":{`), h.offering(ctx, offeringTime))
	if h.OffersTasks() {
		out = append(out, `,"tasks":`+taskCapability...)
	}
	out = h.appendInstructions(append(out, '}'), h.instructionsFor(ctx, p))
	out = append(append(out, `,"protocolVersion":`...), mcp.MustJSON(p.of.protocol)...)
	out = append(append(out, `,"serverInfo":`...), h.info()...)
	return gate.ParseDoc(append(out, '}'))
}

// discover answers what a client without a session asks first.
func (h *Host) discover(ctx context.Context, p peerInfo) gate.Doc {
	out := append(append([]byte(`{"resultType":"complete","_meta":{"`+mcp.MetaServer+`":`), h.info()...), `},"ttlMs":0,"cacheScope":"private","supportedVersions":`...)
	out = append(append(out, mcp.MustJSON(revisions)...), `,"capabilities":{`...)
	if h.OffersTasks() {
		out = append(out, `"extensions":{"`+mcp.ExtensionTasks+`":{}},`...)
	}
	out = appendCapabilities(out, h.offering(ctx, offeringTime))
	return gate.MustDoc(string(append(h.appendInstructions(append(out, '}'), h.instructionsFor(ctx, p)), '}')))
}

// appendCapabilities writes the members of the capabilities of a gateway that offers
// tools, and what else o says.
func appendCapabilities(b []byte, o mcp.Offering) []byte {
	if o.Completions {
		b = append(b, `"completions":{},`...)
	}
	if o.Logging {
		b = append(b, `"logging":{},`...)
	}
	if o.Prompts {
		b = append(b, `"prompts":{"listChanged":true},`...)
	}
	switch {
	case o.Resources && o.Updates:
		b = append(b, `"resources":{"listChanged":true,"subscribe":true},`...)
	case o.Resources:
		b = append(b, `"resources":{"listChanged":true},`...)
	}
	return append(b, `"tools":{"listChanged":true}`...)
}

func (h *Host) appendInstructions(b []byte, text string) []byte {
	if text == "" {
		return b
	}
	return append(append(b, `,"instructions":`...), mcp.MustJSON(text)...)
}

// reply writes the answer to a request.
func (h *Host) reply(p peerInfo, m message, res gate.Doc, err error) []byte {
	id, raw := m.id.Raw(), res.Raw()
	out := make([]byte, 0, len(raw)+len(id)+len(h.info())+128)
	out = append(append(out, `{"jsonrpc":"2.0","id":`...), id...)
	if err != nil {
		return append(append(append(out, `,"error":`...), errorOf(err).JSON()...), '}')
	}
	out = append(out, `,"result":`...)
	if p.stateless {
		out = mcp.AppendStamp(out, res, mcp.MetaServer, h.info())
	} else {
		out = append(out, raw...)
	}
	return append(out, '}')
}

// errorOf returns what a client is told of an error.
func errorOf(err error) *mcp.Error {
	if rpc, ok := errors.AsType[*mcp.Error](err); ok {
		return rpc
	}
	return &mcp.Error{Code: mcp.CodeInternal, Message: "the request was cancelled"} // nobody waits for the answer
}

// statusOf returns the status of an answer that is no stream (MCP 2026-07-28,
// basic/transports, for clients without a session).
func statusOf(p peerInfo, err error) int {
	if err == nil {
		return http.StatusOK
	}
	code := errorOf(err).Code
	switch {
	case code == mcp.CodeInvalidRequest:
		return http.StatusBadRequest
	case p.stateless && code == mcp.CodeMethodNotFound:
		return http.StatusNotFound
	case p.stateless && (code == mcp.CodeInvalidParams || code == mcp.CodeUnsupported || code == codeLacksCapability):
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// duplicate refuses a request with the id of one that is under way.
func duplicate(id gate.Doc) error {
	return &mcp.Error{Code: mcp.CodeInvalidRequest, Message: "duplicate in-flight request ID " + idText(id)}
}

func idText(id gate.Doc) string {
	if id.Kind() == gate.String {
		return id.Text()
	}
	return id.String()
}

// dispatch answers a request of a client, whoever decoded it. Its error is an
// [*mcp.Error], or the end of ctx.
func (h *Host) dispatch(ctx context.Context, p peerInfo, method string, params gate.Doc) (res gate.Doc, err error) {
	defer h.recovers(method, &res, &err)
	if !h.calls.Begin() {
		return gate.Doc{}, &mcp.Error{Code: mcp.CodeInternal, Message: "the gateway is shutting down"}
	}
	defer h.calls.End()
	if p.stateless && asksToHear(method) || !h.offers(ctx, method) {
		return gate.Doc{}, errNoMethod
	}
	switch method {
	case string(gate.CallTool):
		return h.callTool(ctx, p, params)
	case string(gate.GetPrompt), string(gate.ReadResource), string(gate.Complete):
		return h.use(ctx, p, gate.Action(method), params)
	case "tools/list", "prompts/list", "resources/list", "resources/templates/list":
		return h.list(ctx, p, method)
	case mcp.MethodSetLevel:
		return h.setLevel(ctx, p, params)
	case string(gate.Subscribe):
		return h.subscribe(ctx, p, params)
	case mcp.MethodUnsubscribe:
		return h.unsubscribe(p, params)
	case mcp.MethodTaskGet, mcp.MethodTaskResult, mcp.MethodTaskList, mcp.MethodTaskUpdate, mcp.MethodTaskCancel:
		if h.answersTasks(p, method) {
			return h.tasks(ctx, p, method, params)
		}
	default:
		if h.method(ctx, method) != nil {
			return h.useMethod(ctx, p, method, params)
		}
	}
	return gate.Doc{}, errNoMethod
}
