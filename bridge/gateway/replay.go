package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/wasmgate/wasmgate/bridge/internal/local"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream"
	"github.com/wasmgate/wasmgate/gate"
)

// A ReplayMode says what a gateway that replays a recording does with a tool.
type ReplayMode string

// The modes. What must be stubbed is answered from the recording and never touched;
// pure tools, which only compute, and live ones are called. The zero mode is Pure for
// sandboxed tools without capabilities, and MustStub for all others.
const (
	MustStub ReplayMode = "must_stub"
	Live     ReplayMode = "live"
	Pure     ReplayMode = "pure"
)

// Replay has a gateway answer from a recording. Servers that must be stubbed are not
// started: what they offer are the tools, prompts and resources that the recording tells
// of, the latter with no more of their definitions than that. Prompts are got and
// resources read as tools are called. A call of such a tool is answered with the recorded
// result of the same tool, by its digest where that is known, and of equal arguments (RFC
// 8785), whoever made it: in the order of the recording, and each once. A call that the
// recording does not hold fails with a [*NotRecordedError]. Calls go the whole way
// through the gate.
type Replay struct {
	Calls []RecordedCall
	// Servers says what is done with the tools of Config.Servers and Config.Functions,
	// by server; that of modules stands in [Module].
	Servers map[string]ReplayMode
	// Stub reports whether a tool of a server that is not stubbed is answered from the
	// recording all the same; nil is none.
	Stub func(server, tool string) bool // in the server's own words
	// Definition finds the definition of a tool by its digest; absent if it is not
	// known. Nil knows none. A tool without one is offered as taking any object.
	Definition func(digest string) gate.Doc
	// Declared is what servers declared when they were recorded, as [Fleet] has it: one that is
	// in it offers these tools and prompts, also those that were not called, and with it no
	// Definition is needed.
	Declared []Declaration
	// Lacks is told of each call that the recording holds no answer to, before it fails. It may
	// be called concurrently; nil is told nothing. A call is not to be changed.
	Lacks func(*gate.Call)
}

// ReplayLeft returns the calls of [Config].Replay that nobody has made, in their order.
func (g *Gateway) ReplayLeft() []RecordedCall {
	if g.player == nil {
		return nil
	}
	return g.player.unused()
}

// A NotRecordedError says that a recording holds no answer to a call that must not
// reach anybody.
type NotRecordedError struct{ Tool string }

func (e *NotRecordedError) Error() string { return e.Tool + ": " + e.Public() }

// Public returns what a client may read.
func (e *NotRecordedError) Public() string {
	return "the recording that is replayed holds no answer to this call that was not given yet"
}

// Code returns "not_connected": nobody is there who could be called.
func (e *NotRecordedError) Code() string { return string(upstream.NotConnected) }

// player gives the results of a recording out.
type player struct {
	Replay
	unknown map[string]bool // tools whose definitions are not known, by qualified name

	mu   sync.Mutex
	left map[recordedKey][]int // of Calls
}

// recordedKey is what calls have in common that may answer each other.
type recordedKey struct {
	action     gate.Action
	tool, args string
}

func newPlayer(r Replay) *player {
	p := &player{Replay: r, unknown: make(map[string]bool), left: make(map[recordedKey][]int)}
	for i, c := range r.Calls {
		p.left[c.key()] = append(p.left[c.key()], i)
	}
	return p
}

func (c RecordedCall) key() recordedKey {
	return recordedKey{cmp.Or(c.Action, gate.CallTool), c.Tool, c.Args}
}

// take returns the first recorded call of a tool, a prompt or a resource that was not
// given out yet.
func (p *player) take(c *gate.Call, t *gate.Tool) (RecordedCall, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := recordedKey{c.Action, gate.Query{Call: c, Tool: t}.Subject(), c.Args.Digest()}
	for i, at := range p.left[k] {
		c := p.Calls[at]
		if c.Digest == "" || c.Digest == t.Digest || p.unknown[k.tool] || t.Feature != gate.FeatureTool {
			p.left[k] = slices.Delete(p.left[k], i, i+1)
			return c, true
		}
	}
	return RecordedCall{}, false
}

// unused returns the calls that were not given out.
func (p *player) unused() []RecordedCall {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []RecordedCall
	for _, at := range slices.Sorted(slices.Values(slices.Concat(slices.Collect(maps.Values(p.left))...))) {
		all = append(all, p.Calls[at])
	}
	return all
}

// answer is the Call of a [LocalTool] that is stubbed.
func (p *player) answer(_ context.Context, c *gate.Call, permit gate.Permit) (gate.Result, error) {
	_, tool, ok := permit.Open()
	if !ok {
		return gate.Result{}, &NotRecordedError{c.Name}
	}
	recorded, ok := p.take(c, tool)
	if !ok {
		if p.Lacks != nil {
			p.Lacks(c)
		}
		return gate.Result{}, &NotRecordedError{gate.Query{Call: c, Tool: tool}.Subject()}
	}
	return gate.Result{Doc: recorded.Result}, nil
}

// answers reports whether the recording stands for a tool of a server that is called.
func (p *player) answers(t *gate.Tool) bool {
	return p != nil && p.Stub != nil && t.Feature == gate.FeatureTool && !p.stubs(t.Name.Server) && p.Stub(t.Name.Server, t.Local)
}

// stubs reports whether a server is answered for.
func (p *player) stubs(server string) bool {
	return p != nil && p.Servers[server] != Live && p.Servers[server] != Pure
}

// stubbed puts the recording in the place of tools that must be stubbed. The mode is
// that of their server or module.
func (p *player) stubbed(mode ReplayMode, tools []LocalTool) []LocalTool {
	if p == nil || mode == Live || mode == Pure {
		return tools
	}
	tools = slices.Clone(tools)
	for i, t := range tools {
		if mode == "" && t.Sandboxed && string(t.Capabilities.Canonical()) == "{}" {
			continue
		}
		tools[i].Call = p.answer
	}
	return tools
}

// recordedServers returns what stands in the place of servers that are reached in
// another way than by functions and modules: those of the configuration in its order,
// then those that only the recording knows.
func (p *player) recordedServers(servers []EndpointConfig, ours map[string]bool, o ToolOptions) ([]*local.Server, error) {
	tools, order := make(map[string][]LocalTool), []string{}
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
			tools[d.Server] = append(tools[d.Server], LocalTool{Definition: definition, Call: p.answer})
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
		tools[name.Server] = append(tools[name.Server], LocalTool{Definition: p.define(name, c.Digest), Call: p.answer})
	}
	for _, c := range p.Calls { // of some nothing but prompts and resources were used
		if c.Server != "" && !ours[c.Server] && !slices.Contains(order, c.Server) {
			order = append(order, c.Server)
		}
	}
	var locals []*local.Server
	for _, server := range order {
		if !p.stubs(server) {
			continue
		}
		own := o
		if i := slices.IndexFunc(servers, func(s EndpointConfig) bool { return s.Server == server }); i >= 0 {
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
func (p *player) declares(server string) bool {
	return slices.ContainsFunc(p.Declared, func(d Declaration) bool { return d.Server == server })
}

// latest returns one call of each tool, in the order in which the tools were first
// called: the last one of which the definition is known, or else the last one.
func (p *player) latest() []RecordedCall {
	at, known := make(map[string]int), make(map[string]bool) // known by digest
	var all []RecordedCall
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
func (p *player) features(server string) local.Features {
	f := local.Features{Call: p.answer}
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

func (p *player) find(digest string) gate.Doc {
	if p.Definition == nil || digest == "" {
		return gate.Doc{}
	}
	return p.Definition(digest)
}

// define returns the definition of a recorded tool, or one that takes any object.
func (p *player) define(name gate.ToolName, digest string) gate.Doc {
	if d := p.find(digest); d.Kind() == gate.Object {
		return d
	}
	p.unknown[name.String()] = true
	quoted, err := json.Marshal(name.Tool)
	if err != nil {
		panic(err) // a string
	}
	return gate.MustDoc(`{"name":` + string(quoted) + `,"description":"Answers what was recorded of it. How it was defined is not known here.","inputSchema":{"type":"object"}}`)
}

// replayed returns functions of a server as they are offered.
func (g *Gateway) replayed(server string, tools []LocalTool) []LocalTool {
	tools = g.watched(tools)
	if g.player == nil {
		return tools
	}
	return g.player.stubbed(g.player.Servers[server], tools)
}

// stubs returns what stands in the place of servers that are not started.
func (g *Gateway) stubs(o ToolOptions) ([]*local.Server, error) {
	if g.player == nil {
		return nil, nil
	}
	local := map[string]bool{CatalogServer: true, JobServer: true}
	if g.cfg.Embedded {
		local[LocalServer] = true
	}
	for _, m := range g.cfg.Modules {
		local[cmp.Or(m.Server, LocalServer)] = true
	}
	for server := range g.cfg.Functions {
		local[server] = true
	}
	return g.player.recordedServers(g.cfg.Servers, local, o)
}

// A RecordedCall is a call of a tool whose result was written down; or a prompt that was
// got, or a resource that was read.
type RecordedCall struct {
	// Action is what was done; "" is [gate.CallTool].
	Action gate.Action
	Server string // of a prompt or a resource; the name of a tool says it
	Tool   string // server__tool, or the qualified name of the prompt, or the URI of the resource
	Digest string // of the tool's definition then; "" if it is not known
	Args   string // digest of the arguments, as of [gate.Doc.Digest]
	// Arguments are these as the audit log has them, for people: without secrets, and absent if
	// they are not known. Nothing goes by them.
	Arguments gate.Doc
	Result    gate.Doc
	Named     []string // the arguments of a prompt, sorted
}
