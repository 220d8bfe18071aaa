package link

import (
	"context"
	"time"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/pace"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/underway"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

const (
	// tuneTime bounds how long a server gets to take a level of logging.
	tuneTime = 2 * time.Second
	// greetTime bounds how long a server gets, before the first call, to ask what it asks
	// each client at first.
	greetTime = 2 * time.Second
	// greetPause is how long it gets to ask over HTTP, where that comes on a stream of its
	// own, and not in the order in which it was sent; and answeredPause to make something
	// of the answers, such as folders that it opens.
	greetPause    = 50 * time.Millisecond
	answeredPause = 200 * time.Millisecond
)

func (sessions) failed(_ context.Context, err error) error { return err }

func (l sessions) call(ctx *pace.Deadline, a outgoing, t *gate.Tool) (gate.Doc, error) {
	if l.asTask(t, a.of.Call) {
		return l.callAsTask(ctx, a)
	}
	return l.send(ctx, a)
}

func (sessions) Usable(raw []gate.Doc) ([]gate.Doc, []status.Note) { return raw, nil }

// Keeps does nothing: such a server does not say how long a listing can be kept.
func (sessions) Keeps(time.Time, map[gate.Feature]Hint) {}

func (l sessions) Listens(ctx context.Context) {
	if h := l.OverHTTP(); h != nil {
		h.Listens(ctx)
	}
}

func (l sessions) Subscribe(ctx context.Context, of *underway.Call, uri string) (gate.Doc, error) {
	return l.Peer.Exchange(ctx, wire.Request{Of: of, Method: string(gate.Subscribe), Params: mcp.URIParams(uri)})
}

func (l sessions) Unsubscribe(ctx context.Context, uri string) {
	_, _ = l.Peer.Call(ctx, mcp.MethodUnsubscribe, mcp.URIParams(uri)) // if it fails, unwanted updates go on
}

func (l sessions) Tune(ctx context.Context, from mcp.Severity, atMost bool) {
	if from == 0 || l.Capabilities.Get("logging").Kind() != doc.Object {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, tuneTime)
	defer cancel()
	select {
	case l.tuning <- struct{}{}:
		defer func() { <-l.tuning }()
	case <-ctx.Done():
		return
	}
	if l.level == from || atMost && l.level != 0 && l.level < from {
		return
	}
	l.level = from
	_, _ = l.Peer.Call(ctx, mcp.MethodSetLevel, mcp.MustJSON(map[string]string{"level": from.String()}))
}

func (sessions) AsksByAnswers() bool { return false }

func (l sessions) Greet(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, greetTime)
	defer cancel()
	before := l.Peer.Asked.Count()
	if _, err := l.Peer.Call(ctx, "ping", []byte("{}")); err != nil { // what it asked before it answered has come
		return
	}
	if l.OverHTTP() != nil {
		l.pause(ctx, greetPause)
	}
	select {
	case <-l.Peer.Asked.Settled():
	case <-l.ended:
	case <-ctx.Done():
	}
	if l.Peer.Asked.Count() > before {
		l.pause(ctx, answeredPause)
	}
}

func (l sessions) pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-l.ended:
	case <-ctx.Done():
	}
}
