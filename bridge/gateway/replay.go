package gateway

import (
	"cmp"

	"github.com/wasmgate/wasmgate/bridge/internal/local"
	"github.com/wasmgate/wasmgate/bridge/internal/player"
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
func (l *locals) replayed(server string, tools []options.LocalTool) []options.LocalTool {
	tools = watched(l.panics, tools)
	if l.player == nil {
		return tools
	}
	return l.player.Stubbed(l.player.Servers[server], tools)
}

// stubs returns the replacements for servers that are not started.
func stubs(c *Config, p *player.Player, o options.Tools) ([]*local.Server, error) {
	if p == nil {
		return nil, nil
	}
	local := map[string]bool{product.CatalogServer: true, product.JobsServer: true, product.GatewayServer: true}
	if c.Embedded {
		local[product.LocalServer] = true
	}
	for _, m := range c.Modules {
		local[cmp.Or(m.Server, product.LocalServer)] = true
	}
	for server := range c.Functions {
		local[server] = true
	}
	return p.Locals(c.Servers, local, o)
}
