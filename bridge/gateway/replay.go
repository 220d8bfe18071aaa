package gateway

import (
	"cmp"
	"context"

	"github.com/wasmgate/wasmgate/bridge/internal/local"
	"github.com/wasmgate/wasmgate/bridge/internal/recording"
	"github.com/wasmgate/wasmgate/internal/product"
)

// ReadRecording reads what was called, got and read that a file tells of, in its order:
// an audit log that holds results, over all its files, or recorded sessions, one a line,
// as wasmgate policy replay takes them. Calls that came to no result are left out. It is an
// error if no result was recorded, as in a log that was kept without record: full.
func ReadRecording(ctx context.Context, path string) ([]RecordedCall, error) {
	return recording.Read(ctx, path, product.RelaysCalls)
}

// ReplayLeft returns the calls of [Config].Replay that nobody has made, in their order.
func (g *Gateway) ReplayLeft() []RecordedCall {
	if g.player == nil {
		return nil
	}
	return g.player.Left()
}

// replayed returns functions of a server as they are offered.
func (g *Gateway) replayed(server string, tools []LocalTool) []LocalTool {
	tools = g.watched(tools)
	if g.player == nil {
		return tools
	}
	return g.player.Stubbed(g.player.Servers[server], tools)
}

// stubs returns what stands in the place of servers that are not started.
func (g *Gateway) stubs(o ToolOptions) ([]*local.Server, error) {
	if g.player == nil {
		return nil, nil
	}
	local := map[string]bool{product.CatalogServer: true, product.JobsServer: true, product.GatewayServer: true}
	if g.cfg.Embedded {
		local[product.LocalServer] = true
	}
	for _, m := range g.cfg.Modules {
		local[cmp.Or(m.Server, product.LocalServer)] = true
	}
	for server := range g.cfg.Functions {
		local[server] = true
	}
	return g.player.Locals(g.cfg.Servers, local, o)
}
