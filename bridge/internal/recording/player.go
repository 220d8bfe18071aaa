package recording

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/wasmgate/wasmgate/bridge/internal/listing"
	"github.com/wasmgate/wasmgate/bridge/internal/local"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/fault"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

// A Mode says what a gateway that replays a recording does with a tool.
type Mode string

// The modes. What must be stubbed is answered from the recording and never touched;
// pure tools, which only compute, and live ones are called. The zero mode is Pure for
// sandboxed tools without capabilities, and MustStub for all others.
const (
	MustStub Mode = "must_stub"
	Live     Mode = "live"
	Pure     Mode = "pure"
)

// Replay has a gateway answer from a recording. Servers that must be stubbed are not
// started: what they offer are the tools, prompts and resources that the recording tells
// of, the latter with no more of their definitions than that. Prompts are got and
// resources read as tools are called. A call of such a tool is answered with the recorded
// result of the same tool, by its digest where that is known, and of equal arguments (RFC
// 8785), whoever made it: in the order of the recording, and each once. A call that the
// recording does not hold fails with a [*MissingError]. Calls go the whole way
// through the gate.
type Replay struct {
	Calls []Call
	// Servers says what is done with the tools of servers and functions, by server; that of
	// modules stands with each.
	Servers map[string]Mode
	// Stub reports whether a tool of a server that is not stubbed is answered from the
	// recording all the same; nil is none.
	Stub func(server, tool string) bool // in the server's own words
	// Definition finds the definition of a tool by its digest; absent if it is not
	// known. Nil knows none. A tool without one is offered as taking any object.
	Definition func(digest string) gate.Doc
	// Declared is what servers declared when they were recorded, as the fleet has it: one that is
	// in it offers these tools and prompts, also those that were not called, and with it no
	// Definition is needed.
	Declared []upstream.Declaration
	// Lacks is told of each call that the recording holds no answer to, before it fails. It may
	// be called concurrently; nil is told nothing. A call is not to be changed.
	Lacks func(*gate.Call)
}

// A MissingError says that a recording holds no answer to a call that must not
// reach anybody.
type MissingError struct{ Tool string }

func (e *MissingError) Error() string { return e.Tool + ": " + e.Public() }

// Public returns what a client may read.
func (e *MissingError) Public() string {
	return "the recording that is replayed holds no answer to this call that was not given yet"
}

// Code returns "not_connected": nobody is there who could be called.
func (e *MissingError) Code() string { return string(fault.NotConnected) }

// A Player gives the results of a recording out. Nil answers nothing. Use it from several
// goroutines.
type Player struct {
	Replay
	unknown map[string]bool // tools whose definitions are not known, by qualified name

	mu   sync.Mutex
	left map[key][]int // of Calls
}

// key is what calls have in common that may answer each other.
type key struct {
	action     gate.Action
	tool, args string
}

// NewPlayer returns a player that has given nothing out yet.
func NewPlayer(r Replay) *Player {
	p := &Player{Replay: r, unknown: make(map[string]bool), left: make(map[key][]int)}
	for i, c := range r.Calls {
		p.left[keyOf(c)] = append(p.left[keyOf(c)], i)
	}
	return p
}

func keyOf(c Call) key {
	return key{cmp.Or(c.Action, gate.CallTool), c.Tool, c.Args}
}

// take returns the first recorded call of a tool, a prompt or a resource that was not
// given out yet.
func (p *Player) take(c *gate.Call, t *gate.Tool) (Call, bool) {
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
	return Call{}, false
}

// Left returns the calls that were not given out.
func (p *Player) Left() []Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []Call
	for _, at := range slices.Sorted(slices.Values(slices.Concat(slices.Collect(maps.Values(p.left))...))) {
		all = append(all, p.Calls[at])
	}
	return all
}

// Answer is the Call of a [local.Tool] that is stubbed.
func (p *Player) Answer(_ context.Context, c *gate.Call, permit gate.Permit) (gate.Result, error) {
	_, tool, ok := permit.Open()
	if !ok {
		return gate.Result{}, &MissingError{c.Name}
	}
	recorded, ok := p.take(c, tool)
	if !ok {
		if p.Lacks != nil {
			p.Lacks(c)
		}
		return gate.Result{}, &MissingError{gate.Query{Call: c, Tool: tool}.Subject()}
	}
	return gate.Result{Doc: recorded.Result}, nil
}

// Answers reports whether the recording stands for a tool of a server that is called.
func (p *Player) Answers(t *gate.Tool) bool {
	return p != nil && p.Stub != nil && t.Feature == gate.FeatureTool && !p.Stubs(t.Name.Server) && p.Stub(t.Name.Server, t.Local)
}

// Stubs reports whether a server is answered for.
func (p *Player) Stubs(server string) bool {
	return p != nil && p.Servers[server] != Live && p.Servers[server] != Pure
}

// Stubbed puts the recording in the place of tools that must be stubbed. The mode is
// that of their server or module.
func (p *Player) Stubbed(mode Mode, tools []local.Tool) []local.Tool {
	if p == nil || mode == Live || mode == Pure {
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

// Locals returns what stands in the place of servers that are reached in
// another way than by functions and modules: those of the configuration in its order,
// then those that only the recording knows.
func (p *Player) Locals(servers []upstream.Config, ours map[string]bool, o listing.Options) ([]*local.Server, error) {
	tools, order := make(map[string][]local.Tool), []string{}
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
			tools[d.Server] = append(tools[d.Server], local.Tool{Definition: definition, Call: p.Answer})
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
		tools[name.Server] = append(tools[name.Server], local.Tool{Definition: p.define(name, c.Digest), Call: p.Answer})
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
		if i := slices.IndexFunc(servers, func(s upstream.Config) bool { return s.Server == server }); i >= 0 {
			own = servers[i].Tools
			own.Sanitizer, own.Schemas = o.Sanitizer, o.Schemas
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
	return slices.ContainsFunc(p.Declared, func(d upstream.Declaration) bool { return d.Server == server })
}

// latest returns one call of each tool, in the order in which the tools were first
// called: the last one of which the definition is known, or else the last one.
func (p *Player) latest() []Call {
	at, known := make(map[string]int), make(map[string]bool) // known by digest
	var all []Call
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
	return gate.MustDoc(`{"name":` + string(quoted) + `,"description":"Answers what was recorded of it. How it was defined is not known here.","inputSchema":{"type":"object"}}`)
}
