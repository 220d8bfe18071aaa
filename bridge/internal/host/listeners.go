package host

import (
	"sync"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// maxSubscribed bounds the resources that one client subscribes to.
const maxSubscribed = 1000

// A listener is a client with a session that has asked to hear something.
type listener struct {
	key gate.SessionKey
	out *outbox

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
	mu    sync.Mutex
	by    map[gate.SessionKey]*listener
	calls map[string]*outbox // of who subscribed with a call, by its ID
	open  map[*listenRequest]struct{}
}

// A listenRequest is a request of subscriptions/listen under way (MCP 2026-07-28, basic/patterns).
type listenRequest struct {
	id    gate.Doc
	lists map[string]bool // by the method that says that they have changed
	out   outbox
}

// stamped returns the parameters of a notification with the request that it belongs to.
func (l *listenRequest) stamped(params gate.Doc) gate.Doc {
	stamp := append(append([]byte(`{"_meta":{"`+mcp.MetaSubscription+`":`), l.id.Raw()...), '}')
	for name, v := range params.Members() {
		if name != "_meta" {
			stamp = append(append(append(append(stamp, ','), mcp.MustJSON(name)...), ':'), v.Raw()...)
		}
	}
	return gate.MustDoc(string(append(stamp, '}')))
}

func (l *listeners) add(one *listenRequest) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[one] = struct{}{}
}

func (l *listeners) remove(one *listenRequest) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, one)
}

// changes are the lists that have changed since clients were told last.
type changes struct {
	mu      sync.Mutex
	lists   []string
	offered mcp.Offering // when there was a change last
}
