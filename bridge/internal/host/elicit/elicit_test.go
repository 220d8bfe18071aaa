package elicit_test

import (
	"testing"

	"github.com/wasmgate/wasmgate/bridge/internal/host/elicit"
	"github.com/wasmgate/wasmgate/gate"
)

// A form offers what the question has, and each choice is read as what it says.
func TestChoices(t *testing.T) {
	to, beside := []string{"lily@corp.example"}, []string{"bob@corp.example"}
	answers := []gate.Answer{
		{Verdict: gate.Approved}, {Verdict: gate.Denied}, {Verdict: gate.Approved, Always: true},
		{Verdict: gate.Approved, Destinations: true}, {Verdict: gate.Approved, Destinations: true, Beside: true},
	}
	for n, p := range map[int]gate.Pending{3: {}, 4: {Destinations: to}, 5: {Destinations: to, Beside: beside}} {
		i := 0
		for choice := range elicit.Form(p).At("/requestedSchema/properties/decision/enum").Elements() {
			if got := elicit.Answer(gate.MustDoc(`{"action":"accept","content":{"decision":` + choice.String() + `}}`)); i < n && got != answers[i] {
				t.Errorf("%s is %+v", choice, got)
			}
			i++
		}
		if i != n {
			t.Errorf("%d choices, want %d", i, n)
		}
	}
}
