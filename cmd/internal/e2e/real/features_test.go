//go:build unix

package real

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/internal/testing/e2e"
)

// testFeatures uses prompts, resources and completion of server-everything, directly
// and by a second process that relays.
func testFeatures(t *testing.T, p *e2e.Program) {
	dir := e2e.Node(t)
	pl, mark := newReal(t, p, dir)
	pl.Write("wasmgate.yaml", fmt.Sprintf("version: 1\npolicy: {timeout: 5s, data: {grants: grants.yaml}}\nservers:\n"+
		"  everything: {command: node, args: [%q, stdio, %s]}\n", filepath.Join(dir, everythingServer), mark))
	pl.Write("grants.yaml", "- {to: [\"*\"], prompts: [everything__args-prompt, everything__completable-prompt], resources: [\"demo://resource/static/*\", \"demo://resource/dynamic/text/*\"]}\n")
	gw := pl.Serve()
	e2e.Holds(t, pl.Must("status"), "PROMPTS")
	stdio := append([]string{p.Path}, pl.Args("serve", "--stdio")...)
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		for front, transport := range map[string]mcp.Transport{
			"HTTP":  &mcp.StreamableClientTransport{Endpoint: gw.URL},
			"relay": &mcp.CommandTransport{Command: pl.Command(context.WithoutCancel(t.Context()), stdio[0], stdio[1:]...)},
		} {
			t.Run(front+", "+revision, func(t *testing.T) {
				c, err := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil).
					Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: revision})
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				checkFeatures(t, c)
			})
		}
	}
	pl.Verify()
	for _, want := range []string{"everything__args-prompt ok", "everything__simple-prompt refused_authorize", "demo://resource/dynamic/text/1 ok", "demo://resource/dynamic/blob/1 refused_authorize"} {
		if !slices.ContainsFunc(pl.Log(), func(e e2e.Logged) bool { return e.Event == "done" && e.Tool+" "+e.Code == want }) {
			t.Errorf("no record of %s", want)
		}
	}
	e2e.Holds(t, pl.Must("policy", "explain", pl.LastDone("everything__args-prompt").ID), "decided: allow, by")
	e2e.Holds(t, pl.Must("policy", "explain", pl.LastDone("everything__simple-prompt").ID), `prompts: ["everything__simple-prompt"]}`)
}

// testTwins: of two servers of one kind the second has no URI to itself. Status says so
// in few lines, and with --json in full.
func testTwins(t *testing.T, p *e2e.Program) {
	of := fmt.Sprintf("{command: node, args: [%q, stdio]}\n", filepath.Join(e2e.Node(t), everythingServer))
	pl := p.Place(t, "servers:\n  one: "+of+"  two: "+of)
	s := pl.Must("status")
	e2e.Holds(t, s, "note: two resource: 4 more like these; status --json has all")
	e2e.Holds(t, s, "note: two template demo://resource/dynamic/text/{resourceId}: offered as wasmgate://two/template/demo://resource/dynamic/text/{resourceId}, for server one, which comes first, has ")
	if n := strings.Count(s, "offered as wasmgate://two/"); n != 5 {
		t.Errorf("%d notes on resources and templates, want 5:\n%s", n, s)
	}
	if n := strings.Count(pl.Must("status", "--json"), `"resolution": "offered as wasmgate://two/`); n != 9 {
		t.Errorf("%d conflicts in JSON, want 9", n)
	}
}

// checkFeatures uses what is granted, and fails at what is not.
func checkFeatures(t *testing.T, c *mcp.ClientSession) {
	t.Helper()
	ctx := t.Context()
	prompts, err := c.ListPrompts(ctx, nil)
	if err != nil || len(prompts.Prompts) != 2 {
		t.Fatalf("prompts: %+v, %v", prompts, err)
	}
	got, err := c.GetPrompt(ctx, &mcp.GetPromptParams{Name: "everything__args-prompt", Arguments: map[string]string{"city": "Par\u200bis\U000e0041"}})
	if err != nil {
		t.Fatal(err)
	}
	if text := got.Messages[0].Content.(*mcp.TextContent).Text; !strings.Contains(text, "weather in Paris") || strings.ContainsAny(text, "\u200b\U000e0041") {
		t.Errorf("the prompt is %q", text)
	}
	if _, err := c.GetPrompt(ctx, &mcp.GetPromptParams{Name: "everything__simple-prompt"}); err == nil {
		t.Error("a prompt that no one granted")
	}
	resources, err := c.ListResources(ctx, nil)
	if err != nil || len(resources.Resources) == 0 {
		t.Fatalf("resources: %+v, %v", resources, err)
	}
	templates, err := c.ListResourceTemplates(ctx, nil)
	if err != nil || len(templates.ResourceTemplates) != 1 {
		t.Fatalf("templates: %+v, %v", templates, err)
	}
	for _, uri := range []string{resources.Resources[0].URI, "demo://resource/dynamic/text/1"} {
		read, err := c.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
		if err != nil || len(read.Contents) != 1 || read.Contents[0].Text == "" {
			t.Errorf("%s: %+v, %v", uri, read, err)
		}
	}
	if _, err := c.ReadResource(ctx, &mcp.ReadResourceParams{URI: "demo://resource/dynamic/blob/1"}); err == nil {
		t.Error("a resource that no one granted")
	}
	completed, err := c.Complete(ctx, &mcp.CompleteParams{
		Ref:      &mcp.CompleteReference{Type: "ref/prompt", Name: "everything__completable-prompt"},
		Argument: mcp.CompleteParamsArgument{Name: "name", Value: "A"},
		Context:  &mcp.CompleteContext{Arguments: map[string]string{"department": "Engineering"}},
	})
	if err != nil || !slices.Equal(completed.Completion.Values, []string{"Alice"}) {
		t.Errorf("completed %+v, %v", completed, err)
	}
}
