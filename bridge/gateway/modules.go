package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/wasmgate/wasmgate/bridge"
	"github.com/wasmgate/wasmgate/bridge/dial"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/sandbox"
	"github.com/wasmgate/wasmgate/sandbox/kv"
)

// LocalServer is the server of tools that run in the gateway itself, unless
// another is named.
const LocalServer = "local"

// A ModuleError says that a module cannot be used as it is configured: it is
// none, or another one, or imports what it is not granted.
type ModuleError struct {
	Module string // its name in the configuration
	Err    error
}

func (e *ModuleError) Error() string { return "module " + e.Module + ": " + e.Err.Error() }

// Unwrap returns what is wrong with it.
func (e *ModuleError) Unwrap() error { return e.Err }

// locals builds the servers that are made of modules and functions.
func (g *Gateway) locals(ctx context.Context, o bridge.ToolOptions) ([]*bridge.Local, error) {
	tools := make(map[string][]bridge.LocalTool)
	order := []string{}
	add := func(server string, ts ...bridge.LocalTool) {
		if !slices.Contains(order, server) {
			order = append(order, server)
		}
		tools[server] = append(tools[server], ts...)
	}
	if g.cfg.Embedded || len(g.cfg.Modules)+len(g.cfg.Guests) > 0 {
		if err := g.newRuntime(ctx); err != nil {
			return nil, err
		}
	}
	if g.cfg.Embedded {
		tools, err := g.embedded(ctx)
		if err != nil {
			return nil, fmt.Errorf("embedded tools: %w", err)
		}
		add(LocalServer, g.player.stubbed("", tools)...)
	}
	for _, m := range g.cfg.Modules {
		tools, err := g.module(ctx, m)
		if err != nil {
			return nil, &ModuleError{m.Config.Name, err}
		}
		add(cmp.Or(m.Server, LocalServer), g.player.stubbed(m.Replay, tools)...)
	}
	if tools := g.catalog(); tools != nil {
		add(bridge.CatalogServer, tools...)
	}
	for _, server := range slices.Sorted(maps.Keys(g.cfg.Functions)) {
		add(server, g.replayed(server, g.cfg.Functions[server])...)
	}
	if tools := g.jobTools(); tools != nil {
		add(JobServer, tools...)
	}
	var locals []*bridge.Local
	for _, server := range order {
		l, err := bridge.NewLocal(server, o, tools[server]...)
		if err != nil {
			return nil, err
		}
		g.publishFunctions(server, l)
		locals = append(locals, l)
	}
	return locals, nil
}

// newRuntime makes what sandboxed tools need.
func (g *Gateway) newRuntime(ctx context.Context) (err error) {
	g.dial = dial.New(g.cfg.Dial)
	if g.kv, err = kv.Open(g.cfg.KVDir, kv.Options{}); err != nil {
		return err
	}
	g.runtime, err = sandbox.New(ctx, sandbox.Config{CacheDir: g.cfg.CacheDir, Log: g.cfg.Log})
	return err
}

// embedded returns the tools that wasmgate brings along. Their code takes 40 MB,
// and seconds to compile when it is not in the cache: both wait until one of
// them is called.
func (g *Gateway) embedded(ctx context.Context) ([]bridge.LocalTool, error) {
	manifest, err := sandbox.EmbeddedToolsManifest()
	if err != nil {
		return nil, err
	}
	ctx = context.WithoutCancel(ctx)
	return g.sandboxed(manifest.Tools, new(granted), sync.OnceValues(func() (*sandbox.Module, error) {
		wasm, err := sandbox.EmbeddedTools()
		if err != nil {
			return nil, err
		}
		return g.runtime.Compile(ctx, wasm, sandbox.ModuleConfig{Name: "embedded tools"})
	}))
}

// module compiles a module and returns its tools.
func (g *Gateway) module(ctx context.Context, m Module) ([]bridge.LocalTool, error) {
	grant, err := g.newGranted(m.Grant)
	if err != nil {
		return nil, err
	}
	m.Config.Grants = sandbox.Grants{HTTP: len(m.Grant.HTTP) > 0, KV: m.Grant.KV, Dirs: m.Grant.Dirs, Config: m.Grant.Config}
	compiled, err := g.runtime.Compile(ctx, m.WASM, m.Config)
	if err != nil {
		return nil, err
	}
	tools, err := g.sandboxed(compiled.Tools(), grant, func() (*sandbox.Module, error) { return compiled, nil })
	for i := range tools {
		tools[i].Module, tools[i].Foreign, tools[i].Groups = sum(m.WASM), !m.Named, m.Groups
	}
	return tools, err
}

// sandboxed makes tools of a module's, which is asked for when one is called.
func (g *Gateway) sandboxed(offered []sandbox.Tool, grant *granted, module func() (*sandbox.Module, error)) ([]bridge.LocalTool, error) {
	capabilities, err := grant.capabilities()
	if err != nil {
		return nil, err
	}
	var tools []bridge.LocalTool
	for _, t := range offered {
		b, err := json.Marshal(t)
		if err != nil {
			return nil, err
		}
		definition, err := gate.ParseDoc(b)
		if err != nil {
			return nil, fmt.Errorf("tool %s: %w", t.Name, err)
		}
		tools = append(tools, bridge.LocalTool{
			Definition: definition, Sandboxed: true, Capabilities: capabilities,
			Call: func(ctx context.Context, c *gate.Call, p gate.Permit) (gate.Result, error) {
				m, err := module()
				if err != nil {
					return gate.Result{}, err
				}
				r, err := m.Call(ctx, t.Name, c.Args.Raw(), g.callConfig(grant, c, p))
				used := gate.Usage{Fuel: r.Fuel, MemoryPeak: r.MemoryPeak}
				if err != nil {
					return gate.Result{Usage: used}, err
				}
				res, err := toolResult(r)
				res.Usage = used
				return res, err
			},
		})
	}
	return tools, nil
}

// callConfig is what one call of a sandboxed tool has.
func (g *Gateway) callConfig(grant *granted, c *gate.Call, p gate.Permit) sandbox.CallConfig {
	n := p.Narrowing()
	session := c.Session
	return sandbox.CallConfig{
		Limits:  sandbox.Limits{Fuel: n.Fuel, Timeout: n.Timeout},
		Host:    &guestHost{gateway: g, granted: grant, permit: p, call: c, left: n},
		Session: fmt.Sprintf("%q %q %q", session.Tenant, session.Owner.ID, session.ID),
	}
}

// toolResult makes an MCP result of what a module answered: the value as text,
// and as structured content if it is an object (MCP 2025-11-25, server/tools,
// "Structured Content").
func toolResult(r sandbox.Result) (gate.Result, error) {
	if r.Whole {
		doc, err := gate.ParseDoc(r.Output)
		if err != nil {
			return gate.Result{}, fmt.Errorf("the tool's result is no acceptable JSON: %w", err)
		}
		return gate.Result{Doc: doc, IsError: r.IsError}, nil
	}
	text, err := json.Marshal(string(r.Output))
	if err != nil {
		return gate.Result{}, err
	}
	body := `{"content":[{"type":"text","text":` + string(text) + `}]`
	switch {
	case r.IsError:
		body += `,"isError":true`
	case len(r.Output) > 0 && r.Output[0] == '{':
		body += `,"structuredContent":` + string(r.Output)
	}
	doc, err := gate.ParseDoc([]byte(body + "}"))
	if err != nil {
		return gate.Result{}, fmt.Errorf("the tool's output is no acceptable JSON: %w", err)
	}
	return gate.Result{Doc: doc, IsError: r.IsError}, nil
}
