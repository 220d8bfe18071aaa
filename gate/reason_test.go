package gate_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

// The reason of a refusal is sanitized, at whichever step it ends: it can quote what a caller or a
// server chose, and clients render it.
func TestReasonsAreSanitized(t *testing.T) {
	const active = `<img src=//evil.example>`
	for name, change := range map[string]func(*rig) error{
		"of a pin": func(*rig) error { return &gate.Unpinned{Reason: active} },
		"of a policy": func(r *rig) error {
			r.decide = func(gate.Query) gate.Decision { return gate.Decision{Effect: gate.Deny, Reasons: []string{active}} }
			return nil
		},
		"of a schema": func(r *rig) error {
			r.input = func(gate.Doc) error { return doc.Violations{{Message: active}} }
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig()
			r.sanitize = func(t gate.Text) (string, []gate.Finding) {
				return strings.ReplaceAll(t.Text, "<img", "< img"), nil
			}
			pin := change(r)
			_, err := gateWithPins(t, r, func(*gate.Tool) error { return pin }).Do(t.Context(), newCall())
			refusal, ok := errors.AsType[*gate.Refusal](err)
			if !ok || !strings.Contains(refusal.Reason, "< img") {
				t.Errorf("%v", err)
			}
		})
	}
}
