package policy_test

import (
	"slices"
	"testing"

	"github.com/wasmgate/wasmgate/gate/obligation"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
	"github.com/wasmgate/wasmgate/policy"
	"github.com/wasmgate/wasmgate/sanitize"
)

// A rule may ask for every profile that there is, and of two the stricter one holds.
func TestTheStricterProfileHolds(t *testing.T) {
	unraced.Long(t)
	profiles := sanitize.Profiles() // the strictest is the last
	for i, laxer := range profiles {
		for _, stricter := range profiles[i:] {
			e := load(t, user(`allow contains "anything goes" if true
obligations contains {"type": "sanitize", "profile": "`+string(stricter)+`"} if true
obligations contains {"type": "sanitize", "profile": "`+string(laxer)+`"} if true`), policy.Options{})
			d, err := e.Authorize(t.Context(), query("a__b", "{}"))
			if want := (obligation.Profile{Name: string(stricter)}); err != nil || !slices.Contains(d.Obligations, obligation.Obligation(want)) {
				t.Errorf("%s and %s: %v, %v, %v", laxer, stricter, d.Effect, d.Obligations, err)
			}
		}
	}
}
