package guest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/wasmgate/wasmgate/bridge/dial"
	"github.com/wasmgate/wasmgate/bridge/fault"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/modules/kv"
	"github.com/wasmgate/wasmgate/sandbox"
)

// Reach is what guests can reach, each as far as it is granted.
type Reach struct {
	Dial *dial.Client
	KV   *kv.Store
	Log  *slog.Logger
}

// A Module is one that is closed once it has been replaced, when no call of it runs.
type Module struct {
	server string
	calls  sync.RWMutex // held by each for reading
	module *sandbox.Module
	closed bool // with calls
}

// NewModule returns a module whose tools are of a server.
func NewModule(server string, m *sandbox.Module) *Module { return &Module{server: server, module: m} }

// Note is what the operator should know of it; "" if there is nothing.
func (c *Module) Note() string { return c.module.Note() }

// Enter returns the module for a call, which leaves it at its end.
func (c *Module) Enter() (m *sandbox.Module, leave func(), err error) {
	c.calls.RLock()
	if c.closed {
		c.calls.RUnlock()
		return nil, nil, &fault.Fault{Kind: fault.NotConnected, Server: c.server, Doing: "call", Err: errors.New("the module was replaced; call again")}
	}
	return c.module, c.calls.RUnlock, nil
}

// Close waits for the calls under way. Each of them has a deadline. It may be called again.
func (c *Module) Close(ctx context.Context) error {
	c.calls.Lock()
	defer c.calls.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	return c.module.Close(ctx)
}

// Tools makes tools of a module's, which is asked for when one is called.
func (r *Reach) Tools(offered []sandbox.Tool, grant *Granted, enter func() (m *sandbox.Module, leave func(), err error)) ([]options.LocalTool, error) {
	capabilities, err := grant.capabilities()
	if err != nil {
		return nil, err
	}
	var tools []options.LocalTool
	for _, t := range offered {
		b, err := json.Marshal(t)
		if err != nil {
			return nil, err
		}
		definition, err := gate.ParseDoc(b)
		if err != nil {
			return nil, fmt.Errorf("tool %s: %w", t.Name, err)
		}
		tools = append(tools, options.LocalTool{
			Definition: definition, Sandboxed: true, Capabilities: capabilities,
			Call: func(ctx context.Context, c *gate.Call, p gate.Permit) (gate.Result, error) {
				m, leave, err := enter()
				if err != nil {
					return gate.Result{}, err
				}
				defer leave()
				h := &host{reach: r, granted: grant, permit: p, call: c, left: p.Narrowing()}
				came, err := m.Call(ctx, t.Name, c.Args.Raw(), h.config())
				h.resume(ctx)
				used := gate.Usage{Fuel: came.Fuel, MemoryPeak: came.MemoryPeak}
				if err != nil {
					return gate.Result{Usage: used}, err
				}
				res, err := result(came)
				res.Usage = used
				return res, err
			},
		})
	}
	return tools, nil
}

// config is what one call of a sandboxed tool has.
func (h *host) config() sandbox.CallConfig {
	n := h.left
	var sees func(string) bool
	if n.Dirs != nil {
		sees = func(path string) bool { return len(n.Dir(filepath.ToSlash(path))) > 0 } // in what is left, or above it
	}
	return sandbox.CallConfig{
		Sees:    sees,
		Limits:  sandbox.Limits{Fuel: n.Fuel, Timeout: n.Timeout},
		Host:    h,
		Waiter:  h,
		Caller:  SessionName(h.call.Caller()),
		Session: SessionName(h.call.Session),
	}
}

// Waits gives the slot of the call to others, as long as the sandbox bounds it.
func (h *host) Waits() {
	if h.paused == nil {
		h.paused = h.permit.Pause()
	}
}

// resume takes the slot again, if the call has given it back. A call whose time is over goes on
// without: it is at its end.
func (h *host) resume(ctx context.Context) {
	if h.paused != nil {
		_ = h.paused(ctx)
	}
}

// SessionName names a session to modules that keep a state for each.
func SessionName(k gate.SessionKey) string {
	return fmt.Sprintf("%q %q %q", k.Tenant, k.Owner.ID, k.ID)
}

// SaysDirs adds to a tool's description which directories it has, by the names that it knows
// them under: a model cannot guess them.
func SaysDirs(definition gate.Doc, dirs []sandbox.Dir) gate.Doc {
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

// result makes an MCP result of what a module answered: the value as text,
// and as structured content if it is an object (MCP 2025-11-25, server/tools,
// "Structured Content").
func result(r sandbox.Result) (gate.Result, error) {
	if r.Whole {
		doc, err := gate.ParseDoc(r.Output)
		if err != nil {
			return gate.Result{}, fmt.Errorf("the tool's result is not acceptable JSON: %w", err)
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
		return gate.Result{}, fmt.Errorf("the tool's output is not acceptable JSON: %w", err)
	}
	return gate.Result{Doc: doc, IsError: r.IsError}, nil
}
