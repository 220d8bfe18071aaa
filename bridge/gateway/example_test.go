package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"testing/fstest"

	"github.com/wasmgate/wasmgate/bridge"
	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
)

// A program offers a function of its own as a tool, and says in Rego who may
// call it with what.
func Example() {
	dir, err := os.MkdirTemp("", "gateway-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	greet := bridge.LocalTool{
		Definition: gate.MustDoc(`{"name": "greet", "inputSchema": {"type": "object", "properties": {"who": {"type": "string"}}, "required": ["who"]}}`),
		Call: func(_ context.Context, c *gate.Call, _ gate.Permit) (gate.Result, error) {
			text := "Hello, " + c.Args.Get("who").Text() + "\x1b[31m!"
			b, err := json.Marshal(map[string]any{"content": []any{map[string]string{"type": "text", "text": text}}})
			if err != nil {
				return gate.Result{}, err
			}
			doc, err := gate.ParseDoc(b)
			return gate.Result{Doc: doc}, err
		},
	}
	ctx := context.Background()
	gw, err := gateway.New(ctx, gateway.Config{
		Functions: map[string][]bridge.LocalTool{"people": {greet}},
		Policy: gateway.Policy{Files: fstest.MapFS{"people.rego": {Data: []byte(`
			package wasmgate
			allow contains "whoever has a name" if startswith(input.tool.name, "people__")
			deny contains "not to strangers" if input.arguments.who == "stranger"
		`)}}},
		Audit: filepath.Join(dir, "audit.jsonl"), AuditOptions: audit.Options{Node: "example"},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer gw.Close(ctx)

	for _, args := range []string{`{"who": "Ada"}`, `{"who": "stranger"}`, `{"who": 5}`} {
		who := gate.Local()
		res, err := gw.Do(ctx, gate.Call{
			ID: gate.NewID(), Action: gate.CallTool, Name: "people__greet", Args: gate.MustDoc(args),
			Who: who, Session: gate.SessionKey{Owner: who.Owner},
		})
		if err != nil {
			fmt.Println(gate.Code(err))
			continue
		}
		fmt.Println(res.Doc.At("/content/0/text").Text())
	}
	// Output:
	// Hello, Ada[removed: control]!
	// refused_authorize
	// refused_validate_input
}
