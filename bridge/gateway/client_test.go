package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/policy"
)

// code returns the code of an error of a client; "" for none.
func code(err error) gateway.ErrorCode {
	if e, ok := errors.AsType[*gateway.Error](err); ok {
		return e.Code
	}
	if err != nil {
		return gateway.ErrorCode("no *Error: " + err.Error())
	}
	return ""
}

// slow answers when its context ends, and says on began that it was called.
func slow(name string, began chan<- bool) options.LocalTool {
	return tool(name, func(ctx context.Context, _ *gate.Call, _ gate.Permit) (gate.Result, error) {
		began <- true
		<-ctx.Done()
		return gate.Result{}, ctx.Err()
	})
}

func TestClientEndsCalls(t *testing.T) {
	began := make(chan bool, 1)
	g := start(t, gateway.Config{
		Functions: map[string][]options.LocalTool{"s": {slow("slow", began), slow("slower", make(chan bool, 1)), tool("echo", nil)}}, Policy: granting("s__*"), Recorder: new(records),
	})

	hasty, patient := g.NewClient(gateway.ClientConfig{Timeout: 200 * time.Millisecond}), g.NewClient(gateway.ClientConfig{})
	_, err := hasty.CallTool(t.Context(), "s__slower", nil)
	if code(err) != gateway.TimedOut || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a call over its time: %v", err)
	}

	client := g.NewClient(gateway.ClientConfig{})
	go func() {
		<-began
		client.Close()
	}()
	_, err = client.CallTool(t.Context(), "s__slow", nil)
	if code(err) != gateway.TimedOut || !errors.Is(err, context.Canceled) {
		t.Errorf("a call of a client that was closed: %v", err)
	}
	_, err = client.CallTool(t.Context(), "s__echo", nil)
	_, lerr := client.Tools(t.Context())
	if code(err) != gateway.NotConnected || code(lerr) != gateway.NotConnected {
		t.Errorf("after its end: %v, %v", err, lerr)
	}
	if err := g.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := patient.CallTool(t.Context(), "s__echo", nil); code(err) != gateway.SessionError {
		t.Errorf("of a gateway that drains: %v", err)
	}
}

func TestClientArguments(t *testing.T) {
	rec := new(records)
	g := start(t, gateway.Config{Functions: map[string][]options.LocalTool{"s": {tool("echo", nil)}}, Policy: granting("s__*"), Recorder: rec})
	client := g.NewClient(gateway.ClientConfig{})
	type in struct {
		Text string `json:"text"`
	}
	for name, tt := range map[string]struct {
		args any
		text string
		code gateway.ErrorCode
	}{
		"a map": {map[string]string{"text": "x"}, "x", ""}, "a struct": {in{"x"}, "x", ""}, "a document": {gate.MustDoc(`{"text":"x"}`), "x", ""},
		"nothing": {nil, "", ""}, "a list": {[]int{1}, "", gateway.InvalidParameters}, "no JSON": {func() {}, "", gateway.InvalidParameters},
	} {
		res, err := client.CallTool(t.Context(), "s__echo", tt.args)
		if res.Text() != tt.text || code(err) != tt.code {
			t.Errorf("%s: %q, %v", name, res.Text(), err)
		}
	}
	if !slices.Contains(rec.list(), "done refused_parse") {
		t.Errorf("what is not a document was not recorded: %q", rec.list())
	}
}

// A client's session is its own: what one has read does not bind another.
func TestClientSessions(t *testing.T) {
	var seen []gate.SessionKey
	look := tool("look", func(_ context.Context, c *gate.Call, _ gate.Permit) (gate.Result, error) {
		seen = append(seen, c.Session)
		return text(c.Prompt + c.ClientName), nil
	})
	g := start(t, gateway.Config{Functions: map[string][]options.LocalTool{"s": {look}}, Policy: granting("s__*"), Recorder: new(records)})
	one, other := g.NewClient(gateway.ClientConfig{Name: "one"}), g.NewClient(gateway.ClientConfig{})
	one.Say("words, ")
	for range 2 {
		if res, err := one.CallTool(t.Context(), "s__look", nil); err != nil || res.Text() != "words, one" {
			t.Errorf("%q, %v", res.Text(), err)
		}
	}
	if _, err := other.CallTool(t.Context(), "s__look", nil); err != nil {
		t.Error(err)
	}
	want := []gate.SessionKey{one.Session(), one.Session(), other.Session()}
	if diff := cmp.Diff(want, seen); diff != "" || one.Session() == other.Session() {
		t.Errorf("sessions (-want +got):\n%s", diff)
	}
}

func TestClientFeatures(t *testing.T) {
	g, _ := library(t, append([]policy.Grant{{To: []string{"*"}, Tools: []string{"library__*"}}}, openGrants...))
	client := g.NewClient(gateway.ClientConfig{})
	list := func(of func(context.Context) ([]*gate.Tool, error)) (all []string) {
		tools, err := of(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return names(tools, func(t *gate.Tool) string { return t.Offered })
	}
	got := []string{fmt.Sprint(list(client.Tools)), fmt.Sprint(list(client.Prompts)), fmt.Sprint(list(client.Resources)), fmt.Sprint(list(client.Templates))}
	want := []string{"[]", "[library__greet library__odd_name_]", "[doc://open/a]", "[doc://open/pages/{page}]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("listings (-want +got):\n%s", diff)
	}
	values, err := client.Complete(t.Context(), "library__greet", "who", "A", map[string]string{"x": "y"})
	if err != nil || len(values) != 1 || !strings.HasPrefix(values[0], "ref/prompt greet A") {
		t.Errorf("completion: %q, %v", values, err)
	}
	for name, tt := range map[string]struct {
		err  error
		want gateway.ErrorCode
	}{
		"a prompt that is not granted":   {second(client.GetPrompt(t.Context(), "library__secret", nil)), gateway.PromptNotFound},
		"a prompt that its server fails": {second(client.GetPrompt(t.Context(), "library__greet", map[string]string{"who": "nobody"})), gateway.ServerError},
		"a prompt without its argument":  {second(client.GetPrompt(t.Context(), "library__greet", nil)), gateway.InvalidParameters},
		"a resource not granted":         {second(client.ReadResource(t.Context(), "doc://closed/b")), gateway.ResourceNotFound},
		"a resource nobody has":          {second(client.ReadResource(t.Context(), "doc://none")), gateway.ResourceNotFound},
	} {
		if got := code(tt.err); got != tt.want {
			t.Errorf("%s: %s, want %s (%v)", name, got, tt.want, tt.err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// A client hears how far a call is.
func TestClientIsTold(t *testing.T) {
	s := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "work", InputSchema: map[string]any{"type": "object"}}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1, Message: "half"})
		return &mcp.CallToolResult{Content: []mcp.Content{}}, errors.Join(err, r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "warning", Data: "hot"}))
	})
	g := start(t, gateway.Config{Servers: []options.Endpoint{{Server: "s", Dial: gateway.InProcess(s)}}, Policy: granting("s__*"), Recorder: new(records)})
	if err := g.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	told := make(chan string, 9)
	client := g.NewClient(gateway.ClientConfig{Notify: func(_ context.Context, method string, params gate.Doc) {
		told <- method + " " + params.Get("message").Text() + params.Get("data").Text()
	}})
	if err := client.SetLogLevel(t.Context(), "loud"); code(err) != gateway.InvalidParameters {
		t.Errorf("a level that is none: %v", err)
	}
	if err := client.SetLogLevel(t.Context(), "info"); err != nil {
		t.Fatal(err)
	}
	if _, err := client.CallTool(t.Context(), "s__work", nil); err != nil {
		t.Fatal(err)
	}
	close(told) // there is no notification after the result
	got := []string{}
	for one := range told {
		got = append(got, one)
	}
	if diff := cmp.Diff([]string{"notifications/progress half", "notifications/message hot"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What servers can ask of a client is what it has functions for.
func TestClientCapabilities(t *testing.T) {
	var peer gate.Client
	look := tool("look", func(_ context.Context, c *gate.Call, _ gate.Permit) (gate.Result, error) {
		peer = c.Client
		return text(""), nil
	})
	g := start(t, gateway.Config{Functions: map[string][]options.LocalTool{"s": {look}}, Policy: granting("s__*"), Recorder: new(records)})
	answer := func(_ context.Context, params gate.Doc) (gate.Doc, error) {
		return params.With("action", []byte(`"accept"`)), nil
	}
	asked := func(cfg gateway.ClientConfig) gate.Client {
		peer = nil
		if _, err := g.NewClient(cfg).CallTool(t.Context(), "s__look", nil); err != nil {
			t.Fatal(err)
		}
		return peer
	}
	if can := asked(gateway.ClientConfig{}).Reach().Capabilities; !can.IsZero() {
		t.Errorf("a client without functions can be asked: %s", can)
	}
	p := asked(gateway.ClientConfig{Elicit: answer, Roots: func(context.Context) ([]gateway.Root, error) { return []gateway.Root{{URI: "file:///srv"}}, nil }})
	if got := p.Reach().Capabilities.String(); got != `{"elicitation":{"form":{},"url":{}},"roots":{}}` {
		t.Errorf("capabilities: %s", got)
	}
	none := asked(gateway.ClientConfig{Roots: func(context.Context) ([]gateway.Root, error) { return nil, nil }})
	if res, err := none.Request(t.Context(), actions.ListRoots, gate.Doc{}); err != nil || res.String() != `{"roots":[]}` {
		t.Errorf("no roots: %s, %v", res, err)
	}
	for method, want := range map[gate.Action]string{
		actions.Elicit: `{"message":"?","action":"accept"}`, actions.ListRoots: `{"roots":[{"uri":"file:///srv"}]}`, actions.Sample: "the client does not support the request sampling/createMessage",
	} {
		res, err := p.Request(t.Context(), method, gate.MustDoc(`{"message":"?"}`))
		if got := res.String(); err != nil && err.Error() != want || err == nil && got != want {
			t.Errorf("%s: %s, %v", method, got, err)
		}
	}
}

// A client in this process speaks MCP over memory, until the gateway ends.
func TestDial(t *testing.T) {
	g := start(t, gateway.Config{Functions: map[string][]options.LocalTool{"s": {tool("echo", nil)}}, Policy: granting("s__*"), Recorder: new(records)})
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		conn := g.Dial(gate.Local())
		c, err := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil).
			Connect(t.Context(), &mcp.IOTransport{Reader: conn, Writer: conn}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
		if err != nil {
			t.Fatal(err)
		}
		tools, err := c.ListTools(t.Context(), nil)
		if err != nil || len(tools.Tools) != 1 {
			t.Errorf("%s: %v, %v", revision, tools, err)
		}
	}
	if err := g.Close(t.Context()); err != nil { // though both clients are connected
		t.Error(err)
	}
}

// A tool may be called by its own name, while one server alone has it.
func TestClientShortNames(t *testing.T) {
	g := start(t, gateway.Config{
		Functions: map[string][]options.LocalTool{"a": {tool("echo", nil), tool("once", nil)}, "b": {tool("echo", nil), tool("hidden", nil)}},
		Policy:    granting("a__*", "b__echo"), Recorder: new(records),
	})
	client := g.NewClient(gateway.ClientConfig{})
	for name, want := range map[string]gateway.ErrorCode{"once": "", "a__echo": "", "echo": gateway.InvalidParameters, "hidden": gateway.ToolNotFound, "none": gateway.ToolNotFound} {
		_, err := client.CallTool(t.Context(), name, map[string]string{"text": "x"})
		if code(err) != want {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
		if e, ok := errors.AsType[*gateway.Error](err); ok && name == "echo" && fmt.Sprint(e.Details["candidates"]) != "[a__echo b__echo]" {
			t.Errorf("candidates: %v", e.Details)
		}
	}
}

// A server asks the client's function in the middle of a call.
func TestClientIsAsked(t *testing.T) {
	s := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "book", InputSchema: map[string]any{"type": "object"}}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		asked, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "Which day?", RequestedSchema: map[string]any{
			"type": "object", "properties": map[string]any{"day": map[string]any{"type": "string"}},
		}})
		if err != nil {
			return nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(asked.Content["day"])}}}, nil
	})
	policy := gateway.Policy{Files: fstest.MapFS{"a.rego": {Data: []byte("package wasmgate\nallow contains \"all\" if true\n")}}}
	g := start(t, gateway.Config{Servers: []options.Endpoint{{Server: "s", Dial: gateway.InProcess(s)}}, Policy: policy, Recorder: new(records)})
	if err := g.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	client := g.NewClient(gateway.ClientConfig{Elicit: func(_ context.Context, params gate.Doc) (gate.Doc, error) {
		if got := params.Get("message").Text(); got != "Which day?" {
			t.Errorf("asked %q", got)
		}
		return gate.MustDoc(`{"action":"accept","content":{"day":"Friday"}}`), nil
	}})
	defer client.Close()
	res, err := client.CallTool(t.Context(), "s__book", nil)
	if err != nil || res.Text() != "Friday" {
		t.Errorf("%s, %v", res.Doc, err)
	}
	mute := g.NewClient(gateway.ClientConfig{})
	if res, err := mute.CallTool(t.Context(), "s__book", nil); err == nil && !res.IsError {
		t.Errorf("a client that cannot be asked: %s", res.Doc)
	}
}
