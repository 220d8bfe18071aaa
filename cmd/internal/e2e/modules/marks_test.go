//go:build unix

package modules

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/wasmgate/wasmgate/internal/testing/e2e"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

var marksModule = e2e.Guest{Name: "marks.wasm", Dir: "sandbox/testdata/marks", Mode: "c-shared", Manifest: `{"tools": [{"name": "mark", "inputSchema": {"type": "object"}}]}`}

// testMarks has six clients call a tool that marks all of its state, and traps in a
// quarter of the calls: no call finds a mark. How many calls is in WASMGATE_MARKS.
func testMarks(t *testing.T, p *e2e.Program) {
	calls := 2000
	if s := os.Getenv("WASMGATE_MARKS"); s != "" {
		var err error
		if calls, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	if unraced.Raced() || testing.Short() {
		calls = min(calls, 300)
	}
	seed := seed.Of(t)
	pl := sandboxed(t, p, "tools: {marks: {module: marks.wasm}}\n", marksModule)
	pl.Must("grant", "local__mark")
	gw := pl.ServeModules()
	const clients = 6
	var all sync.WaitGroup
	for client := range clients {
		w := e2e.MustWire(t, gw.URL)
		all.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(client)))
			for i := range calls / clients {
				trap := r.IntN(4) == 0
				a, err := w.Call(t.Context(), "local__mark", fmt.Sprintf(`{"mark":"mark %d of %d","trap":%v}`, i, client, trap))
				if got := e2e.Code(a); err != nil || trap && got != "trap_guest" || !trap && (got != "" || a.Text() != `""`) {
					t.Errorf("call %d of client %d: %v, %q, found %s", i, client, err, got, a.Text())
					return
				}
			}
		})
	}
	all.Wait()
	pl.Verify()
}
