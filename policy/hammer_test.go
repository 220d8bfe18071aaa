package policy_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
	"github.com/wasmgate/wasmgate/policy"
)

// TestHammer decides and lists from many goroutines, with principals and tools
// that they share and more of both than the caches hold at once.
func TestHammer(t *testing.T) {
	unraced.Long(t)
	e := load(t, conditional, policy.Options{Grants: thousand()})
	var tools []*gate.Tool
	for i := range max(10, unraced.Fewer(50)) { // a list of many takes more time with the race detector than a list may
		tools = append(tools, newTool(fmt.Sprintf("srv%d__tool1", i)))
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 200 {
				own := &gate.Principal{Owner: gate.Owner{ID: fmt.Sprintf("p%d-%d", g, i)}, Roles: []string{"role2"}}
				for _, who := range []*gate.Principal{benchCaller, own} {
					q := gate.Query{Call: &gate.Call{
						Action: gate.CallTool, Who: who, Args: gate.MustDoc(`{"path":"/srv/x"}`), ClientName: fmt.Sprint(i % 3),
					}, Tool: tools[(g+i)%len(tools)]}
					want := gate.Deny
					if name := q.Tool.Name.Server; name == "srv2" || who == benchCaller && (name == "srv1" || name == "srv3") {
						want = gate.Allow
					}
					if d, err := e.Authorize(t.Context(), q); err != nil || d.Effect != want {
						t.Errorf("%s for %s: %+v, %v; want %s", q.Tool.Name, who.ID, d, err, want)
						return
					}
				}
				if i%50 == 0 {
					if v, err := e.Visible(t.Context(), benchCaller, tools); err != nil || !v[2] || v[4] {
						t.Errorf("Visible = %v, %v", v, err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
}
