package host

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// metaServer is where the answer to a request without a session says who answers.
const metaServer = "io.modelcontextprotocol/serverInfo"

// sdkEvery is how often a call of a session takes the SDK's way, which keeps the
// session alive there. It is well below sessionIdle.
const sdkEvery = time.Hour

// quick answers tools/call over HTTP by itself: the SDK's way there and back
// costs more than the gate does. It takes only requests in which everything is
// as it should be. Any other it leaves to the SDK, which says what is wrong.
func (h *Host) quick(w http.ResponseWriter, r *http.Request, from peerInfo, msg gate.Doc) bool {
	id, params := msg.Get("id"), msg.Get("params")
	if msg.Get("method").Text() != string(gate.CallTool) || id.IsZero() || params.Get("arguments").Kind() != gate.Object ||
		!params.At("/_meta/progressToken").IsZero() || !params.Get("_meta").Get(mcp.MetaLogLevel).IsZero() || !params.Get("task").IsZero() || !acceptsBoth(r.Header) || r.Header.Get("Content-Type") != "application/json" {
		return false
	}
	p, ok := statelessPeer(from, r.Header, params)
	if !ok {
		p, ok = h.quickly.peer(from.who, r.Header)
	}
	if !ok {
		return false
	}
	p.traceparent = r.Header.Get(mcp.HeaderTrace)
	res, err := h.dispatch(r.Context(), p, string(gate.CallTool), params)
	if r.Context().Err() != nil { // the client has cancelled it, or gone: a stream that ends without an answer says so
		w.Header().Set("Content-Type", "text/event-stream")
		return true
	}
	h.reply(w, p, id, res, err)
	return true
}

// reply writes the answer to a call.
func (h *Host) reply(w http.ResponseWriter, p peerInfo, id, res gate.Doc, err error) {
	out := append([]byte(`{"jsonrpc":"2.0","id":`), id.Raw()...)
	var rpc *mcp.Error
	switch {
	case err == nil && p.stateless:
		out = mcp.AppendStamp(append(out, `,"result":`...), res, metaServer, h.info)
	case err == nil:
		out = append(append(out, `,"result":`...), res.Raw()...)
	case errors.As(err, &rpc):
		out = append(append(out, `,"error":`...), rpc.JSON()...)
	default:
		out = append(append(out, `,"error":`...), mcp.MustJSON(map[string]any{"code": mcp.CodeInternal, "message": "internal error"})...)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache, no-transform")
	if rpc != nil && p.stateless {
		w.WriteHeader(http.StatusBadRequest) // as the SDK answers them
	}
	_, _ = w.Write(append(out, '}')) // the client has gone if this fails
}

func acceptsBoth(h http.Header) bool {
	accept := h.Get("Accept")
	return strings.Contains(accept, "application/json") && strings.Contains(accept, "text/event-stream")
}

// statelessPeer returns who made a request without a session, if its headers
// and its _meta say the same.
func statelessPeer(from peerInfo, header http.Header, params gate.Doc) (peerInfo, bool) {
	meta := params.Get("_meta")
	info := meta.Get(mcp.MetaClient)
	ok := header.Get(mcp.HeaderSession) == "" && header.Get(mcp.HeaderProtocol) == mcp.Stateless && meta.Get(mcp.MetaProtocol).Text() == mcp.Stateless &&
		header.Get(mcp.HeaderMethod) == string(gate.CallTool) && header.Get(mcp.HeaderName) == params.Get("name").Text() &&
		objects(meta.Get(mcp.MetaCapabilities)) &&
		info.Get("name").Kind() == gate.String && info.Get("version").Kind() == gate.String
	return peerInfo{who: from.who, groups: from.groups, name: info.Get("name").Text(), version: info.Get("version").Text(), stateless: true}, ok
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

// quickSessions are the sessions that the SDK has set up and not ended, by id.
type quickSessions struct {
	mu sync.Mutex
	by map[string]*quickSession
}

type quickSession struct {
	info     peerInfo
	protocol string
	sdk      time.Time // when the SDK last saw a request of it
}

// open adds a session that has been set up, until the SDK ends it.
func (q *quickSessions) open(ss *sdk.ServerSession, p peerInfo) {
	init := ss.InitializeParams()
	if ss.ID() == "" || init == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.by[ss.ID()] != nil {
		return
	}
	q.by[ss.ID()] = &quickSession{info: p, protocol: init.ProtocolVersion, sdk: time.Now()}
	go func() { // ends with the session, which the SDK ends when it is idle
		_ = ss.Wait()
		q.forget(ss.ID())
	}()
}

// forget leaves a session's calls to the SDK.
func (q *quickSessions) forget(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.by, id)
}

// peer returns who made a request of a session, unless it should go the SDK's
// way.
func (q *quickSessions) peer(who *gate.Principal, header http.Header) (peerInfo, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.by[header.Get(mcp.HeaderSession)]
	if s == nil || header.Get(mcp.HeaderProtocol) != s.protocol {
		return peerInfo{}, false
	}
	if now := time.Now(); now.Sub(s.sdk) > sdkEvery {
		s.sdk = now
		return peerInfo{}, false
	}
	p := s.info
	p.who = who
	return p, true
}

// callStack is what the way of a call needs of a stack; OPA needs most of it.
const callStack = 32 << 10

// growStack makes the stack of this goroutine large enough for a call while
// there is little on it that must be moved. Grown step by step, deep within the
// policy, its copying takes a tenth of the whole call.
//
//go:noinline
func growStack(i int) byte {
	var room [callStack]byte
	return room[i%callStack]
}
