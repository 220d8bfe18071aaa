package dispatch

import (
	"context"

	"github.com/wasmgate/wasmgate/bridge/internal/host/message"
	"github.com/wasmgate/wasmgate/bridge/internal/host/sessions"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// A method is how a dispatcher answers the requests of a method of MCP.
type method struct {
	answer  func(context.Context, sessions.Client, message.Message) (gate.Doc, error)
	offered func(context.Context) bool // whether clients are offered it; nil: always
	clients clients
	// connects says that the request is about the connection itself: it is answered while the
	// dispatcher drains, too.
	connects bool
}

// clients are those that have a method.
type clients int

const (
	allClients  clients = iota // with a session, once that is initialized
	withSession                // from the begin of the session on
	stateless
)

// table returns all methods of MCP that are answered, by name. Any other is a method of a server,
// if one has it: see [features.useMethod].
func (d *Dispatcher) table() map[string]method {
	tasks := func(context.Context) bool { return d.OffersTasks() }
	server := func(offers func(mcp.Offering) bool) func(context.Context) bool {
		return func(ctx context.Context) bool { return offers(d.offering(ctx, 0)) }
	}
	prompts := server(func(o mcp.Offering) bool { return o.Prompts })
	resources := server(func(o mcp.Offering) bool { return o.Resources })
	skills := server(func(o mcp.Offering) bool { return o.Skills })
	completions := server(func(o mcp.Offering) bool { return o.Completions })
	logging := server(func(o mcp.Offering) bool { return o.Logging })
	updates := server(func(o mcp.Offering) bool { return o.Updates })
	return map[string]method{
		"initialize":       {answer: d.initialize, clients: withSession, connects: true},
		"ping":             {answer: ping, clients: withSession, connects: true},
		mcp.MethodDiscover: {answer: d.discover, clients: stateless, connects: true},
		mcp.MethodListen:   {answer: d.hearing.listen, clients: stateless, connects: true}, // a session has streams of its own, which end with their credential

		"tools/list":               {answer: d.lists.list},
		string(gate.CallTool):      {answer: d.tools.callTool},
		"prompts/list":             {answer: d.lists.list, offered: prompts},
		string(gate.GetPrompt):     {answer: d.features.use, offered: prompts},
		"resources/list":           {answer: d.lists.list, offered: resources},
		"resources/templates/list": {answer: d.lists.list, offered: resources},
		string(gate.ReadResource):  {answer: d.features.use, offered: resources},
		string(gate.Complete):      {answer: d.features.use, offered: completions},
		mcp.MethodSkills:           {answer: d.lists.list, offered: skills},
		string(gate.GetSkill):      {answer: d.skills.useSkill, offered: skills},
		string(gate.ReadDirectory): {answer: d.skills.useSkill, offered: skills},

		mcp.MethodSetLevel:     {answer: d.hearing.setLevel, offered: logging, clients: withSession},
		string(gate.Subscribe): {answer: d.hearing.subscribe, offered: updates, clients: withSession},
		mcp.MethodUnsubscribe:  {answer: d.hearing.unsubscribe, offered: updates, clients: withSession},

		mcp.MethodTaskGet:    {answer: d.tasks.answer, offered: tasks},
		mcp.MethodTaskResult: {answer: d.tasks.answer, offered: tasks},
		mcp.MethodTaskList:   {answer: d.tasks.answer, offered: tasks},
		mcp.MethodTaskUpdate: {answer: d.tasks.answer, offered: tasks},
		mcp.MethodTaskCancel: {answer: d.tasks.answer, offered: tasks},
	}
}

// offers reports whether a method is served. A method that no server offers is not.
func (d *Dispatcher) offers(ctx context.Context, name string) bool {
	offered := d.methods[name].offered
	return offered == nil || offered(ctx)
}

// ping answers a client that asks whether the gateway is there.
func ping(context.Context, sessions.Client, message.Message) (gate.Doc, error) {
	return gate.MustDoc("{}"), nil
}
