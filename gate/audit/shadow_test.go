package audit_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
)

// What the shadow policy would have decided is read as it was written, and an event
// without one has no such member.
func TestAShadowIsReadAsWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l, err := audit.Open(path, audit.Options{Node: "n"})
	if err != nil {
		t.Fatal(err)
	}
	want := []audit.ShadowDecision{
		{Effect: gate.Deny, Reasons: []string{"a \"reason\"", "b"}, Revision: "r2", Differs: []string{"effect"}},
		{Effect: gate.Deny, Error: "no decision within 50ms", Differs: []string{"effect"}},
		{Effect: gate.Allow},
		{},
	}
	for _, d := range want {
		if err := l.Append(audit.Entry{Event: audit.Shadow, ID: "c1", Effect: gate.Allow, Shadow: d}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	var got []audit.ShadowDecision
	for e, err := range audit.Read(t.Context(), path, audit.Filter{Call: "c1"}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e.Shadow)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
