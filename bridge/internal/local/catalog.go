package local

import (
	"context"
	"fmt"
	"slices"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/find"
)

const (
	// maxQuery bounds the text of a search, in bytes.
	maxQuery = 200
	// maxFound bounds what one search returns; usualFound is how much it returns by default: it all
	// goes into the context of a model.
	maxFound   = 50
	usualFound = 20
	// maxSaid bounds the part of a description that a search returns, in bytes.
	maxSaid = 300
)

// CatalogTools returns the tools of the server catalog: search, describe and call. They show and
// reach what the function tools, a gate's, returns for the caller, in the groups that the client is
// offered.
func CatalogTools(tools func(context.Context, *gate.Principal) ([]*gate.Tool, error)) []options.LocalTool {
	c := catalogTools{tools}
	return []options.LocalTool{
		{Definition: searchDefinition, Call: c.search, Relay: true},
		{Definition: describeDefinition, Call: c.describe, Relay: true},
		{Definition: callDefinition, Call: c.call, Relay: true},
	}
}

type catalogTools struct {
	tools func(context.Context, *gate.Principal) ([]*gate.Tool, error)
}

var (
	searchDefinition = gate.MustDoc(fmt.Sprintf(`{
		"name": "search", "title": "Search for tools",
		"description": "Finds tools by words in their names, titles and descriptions. An empty query lists all. Read a tool's definition with catalog__describe, and call it with catalog__call.",
		"annotations": {"readOnlyHint": true, "openWorldHint": false},
		"inputSchema": {"type": "object", "properties": {
			"query": {"type": "string", "maxLength": %d, "description": "Words, all of which have to occur"},
			"group": {"type": "string", "maxLength": 64, "description": "Only tools of this group"},
			"limit": {"type": "integer", "minimum": 1, "maximum": %d, "default": %d, "description": "How many tools are returned at most"}
		}, "required": ["query"], "additionalProperties": false},
		"outputSchema": {"type": "object", "properties": {
			"tools": {"type": "array", "items": {"type": "object", "properties": {
				"name": {"type": "string"}, "title": {"type": "string"}, "description": {"type": "string"},
				"groups": {"type": "array", "items": {"type": "string"}}
			}, "required": ["name", "description"]}},
			"found": {"type": "integer", "description": "How many tools there are, returned or not"}
		}, "required": ["tools", "found"]}
	}`, maxQuery, maxFound, usualFound))
	describeDefinition = gate.MustDoc(`{
		"name": "describe", "title": "Describe a tool",
		"description": "Returns the whole definition of a tool, with the schema of its arguments.",
		"annotations": {"readOnlyHint": true, "openWorldHint": false},
		"inputSchema": {"type": "object", "properties": {
			"tool": {"type": "string", "description": "The name that catalog__search returns"}
		}, "required": ["tool"], "additionalProperties": false},
		"outputSchema": {"type": "object", "properties": {"tool": {"type": "object"}}, "required": ["tool"]}
	}`)
	callDefinition = gate.MustDoc(`{
		"name": "call", "title": "Call a tool",
		"description": "Calls a tool, as if it were called by its own name, and returns its result.",
		"inputSchema": {"type": "object", "properties": {
			"tool": {"type": "string", "description": "The name that catalog__search returns"},
			"arguments": {"type": "object", "description": "As the tool's own schema has them"}
		}, "required": ["tool"], "additionalProperties": false}
	}`)
)

// found is a tool as a search returns it.
type found struct {
	Name        string   `json:"name"`
	Title       string   `json:"title,omitempty"`
	Description string   `json:"description"`
	Groups      []string `json:"groups,omitempty"`
}

func (c catalogTools) search(ctx context.Context, call *gate.Call, p gate.Permit) (gate.Result, error) {
	tools, err := c.offered(ctx, call)
	if err != nil {
		return gate.Result{}, err
	}
	if group := call.Args.Get("group"); !group.IsZero() {
		tools = slices.DeleteFunc(tools, func(t *gate.Tool) bool { return !slices.Contains(t.Groups, group.Text()) })
	}
	limit := usualFound
	if n, ok := mcp.Integer(call.Args.Get("limit").String()); ok {
		limit = int(n)
	}
	all := find.NewSearch(call.Args.Get("query").Text()).In(tools)
	answer := struct {
		Tools []found `json:"tools"`
		Found int     `json:"found"`
	}{[]found{}, len(all)}
	all = all[:min(limit, len(all))]
	if err := p.Shown(ctx, all); err != nil {
		return gate.Result{}, err
	}
	for _, t := range all {
		answer.Tools = append(answer.Tools, found{
			t.Offered, mcp.Clip(find.Title(t), maxSaid), mcp.Clip(t.Definition.Get("description").Text(), maxSaid), t.Groups,
		})
	}
	return structured(mcp.MustJSON(answer))
}

func (c catalogTools) describe(ctx context.Context, call *gate.Call, p gate.Permit) (gate.Result, error) {
	tools, err := c.offered(ctx, call)
	if err != nil {
		return gate.Result{}, err
	}
	name := call.Args.Get("tool").Text()
	i := slices.IndexFunc(tools, func(t *gate.Tool) bool { return t.Offered == name })
	if i < 0 {
		i = slices.IndexFunc(tools, func(t *gate.Tool) bool { return t.Name.String() == name })
	}
	if i < 0 {
		return failed(fmt.Sprintf("unknown tool %.200q", name))
	}
	if err := p.Shown(ctx, tools[i:i+1]); err != nil {
		return gate.Result{}, err
	}
	return structured(slices.Concat([]byte(`{"tool":`), tools[i].Definition.Raw(), []byte("}")))
}

func (c catalogTools) call(ctx context.Context, call *gate.Call, p gate.Permit) (gate.Result, error) {
	inner := *call
	inner.Name, inner.Args = call.Args.Get("tool").Text(), call.Args.Get("arguments")
	return p.Relay(ctx, inner)
}

// offered returns the tools that the caller is offered, except those of the gateway that find and
// call others.
func (c catalogTools) offered(ctx context.Context, call *gate.Call) ([]*gate.Tool, error) {
	tools, err := c.tools(ctx, call.Who)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(tools), func(t *gate.Tool) bool { return t.Relay || !call.Groups.Has(t) }), nil
}

// structured is a result with structured content, an object, and the same as text for
// clients that read no other (MCP 2025-11-25, server/tools, "Structured Content").
func structured(object []byte) (gate.Result, error) {
	doc, err := gate.ParseDoc(fmt.Appendf(nil, `{"content":[{"type":"text","text":%s}],"structuredContent":%s}`, mcp.MustJSON(string(object)), object))
	return gate.Result{Doc: doc}, err
}

// failed is the result of a tool that reports its own failure.
func failed(why string) (gate.Result, error) {
	doc, err := gate.ParseDoc(fmt.Appendf(nil, `{"content":[{"type":"text","text":%s}],"isError":true}`, mcp.MustJSON(why)))
	return gate.Result{Doc: doc, IsError: true}, err
}
