package policy_test

import (
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/policy"
)

// What a session has read that could not be kept counts as everything.
func TestASessionThatIsNotKnownHasEveryLabel(t *testing.T) {
	e := load(t, user(`allow contains "anything goes" if true

deny contains "nothing after secrets" if {
	"secret" in input.session.labels
	"untrusted" in input.session.labels
}

labels contains "secret" if input.tool.server == "vault"
`), policy.Options{Packs: noPacks})
	for name, tt := range map[string]struct {
		session gate.Session
		want    gate.Effect
	}{
		"known and empty":     {gate.Session{}, gate.Allow},
		"known, half of it":   {gate.Session{Labels: gate.NewLabels("secret")}, gate.Allow},
		"not known":           {gate.Session{Top: true}, gate.Deny},
		"not known any more":  {gate.Session{Top: true, Labels: gate.NewLabels("secret")}, gate.Deny},
		"known to be tainted": {gate.Session{Labels: gate.NewLabels("secret", "untrusted")}, gate.Deny},
	} {
		q := query("a__b", "{}")
		q.Session = tt.session
		d, err := e.Authorize(t.Context(), q)
		if err != nil || d.Effect != tt.want {
			t.Errorf("%s: %s, %v; want %s", name, d.Effect, err, tt.want)
		}
	}
}
