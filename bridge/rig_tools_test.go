package bridge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/wasmgate/wasmgate/bridge"
	"github.com/wasmgate/wasmgate/gate"
)

func tool(name string) string {
	return fmt.Sprintf(`{"name":%s,"inputSchema":{"type":"object"}}`, quote(name))
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func offered(e gate.Upstream, t testing.TB) (names []string) {
	for _, tool := range e.Tools(t.Context()) {
		if got := tool.Definition.Get("name").Text(); got != tool.Offered {
			t.Errorf("offered as %q, defined as %q", tool.Offered, got)
		}
		names = append(names, tool.Offered)
	}
	return names
}

func digest(def string) string { return gate.MustDoc(def).Digest()[:6] }

// echo is a local tool of a definition's members.
func echo(members string) bridge.LocalTool {
	return bridge.LocalTool{
		Definition: gate.MustDoc(`{"inputSchema":{"type":"object"},` + members + `}`),
		Call: func(context.Context, *gate.Call, gate.Permit) (gate.Result, error) {
			return gate.Result{Doc: gate.MustDoc(`{"content":[]}`)}, nil
		},
	}
}
