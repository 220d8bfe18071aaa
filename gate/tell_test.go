package gate_test

import (
	"testing"

	"github.com/wasmgate/wasmgate/gate"
)

// What a server sends outside of calls is sanitized as results are, or not passed on at all.
func TestTell(t *testing.T) {
	r := newRig()
	r.sanitize = replace("evil", "[removed]")
	parts := r.parts()
	parts.Secrets = spy{}
	g := newGate(t, parts)
	for name, tt := range map[string]struct{ params, want string }{
		"a message is sanitized, and loses its secrets": {`{"level":"info","data":{"text":"evil KEY"}}`, `{"level":"info","data":{"text":"[removed] [redacted: word]"}}`},
		"one without anything bad stays as it is":       {`{"level":"info","data":1.0}`, `{"level":"info","data":1.0}`},
		"what is not an object is not told":             {`"evil"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := g.Tell("up", gate.MustDoc(tt.params))
			if ok != (tt.want != "") || ok && got.String() != tt.want {
				t.Errorf("told %s, %t; want %q", got, ok, tt.want)
			}
		})
	}
	r.sanitize = func(gate.Text) (string, []gate.Finding) { panic("in the sanitizer") }
	parts = r.parts()
	if err := g.Swap(parts); err != nil {
		t.Fatal(err)
	}
	if got, ok := g.Tell("up", gate.MustDoc(`{"data":"x"}`)); ok {
		t.Errorf("told %s past a sanitizer that panics", got)
	}
}
