package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
	"github.com/wasmgate/wasmgate/gate"
)

// older tells from the answer to the first POST that a server may be of the
// time before streamable HTTP (MCP 2025-11-25, basic/transports, "Backwards
// Compatibility").
func older(err error) bool {
	var s *wire.StatusError
	return errors.As(err, &s) && slices.Contains([]int{http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed}, s.Status)
}

// discovered returns the server's answer to [mcp.MethodDiscover], or why it is none that
// says that it speaks [mcp.Stateless].
func (l *link) discovered(ctx context.Context) (gate.Doc, error) {
	res, err := l.peer.Exchange(ctx, l.worded(asking{method: mcp.MethodDiscover}))
	if err != nil {
		return gate.Doc{}, err
	}
	if res.Get("capabilities").Kind() != gate.Object {
		return gate.Doc{}, &mcp.ProtocolError{Err: errors.New("the answer to " + mcp.MethodDiscover + " says nothing of capabilities")}
	}
	for v := range res.Get("supportedVersions").Elements() {
		if v.Text() == mcp.Stateless {
			return res, nil
		}
	}
	return gate.Doc{}, &mcp.ProtocolError{Err: fmt.Errorf("the server does not speak MCP revision %s", mcp.Stateless)}
}

// speaksModern reports whether a server refuses the revision of a request and names it
// among those that it speaks: such a request is to be made again (MCP 2026-07-28,
// basic/versioning).
func speaksModern(err error) bool {
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

// otherwise returns err, the error of a request to a server of [mcp.Stateless]. If the server
// speaks an older revision by now, the connection ends, so that the next one is of that;
// the request was not looked at then.
func (l *link) otherwise(ctx context.Context, err error) error {
	rpc, spoke := errors.AsType[*wire.RPCError](err)
	switch {
	case spoke && rpc.Code == mcp.CodeHeaderMismatch: // its tools may want others by now
		l.listsChanged()
		return err
	case spoke && rpc.Code == mcp.CodeUnsupported:
	case older(err):
		if _, probe := l.discovered(ctx); probe == nil || ctx.Err() != nil {
			return err
		}
	default:
		return err
	}
	l.peer.Fail(fmt.Errorf("the server does not speak MCP revision %s any more: %w", mcp.Stateless, err))
	return &wire.Unseen{Err: err}
}
