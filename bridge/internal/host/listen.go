package host

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// Clients hear what servers say outside of calls: that a resource has changed which they
// have subscribed to, and, of a server that has a connection for them alone, log
// messages. Who has a session hears it there; others with subscriptions/listen
// (MCP 2026-07-28, basic/patterns).

const (
	// maxSubscribed bounds the resources that one client subscribes to.
	maxSubscribed = 1000
	// maxUnheard bounds what waits for a client to read it; more is dropped. Of one
	// resource a single update waits, for it says nothing but that there is another.
	maxUnheard = 64
	// hearTime bounds how long sending one may take.
	hearTime = 10 * time.Second
)

// A listener is a client with a session that has asked to hear something.
type listener struct {
	key gate.SessionKey
	out outbox

	mu    sync.Mutex
	to    map[string]string // URI to the ID of the call that subscribed to it
	ended bool
}

// subscribe keeps a subscription. It returns the one that it takes the place of, "" if
// there was none, and false if the session has ended.
func (l *listener) subscribe(uri, call string) (before string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return "", false
	}
	before = l.to[uri]
	l.to[uri] = call
	return before, true
}

// unsubscribe forgets a subscription and returns it, "" if there was none.
func (l *listener) unsubscribe(uri string) (call string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	call = l.to[uri]
	delete(l.to, uri)
	return call
}

func (l *listener) full() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.to) >= maxSubscribed
}

// end returns the subscriptions, and keeps no more.
func (l *listener) end() map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	return l.to
}

// listeners are all clients that hear something.
type listeners struct {
	mu      sync.Mutex
	by      map[gate.SessionKey]*listener
	calls   map[string]*listener // by the ID of the call that subscribed; nil for subscriptions/listen
	unnamed outbox               // to those with subscriptions/listen
}

// listener returns the client of a session, which hears from now on what it will ask to
// hear, until its session ends.
func (h *Host) listener(ss *sdk.ServerSession, k gate.SessionKey, send func(context.Context, string, gate.Doc)) *listener {
	all := &h.listening
	all.mu.Lock()
	defer all.mu.Unlock()
	if l := all.by[k]; l != nil {
		return l
	}
	l := &listener{key: k, out: outbox{send: send, clean: h.cfg.Clean}, to: make(map[string]string)}
	all.by[k] = l
	go func() { // ends with the session
		_ = ss.Wait()
		h.unheard(l)
	}()
	return l
}

// unheard ends what a client has subscribed to, for its session has ended.
func (h *Host) unheard(l *listener) {
	h.listening.mu.Lock()
	delete(h.listening.by, l.key)
	h.listening.mu.Unlock()
	_ = h.cfg.SetLevel(context.Background(), l.key, "")
	for uri, call := range l.end() {
		h.release(call, uri)
	}
}

// release ends a subscription.
func (h *Host) release(call, uri string) {
	h.listening.mu.Lock()
	delete(h.listening.calls, call)
	h.listening.mu.Unlock()
	_ = h.cfg.Unsubscribe(context.Background(), call, uri) // whatever the server makes of it, nobody hears
}

// Hear tells clients what a server says outside of calls: it is for [fleet.Fleet.Hear]. It does
// not block.
func (h *Host) Hear(n mcp.Notice) {
	all := &h.listening
	all.mu.Lock()
	defer all.mu.Unlock()
	if n.Method == mcp.MethodLog {
		if l := all.by[n.Session]; l != nil {
			l.out.put(n)
		}
		return
	}
	told := make(map[*listener]bool)
	for _, call := range n.Subscribers {
		l, subscribed := all.calls[call]
		if !subscribed || told[l] {
			continue
		}
		told[l] = true
		if l == nil {
			all.unnamed.put(n)
		} else {
			l.out.put(n)
		}
	}
}

// asksToHear reports whether a method is one by which a client with a session says what
// it wants to hear.
func asksToHear(method string) bool {
	return method == mcp.MethodSetLevel || method == string(gate.Subscribe) || method == mcp.MethodUnsubscribe
}

// setLevel answers logging/setLevel (MCP 2025-11-25, server/utilities/logging).
func (h *Host) setLevel(ctx context.Context, p peerInfo, params gate.Doc) (gate.Doc, error) {
	level := params.Get("level").Text()
	if p.listener == nil || level == "" || h.cfg.SetLevel(ctx, p.key(), level) != nil {
		return gate.Doc{}, &mcp.Error{Code: mcp.CodeInvalidParams, Message: fmt.Sprintf("invalid parameters: level is none of %q", mcp.Severities[1:])}
	}
	return gate.MustDoc("{}"), nil
}

// subscribe answers resources/subscribe.
func (h *Host) subscribe(ctx context.Context, p peerInfo, params gate.Doc) (gate.Doc, error) {
	uri, err := checkUse(gate.Subscribe, params)
	c := p.call(gate.Subscribe, uri)
	c.Malformed, c.Meta = err, params.Get("_meta")
	if p.send != nil { // a server tells each client's connection of what was done over it
		c.Peer = sessionPeer{p.capabilities, ctx, p.send}
	}
	if p.listener == nil || p.listener.full() {
		return gate.Doc{}, &mcp.Error{Code: mcp.CodeInvalidParams, Message: fmt.Sprintf("a session subscribes to at most %d resources", maxSubscribed)}
	}
	res, err := h.subscribeTo(ctx, c, p.listener)
	if err != nil {
		return gate.Doc{}, h.unused(ctx, p, &c, err)
	}
	if res.IsError {
		return gate.Doc{}, serverError(res.Doc)
	}
	before, ok := p.listener.subscribe(uri, c.ID)
	if !ok {
		before = c.ID
	}
	if before != "" {
		h.release(before, uri)
	}
	return p.complete(res.Doc), nil
}

// subscribeTo carries out the call of a subscription, whose updates l hears: nil stands
// for those with subscriptions/listen.
func (h *Host) subscribeTo(ctx context.Context, c gate.Call, l *listener) (gate.Result, error) {
	h.listening.mu.Lock()
	h.listening.calls[c.ID] = l
	h.listening.mu.Unlock()
	res, err := h.cfg.Do(ctx, c)
	if err != nil || res.IsError {
		h.listening.mu.Lock()
		delete(h.listening.calls, c.ID)
		h.listening.mu.Unlock()
	}
	return res, err
}

// unsubscribe answers resources/unsubscribe. To take back what one has asked for needs
// no permission.
func (h *Host) unsubscribe(p peerInfo, params gate.Doc) (gate.Doc, error) {
	uri, err := checkUse(gate.Subscribe, params)
	if err != nil || p.listener == nil {
		return gate.Doc{}, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "invalid parameters: no uri"}
	}
	if call := p.listener.unsubscribe(uri); call != "" {
		h.release(call, uri)
	}
	return gate.MustDoc("{}"), nil
}

// listen decides what a client without a session subscribes to, and leaves the rest out
// of its request. done ends the subscriptions.
func (h *Host) listen(ctx context.Context, p peerInfo, r *sdk.SubscriptionsListenRequest) (done func()) {
	if r.Params == nil || r.Params.Notifications == nil {
		return func() {}
	}
	if !h.offering(ctx, 0).Updates {
		r.Params.Notifications.ResourceSubscriptions = nil
		return func() {}
	}
	p.stateless = true
	want := r.Params.Notifications.ResourceSubscriptions
	slices.Sort(want)
	want = slices.Compact(want)
	want = want[:min(len(want), maxSubscribed)]
	calls := make(map[string]string)
	var allowed []string
	for _, uri := range want {
		c := p.call(gate.Subscribe, uri)
		res, err := h.subscribeTo(ctx, c, nil)
		if err == nil && !res.IsError {
			calls[uri], allowed = c.ID, append(allowed, uri)
		}
	}
	r.Params.Notifications.ResourceSubscriptions = allowed
	return func() {
		for uri, call := range calls {
			h.release(call, uri)
		}
	}
}

// tellListening has the SDK tell those with subscriptions/listen that a resource has
// changed, each with the name of its subscription.
func (h *Host) tellListening(ctx context.Context, _ string, params gate.Doc) {
	for _, s := range h.servers.list() {
		_ = s.ResourceUpdated(ctx, &sdk.ResourceUpdatedNotificationParams{URI: params.Get("uri").Text()}) // who has gone needs to know nothing
	}
}

// An outbox sends what a client is told, one after the other. It has a goroutine only
// while there is something to send.
type outbox struct {
	send  func(ctx context.Context, method string, params gate.Doc)
	clean func(server string, params gate.Doc) (gate.Doc, bool)

	mu      sync.Mutex
	waiting []mcp.Notice
	sending bool
}

// put has n sent, unless too much waits or it says nothing new. It does not block.
func (o *outbox) put(n mcp.Notice) {
	o.mu.Lock()
	defer o.mu.Unlock()
	known := n.Method == mcp.MethodUpdated && slices.ContainsFunc(o.waiting, func(w mcp.Notice) bool {
		return w.Method == mcp.MethodUpdated && w.Params.String() == n.Params.String()
	})
	if known || len(o.waiting) == maxUnheard {
		return
	}
	o.waiting = append(o.waiting, n)
	if !o.sending {
		o.sending = true
		go o.run() // ends when nothing waits
	}
}

func (o *outbox) next() (mcp.Notice, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.waiting) == 0 {
		o.sending = false
		return mcp.Notice{}, false
	}
	n := o.waiting[0]
	o.waiting = slices.Delete(o.waiting, 0, 1)
	return n, true
}

func (o *outbox) run() {
	for n, ok := o.next(); ok; n, ok = o.next() {
		params, safe := n.Params, true
		if n.Method == mcp.MethodLog { // the words of an update are the client's own
			params, safe = o.clean(n.Server, n.Params)
		}
		if safe {
			ctx, cancel := context.WithTimeout(context.Background(), hearTime)
			o.send(ctx, n.Method, params)
			cancel()
		}
	}
}
