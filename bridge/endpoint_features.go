package bridge

import (
	"bytes"
	"context"
	"fmt"

	"github.com/wasmgate/wasmgate/gate"
)

// nothingToComplete is the answer to completion/complete of a server that completes
// nothing.
var nothingToComplete = gate.MustDoc(`{"completion":{"values":[]}}`)

// request sends what a call asks for to the server, in the words of its method.
func (e *Endpoint) request(ctx context.Context, l *link, p gate.Permit, c *gate.Call, t *gate.Tool) (gate.Doc, error) {
	switch {
	case c.Action == gate.CallTool && t.Feature == gate.FeatureTool && tellsProgress(c):
		return l.callTelling(ctx, p, c, t.Local)
	case c.Action == gate.CallTool && t.Feature == gate.FeatureTool, c.Action == gate.GetPrompt && t.Feature == gate.FeaturePrompt:
		return l.peer.call(ctx, string(c.Action), callParams(t.Local, c.Args.Raw()))
	case c.Action == gate.ReadResource && (t.Feature == gate.FeatureResource || t.Feature == gate.FeatureTemplate):
		return l.peer.call(ctx, string(c.Action), append(append([]byte(`{"uri":`), mustJSON(c.Name)...), '}'))
	case c.Action == gate.Complete && (t.Feature == gate.FeaturePrompt || t.Feature == gate.FeatureTemplate):
		if l.capabilities.Get("completions").Kind() != gate.Object {
			return nothingToComplete, nil
		}
		return l.peer.call(ctx, string(c.Action), completeParams(t, c.Args))
	default:
		return gate.Doc{}, fmt.Errorf("no server is asked for %s of a %s", c.Action, t.Feature)
	}
}

// completeParams gives the server its own name of what is completed.
func completeParams(t *gate.Tool, args gate.Doc) []byte {
	kind, member := "ref/prompt", "name"
	if t.Feature == gate.FeatureTemplate {
		kind, member = "ref/resource", "uri"
	}
	b := append([]byte(`{"ref":`), mustJSON(map[string]string{"type": kind, member: t.Local})...)
	if empty(args) {
		return append(b, '}')
	}
	return append(append(b, ','), bytes.TrimPrefix(args.Raw(), []byte("{"))...)
}
