package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"testing/fstest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/bridge/recording"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/policy"
)

// A tool of a fleet of servers is called under a policy.
func Example() {
	dir, err := os.MkdirTemp("", "gateway-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	ctx := context.Background()
	gw, err := gateway.New(ctx, gateway.Config{
		Servers: []options.Endpoint{ // these run in this process; others have a Command or a URL
			{Server: "people", Dial: gateway.InProcess(greeter())},
			{Server: "broken", Dial: func() (mcp.Transport, error) { return nil, errors.New("nobody there") }},
		},
		Policy: gateway.Policy{Files: fstest.MapFS{"people.rego": {Data: []byte(`
			package wasmgate
			allow contains "whoever has a name" if startswith(input.tool.name, "people__")
			deny contains "not to strangers" if input.arguments.name == "stranger"
		`)}}, Options: policy.Options{Timeout: time.Second}},
		Audit: filepath.Join(dir, "audit.jsonl"), AuditOptions: audit.Options{Node: "example"},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer gw.Close(ctx)
	if err := gw.Connect(ctx); err != nil { // or Start, which does not wait
		log.Fatal(err)
	}
	for _, s := range gw.Fleet().Status() {
		fmt.Println(s.Server, s.Phase, s.Tools)
	}

	client := gw.NewClient(gateway.ClientConfig{})
	defer client.Close()
	for _, name := range []any{"Ada", "stranger", 5} {
		res, err := client.CallTool(ctx, "people__greet", map[string]any{"name": name})
		if err != nil {
			fmt.Println(gate.Code(err))
			continue
		}
		fmt.Println(res.Text())
	}
	// Output:
	// people ready 1
	// broken faulted 0
	// Hello, Ada[removed: control]!
	// refused_authorize
	// refused_validate_input
}

// greeter is a server of the MCP SDK.
func greeter() *mcp.Server {
	type person struct {
		Name string `json:"name"`
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "greeter", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "greet"}, func(_ context.Context, _ *mcp.CallToolRequest, p person) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "Hello, " + p.Name + "\x07!"}}}, nil, nil
	})
	s.AddPrompt(&mcp.Prompt{Name: "poem", Arguments: []*mcp.PromptArgument{{Name: "about"}}}, func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "Write about " + r.Params.Arguments["about"]}}}}, nil
	})
	s.AddResource(&mcp.Resource{URI: "people://all", Name: "everybody"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "people://all", Text: "Ada, Grace"}}}, nil
	})
	return s
}

// recorder is for examples that are not about the audit log.
type recorder struct{}

func (recorder) Record(context.Context, *gate.Record) error { return nil }

// grant lets everybody use what the patterns name.
func grant(tools ...string) gateway.Policy {
	return gateway.Policy{Options: policy.Options{Timeout: patience, Grants: []policy.Grant{{
		To: []string{"*"}, Tools: tools, Prompts: []string{"people__*"}, Resources: []string{"people://*"},
	}}}}
}

// A client lists and uses all that a server offers, in a session of its own.
func ExampleClient() {
	ctx := context.Background()
	gw, err := gateway.New(ctx, gateway.Config{
		Servers:  []options.Endpoint{{Server: "people", Dial: gateway.InProcess(greeter())}},
		Policy:   grant("people__*"),
		Recorder: recorder{},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer gw.Close(ctx)
	gw.Start(ctx)

	client := gw.NewClient(gateway.ClientConfig{Name: "my-agent", Version: "1"})
	defer client.Close()
	tools, err := client.Tools(ctx) // waits for the server
	if err != nil {
		log.Fatal(err)
	}
	for _, t := range tools {
		fmt.Println(t.Offered, "from", t.Name.Server)
	}
	prompt, err := client.GetPrompt(ctx, "people__poem", map[string]string{"about": "bridges"})
	fmt.Println(prompt.Doc.At("/messages/0/content/text").Text(), err)
	resource, err := client.ReadResource(ctx, "people://all")
	fmt.Println(resource.Doc.At("/contents/0/text").Text(), err)

	_, err = client.CallTool(ctx, "people__insult", nil)
	if failure, ok := errors.AsType[*gateway.Error](err); ok {
		fmt.Println(failure.Code, failure.Retryable(), failure.NeedsReconnect())
	}
	// Output:
	// people__greet from people
	// Write about bridges <nil>
	// Ada, Grace <nil>
	// tool_not_found false false
}

// Go functions become tools, and stop being tools, while a client is connected.
func ExampleGateway_Publish() {
	ctx := context.Background()
	gw, err := gateway.New(ctx, gateway.Config{Policy: grant("sums__*"), Recorder: recorder{}})
	if err != nil {
		log.Fatal(err)
	}
	defer gw.Close(ctx)

	changed := make(chan bool, 1) // an MCP client in this process, which is notified of changes
	conn := gw.Dial(gate.Local())
	session, err := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, &mcp.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- true },
	}).Connect(ctx, &mcp.IOTransport{Reader: conn, Writer: conn}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()

	type numbers struct {
		A int `json:"a" jsonschema:"the first"`
		B int `json:"b"`
	}
	type sum struct {
		Sum int `json:"sum"`
	}
	add, err := gateway.Func("add", "Adds two numbers.", func(_ context.Context, n numbers) (sum, error) {
		return sum{n.A + n.B}, nil
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := gw.Publish("sums", add); err != nil {
		log.Fatal(err)
	}
	<-changed
	res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "sums__add", Arguments: numbers{20, 22}})
	fmt.Println(res.StructuredContent, err)

	if err := gw.Withdraw("sums", "add"); err != nil {
		log.Fatal(err)
	}
	<-changed
	_, err = session.CallTool(ctx, &mcp.CallToolParams{Name: "sums__add", Arguments: numbers{20, 22}})
	fmt.Println(err)
	// Output:
	// map[sum:42] <nil>
	// calling "tools/call": unknown tool "sums__add"
}

// What a principal is offered, as functions for an agent framework.
func ExampleClient_Functions() {
	ctx := context.Background()
	gw, err := gateway.New(ctx, gateway.Config{
		Servers:  []options.Endpoint{{Server: "people", Dial: gateway.InProcess(greeter())}},
		Policy:   grant("people__*"),
		Recorder: recorder{},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer gw.Close(ctx)
	gw.Start(ctx)

	client := gw.NewClient(gateway.ClientConfig{})
	functions, err := client.Functions(ctx, gateway.FunctionOptions{Prefix: "mcp_", Schema: gateway.Normalized, MaxText: 9})
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range functions {
		answer, err := f.Func(ctx, []byte(`{"name": "Grace"}`))
		fmt.Println(f.Name, string(f.Schema))
		fmt.Println(answer.Text, err)
	}
	// Output:
	// mcp_people__greet {"type":"object","properties":{"name":{"type":"string"}},"required":["name"],"additionalProperties":false}
	// Hello, Gr
	// [cut: the first 9 of 31 bytes] <nil>
}

// An agent's session is recorded once, and replayed without its servers.
func ExampleReplay() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "gateway-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	run := func(cfg gateway.Config) {
		cfg.Policy = grant("people__*")
		gw, err := gateway.New(ctx, cfg)
		if err != nil {
			log.Fatal(err)
		}
		defer gw.Close(ctx)
		gw.Start(ctx)
		client := gw.NewClient(gateway.ClientConfig{})
		for _, name := range []string{"Ada", "Grace"} {
			res, err := client.CallTool(ctx, "people__greet", map[string]string{"name": name})
			fmt.Println(res.Text(), gate.Code(err))
		}
	}
	full := audit.Options{Node: "example", Record: "full"}
	run(gateway.Config{
		Servers: []options.Endpoint{{Server: "people", Dial: gateway.InProcess(greeter())}},
		Audit:   filepath.Join(dir, "audit.jsonl"), AuditOptions: full,
	})
	calls, err := recording.Read(ctx, filepath.Join(dir, "audit.jsonl"))
	if err != nil {
		log.Fatal(err)
	}
	run(gateway.Config{Replay: &recording.Replay{Calls: calls[:1]}, Recorder: recorder{}}) // one of the calls is lost
	// Output:
	// Hello, Ada[removed: control]! ok
	// Hello, Grace[removed: control]! ok
	// Hello, Ada[removed: control]! ok
	//  not_connected
}

// Servers come, are connected anew, and go, while clients stay.
func ExampleGateway_SetServer() {
	ctx := context.Background()
	gw, err := gateway.New(ctx, gateway.Config{Policy: grant("people__*"), Recorder: recorder{}})
	if err != nil {
		log.Fatal(err)
	}
	defer gw.Close(ctx)
	client := gw.NewClient(gateway.ClientConfig{})
	greet := func() {
		res, err := client.CallTool(ctx, "greet", map[string]string{"name": "Ada"}) // no other server has a tool of this name
		fmt.Println(len(res.Text()) > 0, gate.Code(err))
	}

	people := gateway.Server{Endpoint: options.Endpoint{Server: "people", Dial: gateway.InProcess(greeter())}}
	if err := gw.SetServer(ctx, people); err != nil {
		log.Fatal(err)
	}
	for _, s := range gw.Fleet().Status() {
		fmt.Println(s.Server, s.Phase, s.Tools, "tool,", s.Prompts, "prompt,", s.Resources, "resource")
	}
	greet()
	if err := gw.Fleet().Reload(ctx, "people"); err != nil {
		log.Fatal(err)
	}
	greet()
	if err := gw.RemoveServer("people"); err != nil {
		log.Fatal(err)
	}
	greet()
	// Output:
	// people ready 1 tool, 1 prompt, 1 resource
	// true ok
	// true ok
	// false refused_lookup
}
