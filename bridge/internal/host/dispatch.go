package host

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// respond answers a request of any revision. The error is an [*mcp.Error], or the end of
// ctx.
func (h *Host) respond(ctx context.Context, p client, m message) (res gate.Doc, err error) {
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
	case mcp.MethodDiscover, mcp.MethodListen: // a session has streams of its own, which end with their credential
		if !p.stateless {
			return gate.Doc{}, noMethod(m.method)
		}
	default:
		if !p.stateless && p.session != nil && !p.session.isInitialized() {
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
	if subscribes(m.method) && p.session != nil && h.offers(ctx, m.method) {
		p.listener = h.listener(p.session)
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

// initialize answers the first request of a session.
func (h *Host) initialize(ctx context.Context, p client) (gate.Doc, error) {
	if p.session == nil || !p.session.initialize() {
		return gate.Doc{}, &mcp.Error{Message: `duplicate "initialize" received`}
	}
	out := appendCapabilities([]byte(`{"capabilities":{`), h.offering(ctx, offeringTime))
	if h.OffersTasks() {
		out = append(out, `,"tasks":`+taskCapability...)
	}
	out = h.appendInstructions(append(out, '}'), h.instructionsFor(ctx, p))
	out = append(append(out, `,"protocolVersion":`...), mcp.MustJSON(p.session.protocol)...)
	out = append(append(out, `,"serverInfo":`...), h.info()...)
	return gate.ParseDoc(append(out, '}'))
}

// discover answers what a client without a session asks first.
func (h *Host) discover(ctx context.Context, p client) gate.Doc {
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
func (h *Host) reply(p client, m message, res gate.Doc, err error) []byte {
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

// dispatch answers a request of a client, whoever decoded it. Its error is an
// [*mcp.Error], or the end of ctx.
func (h *Host) dispatch(ctx context.Context, p client, method string, params gate.Doc) (res gate.Doc, err error) {
	defer h.recovers(method, &res, &err)
	if !h.calls.Begin() {
		return gate.Doc{}, &mcp.Error{Code: mcp.CodeInternal, Message: "the gateway is shutting down"}
	}
	defer h.calls.End()
	if p.stateless && subscribes(method) || !h.offers(ctx, method) {
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
		if answersTasks(p, method) {
			return h.tasks(ctx, p, method, params)
		}
	default:
		if h.method(ctx, method) != nil {
			return h.useMethod(ctx, p, method, params)
		}
	}
	return gate.Doc{}, errNoMethod
}
