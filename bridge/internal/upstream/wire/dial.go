package wire

import (
	"context"
	"io"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// DialStreams returns a Dial for [options.Endpoint] of a server that speaks on two
// streams as one does on its standard input and output. Open begins the server:
// from reads what it writes, to is what it reads. Both are closed when the
// connection ends, which is to end the server.
func DialStreams(open func() (from io.ReadCloser, to io.WriteCloser, err error)) func() (sdk.Transport, error) {
	return func() (sdk.Transport, error) { return streams(open), nil }
}

// streams is a transport that opens its streams when it connects.
type streams func() (io.ReadCloser, io.WriteCloser, error)

// Connect implements [sdk.Transport].
func (s streams) Connect(ctx context.Context) (sdk.Connection, error) {
	from, to, err := s()
	if err != nil {
		return nil, err
	}
	return (&sdk.IOTransport{Reader: from, Writer: to}).Connect(ctx)
}

// InProcess reaches a server of the MCP SDK in this process: it is the Dial of an
// [options.Endpoint]. Each connection is a session of its own.
func InProcess(s *sdk.Server) func() (sdk.Transport, error) {
	return func() (sdk.Transport, error) {
		theirs, ours := sdk.NewInMemoryTransports()
		_, err := s.Connect(context.Background(), theirs, nil) // lives until either end closes
		return ours, err
	}
}
