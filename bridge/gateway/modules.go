package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/dial"
	"github.com/wasmgate/wasmgate/internal/kv"
	"github.com/wasmgate/wasmgate/sandbox"
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

// machine is what runs sandboxed tools and servers.
type machine struct {
	runtime *sandbox.Runtime // nil if there is nothing to run
	dial    *dial.Client
	kv      *kv.Store
}

func (m *machine) open(ctx context.Context, c *Config) (err error) {
	m.dial = dial.New(c.Dial)
	if m.kv, err = kv.Open(c.KVDir, kv.Options{}); err != nil {
		return err
	}
	m.runtime, err = sandbox.New(ctx, sandbox.Config{CacheDir: c.CacheDir, UsageFile: usageFile(c.KVDir), Log: c.Log})
	return err
}

// usageFile is beside the folder of values.
func usageFile(kvDir string) string {
	if kvDir == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(kvDir), "written.json")
}

func (m *machine) close(ctx context.Context) error {
	var errs []error
	if m.runtime != nil {
		errs = append(errs, m.runtime.Close(ctx))
	}
	if m.kv != nil {
		errs = append(errs, m.kv.Close())
	}
	return errors.Join(errs...)
}

// embedded returns the tools that wasmgate brings along. Their code takes 40 MB,
// and seconds to compile when it is not in the cache: both wait until one of
// them is called, and end with the gateway.
func (g *Gateway) embedded() ([]LocalTool, error) {
	manifest, err := sandbox.EmbeddedToolsManifest()
	if err != nil {
		return nil, err
	}
	compiled := sync.OnceValues(func() (*sandbox.Module, error) { return g.runtime.LoadEmbedded(g.life) })
	return g.sandboxed(manifest.Tools, new(granted), func() (*sandbox.Module, func(), error) {
		m, err := compiled()
		return m, func() {}, err
	})
}

// module compiles a module and returns its tools.
func (g *Gateway) module(ctx context.Context, m Module, secrets []dial.Secret) (*compiled, []LocalTool, error) {
	if m.Broken != "" {
		return nil, nil, errors.New(m.Broken)
	}
	grant, err := newGranted(m.Grant, secrets)
	if err != nil {
		return nil, nil, err
	}
	m.Config.Grants = sandbox.Grants{HTTP: len(m.Grant.HTTP) > 0, KV: m.Grant.KV, Dirs: m.Grant.Dirs, Config: m.Grant.Config}
	code, err := g.runtime.Compile(ctx, m.WASM, m.Config)
	if err != nil {
		return nil, nil, err
	}
	c := &compiled{server: cmp.Or(m.Server, LocalServer), module: code}
	tools, err := g.sandboxed(code.Tools(), grant, c.enter)
	for i := range tools {
		if m.Named { // the definitions of others are pinned as they are
			tools[i].Definition = saysDirs(tools[i].Definition, m.Grant.Dirs)
		}
		tools[i].Origin, tools[i].Config = origin(m.Source, m.Signer), configOf(sum(m.WASM), m.Grant, m.Config.Limits, m.Config.Args)
		tools[i].Module, tools[i].Foreign, tools[i].Groups = sum(m.WASM), !m.Named, m.Groups
		if m.Development {
			tools[i].Module, tools[i].Foreign = "", !g.developed(c.server, tools[i].Definition)
		}
	}
	return c, g.player.stubbed(m.Replay, tools), err
}

// saysDirs adds to a tool's description which directories it has, by the names that it knows
// them under: a model cannot guess them.
func saysDirs(definition gate.Doc, dirs []sandbox.Dir) gate.Doc {
	if len(dirs) == 0 {
		return definition
	}
	var names []string
	for _, d := range dirs {
		names = append(names, strconv.Quote(cmp.Or(d.As, d.Path)))
	}
	text := definition.Get("description").Text() + "\nDirectories that are granted to it: " + strings.Join(names, ", ") + "."
	return definition.With("description", mcp.MustJSON(strings.TrimSpace(text)))
}

// origin is what policies see as input.tool.origin.
func origin(source, signer string) gate.Doc {
	b, _ := json.Marshal(map[string]string{"source": source, "signer": signer}) // strings always marshal
	return gate.MustDoc(string(b))
}

// developed reports whether the definition of a tool in development is the first of its
// name that this gateway has seen.
func (g *Gateway) developed(server string, definition gate.Doc) bool {
	digest := definition.Digest()
	first, _ := g.inDevelopment.LoadOrStore(server+" "+definition.Get("name").Text(), digest)
	return first == digest
}

// forgetDeveloped forgets the tools of a module that was not put in use.
func (g *Gateway) forgetDeveloped(m *loaded) {
	for _, t := range m.tools {
		g.inDevelopment.CompareAndDelete(m.server()+" "+t.Definition.Get("name").Text(), t.Definition.Digest())
	}
}

// compiled is a module that is closed once it has been replaced, when no call of it runs.
type compiled struct {
	server string
	calls  sync.RWMutex // held by each for reading
	module *sandbox.Module
	closed bool // with calls
}

// enter returns the module for a call, which leaves it at its end.
func (c *compiled) enter() (m *sandbox.Module, leave func(), err error) {
	c.calls.RLock()
	if c.closed {
		c.calls.RUnlock()
		return nil, nil, &Fault{Kind: upstream.NotConnected, Server: c.server, Doing: "call", Err: errors.New("the module was replaced; call again")}
	}
	return c.module, c.calls.RUnlock, nil
}

// close waits for the calls under way, each of which has a deadline. It may be called
// again.
func (c *compiled) close(ctx context.Context) error {
	c.calls.Lock()
	defer c.calls.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	return c.module.Close(ctx)
}

// sandboxed makes tools of a module's, which is asked for when one is called.
func (g *Gateway) sandboxed(offered []sandbox.Tool, grant *granted, enter func() (m *sandbox.Module, leave func(), err error)) ([]LocalTool, error) {
	capabilities, err := grant.capabilities()
	if err != nil {
		return nil, err
	}
	var tools []LocalTool
	for _, t := range offered {
		b, err := json.Marshal(t)
		if err != nil {
			return nil, err
		}
		definition, err := gate.ParseDoc(b)
		if err != nil {
			return nil, fmt.Errorf("tool %s: %w", t.Name, err)
		}
		tools = append(tools, LocalTool{
			Definition: definition, Sandboxed: true, Capabilities: capabilities,
			Call: func(ctx context.Context, c *gate.Call, p gate.Permit) (gate.Result, error) {
				m, leave, err := enter()
				if err != nil {
					return gate.Result{}, err
				}
				defer leave()
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
		Caller:  fmt.Sprintf("%q %q", session.Tenant, session.Owner.ID),
		Session: sessionName(session),
	}
}

// sessionName names a session to modules that keep a state for each.
func sessionName(k gate.SessionKey) string {
	return fmt.Sprintf("%q %q %q", k.Tenant, k.Owner.ID, k.ID)
}

// endSession drops what is kept for a session whose client is gone.
func (g *Gateway) endSession(k gate.SessionKey) {
	g.agents.Left(g.session(k))
	g.fleet.EndSession(k)
	if g.runtime != nil {
		g.runtime.EndSession(g.life, sessionName(k))
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
