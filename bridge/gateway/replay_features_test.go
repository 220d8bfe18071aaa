package gateway_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/bridge/recording"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/policy"
)

// TestReplayFeatures: prompts and resources are offered and answered from the recording,
// each once, and what it does not hold is refused.
func TestReplayFeatures(t *testing.T) {
	s := mcp.NewServer(&mcp.Implementation{Name: "far", Version: "1"}, nil)
	s.AddPrompt(&mcp.Prompt{Name: "greet", Arguments: []*mcp.PromptArgument{{Name: "who"}, {Name: "how"}}}, func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "hello " + r.Params.Arguments["who"]}}}}, nil
	})
	s.AddResource(&mcp.Resource{URI: "note://a", Name: "a"}, func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, Text: "the note"}}}, nil
	})
	s.AddResource(&mcp.Resource{URI: "note://unread", Name: "b"}, nil)
	log := filepath.Join(t.TempDir(), "audit.jsonl")
	allow := gateway.Policy{Options: policy.Options{Timeout: patience, Grants: []policy.Grant{{To: []string{"*"}, Prompts: []string{"*"}, Resources: []string{"*"}, Servers: []string{"far"}}}}}
	g := start(t, gateway.Config{
		Servers: []options.Endpoint{{Server: "far", Dial: gateway.InProcess(s)}}, Policy: allow,
		Audit: log, AuditOptions: audit.Options{Node: "n", Record: "full"},
	})
	if err := g.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := used(t, g)
	want := []string{"hello ann", "the note"}
	if diff := cmp.Diff(want, got[:2]); diff != "" {
		t.Fatalf("live (-want +got):\n%s", diff)
	}
	recorded, err := recording.Read(t.Context(), log)
	if err != nil {
		t.Fatal(err)
	}
	g = start(t, gateway.Config{Recorder: new(records), Policy: allow, Replay: &recording.Replay{Calls: recorded}})
	c := g.NewClient(gateway.ClientConfig{})
	prompts, err := c.Prompts(t.Context())
	if err != nil || len(prompts) != 1 || prompts[0].Offered != "far__greet" {
		t.Errorf("prompts %v, %v", prompts, err)
	}
	resources, err := c.Resources(t.Context())
	if err != nil || len(resources) != 1 || resources[0].Offered != "note://a" {
		t.Errorf("resources %v, %v", resources, err)
	}
	if diff := cmp.Diff(append(want, "refused_lookup"), used(t, g)); diff != "" {
		t.Errorf("replayed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"not_connected", "not_connected", "refused_lookup"}, used(t, g)); diff != "" {
		t.Errorf("once more (-want +got):\n%s", diff)
	}
}

// used gets a prompt, reads a resource and one that is not there, and returns what came
// of each.
func used(t *testing.T, g *gateway.Gateway) []string {
	t.Helper()
	c := g.NewClient(gateway.ClientConfig{})
	var got []string
	say := func(res gate.Result, err error, at string) {
		if err != nil {
			got = append(got, gate.Code(err))
			return
		}
		got = append(got, res.Doc.At(at).Text())
	}
	res, err := c.GetPrompt(t.Context(), "far__greet", map[string]string{"who": "ann"})
	say(res, err, "/messages/0/content/text")
	res, err = c.ReadResource(t.Context(), "note://a")
	say(res, err, "/contents/0/text")
	res, err = c.ReadResource(t.Context(), "note://none")
	say(res, err, "/contents/0/text")
	return got
}
