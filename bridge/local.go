package bridge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/wasmgate/wasmgate/gate"
)

// A LocalTool is a tool that runs in this process: a Go function, or a WASM
// module behind one.
type LocalTool struct {
	// Definition is the MCP tool: name, description, inputSchema and so on.
	Definition gate.Doc
	// Sandboxed says that the tool runs as a WASM module, whose capabilities are
	// Capabilities, an object.
	Sandboxed    bool
	Capabilities gate.Doc
	// Module is the hex SHA-256 of the WASM module, if the tool is to be known by it
	// as well: the same definition of another module is another tool.
	Module string
	// Foreign tools are held against pins like those of servers. The others are part
	// of the program, and as good as approved.
	Foreign bool
	// Groups are those that the tool is in beside those of its name.
	Groups []string
	// Relay says that the tool carries out another call for its client, by
	// [gate.Permit.Relay]: that one needs a grant, and the tool none.
	Relay bool
	// Call carries out a permitted call; p is the permit, by which a sandboxed
	// tool makes host calls. Its error needs a Code of those that [gate.Code]
	// names. It is called concurrently.
	Call func(ctx context.Context, c *gate.Call, p gate.Permit) (gate.Result, error)
}

// A Local is a server made of functions. It is a [gate.Upstream] of its tools
// alone. Use it from several goroutines.
type Local struct {
	server  string
	options ToolOptions
	changed func()

	features *serverFeatures // beside tools; nil if there are none
	more     func(context.Context, *gate.Call, gate.Permit) (gate.Result, error)

	mu    sync.Mutex
	tools *serverTools
	calls map[string]LocalTool // by qualified name
}

// NewLocal returns a server of the given tools. A tool that cannot be offered is
// an error: it is the program's own.
func NewLocal(server string, o ToolOptions, tools ...LocalTool) (*Local, error) {
	if _, err := gate.NewToolName(server, "x"); err != nil {
		return nil, err
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	l := &Local{server: server, options: o, changed: func() {}}
	return l, l.Set(tools...)
}

// Server returns the id of the server.
func (l *Local) Server() string { return l.server }

// OnChange has changed called whenever the tools are others. It is called before the
// server is in use.
func (l *Local) OnChange(changed func()) { l.changed = changed }

// ListedFeatures returns what the server offers beside tools; nil if that is nothing.
func (l *Local) ListedFeatures() *serverFeatures { return l.features }

// Set replaces the tools. Clients that are connected are told.
func (l *Local) Set(tools ...LocalTool) error {
	var raw []gate.Doc
	for _, t := range tools {
		if t.Call == nil {
			return fmt.Errorf("server %s: tool %s has no function", l.server, t.Definition.Get("name"))
		}
		if t.Relay && (t.Sandboxed || t.Foreign) {
			return fmt.Errorf("server %s: tool %s is not the program's own, and makes no calls", l.server, t.Definition.Get("name"))
		}
		raw = append(raw, t.Definition)
	}
	made := newServerTools(l.server, l.options, raw)
	var problems []error
	for _, n := range made.notes {
		if n.Quarantined {
			problems = append(problems, fmt.Errorf("server %s: tool %s: %s", l.server, n.Tool, n.Text))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	calls := make(map[string]LocalTool, len(tools))
	for i, t := range made.tools { // none was quarantined, so both have one order
		calls[t.Name.String()] = tools[i]
		t.Sandboxed, t.Capabilities, t.Relay = tools[i].Sandboxed, tools[i].Capabilities, tools[i].Relay
		t.Groups = slices.Compact(slices.Sorted(slices.Values(slices.Concat(t.Groups, tools[i].Groups))))
		if tools[i].Module != "" {
			made.declared[i] = made.declared[i].With("module", mustJSON("sha256:"+tools[i].Module))
			t.Digest = made.declared[i].Digest()
		}
		made.foreign = append(made.foreign, tools[i].Foreign)
		if t.Sandboxed && empty(t.Capabilities) {
			t.Teaches = nil // a module without capabilities says nothing but what it was told
		}
	}
	l.mu.Lock()
	l.tools, l.calls = made, calls
	l.mu.Unlock()
	l.changed()
	return nil
}

var _ gate.Upstream = (*Local)(nil)

// Lookup implements [gate.Upstream].
func (l *Local) Lookup(_ context.Context, action gate.Action, name string) (*gate.Tool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tools.lookup(action, name)
}

// Tools implements [gate.Upstream].
func (l *Local) Tools(context.Context) []*gate.Tool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tools.tools
}

// Invoke implements [gate.Upstream].
func (l *Local) Invoke(ctx context.Context, p gate.Permit) (gate.Result, error) {
	c, tool, ok := p.Open()
	if !ok {
		return gate.Result{}, errNoPermit
	}
	if tool.Feature != gate.FeatureTool && l.more != nil {
		return l.more(ctx, c, p)
	}
	l.mu.Lock()
	t, ok := l.calls[tool.Name.String()]
	l.mu.Unlock()
	if !ok {
		return gate.Result{}, &Fault{NotConnected, l.server, "call", errors.New("the tool was removed")}
	}
	return t.Call(ctx, c, p)
}

// Status tells how the server is.
func (l *Local) Status() ServerStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := ServerStatus{Server: l.server, Phase: Ready, Local: true, Tools: len(l.tools.tools), Notes: l.tools.notes}
	s.count(l.features)
	return s
}

// Declared returns what the server declares.
func (l *Local) Declared() Declaration {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := Declaration{Server: l.server, Tools: l.tools.declared}
	for _, foreign := range l.tools.foreign {
		d.Own = append(d.Own, !foreign)
	}
	return d
}
