package extism_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tetratelabs/wazero/api"

	"github.com/wasmgate/wasmgate/internal/testing/unraced"
	"github.com/wasmgate/wasmgate/sandbox/internal/extism"
)

// run does with a function of a plug-in what a sandbox would.
func run(t *testing.T, mod api.Module, p *extism.Plugin, name string) ([]byte, error) {
	t.Helper()
	res, err := mod.ExportedFunction(name).Call(with(t.Context(), p))
	if err != nil {
		return nil, err
	}
	return p.Answer(res)
}

// callTool returns the result of a tool as JSON, or the error.
func callTool(t *testing.T, v extism.Version, mod api.Module, p *extism.Plugin, tool, args string) string {
	t.Helper()
	in, err := extism.Request(v, tool, []byte(args))
	if err != nil {
		t.Fatal(err)
	}
	p.Input = in
	out, err := run(t, mod, p, v.Call())
	if err != nil {
		return "error: " + err.Error()
	}
	res, err := extism.ParseResult(v, out)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(res)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func listTools(t *testing.T, v extism.Version, mod api.Module) []extism.Tool {
	t.Helper()
	out, err := run(t, mod, &extism.Plugin{Input: extism.ListRequest(v)}, v.List())
	if err != nil {
		t.Fatal(err)
	}
	tools, err := extism.ParseTools(v, out)
	if err != nil {
		t.Fatal(err)
	}
	return tools
}

func detect(t *testing.T, mod api.Module, want extism.Version) {
	t.Helper()
	if v, ok := extism.Detect(func(name string) bool { return mod.ExportedFunction(name) != nil }); v != want || !ok {
		t.Fatalf("detected version %d, %v, want %d", v, ok, want)
	}
}

func TestPluginV1(t *testing.T) {
	mod := instance(t, newInterpreter(t), build(t, "testdata/v1"))
	detect(t, mod, extism.V1)
	want := []extism.Tool{
		{Name: "greet", Description: "Greets", InputSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}}}`)},
		{Name: "fetch", InputSchema: json.RawMessage(`{"type":"object"}`)},
		{Name: "fail", InputSchema: json.RawMessage(`{"type":"object"}`)},
	}
	if diff := cmp.Diff(want, listTools(t, extism.V1, mod)); diff != "" {
		t.Errorf("the tools differ (-want +got):\n%s", diff)
	}

	kept := map[string][]byte{}
	var asked string
	var book logbook
	granted := func() *extism.Plugin {
		return &extism.Plugin{
			Config: map[string]string{"greeting": "Hallo"},
			Log:    book.log,
			Var: func(_ context.Context, key string) ([]byte, bool, error) {
				v, ok := kept[key]
				return v, ok, nil
			},
			SetVar: func(_ context.Context, key string, value []byte) error { kept[key] = value; return nil },
			HTTP: func(_ context.Context, method, url string, header map[string][]string, body []byte) (int, map[string][]string, []byte, error) {
				asked = fmt.Sprint(method, url, header, string(body))
				return 201, map[string][]string{"X-Two": {"a", "b"}}, []byte("pong"), nil
			},
		}
	}
	content := func(text string) string {
		b, _ := json.Marshal(map[string]any{"content": []any{map[string]any{"text": text, "type": "text"}}})
		return string(b)
	}
	const fetch = `{"url":"https://example.com/"}`
	tests := []struct {
		name       string
		p          *extism.Plugin
		tool, args string
		want       string
	}{
		{"configuration and variables", granted(), "greet", `{"name":"A"}`, content("Hallo A, after A;")},
		{"variables outlive the call", granted(), "greet", `{"name":"B"}`, content("Hallo B, after A;B;")},
		{"nothing is granted", &extism.Plugin{}, "greet", `{"name":"C"}`, content(" C, after C;")},
		{"HTTP", granted(), "fetch", fetch, content(`pong 2 {"x-two":"a, b"}`)},
		{"HTTP is not granted", &extism.Plugin{}, "fetch", fetch, "error: extism: http_request: this call has no HTTP: it must be granted"},
		{"an error of the tool", granted(), "fail", "{}", "error: extism: the plug-in reports: no tool fail"},
	}
	for _, tt := range tests { // in this order: the second test sees what the first left
		t.Run(tt.name, func(t *testing.T) {
			got, _, _ := strings.Cut(callTool(t, extism.V1, mod, tt.p, tt.tool, tt.args), " (recovered by wazero)")
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
	if want := `POSThttps://example.com/map[Accept:[text/plain]]ping`; asked != want {
		t.Errorf("HTTP was asked for %s, want %s", asked, want)
	}
	if want := "info: called greet\ninfo: called greet\ninfo: called fetch\ninfo: called fail"; book.String() != want {
		t.Errorf("the log is\n%s\nwant\n%s", book.String(), want)
	}
}

func TestPluginV2(t *testing.T) {
	unraced.Long(t)
	mod := instance(t, newInterpreter(t), build(t, "testdata/v2"))
	detect(t, mod, extism.V2)
	want := []extism.Tool{{
		Name: "ask", Title: "Ask", InputSchema: json.RawMessage(`{"type":"object"}`),
		OutputSchema: json.RawMessage(`{"type":"object"}`), Annotations: json.RawMessage(`{"readOnlyHint":true}`),
	}}
	if diff := cmp.Diff(want, listTools(t, extism.V2, mod)); diff != "" {
		t.Errorf("the tools differ (-want +got):\n%s", diff)
	}
	var book logbook
	got := callTool(t, extism.V2, mod, &extism.Plugin{Log: book.log}, "ask", `{"n":1e3}`)
	if want := `{"content":[{"text":"asked","type":"text"}],"structuredContent":{"arguments":{"n":1e3},` +
		`"elicitation":{"action":"decline","content":{"error":"elicitation is not supported"}},` +
		`"message":{"role":"assistant","content":{"type":"text","text":"sampling is not supported"},"model":"","stopReason":"error"},` +
		`"roots":{"roots":[]},"secret":0,"token":{"Error":"access tokens are not supported"}}}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if want := "warn: \"asking\"\ndebug: notify_progress is not supported: dropped\ndebug: notify_tool_list_changed is not supported: dropped"; book.String() != want {
		t.Errorf("the log is\n%s\nwant\n%s", book.String(), want)
	}
	if got, want := callTool(t, extism.V2, mod, &extism.Plugin{}, "other", ""), "error: extism: the plug-in reports: code 3 and no message"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestPluginOfTheKit runs a plug-in that is built with Extism's kit for Go.
func TestPluginOfTheKit(t *testing.T) {
	download := exec.Command("go", "mod", "download")
	download.Dir = "testdata/pdk"
	if msg, err := download.CombinedOutput(); err != nil {
		t.Skipf("Extism's kit for Go is not to be had, so this machine may be offline: %v\n%s", err, msg)
	}
	mod := instance(t, newInterpreter(t), build(t, "testdata/pdk"))
	detect(t, mod, extism.V1)
	if tools := listTools(t, extism.V1, mod); len(tools) != 1 || tools[0].Name != "all" {
		t.Errorf("the tools are %v, want one named all", tools)
	}
	var book logbook
	p := &extism.Plugin{
		Config: map[string]string{"greeting": "hi"},
		Log:    book.log,
		HTTP: func(_ context.Context, method, url string, header map[string][]string, body []byte) (int, map[string][]string, []byte, error) {
			return 418, map[string][]string{"Content-Type": {"text/x"}}, fmt.Append(nil, method, url, header, string(body)), nil
		},
	}
	got := callTool(t, extism.V1, mod, p, "all", `{"x":"y"}`)
	if want := `{"content":[{"text":"y|hi|true|false|value|42|0|418|PUThttps://example.com/amap[X-A:[b]]body|text/x","type":"text"}]}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if want := "debug: level 1\ninfo: level 2\nwarn: level 3\nerror: level 4"; book.String() != want {
		t.Errorf("the log is\n%s\nwant\n%s", book.String(), want)
	}
	if got, want := callTool(t, extism.V1, mod, &extism.Plugin{}, "other", ""), "error: extism: the plug-in reports: no tool other"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestImports(t *testing.T) {
	newBare(t) // links all of them, by the types that Imports tells
	for module, want := range map[string]bool{extism.EnvModule: true, extism.UserModule: true, "env": false, "wasi_snapshot_preview1": false} {
		if extism.IsPlugin(module) != want {
			t.Errorf("IsPlugin(%q) = %v", module, !want)
		}
	}
}

func TestAnswer(t *testing.T) {
	tests := map[string]struct {
		p       extism.Plugin
		results []uint64
		want    string
	}{
		"a function without a result":   {extism.Plugin{Output: []byte("o")}, nil, "o"},
		"code 0":                        {extism.Plugin{Output: []byte("o")}, []uint64{0}, "o"},
		"another code":                  {extism.Plugin{Output: []byte("o")}, []uint64{api.EncodeI32(-1)}, "code -1: code -1 and no message"},
		"an error with a code":          {extism.Plugin{Err: "e"}, []uint64{7}, "code 7: e"},
		"an error in spite of a code 0": {extism.Plugin{Output: []byte("o"), Err: "e"}, []uint64{0}, "code 0: e"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			out, err := tt.p.Answer(tt.results)
			got := string(out)
			var guest *extism.GuestError
			if errors.As(err, &guest) {
				got = fmt.Sprintf("code %d: %s", guest.Code, guest.Text)
			}
			if got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}
