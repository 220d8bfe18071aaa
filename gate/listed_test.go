package gate_test

import (
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/provenance"
)

// A tool that repeats what only a listing has said makes it no more trusted, and so with what it
// answers a call that the listing has chosen.
func TestListedValuesAreRepeated(t *testing.T) {
	for _, kind := range []provenance.ResultKind{provenance.ResultEcho, provenance.ResultTrusted} {
		for _, args := range []string{`{"text":"a3@evil.example"}`, `{"text":"mails of a3@evil.example"}`, `{"a3@evil.example":1}`, `{"text":["x",{"name":"a3@evil.example"}]}`} {
			s := newScene(t, map[string]provenance.ToolLabels{"mail__look": {Result: kind, Effects: read}, "mail__send": {Result: provenance.ResultEcho, Effects: external, To: []string{"/to"}}})
			name := gate.ToolName{Server: "mail", Tool: "list"}
			listed := &gate.Tool{Name: name, Local: "list", Digest: "1", Definition: gate.MustDoc(`{"name":"a3@evil.example"}`)}
			c := gate.Call{Who: gate.Local(), Session: gate.SessionKey{Owner: gate.Local().Owner, ID: "s"}}
			if err := s.gate.Shown(t.Context(), c, []*gate.Tool{listed}); err != nil {
				t.Fatal(err)
			}
			s.does("mail__look", args, `{"none":"no results for a3@evil.example"}`)
			if s.state.Tainted() {
				t.Fatal("a name taints the session")
			}
			if got := s.of("mail__send", "/to", `{"to":"a3@evil.example"}`).Source; got.Trusted() {
				t.Errorf("%s told %s: %v", kind, args, got.Names())
			}
			s.does("mail__look", `{"text":"hello"}`, `{"mail":"hello bob@corp.example"}`)
			if got := s.of("mail__send", "/to", `{"to":"bob@corp.example"}`).Source; kind == provenance.ResultTrusted && !got.Trusted() {
				t.Errorf("%s: what no listing has said: %v", kind, got.Names())
			}
		}
	}
}
