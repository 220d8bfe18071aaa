package gateway_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/internal/host/message"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/bridge/recording"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
)

// counted reaches a server whose tool counts its calls, in the answer, and fails for
// the text "bad". Connected is how often somebody connected to it.
func counted(server string, connected *atomic.Int32) options.Endpoint {
	var n atomic.Int32
	s := mcp.NewServer(&mcp.Implementation{Name: server, Version: "1"}, nil)
	input := map[string]any{"type": "object", "properties": map[string]any{"text": map[string]any{"type": "string"}}}
	s.AddTool(&mcp.Tool{Name: "count", Description: "Counts.", InputSchema: input}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		said := gate.MustDoc(string(r.Params.Arguments)).Get("text").Text()
		return &mcp.CallToolResult{IsError: said == "bad", Content: []mcp.Content{&mcp.TextContent{Text: said + " " + string('0'+rune(n.Add(1)))}}}, nil
	})
	dial := gateway.InProcess(s)
	return options.Endpoint{Server: server, Dial: func() (mcp.Transport, error) {
		connected.Add(1)
		return dial()
	}}
}

// said makes the calls and returns what came of each.
func said(t *testing.T, cfg gateway.Config, calls ...string) []string {
	t.Helper()
	cfg.Policy = granting("*")
	g, err := gateway.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close(t.Context())
	if err := g.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	client := g.NewClient(gateway.ClientConfig{})
	got := []string{}
	for _, call := range calls {
		name, text, _ := strings.Cut(call, " ")
		res, err := client.CallTool(t.Context(), name, map[string]string{"text": text})
		switch {
		case err != nil:
			got = append(got, gate.Code(err))
		case res.IsError:
			got = append(got, "failed: "+res.Text())
		default:
			got = append(got, res.Text())
		}
	}
	return got
}

// recordedCalls records the calls of a session at the servers far and near.
func recordedCalls(t *testing.T, calls ...string) ([]recording.Call, string) {
	t.Helper()
	var n atomic.Int32
	log := filepath.Join(t.TempDir(), "audit.jsonl")
	said(t, gateway.Config{
		Servers: []options.Endpoint{counted("far", &n), counted("near", &n)},
		Audit:   log, AuditOptions: audit.Options{Node: "n", Record: "full"},
	}, calls...)
	recorded, err := recording.Read(t.Context(), log)
	if err != nil {
		t.Fatal(err)
	}
	return recorded, log
}

func TestReplay(t *testing.T) {
	recorded, _ := recordedCalls(t, "far__count a", "far__count b", "near__count a", "far__count a", "far__count bad", "far__none a")
	var connected atomic.Int32
	got := said(t, gateway.Config{
		Servers:  []options.Endpoint{counted("far", &connected)},
		Replay:   &recording.Replay{Calls: recorded},
		Recorder: new(records),
	}, "far__count b", "far__count a", "far__count a", "far__count a", "far__count c", "far__count bad", "near__count a", "far__none a")
	want := []string{
		"b 2", "a 1", "a 3", // each in its order, whatever lies between
		"not_connected",        // no third one
		"not_connected",        // never made
		"failed: bad 4", "a 1", // near, though nothing but the recording knows it
		"refused_lookup",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := connected.Load(); n != 0 {
		t.Errorf("a server that must be stubbed was connected to %d times", n)
	}
}

func TestReplayModes(t *testing.T) {
	recorded, _ := recordedCalls(t, "far__count a", "near__count a")
	native := func(string) options.LocalTool {
		return tool("count", func(context.Context, *gate.Call, gate.Permit) (gate.Result, error) { return text("native"), nil })
	}
	pure, capable := native("pure"), native("capable")
	pure.Sandboxed, pure.Capabilities = true, gate.MustDoc("{}")
	capable.Sandboxed, capable.Capabilities = true, gate.MustDoc(`{"kv":true}`)
	var far, near atomic.Int32
	got := said(t, gateway.Config{
		Servers:   []options.Endpoint{counted("far", &far), counted("near", &near)},
		Functions: map[string][]options.LocalTool{"go": {native("go")}, "open": {native("open")}, "pure": {pure}, "capable": {capable}},
		Replay:    &recording.Replay{Calls: recorded, Servers: map[string]recording.Mode{"near": recording.Live, "open": recording.Pure}},
		Recorder:  new(records),
	}, "far__count a", "near__count x", "near__count y", "go__count", "open__count", "pure__count", "capable__count")
	want := []string{"a 1", "x 1", "y 2", "not_connected", "native", "native", "not_connected"}
	if diff := cmp.Diff(want, got); diff != "" || far.Load() != 0 || near.Load() == 0 {
		t.Errorf("(-want +got), connected %d and %d times:\n%s", far.Load(), near.Load(), diff)
	}
}

// Of a server that is called for some tools the others are answered from the recording all the
// same, and never reach it.
func TestReplayByTool(t *testing.T) {
	recorded, _ := recordedCalls(t, "far__count a", "near__count b")
	var far, near atomic.Int32
	got := said(t, gateway.Config{
		Servers: []options.Endpoint{counted("far", &far), counted("near", &near)},
		Replay: &recording.Replay{
			Calls: recorded, Servers: map[string]recording.Mode{"far": recording.Live, "near": recording.Live},
			Stub: func(server, tool string) bool { return server == "near" && tool == "count" },
		},
		Recorder: new(records),
	}, "far__count x", "near__count b", "near__count b", "near__count c", "far__count y")
	if diff := cmp.Diff([]string{"x 1", "b 1", "not_connected", "not_connected", "y 2"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A tool is what its definition says: calls of another one are not its calls.
func TestReplayDefinitions(t *testing.T) {
	recorded, _ := recordedCalls(t, "far__count a", "far__count b")
	definition := gate.MustDoc(`{"name":"count","description":"Counts.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}`)
	known := func(digest string) gate.Doc {
		if digest == recorded[0].Digest {
			return definition
		}
		return gate.Doc{}
	}
	recorded[1].Digest = strings.Repeat("0", 64)
	if definition.Digest() != recorded[0].Digest {
		t.Fatal("the definition is not what the server lists any more")
	}
	g := start(t, gateway.Config{Replay: &recording.Replay{Calls: recorded, Definition: known}, Policy: granting("*"), Recorder: new(records)})
	client := g.NewClient(gateway.ClientConfig{})
	tools, err := client.Tools(t.Context())
	if err != nil || len(tools) != 1 || tools[0].Definition.Get("description").Text() != "Counts." {
		t.Errorf("offered: %v, %v", tools, err)
	}
	for text, want := range map[string]string{"a": "ok", "b": "not_connected"} {
		if _, err := client.CallTool(t.Context(), "far__count", map[string]string{"text": text}); gate.Code(err) != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	_, err = client.CallTool(t.Context(), "far__count", map[string]int{"text": 1})
	if gate.Code(err) != "refused_validate_input" {
		t.Errorf("arguments that break the schema: %v", err)
	}
	_, err = client.CallTool(t.Context(), "far__count", map[string]string{"text": "c"})
	if _, ok := errors.AsType[*recording.MissingError](err); !ok || !strings.Contains(message.Public(err), "recording") {
		t.Errorf("the reason is not told: %v", err)
	}
}

func TestReadRecording(t *testing.T) {
	write := func(text string) string {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	trace := write(`{"id":"1","principal":{"id":"a"},"calls":[{"tool":"s__t","arguments":{"b":1,"a":2},"result":{"content":[]}},{"tool":"s__t","arguments":{}}]}` + "\n")
	calls, err := recording.Read(t.Context(), trace)
	if err != nil || len(calls) != 1 || calls[0].Args != gate.MustDoc(`{"a":2,"b":1}`).Digest() {
		t.Errorf("a trace: %+v, %v", calls, err)
	}
	var n atomic.Int32
	log := filepath.Join(t.TempDir(), "audit.jsonl")
	said(t, gateway.Config{Servers: []options.Endpoint{counted("far", &n)}, Audit: log, AuditOptions: audit.Options{Node: "n"}}, "far__count a")
	if _, err := recording.Read(t.Context(), log); !errors.Is(err, recording.ErrNothing) {
		t.Errorf("a log without results: %v", err)
	}
	for name, path := range map[string]string{"no file": "none", "no recording": write("nonsense\n"), "a torn log": write(`{"log":"n/b","seq":` + "\n")} {
		if _, err := recording.Read(t.Context(), path); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
