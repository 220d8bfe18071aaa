package link

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/pace"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/underway"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
	"github.com/wasmgate/wasmgate/gate"
)

// A Link is a connection that has been made.
type Link struct {
	Peer    *wire.Peer
	Dialect Dialect // of the revision that is spoken
	// Useful says that the server has answered a call.
	Useful atomic.Bool

	Instructions gate.Doc // of the handshake; absent if there are none
	Capabilities gate.Doc // of the server, of the handshake
	Declares     gate.Doc // capabilities of the gateway itself, for its own requests
	Server       gate.Doc // what it calls itself; absent if it says nothing
	Revision     string   // that is spoken
	TLSKey       string   // "" if it is not asked for

	endpoint  Endpoint
	ended     chan struct{}
	again     chan struct{} // the server's tools have changed; room for one
	announced announcements // what is not listed yet of that
	// wanted says that a call waits for the next listing; room for one.
	wanted chan struct{}

	listening listening // of a server of [mcp.Stateless]

	tuning chan struct{} // has room while no request sets the server's log level
	level  mcp.Severity  // that the server was told; 0 if it was not; of who tells it

	declaring sync.Mutex
	declared  map[string]string // of a client's own process: digests of its tools, by name; nil if it was not asked
}

// An Endpoint has one link to a server after the other.
type Endpoint interface {
	// ClientInfo is how the gateway calls itself to the server, JSON.
	ClientInfo() []byte
	// Ready returns the link that there is by now, and waits for one that is being made. trial
	// says that a request is to be sent although requests before it have failed.
	Ready(ctx context.Context, trial bool) (*Link, error)
	// Ending reports whether there will be no other link.
	Ending() bool
	// Run runs f in a goroutine that the endpoint waits for.
	Run(f func())

	// ListsFeatures reports whether the listings of the link count for more than tools.
	ListsFeatures() bool
	// Asker returns the call on whose behalf the server asks something, with such parameters, in
	// the stream of the request of a call, or in none; nil if it can ask no client.
	Asker(of *underway.Call, params gate.Doc) *underway.Call
	// Notified takes a notification that is not about the link itself: in the stream of the
	// request of a call, or in none.
	Notified(l *Link, method string, params gate.Doc, of *underway.Call)
}

// Ended is closed when the connection has ended.
func (l *Link) Ended() <-chan struct{} { return l.ended }

// Close ends the connection, and waits for its end.
func (l *Link) Close() error {
	err := l.Peer.Conn.Close()
	<-l.ended
	return err
}

// EndOf returns why a connection came to nothing. How a child ended, and what it wrote, explains
// more than a failed write to it; EndOf waits until that is known.
func (l *Link) EndOf(err error) error {
	if c, ok := l.Peer.Conn.(*wire.StdioConn); ok && c.Ended(err) {
		<-l.ended
		if why := l.Peer.Why(); why != nil {
			return why
		}
	}
	return err
}

// ListsChanged has the listing made anew.
func (l *Link) ListsChanged() {
	l.announced.announce()
	select {
	case l.again <- struct{}{}:
	default:
	}
}

// Call sends the request of a call of a tool, with parameters in the words of its method, and
// waits for its result.
func (l *Link) Call(ctx *pace.Deadline, of *underway.Call, t *gate.Tool, params []byte) (gate.Doc, error) {
	a := outgoingFor(of)
	a.params = params
	return l.Dialect.call(ctx, a, t)
}

// OverHTTP returns the connection if it is streamable HTTP, or nil.
func (l *Link) OverHTTP() *wire.HTTPConn {
	h, _ := l.Peer.Conn.(*wire.HTTPConn)
	return h
}

// ask sends a request of the gateway's own and waits for the answer, as [wire.Peer.Call] does.
func (l *Link) ask(ctx context.Context, method string, params []byte) (gate.Doc, error) {
	return l.send(ctx, outgoing{method: method, params: params, capabilities: l.Declares})
}

// Read reads a resource for the gateway itself.
func (l *Link) Read(ctx context.Context, uri string) (gate.Doc, error) {
	return l.ask(ctx, string(gate.ReadResource), mcp.URIParams(uri))
}

// send sends a request in the words of the revision that the server speaks.
func (l *Link) send(ctx context.Context, a outgoing) (gate.Doc, error) {
	res, err := l.Peer.Exchange(ctx, l.Dialect.worded(a))
	if err != nil {
		return gate.Doc{}, l.Dialect.failed(ctx, err)
	}
	return res, nil
}

// tellsOf reports whether the server says by itself when the list of a feature changes.
func (l *Link) tellsOf(one gate.Feature) bool {
	list := "resources"
	switch one {
	case gate.FeatureTool:
		list = "tools"
	case gate.FeaturePrompt:
		list = "prompts"
	}
	return l.Capabilities.Get(list).Get("listChanged").True()
}
