package local

import (
	"context"
	"fmt"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
)

// ProposeTools returns the tool of the server gateway: propose, by which an agent has one question
// asked about all calls that it is going to make.
func ProposeTools() []options.LocalTool {
	return []options.LocalTool{{Definition: proposeDefinition, Call: propose, Relay: true}}
}

var proposeDefinition = gate.MustDoc(fmt.Sprintf(`{
	"name": "propose", "title": "Propose calls",
	"description": "Asks a person once about several calls that you are going to make. Use it before two or more calls that need approval. Once it is approved, make each call exactly as proposed, once.",
	"annotations": {"readOnlyHint": false, "destructiveHint": false, "openWorldHint": false},
	"inputSchema": {"type": "object", "required": ["calls"], "additionalProperties": false, "properties": {
		"calls": {"type": "array", "minItems": 1, "maxItems": %d, "description": "The calls, in their order", "items": {
			"type": "object", "required": ["tool"], "additionalProperties": false, "properties": {
				"tool": {"type": "string", "minLength": 1, "maxLength": 256, "description": "Name of the tool, as it is listed"},
				"arguments": {"type": "object", "description": "Its arguments, exactly as you will send them"}
			}}}
	}},
	"outputSchema": {"type": "object", "required": ["approved", "calls"], "properties": {
		"approved": {"type": "integer", "description": "How many of the calls needed approval, and have it"},
		"calls": {"type": "integer", "description": "How many calls were proposed"}
	}}
}`, gate.MaxSet))

func propose(ctx context.Context, call *gate.Call, p gate.Permit) (gate.Result, error) {
	var calls []gate.Call
	for one := range call.Args.Get("calls").Elements() {
		c := *call
		c.Name, c.Args = one.Get("tool").Text(), one.Get("arguments")
		calls = append(calls, c)
	}
	approved, err := p.Propose(ctx, calls)
	if err != nil {
		return gate.Result{}, err
	}
	return structured(mcp.MustJSON(map[string]int{"approved": approved, "calls": len(calls)}))
}
