package gate_test

import (
	"fmt"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
)

// A policy that another gateway has changed before the state of a session was read decides on the call;
// a gateway that shares nothing ends a call with the policy that it began with.
func TestPolicyOfOthers(t *testing.T) {
	for _, changes := range []string{"view", "admit"} {
		for _, generation := range []uint64{0, 1} {
			t.Run(fmt.Sprint(changes, " in generation ", generation), func(t *testing.T) {
				r, denies := newRig(), newRig()
				denies.decide = func(gate.Query) gate.Decision { return gate.Decision{Effect: gate.Deny} }
				parts := r.parts()
				g := newGate(t, parts)
				r.session.Generation = generation
				changed := false
				change := func() {
					if next := parts; !changed {
						next.Authorizer, changed = denies, true
						if err := g.Swap(next); err != nil {
							t.Error(err)
						}
					}
				}
				r.at = func(method string) error {
					if method == "view" && changes == method {
						change()
					}
					return nil
				}
				r.admit = func(s gate.Session, _ gate.Labels) (gate.Session, error) {
					if changes == "admit" && !changed {
						change()
						return s, gate.ErrStale
					}
					return s, nil
				}
				_, err := g.Do(t.Context(), newCall())
				if want := map[uint64]string{0: "ok", 1: "refused_authorize"}[generation]; gate.Code(err) != want {
					t.Errorf("%s, want %s: %v", gate.Code(err), want, err)
				}
			})
		}
	}
}
