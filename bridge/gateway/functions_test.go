package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/internal/host/message"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/product"
)

// function returns a tool of a Go function that must be one.
func function[In, Out any](t *testing.T, name string, f func(context.Context, In) (Out, error)) options.LocalTool {
	t.Helper()
	tool, err := gateway.Func(name, "", f)
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

func TestFunc(t *testing.T) {
	type in struct {
		Text  string    `json:"text" jsonschema:"what to say"`
		Times int       `json:"times,omitempty"`
		At    time.Time `json:"at,omitzero"`
	}
	type out struct {
		Said []string `json:"said"`
	}
	tools := []options.LocalTool{
		function(t, "structured", func(_ context.Context, i in) (out, error) { return out{[]string{i.Text}}, nil }),
		function(t, "text", func(_ context.Context, i in) (string, error) { return strings.Repeat(i.Text, i.Times), nil }),
		function(t, "number", func(_ context.Context, i map[string]int) (int, error) { return i["a"], nil }),
		function(t, "failing", func(context.Context, struct{}) (string, error) { return "", errors.New("no paper") }),
		function(t, "broken", func(context.Context, struct{}) (out, error) { return out{}, nil }), // null is no array
	}
	if got, want := tools[0].Definition.At("/inputSchema/properties/text").String(), `{"type":"string","description":"what to say"}`; got != want {
		t.Errorf("schema of a field: %s, want %s", got, want)
	}
	g := start(t, gateway.Config{Functions: map[string][]options.LocalTool{"f": tools}, Policy: granting("f__*"), Recorder: new(records)})
	client := g.NewClient(gateway.ClientConfig{})
	for name, tt := range map[string]struct{ tool, args, want string }{
		"structured content":       {"structured", `{"text":"hi"}`, `{"content":[{"text":"{\"said\":[\"hi\"]}","type":"text"}],"structuredContent":{"said":["hi"]}}`},
		"text":                     {"text", `{"text":"a","times":2}`, `{"content":[{"text":"aa","type":"text"}]}`},
		"a value that is not text": {"number", `{"a":5}`, `{"content":[{"text":"5","type":"text"}]}`},
		"a failure":                {"failing", `{}`, `{"content":[{"text":"no paper","type":"text"}],"isError":true}`},
		"a missing argument":       {"structured", `{}`, "refused_validate_input"},
		"one too many":             {"text", `{"text":"a","more":1}`, "refused_validate_input"},
		"a field of another type":  {"text", `{"text":1}`, "refused_validate_input"},
	} {
		res, err := client.CallTool(t.Context(), "f__"+tt.tool, gate.MustDoc(tt.args))
		got := res.Doc.String()
		if err != nil {
			got = gate.Code(err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestFuncRefused(t *testing.T) {
	if _, err := gateway.Func("f", "", func(context.Context, string) (string, error) { return "", nil }); err == nil {
		t.Error("a text is not an object")
	}
	if _, err := gateway.Func("f", "", func(context.Context, struct{ C chan int }) (string, error) { return "", nil }); err == nil {
		t.Error("a channel is not JSON")
	}
	if _, err := gateway.Func("f", "", func(context.Context, time.Time) (string, error) { return "", nil }); err == nil {
		t.Error("a time is not an object")
	}
}

func TestPublish(t *testing.T) {
	g := start(t, gateway.Config{
		Functions: map[string][]options.LocalTool{"a": {tool("one", nil)}, product.LocalServer: {tool("mine", nil)}}, Embedded: true,
		Policy: granting("*"), Recorder: new(records),
	})
	client := g.NewClient(gateway.ClientConfig{})
	offered := func() string {
		tools, err := client.Tools(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, t := range tools {
			if t.Name.Server != product.LocalServer {
				all = append(all, t.Offered)
			}
		}
		return strings.Join(all, " ")
	}
	for _, step := range []struct {
		does string
		do   func() error
		want string
	}{
		{"another tool beside it", func() error { return g.Publish("a", tool("two", nil)) }, "a__one a__two"},
		{"a new server", func() error { return g.Publish("b", tool("x", nil), tool("y", nil)) }, "a__one a__two b__x b__y"},
		{"one tool taken back", func() error { return g.Withdraw("a", "one") }, "a__two b__x b__y"},
		{"a server taken back", func() error { return g.Withdraw("b") }, "a__two"},
		{"the same server again", func() error { return g.Publish("b", tool("z", nil)) }, "a__two b__z"},
	} {
		if err := step.do(); err != nil {
			t.Errorf("%s: %v", step.does, err)
		}
		if got := offered(); got != step.want {
			t.Errorf("%s: offered %s, want %s", step.does, got, step.want)
		}
	}
	for does, err := range map[string]error{
		"on a server that is more than functions": g.Publish(product.LocalServer, tool("more", nil)),
		"on a server of the gateway":              g.Publish(product.JobsServer, tool("more", nil)),
		"a name that is none":                     g.Publish("B!", tool("x", nil)),
		"a server that looks like another":        g.Publish("а", tool("x", nil)), // Cyrillic
		"a tool without a function":               g.Publish("a", options.LocalTool{Definition: gate.MustDoc(`{"name":"n","inputSchema":{"type":"object"}}`)}),
		"a tool that is not there":                g.Withdraw("a", "none"),
		"a server that is not there":              g.Withdraw("none"),
	} {
		if err == nil {
			t.Errorf("%s: no error", does)
		}
	}
	if got := offered(); got != "a__two b__z" {
		t.Errorf("after what was refused: offered %s", got)
	}
}

// Tools come and go while calls run and listings are made.
func TestPublishHammer(t *testing.T) {
	g := start(t, gateway.Config{Policy: granting("*"), Recorder: new(records)})
	if err := g.Publish("s", tool("stays", nil)); err != nil {
		t.Fatal(err)
	}
	client := g.NewClient(gateway.ClientConfig{})
	var wg sync.WaitGroup
	for n := range 4 {
		wg.Go(func() {
			name := fmt.Sprint("t", n)
			for range 20 {
				if err := errors.Join(g.Publish("s", tool(name, nil)), g.Withdraw("s", name)); err != nil {
					t.Error(err)
				}
			}
		})
		wg.Go(func() {
			for range 20 {
				if _, err := client.CallTool(t.Context(), "s__stays", nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if tools, err := client.Tools(t.Context()); err != nil || len(tools) != 1 {
		t.Errorf("%d tools are left, %v", len(tools), err)
	}
}

// Define adds to a definition what Go types cannot express; a misspelt addition is an error.
func TestDefine(t *testing.T) {
	type in struct {
		Unit string `json:"unit"`
	}
	say := func(_ context.Context, i in) (string, error) { return i.Unit, nil }
	f, err := gateway.Func("temperature", "Tells it.", say,
		gateway.Define("/inputSchema/properties/unit/enum", []string{"c", "f"}), gateway.Define("/annotations", map[string]any{"readOnlyHint": true}),
		gateway.Define("/inputSchema/properties/a~1b", map[string]string{"type": "number"}), gateway.Define("/annotations/destructiveHint", false))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"properties":{"a/b":{"type":"number"},"unit":{"enum":["c","f"],"type":"string"}},"readOnlyHint":true,"destructiveHint":false}`
	got := fmt.Sprintf(`{"properties":%s,"readOnlyHint":%s,"destructiveHint":%s}`, f.Definition.At("/inputSchema/properties").Canonical(), f.Definition.At("/annotations/readOnlyHint"), f.Definition.At("/annotations/destructiveHint"))
	if got != want || f.Definition.Get("description").Text() != "Tells it." {
		t.Errorf("defined %s", f.Definition)
	}
	g := start(t, gateway.Config{Functions: map[string][]options.LocalTool{"f": {f}}, Policy: granting("f__*"), Recorder: new(records)})
	c := g.NewClient(gateway.ClientConfig{})
	for unit, want := range map[string]string{"c": "ok", "k": "refused_validate_input"} {
		if _, err := c.CallTool(t.Context(), "f__temperature", map[string]string{"unit": unit}); gate.Code(err) != want {
			t.Errorf("%s: %v", unit, err)
		}
	}
	all, err := c.Functions(t.Context(), gateway.FunctionOptions{})
	if err != nil || len(all) != 1 || all[0].Tool.Name.Server != "f" || !all[0].Tool.Annotations.Get("readOnlyHint").True() {
		t.Errorf("an agent framework is told %+v, %v", all, err)
	}
	for _, pointer := range []string{"/inputSchema/properties/units/enum", "inputSchema", "", "/name/x"} {
		if _, err := gateway.Func("temperature", "", say, gateway.Define(pointer, "x")); err == nil {
			t.Errorf("%q: no error", pointer)
		}
	}
	if _, err := gateway.Func("temperature", "", say, gateway.Define("/title", make(chan int))); err == nil {
		t.Error("a value that is not JSON: no error")
	}
}

// The panic of a function is the program's own, and is reported to it even if it has no log for the
// gateway; a nil map is an object without members.
func TestFuncPanics(t *testing.T) {
	var said strings.Builder
	for name, own := range map[string]*slog.Logger{"a log": slog.New(slog.NewTextHandler(&said, nil)), "no log": nil} {
		said.Reset()
		if own == nil {
			before := slog.Default()
			slog.SetDefault(slog.New(slog.NewTextHandler(&said, nil)))
			defer slog.SetDefault(before)
		}
		g := start(t, gateway.Config{Log: own, Policy: granting("*"), Recorder: new(records), Functions: map[string][]options.LocalTool{"f": {
			function(t, "falls", func(context.Context, struct{}) (string, error) { panic("over a wire") }),
			function(t, "nothing", func(context.Context, struct{}) (map[string]int, error) { return nil, nil }),
		}}})
		c := g.NewClient(gateway.ClientConfig{})
		_, err := c.CallTool(t.Context(), "f__falls", nil)
		if gate.Code(err) != "protocol" || strings.Contains(message.Public(err), "wire") {
			t.Errorf("%s: the client reads %v", name, message.Public(err))
		}
		if got := said.String(); strings.Count(got, "over a wire") == 0 || !strings.Contains(got, "f__falls") || !strings.Contains(got, "functions_test.go") {
			t.Errorf("%s: the program is told %q", name, got)
		}
		if res, err := c.CallTool(t.Context(), "f__nothing", nil); err != nil || res.Doc.Get("structuredContent").String() != "{}" {
			t.Errorf("a nil map: %s, %v", res.Doc, err)
		}
	}
}
