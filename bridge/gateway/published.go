package gateway

import (
	"slices"
	"sync"

	"github.com/wasmgate/wasmgate/bridge/internal/local"
	"github.com/wasmgate/wasmgate/bridge/options"
)

// published are the servers that are made of Go functions, which may change while
// clients are connected.
type published struct {
	mu      sync.Mutex
	servers map[string]*publication
}

type publication struct {
	local *local.Server
	tools []options.LocalTool
}

func (p *published) add(server string, l *local.Server, tools []options.LocalTool) {
	if p.servers == nil {
		p.servers = make(map[string]*publication)
	}
	p.servers[server] = &publication{l, slices.Clone(tools)}
}
