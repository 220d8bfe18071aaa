package gateway

import (
	"cmp"

	"github.com/wasmgate/wasmgate/bridge/internal/local"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/bridge/recording"
	"github.com/wasmgate/wasmgate/internal/product"
)

// ReplayLeft returns the calls of [Config].Replay that were not made, in their order.
func (g *Gateway) ReplayLeft() []recording.Call {
	if g.player == nil {
		return nil
	}
	return g.player.Left()
}

// replayed returns functions of a server as they are offered.
func (g *Gateway) replayed(server string, tools []options.LocalTool) []options.LocalTool {
	tools = g.watched(tools)
	if g.player == nil {
		return tools
	}
	return g.player.Stubbed(g.player.Servers[server], tools)
}

// stubs returns the replacements for servers that are not started.
func (g *Gateway) stubs(o options.Tools) ([]*local.Server, error) {
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
