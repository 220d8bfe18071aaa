package host

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

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

// askable returns the capabilities by which servers may ask a client, as it has declared
// them; absent if it has none.
func askable(declared gate.Doc) gate.Doc {
	can := mcp.PeerCapabilities(declared)
	if len(can.Raw()) > maxCapabilities {
		return gate.Doc{}
	}
	return can
}

// endedSession tells that a session of a client has ended.
func (h *Host) endedSession(k gate.SessionKey) {
	h.parking.End(k)
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

// A wire is the way to the client of a request, while the request is under way.
type wire interface {
	// tell sends a notification; a client that has gone needs to know nothing.
	tell(ctx context.Context, method string, params gate.Doc)
	// ask sends a request of the host and waits for its result: an object, or absent if
	// it was none. The error is the client's, an [*mcp.Error], or the end of ctx.
	ask(ctx context.Context, method string, params gate.Doc) (gate.Doc, error)
	// polls returns what ends the stream of the request and has the client come back;
	// nil if it is no stream that a client can come back to.
	polls() func(after time.Duration)
}

// asks reports whether the client of a request can be asked something in the middle of it.
func (p peerInfo) asks() bool { return p.wire != nil && !p.stateless && !p.capabilities.IsZero() }

// sessionPeer is the client of a session, which is asked on the stream of its call.
type sessionPeer struct {
	capabilities gate.Doc
	call         context.Context
	wire         wire
}

var _ gate.Peer = sessionPeer{}

// Capabilities implements [gate.Peer].
func (s sessionPeer) Capabilities() gate.Doc { return s.capabilities }

// Request implements [gate.Peer].
func (s sessionPeer) Request(ctx context.Context, method gate.Action, params gate.Doc) (gate.Doc, error) {
	on, cancel := context.WithCancel(s.call)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	res, err := s.wire.ask(on, string(method), params)
	if ctx.Err() != nil {
		return gate.Doc{}, ctx.Err()
	}
	return res, err
}

// asked are the requests of the host to a client that wait for an answer. A client may
// outlive its gateway and be served by the next one; what it answers to the first must not
// be taken for an answer to the second, which also counts from 1: so ids begin with mark,
// unless sessions tell that apart.
type asked struct {
	mark string

	mu   sync.Mutex
	last int64
	by   map[string]chan gate.Doc // by the JSON of the id; each has room for the only answer
}

// ask sends a request, and waits for its answer. One that nobody waits for any more is
// withdrawn.
func (a *asked) ask(ctx context.Context, send func([]byte), method string, params gate.Doc) (gate.Doc, error) {
	id, answer := a.add()
	defer a.remove(id)
	send(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":%s,"params":%s}`, id, mcp.MustJSON(method), params.Raw()))
	select {
	case msg := <-answer:
		return resultOf(msg)
	case <-ctx.Done():
		send(notification(mcp.MethodCancelled, gate.MustDoc(`{"reason":"context canceled","requestId":`+id+`}`)))
		return gate.Doc{}, ctx.Err()
	}
}

func (a *asked) add() (id string, answer <-chan gate.Doc) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last++
	id = strconv.FormatInt(a.last, 10)
	if a.mark != "" {
		id = `"` + a.mark + id + `"`
	}
	if a.by == nil {
		a.by = make(map[string]chan gate.Doc)
	}
	c := make(chan gate.Doc, 1)
	a.by[id] = c
	return id, c
}

func (a *asked) remove(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.by, id)
}

// answered takes a client's answer. One to nothing that waits is dropped.
func (a *asked) answered(msg gate.Doc) {
	a.mu.Lock()
	defer a.mu.Unlock()
	id := msg.Get("id").String()
	if c := a.by[id]; c != nil {
		delete(a.by, id)
		c <- msg
	}
}

// resultOf returns the result that a client's answer brings; absent if that is no object.
func resultOf(msg gate.Doc) (gate.Doc, error) {
	if e := msg.Get("error"); e.Kind() == gate.Object {
		code, _ := strconv.ParseInt(e.Get("code").String(), 10, 64)
		return gate.Doc{}, &mcp.Error{Code: code, Message: mcp.Clip(e.Get("message").Text(), maxClientError)}
	}
	if res := msg.Get("result"); res.Kind() == gate.Object {
		return res, nil
	}
	return gate.Doc{}, nil
}
