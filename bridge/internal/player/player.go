// Package player puts a recording in the place of servers: a [Player] answers calls with what was
// recorded of the same tools and equal arguments. A stubbed call goes the whole way through the gate.
package player

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/local"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/bridge/recording"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

// A Player gives the results of a recording out. Nil answers nothing. Use it from several
// goroutines.
type Player struct {
	recording.Replay
	unknown map[string]bool // tools whose definitions are not known, by qualified name

	mu   sync.Mutex
	left map[key][]int // of Calls
}

// key is what calls have in common that may answer each other.
type key struct {
	action     gate.Action
	tool, args string
}

// New returns a player that has given nothing out yet.
func New(r recording.Replay) *Player {
	p := &Player{Replay: r, unknown: make(map[string]bool), left: make(map[key][]int)}
	for i, c := range r.Calls {
		p.left[keyOf(c)] = append(p.left[keyOf(c)], i)
	}
	return p
}

func keyOf(c recording.Call) key {
	return key{cmp.Or(c.Action, gate.CallTool), c.Tool, c.Args}
}

// take returns the first recorded call of a tool, a prompt or a resource that was not
// given out yet.
func (p *Player) take(c *gate.Call, t *gate.Tool) (recording.Call, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := key{c.Action, gate.Query{Call: c, Tool: t}.Subject(), c.Args.Digest()}
	for i, at := range p.left[k] {
		c := p.Calls[at]
		if c.Digest == "" || c.Digest == t.Digest || p.unknown[k.tool] || t.Feature != gate.FeatureTool {
			p.left[k] = slices.Delete(p.left[k], i, i+1)
			return c, true
		}
	}
	return recording.Call{}, false
}

// Left returns the calls that were not given out.
func (p *Player) Left() []recording.Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []recording.Call
	for _, at := range slices.Sorted(slices.Values(slices.Concat(slices.Collect(maps.Values(p.left))...))) {
		all = append(all, p.Calls[at])
	}
	return all
}

// Answer is the Call of a [options.LocalTool] that is stubbed.
func (p *Player) Answer(_ context.Context, c *gate.Call, permit gate.Permit) (gate.Result, error) {
	_, tool, ok := permit.Open()
	if !ok {
		return gate.Result{}, &recording.MissingError{Tool: c.Name}
	}
	recorded, ok := p.take(c, tool)
	if !ok {
		if p.Lacks != nil {
			p.Lacks(c)
		}
		return gate.Result{}, &recording.MissingError{Tool: gate.Query{Call: c, Tool: tool}.Subject()}
	}
	return gate.Result{Doc: recorded.Result}, nil
}

// Answers reports whether the recording stands for a tool of a server that is called.
func (p *Player) Answers(t *gate.Tool) bool {
	return p != nil && p.Stub != nil && t.Feature == gate.FeatureTool && !p.Stubs(t.Name.Server) && p.Stub(t.Name.Server, t.Local)
}

// Stubs reports whether a server is answered for.
func (p *Player) Stubs(server string) bool {
	return p != nil && p.Servers[server] != recording.Live && p.Servers[server] != recording.Pure
}

// Stubbed puts the recording in the place of tools that must be stubbed. The mode is
// that of their server or module.
func (p *Player) Stubbed(mode recording.Mode, tools []options.LocalTool) []options.LocalTool {
	if p == nil || mode == recording.Live || mode == recording.Pure {
		return tools
	}
	tools = slices.Clone(tools)
	for i, t := range tools {
		if mode == "" && t.Sandboxed && string(t.Capabilities.Canonical()) == "{}" {
			continue
		}
		tools[i].Call = p.Answer
	}
	return tools
}

// Locals returns what takes the place of servers that are reached in
// another way than by functions and modules: those of the configuration in its order,
// then those that only the recording knows.
func (p *Player) Locals(servers []options.Endpoint, ours map[string]bool, o options.Tools) ([]*local.Server, error) {
	tools, order := make(map[string][]options.LocalTool), []string{}
	for _, s := range servers {
		order = append(order, s.Server)
	}
	for _, d := range p.Declared {
		if ours[d.Server] {
			continue
		}
		if !slices.Contains(order, d.Server) {
			order = append(order, d.Server)
		}
		for _, definition := range d.Tools {
			tools[d.Server] = append(tools[d.Server], options.LocalTool{Definition: definition, Call: p.Answer})
		}
	}
	for _, c := range p.latest() {
		name, err := gate.ParseToolName(c.Tool)
		if err != nil {
			return nil, fmt.Errorf("recording: %w", err)
		}
		if ours[name.Server] || p.declares(name.Server) {
			continue
		}
		if !slices.Contains(order, name.Server) {
			order = append(order, name.Server)
		}
		tools[name.Server] = append(tools[name.Server], options.LocalTool{Definition: p.define(name, c.Digest), Call: p.Answer})
	}
	for _, c := range p.Calls { // of some nothing but prompts and resources were used
		if c.Server != "" && !ours[c.Server] && !slices.Contains(order, c.Server) {
			order = append(order, c.Server)
		}
	}
	var locals []*local.Server
	for _, server := range order {
		if !p.Stubs(server) {
			continue
		}
		own := o
		if i := slices.IndexFunc(servers, func(s options.Endpoint) bool { return s.Server == server }); i >= 0 {
			own = servers[i].Tools
			own.Sanitizer = o.Sanitizer
		}
		own.OutputWarn = true // the results were checked when they were recorded, and have been sanitized since
		l, err := local.NewWith(p.features(server), server, own, tools[server]...)
		if err != nil {
			return nil, fmt.Errorf("recording: %w", err)
		}
		locals = append(locals, l)
	}
	return locals, nil
}

// declares reports whether it is known what a server declared.
func (p *Player) declares(server string) bool {
	return slices.ContainsFunc(p.Declared, func(d status.Declaration) bool { return d.Server == server })
}

// latest returns one call of each tool, in the order in which the tools were first
// called: the last one whose definition is known, or else the last one.
func (p *Player) latest() []recording.Call {
	at, known := make(map[string]int), make(map[string]bool) // known by digest
	var all []recording.Call
	for _, c := range p.Calls {
		if c.Action != "" && c.Action != gate.CallTool {
			continue
		}
		if _, asked := known[c.Digest]; !asked {
			known[c.Digest] = !p.find(c.Digest).IsZero()
		}
		i, there := at[c.Tool]
		switch {
		case !there:
			at[c.Tool], all = len(all), append(all, c)
		case known[c.Digest] || !known[all[i].Digest]:
			all[i] = c
		}
	}
	return all
}

// features returns the prompts and resources of a server that were used. A prompt takes
// the arguments that it was given.
func (p *Player) features(server string) local.Features {
	f := local.Features{Call: p.Answer}
	var prompts, resources []string
	named := make(map[string][]string) // by prompt
	for _, c := range p.Calls {
		switch {
		case c.Server != server:
		case c.Action == gate.GetPrompt:
			name := strings.TrimPrefix(c.Tool, server+"__")
			if !slices.Contains(prompts, name) {
				prompts = append(prompts, name)
			}
			named[name] = append(named[name], c.Named...)
		case c.Action == gate.ReadResource && !slices.Contains(resources, c.Tool):
			resources = append(resources, c.Tool)
		}
	}
	for _, d := range p.Declared {
		if d.Server == server {
			f.Prompts, prompts = d.Prompts, nil
		}
	}
	for _, name := range prompts {
		slices.Sort(named[name])
		arguments := []any{}
		for _, a := range slices.Compact(named[name]) {
			arguments = append(arguments, map[string]any{"name": a})
		}
		f.Prompts = append(f.Prompts, definition(map[string]any{"name": name, "arguments": arguments}))
	}
	for _, uri := range resources {
		f.Resources = append(f.Resources, definition(map[string]any{"uri": uri, "name": uri}))
	}
	return f
}

// definition makes a document of what was recorded.
func definition(v map[string]any) gate.Doc {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // of strings
	}
	return gate.MustDoc(string(b))
}

func (p *Player) find(digest string) gate.Doc {
	if p.Definition == nil || digest == "" {
		return gate.Doc{}
	}
	return p.Definition(digest)
}

// define returns the definition of a recorded tool, or one that takes any object.
func (p *Player) define(name gate.ToolName, digest string) gate.Doc {
	if d := p.find(digest); d.Kind() == doc.Object {
		return d
	}
	p.unknown[name.String()] = true
	quoted, err := json.Marshal(name.Tool)
	if err != nil {
		panic(err) // a string
	}
	return gate.MustDoc(`{"name":` + string(quoted) + `,"description":"Answers with recorded results. The recording does not have its definition.","inputSchema":{"type":"object"}}`)
}
