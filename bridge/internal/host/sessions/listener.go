package sessions

import (
	"sync"

	"github.com/wasmgate/wasmgate/gate"
)

// MaxSubscribed bounds the resources that one client subscribes to.
const MaxSubscribed = 1000

// A Listener is a client with a session that has asked to hear something.
type Listener struct {
	Key gate.SessionKey
	Out *Outbox

	mu    sync.Mutex
	to    map[string]string // URI to the ID of the call that subscribed to it
	ended bool
}

// Subscribe keeps a subscription. It returns the one that it takes the place of, "" if
// there was none, and false if the session has ended.
func (l *Listener) Subscribe(uri, call string) (before string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return "", false
	}
	before = l.to[uri]
	l.to[uri] = call
	return before, true
}

// Unsubscribe forgets a subscription and returns it, "" if there was none.
func (l *Listener) Unsubscribe(uri string) (call string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	call = l.to[uri]
	delete(l.to, uri)
	return call
}

func (l *Listener) Full() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.to) >= MaxSubscribed
}

// End returns the subscriptions, and keeps no more.
func (l *Listener) End() map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	return l.to
}
