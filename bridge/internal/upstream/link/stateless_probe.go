package link

import (
	"context"
	"errors"
	"fmt"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

// discovered returns the server's answer to [mcp.MethodDiscover], or why it is none that
// says that it speaks [mcp.Stateless].
func (l stateless) discovered(ctx context.Context) (gate.Doc, error) {
	res, err := l.Peer.Exchange(ctx, l.worded(outgoing{method: mcp.MethodDiscover, capabilities: l.Declares}))
	if err != nil {
		return gate.Doc{}, err
	}
	if res.Get("capabilities").Kind() != doc.Object {
		return gate.Doc{}, &mcp.ProtocolError{Err: errors.New("the answer to " + mcp.MethodDiscover + " has no capabilities")}
	}
	for v := range res.Get("supportedVersions").Elements() {
		if v.Text() == mcp.Stateless {
			return res, nil
		}
	}
	return gate.Doc{}, &mcp.ProtocolError{Err: fmt.Errorf("the server does not speak MCP revision %s", mcp.Stateless)}
}

// speaksStateless reports whether a server refuses the revision of a request and names it
// among those that it speaks: such a request is to be made again (MCP 2026-07-28,
// basic/versioning).
func speaksStateless(err error) bool {
	rpc, ok := errors.AsType[*wire.RPCError](err)
	if !ok || rpc.Code != mcp.CodeUnsupported {
		return false
	}
	data, err := gate.ParseDoc(rpc.Data)
	if err != nil {
		return false
	}
	for v := range data.Get("supported").Elements() {
		if v.Text() == mcp.Stateless {
			return true
		}
	}
	return false
}

// failed returns the error itself. If the server
// speaks an older revision by now, the connection ends, so that the next one is of that;
// the request was not looked at then.
func (l stateless) failed(ctx context.Context, err error) error {
	rpc, spoke := errors.AsType[*wire.RPCError](err)
	switch {
	case spoke && rpc.Code == mcp.CodeHeaderMismatch: // its tools may want others by now
		l.ListsChanged()
		return err
	case spoke && rpc.Code == mcp.CodeUnsupported:
	case wire.BeforeStreams(err):
		if _, probe := l.discovered(ctx); probe == nil || ctx.Err() != nil {
			return err
		}
	default:
		return err
	}
	l.Peer.Fail(fmt.Errorf("the server no longer speaks MCP revision %s: %w", mcp.Stateless, err))
	return &wire.Unseen{Err: err}
}
