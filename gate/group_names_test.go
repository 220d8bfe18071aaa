package gate_test

import (
	"testing"

	"github.com/wasmgate/wasmgate/gate"
)

// TestText: the groups are in what the operator reads about a call.
func TestText(t *testing.T) {
	for want, g := range map[string][][]string{"talk": {{"talk"}}, "docs or mail, and reading": {{"docs", "mail"}, {"reading"}}, "no group": {nil}} {
		if got := gate.GroupsText(g); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
