package dispatch

import (
	"sync"

	"github.com/wasmgate/wasmgate/bridge/internal/host/sessions"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// listeners are all clients that hear something.
type listeners struct {
	mu    sync.Mutex
	by    map[gate.SessionKey]*sessions.Listener
	calls map[string]*sessions.Outbox // of who subscribed with a call, by its ID
	open  map[*listenRequest]struct{}
}

// A listenRequest is a request of subscriptions/listen under way (MCP 2026-07-28, basic/patterns).
type listenRequest struct {
	id    gate.Doc
	lists map[string]bool // by the method that says that they have changed
	out   sessions.Outbox
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
