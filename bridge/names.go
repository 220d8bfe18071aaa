package bridge

import (
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/gateway"
)

// The names that programs used before package gateway had them. They go with the next
// version.
type (
	// Deprecated: use [gateway.Endpoint].
	Endpoint = gateway.Endpoint
	// Deprecated: use [gateway.EndpointConfig].
	EndpointConfig = gateway.EndpointConfig
	// Deprecated: use [gateway.ToolOptions].
	ToolOptions = gateway.ToolOptions
	// Deprecated: use [gateway.LocalTool].
	LocalTool = gateway.LocalTool
)

// NewEndpoint is [gateway.NewEndpoint].
//
// Deprecated: use that.
func NewEndpoint(cfg EndpointConfig) (*Endpoint, error) { return gateway.NewEndpoint(cfg) }

// InProcess is [gateway.InProcess].
//
// Deprecated: use that.
func InProcess(s *mcp.Server) func() (mcp.Transport, error) { return gateway.InProcess(s) }

// ChildMain is [gateway.ChildMain].
//
// Deprecated: use that.
func ChildMain() { gateway.ChildMain() }
