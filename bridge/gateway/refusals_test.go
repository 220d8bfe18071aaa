package gateway_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/approval"
)

// The log tells the operator by which command a refused call would pass; of what
// no command allows it is silent.
func TestRefusalsAreLoggedWithTheirRemedy(t *testing.T) {
	var log bytes.Buffer
	g := start(t, gateway.Config{
		Recorder: new(records), Functions: map[string][]options.LocalTool{"a": {tool("t", nil)}},
		Policy: granting("b__*"), Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if _, err := call(g, "a__t", `{"text":"x"}`); err == nil {
		t.Fatal("the call passed")
	}
	if _, err := call(g, "a__none", `{}`); err == nil {
		t.Fatal("the call of nothing passed")
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 1 || !strings.Contains(lines[0], `msg="call refused" tool=a__t principal=local code=refused_`) || !strings.Contains(lines[0], "remedy=\"wasmgate grant ") {
		t.Errorf("logged %q", lines)
	}
}

// What is no tool is named as it is known, with the line of the grants file that would
// allow its use.
func TestRefusedUsesAreLoggedWithTheirRemedy(t *testing.T) {
	var log bytes.Buffer
	g := start(t, gateway.Config{
		Recorder: new(records), Servers: []options.Endpoint{upstream("library", newLibrary())},
		Policy: granting("b__*"), Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err := g.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []gate.Call{
		{Action: gate.GetPrompt, Name: "library__greet", Args: gate.MustDoc(`{"who":"a"}`)},
		{Action: gate.ReadResource, Name: "doc://closed/b"},
	} {
		c.ID, c.Who, c.Session = gate.NewID(), gate.Local(), gate.SessionKey{ID: "s"}
		if _, err := g.Do(t.Context(), c); err == nil {
			t.Fatalf("%s passed", c.Name)
		}
	}
	for _, want := range []string{
		`msg="call refused" action=prompts/get about=library__greet principal=local`, `prompts: [\"library__greet\"]}`,
		`msg="call refused" action=resources/read about=doc://closed/b principal=local`, `resources: [\"doc://closed/b\"]}`,
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%s is not in:\n%s", want, log.String())
		}
	}
}

// TestWaitingIsNotLoggedAsRefused: while a person looks at the question, the log does not say that
// the call was refused.
func TestWaitingIsNotLoggedAsRefused(t *testing.T) {
	var log bytes.Buffer
	g := start(t, gateway.Config{
		Recorder: new(records), Policy: asking(), Approvals: &approval.Options{Hold: -1, Remedy: func(id string) string { return "approve " + id }},
		Functions: map[string][]options.LocalTool{"mail": {tool("send", nil)}}, Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if _, err := call(g, "mail__send", `{"text":"hi"}`); err == nil {
		t.Fatal("the call passed")
	}
	if got := log.String(); strings.Contains(got, "call refused") || !strings.Contains(got, `msg="call waits for approval" tool=mail__send`) {
		t.Errorf("logged %s", got)
	}
}
