package gatewaytest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/gateway/gatewaytest"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/policy"
)

// config is of a program that calls a server with two tools, a prompt and a resource. Dials is how
// often the server was reached.
func config(dials *int) gateway.Config {
	s := mcp.NewServer(&mcp.Implementation{Name: "weather", Version: "1"}, nil)
	type place struct {
		City string `json:"city" jsonschema:"where"`
	}
	n := 0
	forecast := func(_ context.Context, _ *mcp.CallToolRequest, p place) (*mcp.CallToolResult, any, error) {
		n++
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(p.City, " ", n)}}}, nil, nil
	}
	mcp.AddTool(s, &mcp.Tool{Name: "forecast", Description: "Tells the weather."}, forecast)
	mcp.AddTool(s, &mcp.Tool{Name: "erase", Description: "Nobody calls it."}, forecast)
	s.AddPrompt(&mcp.Prompt{Name: "plan", Description: "Plans.", Arguments: []*mcp.PromptArgument{{Name: "day", Description: "which"}}},
		func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "plan it"}}}}, nil
		})
	s.AddResource(&mcp.Resource{URI: "mem://a", Name: "a"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "mem://a", Text: "kept"}}}, nil
	})
	pure := options.LocalTool{
		Definition: gate.MustDoc(`{"name":"add","inputSchema":{"type":"object"}}`), Sandboxed: true, Capabilities: gate.MustDoc("{}"),
		Call: func(context.Context, *gate.Call, gate.Permit) (gate.Result, error) {
			return gate.Result{Doc: gate.MustDoc(`{"content":[{"type":"text","text":"3"}]}`)}, nil
		},
	}
	dial := gateway.InProcess(s)
	all := []string{"*"}
	return gateway.Config{
		Servers:   []options.Endpoint{{Server: "weather", Dial: func() (mcp.Transport, error) { *dials++; return dial() }}},
		Functions: map[string][]options.LocalTool{"calc": {pure}},
		Policy: gateway.Policy{Options: policy.Options{Grants: []policy.Grant{{
			To: all, Tools: all, Except: []string{"weather__erase"}, Prompts: all, Resources: all,
		}}}},
	}
}

// agent is the program that is tested. It returns what it has read.
func agent(t testing.TB, g *gateway.Gateway, cities ...string) (read []string) {
	c := g.NewClient(gateway.ClientConfig{})
	list, err := c.Tools(t.Context())
	for _, tool := range list {
		read = append(read, tool.Definition.String())
	}
	prompts, perr := c.Prompts(t.Context())
	for _, p := range prompts {
		read = append(read, p.Definition.String())
	}
	for _, city := range cities {
		res, err := c.CallTool(t.Context(), "weather__forecast", map[string]string{"city": city})
		read = append(read, fmt.Sprint(res.Text(), err))
	}
	prompt, gerr := c.GetPrompt(t.Context(), "weather__plan", map[string]string{"day": "today"})
	resource, rerr := c.ReadResource(t.Context(), "mem://a")
	if err := errors.Join(err, perr, gerr, rerr); err != nil {
		t.Fatal(err)
	}
	if sum, err := c.CallTool(t.Context(), "calc__add", nil); err != nil || sum.Text() != "3" { // it runs
		t.Errorf("a tool that computes: %q, %v", sum.Text(), err)
	}
	_, err = c.CallTool(t.Context(), "weather__erase", map[string]string{"city": "x"}) // denied
	return append(read, prompt.Doc.String(), resource.Doc.String(), fmt.Sprint(gateway.AsError(gate.Call{Action: gate.CallTool}, err).Message))
}

// failing is a test that keeps what it would fail with.
type failing struct {
	testing.TB
	said []string
}

func (f *failing) Helper() {}

func (f *failing) Errorf(format string, args ...any) {
	f.said = append(f.said, fmt.Sprintf(format, args...))
}

// A program that runs on a recording reads what it read of the servers, down to the definitions of
// what it never called; what it calls beyond that fails the test by name.
func TestRecordAndReplay(t *testing.T) {
	file, dials := filepath.Join(t.TempDir(), "testdata", "session.json"), 0
	var live []string
	t.Run("record", func(t *testing.T) {
		live = agent(t, gatewaytest.Record(t, config(&dials), file), "Rome", "Oslo", "Rome")
	})
	if dials == 0 || len(live) != 9 {
		t.Fatalf("dialled %d times; read %q", dials, live)
	}
	dials = 0
	gw := gatewaytest.Replay(t, config(&dials), file)
	if got := gw.Left(); len(got) != 5 || got[1] != `weather__forecast {"city":"Oslo"}` {
		t.Errorf("left at first: %q", got)
	}
	if got := agent(t, gw.Gateway, "Rome", "Oslo", "Rome"); !slices.Equal(got, live) || dials != 0 {
		t.Errorf("dialled %d times, and read\n%q, not\n%q", dials, got, live)
	}
	if got := gw.Left(); got != nil {
		t.Errorf("left at the end: %q", got)
	}

	f := &failing{TB: t}
	gw = gatewaytest.Replay(f, gateway.Config{}, file)
	c := gw.NewClient(gateway.ClientConfig{})
	_, err := c.CallTool(t.Context(), "weather__forecast", map[string]string{"city": "Bern"})
	e, ok := errors.AsType[*gateway.Error](err)
	if !ok || e.Retryable() || e.NeedsReconnect() {
		t.Errorf("a call that was not recorded: %v", err)
	}
	if len(f.said) != 1 || !strings.Contains(f.said[0], `weather__forecast with {"city":"Bern"}`) {
		t.Errorf("the test fails with %q", f.said)
	}
	if _, err := c.CallTool(t.Context(), "weather__forecast", map[string]int{"city": 1}); !strings.Contains(fmt.Sprint(err), "city") || len(f.said) != 1 {
		t.Errorf("arguments that break the recorded schema: %v, %q", err, f.said)
	}
	if got := gw.Left(); len(got) != 5 {
		t.Errorf("left: %q", got)
	}
	b, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(b), os.TempDir()) {
		t.Errorf("the file holds a path of this machine, or %v", err)
	}
}
