package link

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/underway"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/gate/tracing"
)

// ownMeta are the members of a client's _meta that say what holds between it and the
// gateway. Towards servers the gateway says that of itself.
var ownMeta = []string{mcp.MetaProtocol, mcp.MetaClient, mcp.MetaCapabilities, mcp.MetaLogLevel, mcp.MetaSubscription}

// traceMeta are the members without a prefix that MCP keeps for tracing (MCP 2026-07-28,
// basic, "_meta").
var traceMeta = []string{"traceparent", "tracestate", "baggage"}

// NoCapabilities are declared to a server that can ask no client.
var NoCapabilities = gate.MustDoc("{}")

// passes reports whether a server gets a member of a client's _meta: one that an extension has
// named for the two of them, or the context of a trace. A member without the name of an extension,
// such as a credential, is meant for the gateway, and is not passed on.
func passes(name string) bool {
	if slices.Contains(ownMeta, name) || strings.HasPrefix(name, mcp.MetaGateway) {
		return false
	}
	return strings.Contains(name, "/") || slices.Contains(traceMeta, name)
}

// An outgoing request is one to a server, and on whose behalf it is made.
type outgoing struct {
	of     *underway.Call // the call that it carries out; nil for the gateway's own
	method string
	params []byte // an object, without _meta
	// name and headers go into the headers of HTTP: what is used, and parameters that
	// the server wants there.
	name    string
	headers http.Header

	meta         gate.Doc // of the client's request; absent for the gateway's own
	capabilities gate.Doc // of the client; absent are none
	tasks        bool     // the server may answer by a task, or is asked for one
	progress     string   // the token of progress notifications, JSON; "" for none
}

// outgoingFor returns the request that carries out a call.
func outgoingFor(c *underway.Call) outgoing {
	a := outgoing{of: c, method: string(c.Call.Action), meta: c.Call.Meta, progress: c.ProgressToken()}
	if c.Level > 0 {
		a.meta = a.meta.With(mcp.MetaLogLevel, mcp.MustJSON(c.Level.String()))
	}
	return a
}

// about adds what a server of [mcp.Stateless] needs to know of a call: what is used, and what the
// client can be asked.
func (a outgoing) about(t *gate.Tool) outgoing {
	c := a.of.Call
	switch c.Action {
	case gate.CallTool:
		a.name, a.headers = t.Local, mcp.ParamsInHeaders(mcp.OfferedHeaders(t), c.Args)
	case gate.GetPrompt:
		a.name = t.Local
	case gate.ReadResource:
		a.name = c.URI(t)
	}
	a.capabilities = c.Reach().Capabilities
	return a
}

// request returns the request with its _meta. clientInfo is how the gateway calls itself to a server
// of [mcp.Stateless], JSON; nil to others.
func (a outgoing) request(clientInfo []byte) wire.Request {
	params := a.params
	if params == nil {
		params = []byte("{}")
	}
	r := wire.Request{Method: a.method, Params: mcp.WithMember(params, `"_meta":`, a.metaFor(clientInfo))}
	if a.of != nil {
		r.Of = a.of
	}
	return r
}

// metaFor returns the _meta of the request: what the client's says to the server, and
// what a server of [mcp.Stateless] must be told. It is nil if that is nothing.
func (a outgoing) metaFor(clientInfo []byte) []byte {
	meta := append(make([]byte, 0, usualMeta), '{')
	add := func(name string, value []byte) {
		if len(meta) > 1 {
			meta = append(meta, ',')
		}
		if slices.Contains(ownMeta, name) { // has nothing to escape
			meta = append(append(append(meta, '"'), name...), '"')
		} else {
			meta = append(meta, mcp.MustJSON(name)...)
		}
		meta = append(append(meta, ':'), value...)
	}
	traced := a.of != nil && a.of.Call.Trace.Sampled
	if traced {
		add("traceparent", mcp.MustJSON(tracing.Parent(a.of.Call.Trace)))
	}
	for name, v := range a.meta.Members() {
		if passes(name) && !(traced && name == "traceparent") {
			add(name, v.Raw())
		}
	}
	if a.progress != "" {
		add(mcp.MetaProgress, []byte(a.progress))
	}
	if clientInfo != nil {
		add(mcp.MetaProtocol, []byte(`"`+mcp.Stateless+`"`))
		add(mcp.MetaClient, clientInfo)
		add(mcp.MetaCapabilities, a.declares())
		if level := a.meta.Get(mcp.MetaLogLevel); level.Kind() == doc.String {
			add(mcp.MetaLogLevel, level.Raw())
		}
	}
	if len(meta) == 1 {
		return nil
	}
	return append(meta, '}')
}

// usualMeta is how many bytes most have.
const usualMeta = 256

// declares returns the client's capabilities as they are declared to a server of [mcp.Stateless]:
// those of the client itself, except for tasks, which are between the server and the gateway.
func (a outgoing) declares() []byte {
	all := a.capabilities
	if all.Kind() != doc.Object {
		all = NoCapabilities
	}
	extensions := all.Get("extensions")
	if !a.tasks && extensions.Get(mcp.ExtensionTasks).IsZero() {
		return all.Raw()
	}
	extensions = mcp.Without(extensions, mcp.ExtensionTasks)
	if a.tasks {
		extensions = extensions.With(mcp.ExtensionTasks, []byte("{}"))
	}
	return all.With("extensions", extensions.Raw()).Raw()
}

// header returns the headers that say again what the message says (MCP 2026-07-28,
// basic/transports/streamable-http, "Request Metadata").
func (a outgoing) header() http.Header {
	h := http.Header{mcp.HeaderMethod: {a.method}}
	if a.name != "" {
		h[mcp.HeaderName] = []string{mcp.EncodeHeader(a.name)}
	}
	maps.Copy(h, a.headers)
	return h
}
