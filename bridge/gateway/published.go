package gateway

import (
	"fmt"
	"slices"
	"sync"

	"github.com/wasmgate/wasmgate/bridge/internal/local"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/internal/product"
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

// publish is [Gateway.Publish].
func (l *locals) publish(server string, tools ...options.LocalTool) error {
	p := &l.published
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.servers[server]
	if known == nil {
		if err := l.free(server); err != nil {
			return err
		}
		made, err := local.New(server, l.checking.toolOptions(), l.replayed(server, tools)...)
		if err != nil {
			return err
		}
		if err := l.fleet.AddLocal(made); err != nil {
			return err
		}
		p.add(server, made, tools)
		return nil
	}
	all := without(known.tools, toolNames(tools)...)
	return known.set(l, server, append(all, tools...))
}

// withdraw is [Gateway.Withdraw].
func (l *locals) withdraw(server string, names ...string) error {
	p := &l.published
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.servers[server]
	if known == nil {
		return fmt.Errorf("server %s has no published functions", server)
	}
	if len(names) == 0 {
		delete(p.servers, server)
		return l.fleet.Remove(server)
	}
	have := toolNames(known.tools)
	for _, name := range names {
		if !slices.Contains(have, name) {
			return fmt.Errorf("server %s has no published function %q", server, name)
		}
	}
	return known.set(l, server, without(known.tools, names...))
}

func (p *publication) set(l *locals, server string, tools []options.LocalTool) error {
	if err := p.local.Set(l.replayed(server, tools)...); err != nil {
		return err
	}
	p.tools = tools
	return nil
}

// free reports why functions cannot be published on a server.
func (l *locals) free(server string) error {
	if product.RelaysCalls(server) {
		return fmt.Errorf("server %s is the gateway's own: publish them on another", server)
	}
	for _, s := range l.fleet.Status() {
		if s.Server == server {
			return fmt.Errorf("server %s is not made of functions: publish them on another", server)
		}
	}
	return nil
}

func toolNames(tools []options.LocalTool) (names []string) {
	for _, t := range tools {
		names = append(names, t.Definition.Get("name").Text())
	}
	return names
}

// without returns the tools but the named ones.
func without(tools []options.LocalTool, names ...string) []options.LocalTool {
	return slices.DeleteFunc(slices.Clone(tools), func(t options.LocalTool) bool {
		return slices.Contains(names, t.Definition.Get("name").Text())
	})
}
