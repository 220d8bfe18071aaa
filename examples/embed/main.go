// Command embed is an agent that calls its tools through a gateway in its own process.
//
// The policy allows reading and denies one address. The agent's loop is three fixed calls here; a model would choose them.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"testing/fstest"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
)

// rules decide over each call. Without a rule that allows it, a call is refused.
const rules = `
package wasmgate

allow contains "weather is public" if input.tool.name == "weather__forecast"

deny contains "the vault has no weather" if input.arguments.city == "Vault"
`

type place struct {
	City string `json:"city"`
}

func forecast(_ context.Context, p place) (string, error) { return p.City + ": sunny", nil }

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	state, err := os.MkdirTemp("", "embed-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(state)

	gw, err := gateway.New(ctx, gateway.Config{
		Policy: gateway.Policy{Files: fstest.MapFS{"rules.rego": {Data: []byte(rules)}}},
		Audit:  filepath.Join(state, "audit.jsonl"), AuditOptions: audit.Options{Node: "embed"},
	})
	if err != nil {
		return err
	}
	defer gw.Close(ctx)
	tool, err := gateway.Func("forecast", "Tells the weather of a city.", forecast)
	if err != nil {
		return err
	}
	if err := gw.Publish("weather", tool); err != nil {
		return err
	}
	gw.Start(ctx)

	client := gw.NewClient(gateway.ClientConfig{Name: "example-agent", Version: "1"})
	defer client.Close()
	for _, arguments := range []map[string]any{{"city": "Oslo"}, {"city": "Vault"}, {"town": "Oslo"}} {
		result, err := client.CallTool(ctx, "weather__forecast", arguments)
		if err != nil {
			fmt.Println("refused:", gate.Code(err))
			continue
		}
		fmt.Println(result.Text())
	}
	return nil
}
