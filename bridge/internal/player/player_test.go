package player

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/bridge/recording"
	"github.com/wasmgate/wasmgate/gate"
)

// unchanged is a sanitizer that finds nothing.
type unchanged struct{}

func (unchanged) Sanitize(t gate.Text) (string, []gate.Finding) { return t.Text, nil }

// What a trace tells of is offered in the place of its servers, but for those that are called.
func TestPlayer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace")
	trace := `{"id":"1","principal":{"id":"a"},"calls":[{"tool":"far__t","arguments":{"b":1,"a":2},"result":{"content":[]}},{"tool":"far__t","arguments":{}},{"tool":"near__t","arguments":{},"result":{"content":[]}}]}` + "\n"
	if err := os.WriteFile(path, []byte(trace), 0o600); err != nil {
		t.Fatal(err)
	}
	calls, err := recording.Read(t.Context(), path)
	if err != nil || len(calls) != 2 || calls[0].Args != gate.MustDoc(`{"a":2,"b":1}`).Digest() {
		t.Fatalf("got %+v, %v", calls, err)
	}
	p := New(recording.Replay{Calls: calls, Servers: map[string]recording.Mode{"near": recording.Live}})
	if !p.Stubs("far") || p.Stubs("near") {
		t.Error("the wrong server is answered for")
	}
	all, err := p.Locals([]options.Endpoint{{Server: "near"}}, nil, options.Tools{Sanitizer: unchanged{}})
	if err != nil || len(all) != 1 {
		t.Fatalf("%d servers, %v", len(all), err)
	}
	if tools := all[0].Tools(t.Context()); len(tools) != 1 || tools[0].Name.String() != "far__t" {
		t.Errorf("got %d tools", len(tools))
	}
	c, tool := &gate.Call{Action: gate.CallTool, Name: "far__t", Args: gate.MustDoc(`{"a":2,"b":1}`)}, all[0].Tools(t.Context())[0]
	for first := range 2 {
		if _, ok := p.take(c, tool); ok != (first == 0) {
			t.Errorf("answered %t, asked for it %d times before", ok, first)
		}
	}
	if left := p.Left(); len(left) != 1 || left[0].Tool != "near__t" {
		t.Errorf("left are %+v", left)
	}
	if none := (*Player)(nil); none.Stubs("far") || none.Answers(tool) {
		t.Error("no recording answers")
	}
}
