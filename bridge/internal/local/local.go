package local

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/bridge/fault"
	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/listing"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
)

// A Server is a server made of functions. It is a [gate.Upstream] of its tools
// alone. Use it from several goroutines.
type Server struct {
	server  string
	options options.Tools
	changed func()

	features *listing.Features // other than tools; nil if there are none
	more     func(context.Context, *gate.Call, gate.Permit) (gate.Result, error)

	mu    sync.Mutex
	given []options.LocalTool // as they were set last
	tools *listing.Tools
	calls map[string]implementation // by qualified name
	// settling is since when the first tools are made; zero once all are.
	settling time.Time
}

// An implementation carries out the calls of one version of a tool.
type implementation struct {
	of *gate.Tool
	options.LocalTool
}

// New returns a server of the given tools. A tool that cannot be offered is
// an error: it is the program's own.
func New(server string, o options.Tools, tools ...options.LocalTool) (*Server, error) {
	if _, err := gate.NewToolName(server, "x"); err != nil {
		return nil, err
	}
	if err := listing.CheckOptions(&o); err != nil {
		return nil, err
	}
	l := &Server{server: server, options: o, changed: func() {}}
	return l, l.Set(tools...)
}

// ID returns the id of the server.
func (l *Server) ID() string { return l.server }

// OnChange has changed called whenever the tools change. It is called before the server is in use.
func (l *Server) OnChange(changed func()) { l.changed = changed }

// ListedFeatures returns what the server offers in addition to tools; nil if that is nothing.
func (l *Server) ListedFeatures() *listing.Features { return l.features }

// Set replaces the tools. Clients that are connected are notified.
func (l *Server) Set(tools ...options.LocalTool) error {
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
	made := listing.NewTools(l.server, l.options, raw)
	var problems []error
	for _, n := range made.Notes {
		if n.Quarantined {
			problems = append(problems, fmt.Errorf("server %s: tool %s: %s", l.server, n.Tool, n.Text))
		}
	}
	if len(problems) == 0 && len(made.All) < len(tools) {
		problems = append(problems, fmt.Errorf("server %s: two tools have one name", l.server))
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	calls := make(map[string]implementation, len(tools))
	for i, t := range made.All { // none was quarantined, so both have one order
		calls[t.Name.String()] = implementation{t, tools[i]}
		t.Vetted, t.Config = true, tools[i].Config
		t.Sandboxed, t.Capabilities, t.Origin, t.Relay = tools[i].Sandboxed, tools[i].Capabilities, tools[i].Origin, tools[i].Relay
		t.Groups = slices.Compact(slices.Sorted(slices.Values(slices.Concat(t.Groups, tools[i].Groups))))
		if m := tools[i].Module; m.Name != "" {
			t.Module, t.ModuleDigest = m.Name, m.Runs.Digest()
		}
		made.Foreign, made.Modules = append(made.Foreign, tools[i].Foreign), append(made.Modules, tools[i].Module)
		if t.Sandboxed && mcp.IsEmpty(t.Capabilities) {
			t.Teaches = nil // a module without capabilities says nothing but what it was told
		}
	}
	l.mu.Lock()
	l.given, l.tools, l.calls = tools, made, calls
	l.mu.Unlock()
	l.changed()
	return nil
}

// Relist makes the definitions safe anew, when that is done in another way.
func (l *Server) Relist() error {
	l.mu.Lock()
	given := l.given
	l.mu.Unlock()
	return l.Set(given...)
}

var _ gate.Upstream = (*Server)(nil)

// Lookup implements [gate.Upstream].
func (l *Server) Lookup(_ context.Context, action gate.Action, name string) (*gate.Tool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tools.Lookup(action, name)
}

// Features implements [gate.Upstream]: a local server alone offers tools.
func (l *Server) Features(ctx context.Context, f gate.Feature) []*gate.Tool {
	if f != gate.FeatureTool {
		return nil
	}
	return l.Tools(ctx)
}

// Tools returns the server's tools.
func (l *Server) Tools(context.Context) []*gate.Tool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tools.All
}

// Invoke implements [gate.Upstream].
func (l *Server) Invoke(ctx context.Context, p gate.Permit) (gate.Result, error) {
	c, tool, ok := p.Open()
	if !ok {
		return gate.Result{}, upstream.ErrNoPermit
	}
	if tool.Feature != gate.FeatureTool && l.more != nil {
		return l.more(ctx, c, p)
	}
	l.mu.Lock()
	t, ok := l.calls[tool.Name.String()]
	l.mu.Unlock()
	if !ok {
		return gate.Result{}, &fault.Fault{Kind: fault.NotConnected, Server: l.server, Doing: "call", Err: errors.New("the tool was removed")}
	}
	if t.of.Digest != tool.Digest || t.of.ModuleDigest != tool.ModuleDigest { // it has been replaced since the gate let the call pass
		return gate.Result{}, &fault.Fault{Kind: fault.NotConnected, Server: l.server, Doing: "call", Err: errors.New("the tool was replaced; call again")}
	}
	return t.Call(ctx, c, p)
}

// Status tells how the server is.
func (l *Server) Status() status.Server {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := status.Server{Server: l.server, Phase: status.Ready, Local: true, Tools: len(l.tools.All), Notes: l.tools.Notes}
	upstream.Count(&s, l.features)
	return s
}

// Settle sets the time since which the program makes the server's first tools, which may take time:
// all tools until the end of that were there from the beginning. The zero time says that all are
// made.
func (l *Server) Settle(since time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settling = since
}

// Declared returns what the server declares.
func (l *Server) Declared() status.Declaration {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := status.Declaration{Server: l.server, Tools: l.tools.Declared, Modules: l.tools.Modules, Announced: l.settling}
	for _, foreign := range l.tools.Foreign {
		d.Own = append(d.Own, !foreign)
	}
	if l.features != nil {
		d.Prompts = l.features.Declared[gate.FeaturePrompt]
	}
	return d
}
