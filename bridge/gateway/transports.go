package gateway

import (
	"io"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
)

// InProcess reaches a server of the MCP SDK in this process: it is the Dial of an
// [options.Endpoint]. Each connection is a session of its own.
func InProcess(s *mcp.Server) func() (mcp.Transport, error) { return wire.InProcess(s) }

// DialStreams returns a Dial for [options.Endpoint] of a server that speaks on two streams as one
// does on its standard input and output. open begins the server. The gateway reads the server's
// output at from, and writes its input to to. Both are closed when the connection ends; the server
// must end then.
func DialStreams(open func() (from io.ReadCloser, to io.WriteCloser, err error)) func() (mcp.Transport, error) {
	return wire.DialStreams(open)
}
