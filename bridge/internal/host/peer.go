package host

import (
	"container/list"
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
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
func askable(declared gate.Doc) gate.Doc {
	can := mcp.PeerCapabilities(declared)
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
// ending theirs would fill the memory until those are idle for long: of the principal who has
// the most the one that was not used for the longest time makes room for another, and its
// client is told to begin anew.
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
	id  string
	who *gate.Principal
	can gate.Doc
	end func() // nil while it is not initialized
}

// announce says whose a session is of which a client is told; "" is none. The client may
// use it before it is initialized. The one that has to make room is ended in the background.
func (p *peers) announce(id string, who *gate.Principal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if id != "" && p.by[id] == nil {
		p.add(&peerSession{id: id, who: who})
	}
}

// begin says what the client of a session can be asked; it is false of one that has begun.
func (p *peers) begin(s *peerSession) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.by[s.id]
	switch {
	case at == nil:
		p.add(s)
	case at.Value.(*peerSession).end != nil:
		return false
	default:
		at.Value = s
	}
	return true
}

// add adds a session. The caller holds mu.
func (p *peers) add(s *peerSession) {
	for len(p.by) >= p.most {
		out := p.victim()
		p.used.Remove(p.by[out.id])
		delete(p.by, out.id)
		if out.end != nil {
			go out.end() // ends with the connection
		}
	}
	p.by[s.id] = p.used.PushFront(s)
}

func (p *peers) end(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := p.by[id]; at != nil {
		p.used.Remove(at)
		delete(p.by, id)
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
func (h *Host) beginPeer(req sdk.Request, p peerInfo) {
	ss, ok := req.GetSession().(*sdk.ServerSession)
	if !ok || ss.ID() == "" {
		return
	}
	var can gate.Doc
	if extra := req.GetExtra(); extra != nil {
		if text := extra.Header.Get(headerCapabilities); text != "" {
			can, _ = gate.ParseDoc([]byte(text)) // it was read before
		}
	}
	if !h.peers.begin(&peerSession{ss.ID(), p.who, can, func() { _ = ss.Close() }}) {
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
func reach(send sdk.MethodHandler, req sdk.Request, p peerInfo) toClient {
	ss, ok := req.GetSession().(*sdk.ServerSession)
	if !ok || p.capabilities.IsZero() {
		return nil
	}
	switch r := req.(type) {
	case *sdk.CallToolRequest:
		ok = r.Params != nil && !isStateless(r.Params.Meta)
	case *sdk.GetPromptRequest:
		ok = r.Params != nil && !isStateless(r.Params.Meta)
	case *sdk.ReadResourceRequest:
		ok = r.Params != nil && !isStateless(r.Params.Meta)
	case *sdk.ServerRequest[*methodRequest]:
		ok = !saysStateless(r.Params.doc)
	case *sdk.SubscribeRequest:
		ok = r.Params != nil && !isStateless(r.Params.Meta)
	case *sdk.ServerRequest[*taskParams]:
		ok = r.Params != nil && !saysStateless(r.Params.doc)
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
		return gate.Doc{}, &mcp.Error{Code: rpc.Code, Message: mcp.Clip(rpc.Message, maxClientError)}
	}
	return res, err
}
