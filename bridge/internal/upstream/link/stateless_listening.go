package link

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
	"github.com/wasmgate/wasmgate/gate"
)

// listening is how a server of [mcp.Stateless] tells what has changed (MCP 2026-07-28,
// basic/patterns/subscriptions): one request that stays open, and is made anew whenever
// it ends or is to be for other resources. The zero listening listens to nothing.
type listening struct {
	mu     sync.Mutex
	uris   map[string]bool
	asked  int           // how often uris has changed
	stream *listenStream // the newest; nil if there is none
	turn   chan struct{} // closed when stream changes, and made anew; nil while nothing waits
	wanted chan struct{} // that uris has changed; room for one
}

// A listenStream is one such request.
type listenStream struct {
	id     int64
	asked  int // of the listening, when it was made
	cancel context.CancelFunc
	acked  chan struct{} // closed when the server has agreed
	agreed gate.Doc      // to what
	done   chan struct{} // closed when it has ended
	err    error
}

// filter returns what to listen to.
func (w *listening) filter(capabilities gate.Doc) map[string]any {
	filter := make(map[string]any)
	for _, list := range []string{"tools", "prompts", "resources"} {
		if capabilities.Get(list).Get("listChanged").True() {
			filter[list+"ListChanged"] = true
		}
	}
	if len(w.uris) > 0 {
		filter["resourceSubscriptions"] = slices.Sorted(maps.Keys(w.uris))
	}
	return filter
}

// set makes s the newest stream, or says that it has changed.
func (w *listening) set(s *listenStream) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s != nil && w.stream != nil && s.id < w.stream.id {
		return // it was replaced meanwhile
	}
	w.stream = s
	w.tell()
}

// tell wakes those who wait for a change. The caller holds mu.
func (w *listening) tell() {
	if w.turn != nil {
		close(w.turn)
		w.turn = nil
	}
}

// changed returns a channel that is closed with the next change of the stream.
func (w *listening) changed() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.next()
}

// next is changed. The caller holds mu.
func (w *listening) next() <-chan struct{} {
	if w.turn == nil {
		w.turn = make(chan struct{})
	}
	return w.turn
}

// acknowledged takes the parameters of the notification that the server has agreed.
func (w *listening) acknowledged(params gate.Doc) {
	id := wire.RequestNumber(params.Get("_meta").Get(mcp.MetaSubscription).String())
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stream == nil || w.stream.id != id {
		return
	}
	select {
	case <-w.stream.acked: // once is enough
	default:
		w.stream.agreed = params.Get("notifications")
		close(w.stream.acked)
		w.tell()
	}
}

// ended takes the id of a request that the server has ended by a notification: on
// standard input and output it has no other way.
func (w *listening) ended(id gate.Doc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stream != nil && w.stream.id == wire.RequestNumber(id.String()) {
		w.stream.cancel()
	}
}

// change adds a resource to those that are listened to, or takes it out, and returns the
// number of the change.
func (w *listening) change(uri string, add bool) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.uris == nil {
		w.uris = make(map[string]bool)
	}
	if w.uris[uri] == add {
		return w.asked
	}
	if add {
		w.uris[uri] = true
	} else {
		delete(w.uris, uri)
	}
	w.asked++
	select {
	case w.wanted <- struct{}{}:
	default:
	}
	return w.asked
}

// want adds a resource, and waits until the server has agreed.
func (w *listening) want(ctx context.Context, uri string) error {
	asked := w.change(uri, true)
	for {
		w.mu.Lock()
		s, turn := w.stream, w.next()
		agreed, err := s.judge(asked, uri)
		w.mu.Unlock()
		if agreed || err != nil {
			return err
		}
		select {
		case <-turn:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// judge reports whether the stream is for a resource that was asked for by then, or
// returns why it will not be.
func (s *listenStream) judge(asked int, uri string) (bool, error) {
	if s == nil || s.asked < asked {
		return false, nil
	}
	select {
	case <-s.done:
		return false, s.err
	case <-s.acked:
	default:
		return false, nil
	}
	for one := range s.agreed.Get("resourceSubscriptions").Elements() {
		if one.Text() == uri {
			return true, nil
		}
	}
	return false, &wire.RPCError{Code: mcp.CodeInvalidParams, Message: "the server does not report changes of this resource"}
}
