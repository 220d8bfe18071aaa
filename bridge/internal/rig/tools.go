package rig

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
)

// Tool is the definition of a tool.
func Tool(name string) string {
	return fmt.Sprintf(`{"name":%s,"inputSchema":{"type":"object"}}`, Quote(name))
}

// Quote is s as JSON.
func Quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// Offered returns the names that an upstream offers tools by.
func Offered(e gate.Upstream, t testing.TB) (names []string) {
	for _, tool := range e.Features(t.Context(), gate.FeatureTool) {
		if got := tool.Definition.Get("name").Text(); got != tool.Offered {
			t.Errorf("the upstream offers a tool as %q, but the name in its definition is %q", tool.Offered, got)
		}
		names = append(names, tool.Offered)
	}
	return names
}

// Digest returns the digits of a definition that tell it from others.
func Digest(def string) string { return gate.MustDoc(def).Digest()[:6] }

// Echo is a local tool of a definition's members.
func Echo(members string) options.LocalTool {
	return options.LocalTool{
		Definition: gate.MustDoc(`{"inputSchema":{"type":"object"},` + members + `}`),
		Call: func(context.Context, *gate.Call, gate.Permit) (gate.Result, error) {
			return gate.Result{Doc: gate.MustDoc(`{"content":[]}`)}, nil
		},
	}
}
