package upstream

import (
	"context"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/listing"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/link"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/underway"
	"github.com/wasmgate/wasmgate/gate"
)

// An ownership is whose the connection of an endpoint is: [shared] by all clients, or
// [owned] by one. What differs between the two is here; nothing else asks which it is.
type ownership interface {
	// capabilities are those of clients that are declared to the server.
	capabilities() gate.Doc
	// reports says whether what happens to the connection is worth a line of the log.
	reports() bool
	// list reads the listing of a new connection, and opened does what else the connection needs.
	list(ctx context.Context, l *link.Link) (*listing.Tools, error)
	opened(ctx context.Context, l *link.Link)
	// relist reads the listing anew, after the server has announced that it has changed, and
	// listsFeatures says whether it counts for anything but tools.
	relist(ctx context.Context, l *link.Link, announced time.Time)
	listsFeatures() bool

	// owns reports whether a call is made over another connection, of its client's own.
	owns(c *gate.Call) bool
	// connect connects before a call, where nothing else does.
	connect(ctx context.Context, of *underway.Call) error
	// reconnects reports whether the endpoint connects again by itself.
	reconnects() bool
	// approves returns why a call that was permitted for a tool must not be made over a
	// connection; other says that it may be another one than when the call was permitted.
	approves(ctx context.Context, l *link.Link, t *gate.Tool, other bool) error
	// prepare makes a connection what a call needs it to be.
	prepare(ctx context.Context, l *link.Link, of *underway.Call)
	// caller returns the principal on whose behalf a request is made, nil if there is none, and its
	// permit, if p is that of the call that the request is made in.
	caller(p gate.Permit) (*gate.Principal, gate.Permit)

	// asker returns the call on whose behalf the server asks something, with such parameters, in
	// the stream of the request of a call, or in none; nil if it can ask no client.
	asker(of *underway.Call, params gate.Doc) *underway.Call
	// logger returns the call in which the server says what it says in the stream of none.
	logger(l *link.Link) *underway.Call
	// logged takes a log message of no call.
	logged(how mcp.Severity, params gate.Doc)
}
