package upstream

import (
	"context"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/pace"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/underway"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/status"
)

// A dialect is how a server is spoken with over one connection: with a session in the
// revisions that begin with a handshake, and without one in [mcp.Stateless]. What differs
// between the two is here; nothing else asks which it is.
type dialect interface {
	// worded returns a request in the words of the revision.
	worded(a outgoing) wire.Request
	// failed returns what the error of a request means for its sender.
	failed(ctx context.Context, err error) error
	// call sends the request of a call of a tool, and waits for its result: if the server
	// makes a task of it, until that has ended.
	call(ctx *pace.Deadline, a outgoing, t *gate.Tool) (gate.Doc, error)

	// usable returns which of the tools that a server lists can be called, and notes of the
	// others.
	usable(raw []gate.Doc) ([]gate.Doc, []status.Note)
	// keeps notes how long a listing that began at some time can be kept, and has it made
	// anew when that is over.
	keeps(at time.Time, hints map[gate.Feature]hint)

	// listens waits until the server can say something by itself over HTTP.
	listens(ctx context.Context)
	// subscribe asks the server to tell when a resource has changed, and unsubscribe ends
	// that. They are called one at a time.
	subscribe(ctx context.Context, of *underway.Call, uri string) (gate.Doc, error)
	unsubscribe(ctx context.Context, uri string)
	// tune tells the server from which severity on to log, unless it knows. With atMost it
	// is told only to say more: a connection that clients share says as much as any of them
	// has wanted, and each gets what it wants of that. A server that does not take the level
	// is left as it is.
	tune(ctx context.Context, from mcp.Severity, atMost bool)

	// asksByAnswers reports whether the server asks clients by its answers to their calls, so
	// that they can share the connection.
	asksByAnswers() bool
	// greet gives the server of a client's own connection the time to ask what it wants to
	// know of its client, and to take it in, before it is called.
	greet(ctx context.Context)
	// pings sees to it that a server which has said nothing for so long still lives.
	pings(ctx context.Context, silent time.Duration)
}
