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
)

// A Dialect is how a server is spoken with over one connection: with a session in the
// revisions that begin with a handshake, and without one in [mcp.Stateless]. What differs
// between the two is here; nothing else asks which it is.
type Dialect interface {
	// worded returns a request in the words of the revision.
	worded(a outgoing) wire.Request
	// failed returns what the error of a request means for its sender.
	failed(ctx context.Context, err error) error
	// call sends the request of a call of a tool, and waits for its result: if the server
	// makes a task of it, until that has ended.
	call(ctx *pace.Deadline, a outgoing, t *gate.Tool) (gate.Doc, error)

	// Usable returns which of the tools that a server lists can be called, and notes of the
	// others.
	Usable(raw []gate.Doc) ([]gate.Doc, []status.Note)
	// Keeps notes how long a listing that began at some time can be kept, and has it made
	// anew when that is over.
	Keeps(at time.Time, hints map[gate.Feature]Hint)

	// Listens waits until the server can say something by itself over HTTP.
	Listens(ctx context.Context)
	// Subscribe asks the server to tell when a resource has changed, and Unsubscribe ends
	// that. They are called one at a time.
	Subscribe(ctx context.Context, of *underway.Call, uri string) (gate.Doc, error)
	Unsubscribe(ctx context.Context, uri string)
	// Tune sets the severity from which on the server logs, unless the server has it already. With
	// atMost it only lowers the severity, so that the server logs more: a connection that clients
	// share logs as much as any of them has wanted, and each client gets its part of that. A server
	// that does not take the level is left as it is.
	Tune(ctx context.Context, from mcp.Severity, atMost bool)

	// AsksByAnswers reports whether the server asks clients by its answers to their calls, so
	// that they can share the connection.
	AsksByAnswers() bool
	// Greet gives the server of a client's own connection the time to ask what it wants to
	// know of its client, and to take it in, before it is called.
	Greet(ctx context.Context)
	// Pings sees to it that a server which has said nothing for so long still lives.
	Pings(ctx context.Context, silent time.Duration)
}
