package link

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/pace"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
	"github.com/wasmgate/wasmgate/gate"
)

const (
	// ackTime bounds how long a server may take to confirm a subscription.
	ackTime = 5 * time.Second
	// firstAckTime bounds how long the first listing waits for that: what changes after
	// the listing is heard of then.
	firstAckTime = time.Second
	// listenSettle is left between the end of a stream and the next on a connection that
	// both share: servers take the subscriptions of the one for those of the other.
	listenSettle = 100 * time.Millisecond
)

// startListening begins to listen to what the server declares that it tells, and waits for a
// moment until it does.
func (l stateless) startListening(ctx context.Context) {
	l.listening.wanted = make(chan struct{}, 1)
	first := make(chan struct{})
	l.endpoint.Run(func() { l.listen(context.WithoutCancel(ctx), sync.OnceFunc(func() { close(first) })) })
	select {
	case <-first:
	case <-time.After(firstAckTime):
	case <-ctx.Done():
	}
}

// listen keeps the stream open until the connection ends. settled is called when the
// server has agreed, or will not.
func (l stateless) listen(ctx context.Context, settled func()) {
	defer settled()
	w := &l.listening
	pauses := pace.Backoff{First: wire.ListenAgain, Most: wire.MaxListenAgain}
	missed := false // there may be news of a time without a stream
	for {
		s := w.open(ctx, l)
		if s == nil { // there is nothing to listen to
			settled()
			if !w.pause(nil, l) {
				return
			}
			continue
		}
		began := time.Now()
		if s.agrees(l) && (missed || time.Since(began) > firstAckTime) {
			l.catchUp()
			missed = false
		}
		settled()
		select {
		case <-w.wanted:
			missed = l.replace(s) || missed
			continue
		case <-s.done:
		case <-l.ended:
			s.cancel()
			return
		}
		missed = true
		if time.Since(began) > wire.MaxListenAgain {
			pauses.Reset()
		}
		var again <-chan time.Time
		if _, refused := errors.AsType[*wire.RPCError](s.err); !refused { // who refuses, refuses again
			again = time.After(pauses.Next())
		}
		if !w.pause(again, l) {
			return
		}
	}
}

// agrees waits until the server has agreed, and reports whether it has.
func (s *listenStream) agrees(l stateless) bool {
	late := time.NewTimer(ackTime)
	defer late.Stop()
	select {
	case <-s.acked:
		return true
	case <-s.done:
	case <-late.C:
	case <-l.ended:
	}
	return false
}

// pause waits until other resources are wanted, or for again. It is false when the
// connection has ended.
func (w *listening) pause(again <-chan time.Time, l stateless) bool {
	select {
	case <-again:
	case <-w.wanted:
	case <-l.ended:
		return false
	}
	return true
}

// replace ends a stream that is to be another, and reports whether there may be a time
// between them. Over HTTP the next one is there first.
func (l stateless) replace(s *listenStream) (gap bool) {
	if l.OverHTTP() != nil {
		next := l.listening.changed()
		go func() { // ends after ackTime, at the latest
			defer s.cancel()
			late := time.NewTimer(ackTime)
			defer late.Stop()
			for range 2 { // the next is made, and then agreed to
				select {
				case <-next:
					next = l.listening.changed()
				case <-late.C:
					return
				}
			}
		}()
		return false
	}
	s.cancel()
	<-s.done
	time.Sleep(listenSettle)
	return true
}

// open makes a stream; nil if there is nothing to listen to, or the connection has ended.
func (w *listening) open(ctx context.Context, l stateless) *listenStream {
	w.mu.Lock()
	s, filter := &listenStream{asked: w.asked, acked: make(chan struct{}), done: make(chan struct{})}, w.filter(l.Capabilities)
	w.mu.Unlock()
	if len(filter) == 0 {
		w.set(nil)
		return nil
	}
	id, answer, err := l.Peer.Expect(nil)
	if err != nil {
		return nil
	}
	s.id = id
	ctx, s.cancel = context.WithCancel(ctx)
	w.set(s)
	a := outgoing{method: mcp.MethodListen, params: mcp.MustJSON(map[string]any{"notifications": filter})}
	go func() { // ends with ctx, or with the connection
		defer s.cancel()
		s.err = l.await(ctx, s.id, answer, a)
		close(s.done)
		w.set(s)
	}()
	return s
}

// await sends a request that stays open, and waits for its end.
func (l stateless) await(ctx context.Context, id int64, ch <-chan wire.Answer, a outgoing) error {
	defer l.Peer.Forget(id)
	r := l.worded(a)
	msg := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, r.Method, r.Params)
	if err := l.Peer.Conn.Send(ctx, msg, r.Headers); err != nil {
		return err
	}
	select {
	case one := <-ch:
		if one.Err == nil {
			return errors.New("the server has ended the stream")
		}
		return one.Err
	case <-ctx.Done():
		l.Peer.Cancelled(a.method, id)
		return ctx.Err()
	}
}

// catchUp checks everything that may have changed while there was no stream.
func (l stateless) catchUp() {
	l.ListsChanged()
	l.listening.mu.Lock()
	uris := slices.Sorted(maps.Keys(l.listening.uris))
	l.listening.mu.Unlock()
	for _, uri := range uris {
		l.endpoint.Notified(l.Link, mcp.MethodUpdated, gate.MustDoc(string(mcp.URIParams(uri))), nil)
	}
}
