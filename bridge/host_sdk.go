package bridge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/gate"
)

// stateless is the first revision of MCP without sessions.
const stateless = "2026-07-28"

// metaProtocol is where a request of a stateless revision names it.
const metaProtocol = "io.modelcontextprotocol/protocolVersion"

// newServer returns an SDK server whose requests are answered by dispatch. who
// is told the peer as far as the transport knows it. The SDK carries handshake,
// sessions and streams; it reads no definition and no result.
func (h *Host) newServer(from func(mcp.Request) peerInfo) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: h.cfg.Name, Version: h.cfg.Version}, &mcp.ServerOptions{
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}},
		// The SDK's default is public; what is offered here is a principal's own.
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope, c.TTLMs = "private", 0 },
		Logger:       sdkLog(h.cfg.Log),
	})
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			return h.receive(ctx, method, req, from(req), next)
		}
	})
	return s
}

// receive answers a request that the SDK has decoded.
func (h *Host) receive(ctx context.Context, method string, req mcp.Request, p peerInfo, next mcp.MethodHandler) (res mcp.Result, err error) {
	defer func() { // the SDK does not recover, and its handlers run on goroutines of their own
		if v := recover(); v != nil {
			h.cfg.Log.Error("request panicked", "method", method, "panic", v)
			res, err = nil, &jsonrpc.Error{Code: codeInternal, Message: "internal error"}
		}
	}()
	growStack(0)
	if ss, ok := req.GetSession().(*mcp.ServerSession); ok && method == "notifications/initialized" {
		h.sessions.open(ss, p)
	}
	var params gate.Doc
	switch r := req.(type) {
	case *mcp.ListToolsRequest:
		p.stateless = r.Params != nil && isStateless(r.Params.Meta)
	case *mcp.CallToolRequest:
		p.stateless = isStateless(r.Params.Meta)
		args := r.Params.Arguments
		if len(args) == 0 {
			args = json.RawMessage("{}")
		}
		if params, err = gate.ParseDoc(callParams(r.Params.Name, args)); err != nil {
			h.malformed(ctx, p, r.Params.Name, err)
			return nil, &jsonrpc.Error{Code: codeInvalidParams, Message: "invalid parameters: " + err.Error()}
		}
	default:
		switch method {
		case "initialize", "ping", "server/discover", "subscriptions/listen",
			"notifications/initialized", "notifications/cancelled", "notifications/progress", "notifications/roots/list_changed":
			return next(ctx, method, req)
		}
	}
	ctx, done := h.during(ctx, req.GetExtra())
	defer done()
	doc, err := h.dispatch(ctx, p, method, params)
	var rpc *rpcError
	if errors.As(err, &rpc) {
		return nil, &jsonrpc.Error{Code: rpc.code, Message: rpc.message}
	}
	if err != nil {
		return nil, err
	}
	return &rawResult{doc: doc}, nil
}

func isStateless(meta mcp.Meta) bool {
	v, _ := meta[metaProtocol].(string)
	return v >= stateless
}

// rawResult gives the SDK a result that is bytes. The SDK adds members to _meta
// through SetMeta.
type rawResult struct {
	mcp.ResultBase
	doc gate.Doc
}

func (r *rawResult) MarshalJSON() ([]byte, error) {
	if len(r.Meta) == 0 {
		return r.doc.Raw(), nil
	}
	meta := r.doc.Get("_meta")
	if meta.Kind() != gate.Object {
		meta = gate.Doc{}
	}
	for k, v := range r.Meta {
		if !meta.Get(k).IsZero() {
			continue // what is there is the answer's own
		}
		b, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		meta = meta.With(k, b)
	}
	return r.doc.With("_meta", meta.Raw()).Raw(), nil
}

// claimed returns the name and version that a client gives itself.
func claimed(req mcp.Request) (name, version string) {
	ss, ok := req.GetSession().(*mcp.ServerSession)
	if !ok || ss == nil {
		return "", ""
	}
	if p := ss.InitializeParams(); p != nil && p.ClientInfo != nil {
		return p.ClientInfo.Name, p.ClientInfo.Version
	}
	return "", ""
}

// sessionName names a session without giving away the id by which it is
// reached, which is as good as a password.
func sessionName(id string) string {
	if id == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:8])
}

// changedTool is added and removed to make the SDK announce that the tools have
// changed. No client ever sees it: listings are not the SDK's.
const changedTool = "changed"

// Changed tells all clients that the tools may be others now.
func (h *Host) Changed() {
	h.mu.Lock()
	servers := make([]*mcp.Server, 0, len(h.servers))
	for s := range h.servers {
		servers = append(servers, s)
	}
	h.mu.Unlock()
	for _, s := range servers {
		s.AddTool(&mcp.Tool{Name: changedTool, InputSchema: json.RawMessage(`{"type":"object"}`)}, nil)
		s.RemoveTools(changedTool)
	}
}

func (h *Host) live(s *mcp.Server) (done func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.servers[s] = struct{}{}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.servers, s)
	}
}
