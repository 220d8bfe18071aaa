package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/clean"
	"github.com/wasmgate/wasmgate/bridge/fault"
	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/session"
	"github.com/wasmgate/wasmgate/policy"
)

// discard is an audit log for an example: a program keeps the records.
type discard struct{}

func (discard) Record(context.Context, *gate.Record) error { return nil }

// One server, driven by hand: from its connection to its end.
func ExampleEndpoint() {
	type question struct {
		Text string `json:"text"`
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "echo", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "say"}, func(_ context.Context, _ *mcp.CallToolRequest, q question) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: q.Text}}}, nil, nil
	})

	ctx := context.Background()
	e, err := gateway.NewEndpoint(options.Endpoint{Server: "echo", Dial: gateway.InProcess(server)})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(e.Phase())
	if err := e.Connect(ctx); err != nil {
		if f, ok := errors.AsType[*fault.Fault](err); ok {
			log.Fatal(f.Kind)
		}
		log.Fatal(err)
	}
	fmt.Println(e.Phase(), e.Status().Tools)

	rules, err := policy.Load(ctx, nil, policy.Options{Grants: []policy.Grant{{To: []string{"local"}, Servers: []string{"echo"}}}})
	if err != nil {
		log.Fatal(err)
	}
	sanitizer, err := clean.NewTexts(clean.Sanitize{})
	if err != nil {
		log.Fatal(err)
	}
	g, err := gate.New(gate.Parts{Upstream: e, Authorizer: rules, Sessions: session.New(session.Options{}), Sanitizer: sanitizer, Recorder: discard{}})
	if err != nil {
		log.Fatal(err)
	}
	say := gate.Call{Action: gate.CallTool, Name: "echo__say", Args: gate.MustDoc(`{"text": "hi"}`), Who: gate.Local()}
	res, err := g.Do(ctx, say)
	fmt.Println(res.Text(), gate.Code(err))

	if err := e.Close(); err != nil {
		log.Fatal(err)
	}
	_, err = g.Do(ctx, say)
	fmt.Println(e.Phase(), gate.Code(err))
	// Output:
	// idle
	// ready 1
	// hi ok
	// closed not_connected
}
