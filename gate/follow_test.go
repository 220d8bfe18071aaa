package gate_test

import (
	"context"
	"errors"
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

// A call that is denied, or needs approval, is decided on again if another gateway has granted something
// meanwhile, and only then.
func TestGrantsOfOthers(t *testing.T) {
	for _, before := range []gate.Effect{gate.Deny, gate.Ask} {
		for _, granted := range []bool{true, false} {
			t.Run(fmt.Sprint(before, " granted ", granted), func(t *testing.T) {
				r, allows := newRig(), newRig()
				r.decide = func(gate.Query) gate.Decision { return gate.Decision{Effect: before} }
				parts := r.parts()
				var g *gate.Gate
				renewed := 0
				parts.Renew = func(_ context.Context, s gate.Session) (gate.Session, bool) {
					renewed++
					if !granted {
						return s, false
					}
					next := parts
					next.Authorizer = allows
					if err := g.Swap(next); err != nil {
						t.Error(err)
					}
					s.Generation++
					return s, true
				}
				g = newGate(t, parts)
				_, err := g.Do(t.Context(), newCall())
				if ok := gate.Code(err) == "ok"; ok != granted || renewed != 1 {
					t.Errorf("%s after %d looks: %v", gate.Code(err), renewed, err)
				}
			})
		}
	}
}

// What is decided on again before its arguments were validated is validated then.
func TestRenewedIsValidated(t *testing.T) {
	r := newRig()
	r.input = func(gate.Doc) error { return errors.New("/path: too long") }
	effect := gate.Deny
	r.decide = func(gate.Query) gate.Decision { return gate.Decision{Effect: effect} }
	parts := r.parts()
	parts.Renew = func(_ context.Context, s gate.Session) (gate.Session, bool) {
		effect = gate.Allow
		return s, true
	}
	if _, err := newGate(t, parts).Do(t.Context(), newCall()); gate.Code(err) != "refused_validate_input" {
		t.Errorf("arguments that break the schema: %v", err)
	}
}
