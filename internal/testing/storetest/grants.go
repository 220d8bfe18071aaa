package storetest

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/wasmgate/wasmgate/internal/config/policydata"
	"github.com/wasmgate/wasmgate/internal/files/state"
)

// Grants tests documents that hold grants. Open returns an empty one, as several gateways have it.
func Grants(t *testing.T, open func(*testing.T) []state.Document) {
	all := open(t)
	var wg sync.WaitGroup
	for i, at := range all {
		wg.Go(func() {
			for n := range 5 {
				g := policydata.Grant{To: []string{"*"}, Tools: []string{fmt.Sprintf("s%d__t%d", i, n)}}
				if added, err := policydata.AddGrant(t.Context(), at, g); err != nil || !added {
					t.Errorf("%v is added: %t, %v", g, added, err)
				}
			}
		})
	}
	wg.Wait()
	for i := range all {
		at, other := all[i], all[(i+1)%len(all)]
		name := fmt.Sprintf("s%d__t0", i)
		if r, err := policydata.RevokeGrant(t.Context(), other, name); err != nil || r.Removed != 1 {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		grants, seen, err := policydata.SeeGrants(t.Context(), at)
		must(t, err)
		if len(grants) != 5*len(all)-i-1 || slices.ContainsFunc(grants, func(g policydata.Grant) bool { return slices.Contains(g.Tools, name) }) {
			t.Errorf("after a revocation elsewhere there are %v", grants)
		}
		must(t, policydata.SetGrants(t.Context(), other, seen, grants))
		if _, err := policydata.AddAlways(t.Context(), at, "own__send", fmt.Sprint("p", i)); err != nil {
			t.Error(err)
		}
		if err := policydata.SetGrants(t.Context(), other, seen, nil); err == nil {
			t.Error("grants that were changed since are put")
		}
		if removed, err := policydata.RevokeNamed(t.Context(), other, policydata.Grant{Always: []string{"own__send"}, Tools: []string{"own__send"}}); err != nil || removed != 1 {
			t.Errorf("%d, %v", removed, err)
		}
	}
}
