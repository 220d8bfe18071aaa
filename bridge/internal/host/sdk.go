package host

//lint:file-ignore SA1019 roots, sampling and logging are deprecated since MCP 2026-07-28, and are to work as long as there is who uses them

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// newServer returns an SDK server whose requests are answered by dispatch. from returns
// the peer as far as the transport knows it; group is the one that it serves.
// The SDK carries handshake, sessions and streams; it reads no definition and no result.
func (h *Host) newServer(group string, from func(sdk.Request) peerInfo) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: h.cfg.Name, Version: h.cfg.Version}, &sdk.ServerOptions{
		GetSessionID: func() string { return newSessionID(group) },
		Capabilities: capabilities(mcp.AllOffered), // what it can announce; [Host.advertise] says what there is
		// The SDK's default is public; what is offered here is a principal's own.
		SetCacheable: func(_ context.Context, _ sdk.Request, c *sdk.Cacheable) { c.CacheScope, c.TTLMs = "private", 0 },
		// Who may subscribe is decided before the SDK hears of it.
		SubscribeHandler:   func(context.Context, *sdk.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *sdk.UnsubscribeRequest) error { return nil },
		Logger:             sdkLog(h.cfg.Log),
	})
	h.addTasks(s)
	h.addMethods(s)
	var send sdk.MethodHandler
	s.AddSendingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		send = next
		return acknowledging(next)
	})
	s.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
			p := from(req)
			if p.who == nil {
				return nil, errGone
			}
			p.send = reach(send, req, p)
			ss, ok := req.GetSession().(*sdk.ServerSession)
			switch req.(type) {
			case *sdk.CallToolRequest, *sdk.ServerRequest[*methodRequest]:
				p.tell, p.poll = teller(send, ss), poller(req.GetExtra())
			}
			if ok && asksToHear(method) && h.offers(ctx, method) {
				p.listener = h.listener(ss, p.key(), teller(send, ss))
				if method == mcp.MethodSetLevel {
					h.quickly.forget(ss.ID()) // its calls need a stream
				}
			}
			return h.receive(ctx, method, req, p, next)
		}
	})
	return s
}

// errGone answers a request that has ended before it was looked at.
var errGone = &jsonrpc.Error{Code: mcp.CodeInternal, Message: "the request was cancelled"}

// withdrawTime is how long the SDK gets to tell a client that a request needs no
// answer any more. It does so on a goroutine that nobody can wait for, and the
// answer to the call, which may come next, closes the stream.
const withdrawTime = 20 * time.Millisecond

// goneTime bounds how long a call outlives the connection of its client.
const goneTime = 2 * time.Second

// sender returns what sends requests to the client of a session. The params and
// the schemas in them go out as they are: the SDK's own methods would run a
// validator over the answer that a hostile schema can bring down.
func sender(send sdk.MethodHandler, ss *sdk.ServerSession) toClient {
	return func(ctx context.Context, method string, params gate.Doc) (gate.Doc, error) {
		res, err := send(ctx, method, &sdk.ServerRequest[sdk.Params]{Session: ss, Params: &rawParams{doc: params}})
		var rpc *jsonrpc.Error
		switch {
		case ctx.Err() != nil:
			<-time.After(withdrawTime)
			return gate.Doc{}, ctx.Err()
		case errors.Is(err, sdk.ErrConnectionClosed) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe):
			select { // the SDK fails what waits for an answer, and then cancels the call
			case <-ctx.Done():
				return gate.Doc{}, ctx.Err()
			case <-time.After(goneTime):
				return gate.Doc{}, fmt.Errorf("%s: %w", method, err)
			}
		case errors.As(err, &rpc):
			return gate.Doc{}, fmt.Errorf("%s: %w", method, err)
		case err != nil:
			return gate.Doc{}, nil // it has answered, with what is no result
		}
		return unstowAnswer(res), nil
	}
}

// teller returns what sends notifications to the client of a request.
func teller(send sdk.MethodHandler, ss *sdk.ServerSession) func(context.Context, string, gate.Doc) {
	return func(ctx context.Context, method string, params gate.Doc) {
		_, _ = send(ctx, method, &sdk.ServerRequest[sdk.Params]{Session: ss, Params: &rawParams{doc: params}}) // a client that has gone needs to know nothing
	}
}

// poller returns what ends the stream of a request over HTTP, and names the time after
// which its client comes back for the answer; nil if there is no such stream.
func poller(extra *sdk.RequestExtra) func(time.Duration) {
	if extra == nil || extra.CloseSSEStream == nil {
		return nil
	}
	return func(after time.Duration) { extra.CloseSSEStream(sdk.CloseSSEStreamArgs{RetryAfter: after}) }
}

// rawParams gives the SDK parameters that are bytes.
type rawParams struct {
	sdk.ParamsBase
	doc gate.Doc
}

// MarshalJSON implements [json.Marshaler].
func (p *rawParams) MarshalJSON() ([]byte, error) { return p.doc.Raw(), nil }

// receive answers a request that the SDK has decoded.
func (h *Host) receive(ctx context.Context, method string, req sdk.Request, p peerInfo, next sdk.MethodHandler) (res sdk.Result, err error) {
	defer func() { // the SDK does not recover, and its handlers run on goroutines of their own
		if v := recover(); v != nil {
			h.cfg.Log.Error("request panicked", "method", method, "panic", v, "stack", string(debug.Stack()))
			res, err = nil, &jsonrpc.Error{Code: mcp.CodeInternal, Message: "internal error"}
		}
	}()
	growStack(0)
	if slices.Contains(ofSDK, method) {
		return h.accompany(ctx, method, req, p, next)
	}
	method, params, err := undecoded(method, req)
	if err != nil {
		if action, acts := actionOf(method); acts {
			h.malformed(ctx, p, action, toolOf(req), err)
		}
		return nil, &jsonrpc.Error{Code: mcp.CodeInvalidParams, Message: "invalid parameters: " + err.Error()}
	}
	p.stateless = saysStateless(params) && !asksToHear(method)
	ctx, done := h.posts.during(ctx, req.GetExtra())
	defer done()
	doc, err := h.dispatch(ctx, p, method, params)
	return toSDK(doc, err)
}

// ofSDK are the methods that the SDK answers.
var ofSDK = []string{
	"initialize", mcp.MethodDiscover, "ping", mcp.MethodListen,
	"notifications/initialized", mcp.MethodCancelled, mcp.MethodProgress, mcp.MethodRootsChanged,
}

// accompany has the SDK answer a request, and does what there is to do beside that.
func (h *Host) accompany(ctx context.Context, method string, req sdk.Request, p peerInfo, next sdk.MethodHandler) (sdk.Result, error) {
	switch method {
	case "initialize":
		res, err := next(ctx, method, req)
		res = h.instruct(ctx, p, h.advertise(ctx, res))
		h.beginPeer(req, p)
		return h.declareTasks(res, err)
	case mcp.MethodDiscover:
		res, err := next(ctx, method, req)
		return h.instruct(ctx, p, h.advertise(ctx, res)), err
	case "notifications/initialized":
		if ss, ok := req.GetSession().(*sdk.ServerSession); ok && p.capabilities.IsZero() {
			h.quickly.open(ss, p)
		}
	case mcp.MethodRootsChanged:
		h.rootsChanged(p)
	case mcp.MethodListen:
		if r, ok := req.(*sdk.SubscriptionsListenRequest); ok {
			defer h.listen(ctx, p, r)()
			if p.write == nil {
				p.write = h.posts.writesTo(req.GetExtra())
			}
			return h.listenTasks(ctx, p, r, next)
		}
	}
	return next(ctx, method, req)
}

// undecoded returns the method and the parameters of a request as its client sent them.
func undecoded(method string, req sdk.Request) (_ string, params gate.Doc, err error) {
	switch r := req.(type) {
	case *sdk.CallToolRequest:
		params, err = gate.ParseDoc(paramsOf(r.Params))
	case *sdk.ServerRequest[*taskParams]:
		if r.Params != nil {
			params = r.Params.doc
		}
	case *sdk.ServerRequest[*methodRequest]:
		method, params = r.Params.method()
	default:
		params, err = gate.ParseDoc(mcp.MustJSON(req.GetParams()))
	}
	return method, unstow(params), err
}

// toolOf returns the name of the tool that a request calls; "" if it calls none.
func toolOf(req sdk.Request) string {
	if r, ok := req.(*sdk.CallToolRequest); ok {
		return r.Params.Name
	}
	return ""
}

// toSDK puts the answer of dispatch into the SDK's words.
func toSDK(doc gate.Doc, err error) (sdk.Result, error) {
	rpc, ok := errors.AsType[*mcp.Error](err)
	switch {
	case err == nil:
		return &rawResult{doc: doc}, nil
	case !ok: // nobody waits for the answer, which the SDK sends all the same
		return nil, errGone
	case rpc.Code == mcp.CodeMethodNotFound:
		return nil, noMethod(rpc.Message)
	default:
		return nil, &jsonrpc.Error{Code: rpc.Code, Message: rpc.Message, Data: rpc.Data}
	}
}

// paramsOf writes the parameters of a call as the SDK has read them.
func paramsOf(p *sdk.CallToolParamsRaw) []byte {
	args := p.Arguments
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	b := mcp.CallParams(p.Name, args)
	b = b[:len(b)-1]
	if p.Meta != nil {
		b = append(append(b, `,"_meta":`...), mcp.MustJSON(p.Meta)...)
	}
	return append(b, '}')
}

// saysStateless reports whether the parameters of a request say that its client has no
// session.
func saysStateless(params gate.Doc) bool {
	return params.Get("_meta").Get(mcp.MetaProtocol).Text() >= mcp.Stateless
}

// isStateless is saysStateless of a _meta that the SDK has read.
func isStateless(meta sdk.Meta) bool {
	v, _ := meta[mcp.MetaProtocol].(string)
	return v >= mcp.Stateless
}

// rawResult gives the SDK a result that is bytes. The SDK adds members to _meta
// through SetMeta.
type rawResult struct {
	sdk.ResultBase
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
	return r.doc.AppendWith(nil, "_meta", meta.Raw()), nil
}

// claimed returns the name and version that a client gives itself.
func claimed(req sdk.Request) (name, version string) {
	ss, ok := req.GetSession().(*sdk.ServerSession)
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

// capabilities are those of a gateway that offers tools, and what else o says.
func capabilities(o mcp.Offering) *sdk.ServerCapabilities {
	c := &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{ListChanged: true}}
	if o.Prompts {
		c.Prompts = &sdk.PromptCapabilities{ListChanged: true}
	}
	if o.Resources {
		c.Resources = &sdk.ResourceCapabilities{ListChanged: true}
	}
	if c.Resources != nil {
		c.Resources.Subscribe = o.Updates
	}
	if o.Logging {
		c.Logging = &sdk.LoggingCapabilities{}
	}
	if o.Completions {
		c.Completions = &sdk.CompletionCapabilities{}
	}
	return c
}

// advertise says to a client that connects what the servers have now.
func (h *Host) advertise(ctx context.Context, res sdk.Result) sdk.Result {
	switch r := res.(type) {
	case *sdk.InitializeResult:
		if r != nil {
			r.Capabilities = capabilities(h.offering(ctx, offeringTime))
		}
	case *sdk.DiscoverResult:
		if r != nil {
			r.Capabilities = capabilities(h.offering(ctx, offeringTime))
			if h.cfg.Jobs != nil {
				r.Capabilities.AddExtension(mcp.ExtensionTasks, nil)
			}
		}
	}
	return res
}

// What is added and removed to make the SDK announce that a list has changed. No
// client ever sees it: listings are not the SDK's.
const (
	changedName = "changed"
	changedURI  = "wasmgate:changed"
)

// liveServers are the SDK's servers with connections, to be told of changes.
type liveServers struct {
	mu      sync.Mutex
	all     map[*sdk.Server]struct{}
	offered mcp.Offering // when they were told last
}

// add adds a server until done is called.
func (l *liveServers) add(s *sdk.Server) (done func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all[s] = struct{}{}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.all, s)
	}
}

func (l *liveServers) list() []*sdk.Server {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.all))
}

// tell keeps what is offered now, and returns what was before.
func (l *liveServers) tell(now mcp.Offering) (before mcp.Offering) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, l.offered = l.offered, now
	return before
}

// Changed tells all clients that what they are offered may be other things now.
func (h *Host) Changed() { h.ListsChanged(true, true, true) }

// ListsChanged tells all clients which lists may be others now.
func (h *Host) ListsChanged(tools, prompts, resources bool) {
	if !tools && !prompts && !resources {
		return
	}
	now := h.offering(context.Background(), 0)
	before := h.servers.tell(now)
	for _, s := range h.servers.list() {
		if tools {
			s.AddTool(&sdk.Tool{Name: changedName, InputSchema: json.RawMessage(`{"type":"object"}`)}, nil)
			s.RemoveTools(changedName)
		}
		if prompts && (now.Prompts || before.Prompts) {
			s.AddPrompt(&sdk.Prompt{Name: changedName}, nil)
			s.RemovePrompts(changedName)
		}
		if resources && (now.Resources || before.Resources) {
			s.AddResource(&sdk.Resource{Name: changedName, URI: changedURI}, nil)
			s.RemoveResources(changedURI)
		}
	}
}
