package upstream

import (
	"sync"
	"sync/atomic"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
	"github.com/wasmgate/wasmgate/gate"
)

// link is a connection that has been made.
type link struct {
	peer  *wire.Peer
	ended chan struct{}
	again chan struct{} // the server's tools have changed; room for one
	news  news          // what is not listed yet of that
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

func (l *link) close() error {
	err := l.peer.Conn.Close()
	<-l.ended
	return err
}

// speak sets the revision of what is sent from now on; "" is none yet.
func (l *link) speak(revision string) {
	l.peer.Stateless.Store(revision == mcp.Stateless)
	if h := l.overHTTP(); h != nil {
		h.Agreed(revision)
	}
}

// modern reports whether the server speaks [mcp.Stateless]: every request to it stands for
// itself, it asks nothing by itself, and clients can share the connection.
func (l *link) modern() bool { return l.peer.Stateless.Load() }

// overHTTP returns the connection if it is streamable HTTP, or nil.
func (l *link) overHTTP() *wire.HTTPConn {
	h, _ := l.peer.Conn.(*wire.HTTPConn)
	return h
}

// listsChanged has the listing made anew.
func (l *link) listsChanged() {
	l.news.announce()
	select {
	case l.again <- struct{}{}:
	default:
	}
}
