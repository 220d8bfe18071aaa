package bridge

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// InProcess reaches a server of the MCP SDK in this process: it is the Dial of an
// [EndpointConfig]. Each connection is a session of its own.
func InProcess(s *mcp.Server) func() (mcp.Transport, error) {
	return func() (mcp.Transport, error) {
		theirs, ours := mcp.NewInMemoryTransports()
		_, err := s.Connect(context.Background(), theirs, nil) // lives until either end closes
		return ours, err
	}
}
