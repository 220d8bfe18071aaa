package upstream

import (
	"bytes"
	"fmt"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/link"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/pace"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/underway"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/doc"
)

// nothingToComplete is the answer to completion/complete of a server that completes
// nothing.
var nothingToComplete = gate.MustDoc(`{"completion":{"values":[]}}`)

// request sends what a call asks for to the server, in the words of its method.
func (e *Endpoint) request(ctx *pace.Deadline, l *link.Link, of *underway.Call, t *gate.Tool) (gate.Doc, error) {
	c := of.Call
	var params []byte
	switch {
	case c.Action == gate.CallTool && t.Feature == gate.FeatureTool, c.Action == gate.GetPrompt && t.Feature == gate.FeaturePrompt:
		params = mcp.CallParams(t.Local, c.Args.Raw())
	case c.Action == gate.ReadResource && (t.Feature == gate.FeatureResource || t.Feature == gate.FeatureTemplate):
		params = mcp.URIParams(c.URI(t))
	case c.Action == gate.Complete && (t.Feature == gate.FeaturePrompt || t.Feature == gate.FeatureTemplate):
		if l.Capabilities.Get("completions").Kind() != doc.Object {
			return nothingToComplete, nil
		}
		params = completeParams(t, c.Args)
	case c.Action == gate.Subscribe && (t.Feature == gate.FeatureResource || t.Feature == gate.FeatureTemplate):
		return e.subscribe(ctx, l, of, c.URI(t))
	case t.Feature == gate.FeatureMethod && string(c.Action) == t.Local:
		params = methodParamsOf(c.Args)
	default:
		return gate.Doc{}, fmt.Errorf("no server is asked for %s of a %s", c.Action, t.Feature)
	}
	e.ownership.prepare(ctx, l, of)
	return l.Call(ctx, of, t, params)
}

// completeParams gives the server its own name of what is completed.
func completeParams(t *gate.Tool, args gate.Doc) []byte {
	kind, member := "ref/prompt", "name"
	if t.Feature == gate.FeatureTemplate {
		kind, member = "ref/resource", "uri"
	}
	b := append([]byte(`{"ref":`), mcp.MustJSON(map[string]string{"type": kind, member: t.Local})...)
	if mcp.IsEmpty(args) {
		return append(b, '}')
	}
	return append(append(b, ','), bytes.TrimPrefix(args.Raw(), []byte("{"))...)
}

// methodParamsOf returns the parameters of a call of such a method as they are sent.
func methodParamsOf(args gate.Doc) []byte {
	if mcp.IsEmpty(args) {
		return []byte("{}")
	}
	return args.Raw()
}
