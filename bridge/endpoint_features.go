package bridge

import (
	"bytes"
	"fmt"

	"github.com/wasmgate/wasmgate/gate"
)

// nothingToComplete is the answer to completion/complete of a server that completes
// nothing.
var nothingToComplete = gate.MustDoc(`{"completion":{"values":[]}}`)

// request sends what a call asks for to the server, in the words of its method.
func (e *Endpoint) request(ctx *deadline, l *link, of *calling, t *gate.Tool) (gate.Doc, error) {
	c := of.call
	a := of.asking()
	switch {
	case c.Action == gate.CallTool && t.Feature == gate.FeatureTool, c.Action == gate.GetPrompt && t.Feature == gate.FeaturePrompt:
		a.params = callParams(t.Local, c.Args.Raw())
	case c.Action == gate.ReadResource && (t.Feature == gate.FeatureResource || t.Feature == gate.FeatureTemplate):
		a.params = uriParams(uriAt(c, t))
	case c.Action == gate.Complete && (t.Feature == gate.FeaturePrompt || t.Feature == gate.FeatureTemplate):
		if l.capabilities.Get("completions").Kind() != gate.Object {
			return nothingToComplete, nil
		}
		a.params = completeParams(t, c.Args)
	case c.Action == gate.Subscribe && (t.Feature == gate.FeatureResource || t.Feature == gate.FeatureTemplate):
		return e.subscribe(ctx, l, of, uriAt(c, t))
	default:
		return gate.Doc{}, fmt.Errorf("no server is asked for %s of a %s", c.Action, t.Feature)
	}
	e.prepare(ctx, l, of)
	if l.modern() {
		return l.rounds(ctx, a.about(t))
	}
	if c.Action == gate.CallTool && l.asTask(t) {
		return l.callAsTask(ctx, a)
	}
	return l.send(ctx, a)
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
