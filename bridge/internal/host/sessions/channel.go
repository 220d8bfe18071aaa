package sessions

import (
	"context"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// maxCapabilities bounds what is kept of the capabilities of a client, in bytes: they are
// names of a handful of things.
const maxCapabilities = 16 << 10

// Askable returns the capabilities by which servers may ask a client, as it has declared
// them; absent if it has none.
func Askable(declared gate.Doc) gate.Doc {
	can := mcp.PeerCapabilities(declared)
	if len(can.Raw()) > maxCapabilities {
		return gate.Doc{}
	}
	return can
}

// A Channel is the way to the client of a request, while the request is under way.
type Channel interface {
	// Notify sends a notification; a client that has gone needs to know nothing.
	Notify(ctx context.Context, method string, params gate.Doc)
	// Request sends a request of the host and waits for its result: an object, or absent if
	// it was none. The error is the client's, an [*mcp.Error], or the end of ctx.
	Request(ctx context.Context, method string, params gate.Doc) (gate.Doc, error)
	// Poll ends the stream of the request, and has the client come back after a while, if it
	// is a stream that a client can come back to.
	Poll(after time.Duration)
}
