package upstream

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
	"github.com/wasmgate/wasmgate/gate"
)

// link is a connection that has been made.
type link struct {
	endpoint endpoint
	peer     *wire.Peer
	dialect  dialect // of the revision that is spoken

	ended     chan struct{}
	again     chan struct{} // the server's tools have changed; room for one
	announced announcements // what is not listed yet of that
	// wanted says that a call waits for the next listing; room for one.
	wanted chan struct{}
	// useful says that the server has answered a call.
	useful atomic.Bool

	listening listening // of a server of [mcp.Stateless]

	tuning chan struct{} // has room while nobody tells the server what to log
	level  mcp.Severity  // that the server was told; 0 if it was not; of who tells it

	instructions gate.Doc // of the handshake; absent if there are none
	capabilities gate.Doc // of the server, of the handshake
	server       gate.Doc // what it calls itself; absent if it says nothing
	revision     string   // that is spoken
	tlsKey       string   // "" if it is not asked for

	declaring sync.Mutex
	declared  map[string]string // of a client's own process: digests of its tools, by name; nil if it was not asked
}

// endpoint is what a link asks of its [Endpoint], which has one connection after the other.
type endpoint interface {
	// ready returns the one that there is by now: see [Endpoint.ready].
	ready(ctx context.Context, trial bool) (l *link, waited bool, err error)
	Phase() Phase
	// run runs f in a goroutine that the endpoint waits for.
	run(f func())
	// updated takes the parameters of a notification that a resource has changed.
	updated(params gate.Doc)
}

func (l *link) close() error {
	err := l.peer.Conn.Close()
	<-l.ended
	return err
}

// overHTTP returns the connection if it is streamable HTTP, or nil.
func (l *link) overHTTP() *wire.HTTPConn {
	h, _ := l.peer.Conn.(*wire.HTTPConn)
	return h
}

// listsChanged has the listing made anew.
func (l *link) listsChanged() {
	l.announced.announce()
	select {
	case l.again <- struct{}{}:
	default:
	}
}

// ask sends a request of the gateway's own and waits for the answer, as [wire.Peer.Call] does.
func (l *link) ask(ctx context.Context, method string, params []byte) (gate.Doc, error) {
	return l.send(ctx, outgoing{method: method, params: params})
}

// send sends a request in the words of the revision that the server speaks.
func (l *link) send(ctx context.Context, a outgoing) (gate.Doc, error) {
	res, err := l.peer.Exchange(ctx, l.dialect.worded(a))
	if err != nil {
		return gate.Doc{}, l.dialect.failed(ctx, err)
	}
	return res, nil
}

// tellsOf reports whether the server says by itself when the list of a feature changes.
func (l *link) tellsOf(one gate.Feature) bool {
	list := "resources"
	switch one {
	case gate.FeatureTool:
		list = "tools"
	case gate.FeaturePrompt:
		list = "prompts"
	}
	return l.capabilities.Get(list).Get("listChanged").True()
}

// subscribes reports whether the server has subscriptions to its resources.
func (l *link) subscribes() bool {
	return l.capabilities.At("/resources/subscribe").True()
}
