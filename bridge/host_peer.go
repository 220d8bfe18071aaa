package bridge

import (
	"container/list"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/gate"
)

const (
	// maxCapabilities bounds what is kept of the capabilities of a client, in bytes:
	// they are names of a handful of things.
	maxCapabilities = 16 << 10
	// maxClientError bounds what a server is told of a client's error, in bytes.
	maxClientError = 4 << 10
	// roundTime is how long a server's own state is good for: a person may have to
	// fill in a form first.
	roundTime = time.Hour
)

// headerCapabilities carries what a client declares past the SDK, whose types do not
// tell a client with roots from one without. It is set on every request that
// initializes a session, whatever the client has sent.
const headerCapabilities = "Wasmgate-Capabilities"

// askable returns the capabilities by which servers may ask a client, as it has declared
// them; absent if it has none.
func askable(declared gate.Doc) (can gate.Doc) {
	for _, name := range []string{"elicitation", "roots", "sampling"} {
		if c := declared.Get(name); c.Kind() == gate.Object {
			can = can.With(name, c.Raw())
		}
	}
	if len(can.Raw()) > maxCapabilities {
		return gate.Doc{}
	}
	return can
}

// declares keeps with a request what its client declares in it.
func declares(r *http.Request, msg gate.Doc) {
	r.Header.Del(headerCapabilities)
	if can := askable(msg.At("/params/capabilities")); msg.Get("method").Text() == "initialize" && !can.IsZero() {
		r.Header.Set(headerCapabilities, can.String())
	}
}

// maxPeers bounds the sessions over HTTP. Clients that come again and again without
// ending theirs would fill the memory until those are idle for long: the one that was not
// used for the longest time makes room for another, and its client is told to begin anew.
const maxPeers = 2048

// peers are the sessions over HTTP, by id.
type peers struct {
	most int // maxPeers, but for tests
	mu   sync.Mutex
	by   map[string]*list.Element
	used list.List // of *peerSession, the last used one in front
}

// A peerSession is a session over HTTP, with what its client can be asked.
type peerSession struct {
	*mcp.ServerSession
	can gate.Doc
}

// begin adds a session; it is false of one that is there. The one that has to make room
// is ended in the background.
func (p *peers) begin(s *peerSession) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.by[s.ID()] != nil {
		return false
	}
	for len(p.by) >= p.most {
		oldest := p.used.Remove(p.used.Back()).(*peerSession)
		delete(p.by, oldest.ID())
		go func() { _ = oldest.Close() }() // ends with the connection
	}
	p.by[s.ID()] = p.used.PushFront(s)
	return true
}

func (p *peers) end(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := p.by[id]; at != nil {
		p.used.Remove(at)
		delete(p.by, id)
	}
}

// use says that a request of a session has come.
func (p *peers) use(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := p.by[id]; at != nil {
		p.used.MoveToFront(at)
	}
}

func (p *peers) of(id string) gate.Doc {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := p.by[id]; at != nil {
		return at.Value.(*peerSession).can
	}
	return gate.Doc{}
}

// beginPeer keeps what the client of a session that is initialized can be asked, until the
// session ends.
func (h *Host) beginPeer(req mcp.Request, p peerInfo) {
	ss, ok := req.GetSession().(*mcp.ServerSession)
	if !ok || ss.ID() == "" {
		return
	}
	var can gate.Doc
	if extra := req.GetExtra(); extra != nil {
		if text := extra.Header.Get(headerCapabilities); text != "" {
			can, _ = gate.ParseDoc([]byte(text)) // it was read before
		}
	}
	if !h.peers.begin(&peerSession{ss, can}) {
		return
	}
	go func() { // ends with the session, which the SDK ends when it is idle
		_ = ss.Wait()
		h.peers.end(ss.ID())
		h.endedSession(p.key())
	}()
}

// endedSession tells that a session of a client has ended.
func (h *Host) endedSession(k gate.SessionKey) {
	h.parking.end(k)
	if h.cfg.Ended != nil {
		h.cfg.Ended(k)
	}
}

// rootsChanged tells that the roots of a session's client are others.
func (h *Host) rootsChanged(p peerInfo) {
	if h.cfg.PeerChanged != nil && !p.capabilities.IsZero() {
		h.cfg.PeerChanged(p.key())
	}
}

// reach returns what sends requests to the client of a session in the middle of its
// call; nil if it cannot be asked for anything.
func reach(send mcp.MethodHandler, req mcp.Request, p peerInfo) toClient {
	ss, ok := req.GetSession().(*mcp.ServerSession)
	if !ok || p.capabilities.IsZero() {
		return nil
	}
	switch r := req.(type) {
	case *mcp.CallToolRequest:
		ok = r.Params != nil && !isStateless(r.Params.Meta)
	case *mcp.GetPromptRequest:
		ok = r.Params != nil && !isStateless(r.Params.Meta)
	case *mcp.ReadResourceRequest:
		ok = r.Params != nil && !isStateless(r.Params.Meta)
	case *mcp.ServerRequest[*methodRequest]:
		ok = !r.Params.stateless()
	case *mcp.SubscribeRequest:
		ok = r.Params != nil && !isStateless(r.Params.Meta)
	case *mcp.ServerRequest[*taskParams]:
		ok = r.Params != nil && r.Params.doc.Get("_meta").Get(metaProtocol).Text() < stateless
	default:
		ok = false
	}
	if !ok {
		return nil
	}
	return sender(send, ss)
}

// sessionPeer is the client of a session, which is asked on the stream of its call.
type sessionPeer struct {
	capabilities gate.Doc
	call         context.Context // of the call: it says which stream that is
	send         toClient
}

var _ gate.Peer = sessionPeer{}

// Capabilities implements [gate.Peer].
func (s sessionPeer) Capabilities() gate.Doc { return s.capabilities }

// Request implements [gate.Peer].
func (s sessionPeer) Request(ctx context.Context, method gate.Action, params gate.Doc) (gate.Doc, error) {
	on, cancel := context.WithCancel(s.call)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	res, err := s.send(on, string(method), params)
	var rpc *jsonrpc.Error
	switch {
	case ctx.Err() != nil:
		return gate.Doc{}, ctx.Err()
	case errors.As(err, &rpc):
		return gate.Doc{}, &rpcError{code: rpc.Code, message: beginning(rpc.Message, maxClientError)}
	}
	return res, err
}

// beginning returns the first n bytes of a text, in whole characters.
func beginning(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}

// carry carries out a call whose server may ask its client something meanwhile. A result
// with InputRequired is what the client gets as it is. An error that is an [*rpcError] is
// the answer to the request.
func (h *Host) carry(ctx context.Context, p peerInfo, c *gate.Call, params gate.Doc) (gate.Result, error) {
	if !p.stateless {
		if p.send != nil {
			c.Peer = sessionPeer{p.capabilities, ctx, p.send}
		}
		return h.cfg.Do(ctx, *c)
	}
	can := askable(c.Meta.Get(metaCapabilities))
	state, responses := params.Get("requestState").Text(), params.Get("inputResponses")
	switch {
	case strings.HasPrefix(state, parkedForm):
		return h.unpark(ctx, p, c, state, responses)
	case strings.HasPrefix(state, roundForm):
		inside, err := h.states.openAs(roundForm, c, state)
		if err != nil {
			return gate.Result{}, h.badState(ctx, p, c, err)
		}
		c.State, c.Responses = string(inside), responses
	case h.asksAbout(c) && (state != "" || !responses.Get(askedKey).IsZero()):
		c.Answered = h.answered(c, params)
	case state != "":
		return gate.Result{}, h.badState(ctx, p, c, errState)
	case !can.IsZero():
		c.Responses = responses
	}
	mayBeTask := h.mayBeTask(ctx, c)
	if can.IsZero() {
		c.State, c.Responses = "", gate.Doc{} // nobody has asked it for anything
	}
	if can.IsZero() && !mayBeTask {
		return h.cfg.Do(ctx, *c)
	}
	return h.park(ctx, p, c, can, mayBeTask)
}

// sealed is a result whose state, which is its server's own, the client can neither read
// nor bring back with another call.
func (h *Host) sealed(c *gate.Call, res gate.Result) gate.Result {
	state := res.Doc.Get("requestState")
	if res.InputRequired && state.Kind() == gate.String {
		sealed := h.states.sealAs(roundForm, c, []byte(state.Text()), time.Now().Add(roundTime))
		res.Doc = res.Doc.With("requestState", mustJSON(sealed))
	}
	return res
}

// answer is what the client gets of a result.
func (p peerInfo) answer(res gate.Result) gate.Doc {
	if res.InputRequired {
		return res.Doc
	}
	return p.complete(res.Doc)
}

// asksAbout reports whether a person is asked about such calls by the answer to them.
func (h *Host) asksAbout(c *gate.Call) bool { return h.cfg.Asks && c.Action == gate.CallTool }

// badState refuses a call for the state that it brings, and records it.
func (h *Host) badState(ctx context.Context, p peerInfo, c *gate.Call, why error) error {
	h.malformed(ctx, p, c.Action, c.Name, why)
	return &rpcError{code: codeInvalidParams, message: "invalid parameters: " + why.Error()}
}
