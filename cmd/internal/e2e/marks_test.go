//go:build unix

package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/wasmgate/wasmgate/internal/seed"
)

var marksModule = guestModule{"marks.wasm", "../../../internal/sandbox/testdata/marks", "c-shared", `{"tools": [{"name": "mark", "inputSchema": {"type": "object"}}]}`}

// testMarks has six clients call a tool that marks all of its state, and traps in a
// quarter of the calls: no call finds a mark. How many calls is in WASMGATE_MARKS.
func testMarks(t *testing.T, p *program) {
	calls := 2000
	if s := os.Getenv("WASMGATE_MARKS"); s != "" {
		var err error
		if calls, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	if underRace || testing.Short() {
		calls = min(calls, 300)
	}
	seed := seed.Of(t)
	pl := p.sandboxed(t, "tools: {marks: {module: marks.wasm}}\n", marksModule)
	pl.must("grant", "local__mark")
	gw := pl.serveModules()
	const clients = 6
	var all sync.WaitGroup
	for client := range clients {
		w := mustWire(t, gw.url)
		all.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(client)))
			for i := range calls / clients {
				trap := r.IntN(4) == 0
				a, err := w.call(t.Context(), "local__mark", fmt.Sprintf(`{"mark":"mark %d of %d","trap":%v}`, i, client, trap))
				if got := code(a); err != nil || trap && got != "trap_guest" || !trap && (got != "" || a.text() != `""`) {
					t.Errorf("call %d of client %d: %v, %q, found %s", i, client, err, got, a.text())
					return
				}
			}
		})
	}
	all.Wait()
	pl.verify()
}
