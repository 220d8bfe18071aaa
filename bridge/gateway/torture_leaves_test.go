package gateway_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/internal/testing/seed"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// repetitionsEnv is how many misdeeds [TestTortureClientLeavesNothing] does.
const repetitionsEnv = "WASMGATE_REPETITIONS"

// TestTortureClientLeavesNothing: however many misdeeds there are, in both protocol revisions and
// on stdio, goroutines, descriptors and memory stay what they were.
func TestTortureClientLeavesNothing(t *testing.T) {
	unraced.Long(t)
	repetitions := 60
	if s := os.Getenv(repetitionsEnv); s != "" {
		var err error
		if repetitions, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	tt := torture(t)
	seed := seed.Of(t)
	clients := []*badClient{tt.client(t, older), tt.client(t, newer)}
	kinds := []map[string]misdeed{misdeeds(older), misdeeds(newer)}
	names := [][]string{slices.Sorted(maps.Keys(kinds[0])), slices.Sorted(maps.Keys(kinds[1]))}
	on := slices.Sorted(maps.Keys(onLines))
	round := func(n int) {
		r := rand.New(rand.NewPCG(seed, 0))
		lines := tt.lines(t)
		defer lines.close(t)
		for i := range n {
			era := i % 2
			name := names[era][r.IntN(len(names[era]))]
			m := kinds[era][name]
			resp, answer, err := clients[era].do(t.Context(), m)
			if err := m.judge(resp, answer, err); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			line := onLines[on[r.IntN(len(on))]]
			if err := lines.tries(line.line, line.code); err != nil {
				t.Fatal(err)
			}
			tt.records.forget()
		}
		for _, c := range clients {
			c.http.CloseIdleConnections()
		}
	}
	round(40) // what is made once is made now
	before := use()
	began := time.Now()
	round(repetitions)
	took := time.Since(began)
	after := use()
	for end := time.Now().Add(patience / 2); time.Now().Before(end); { // connections are closing
		if after.goroutines <= before.goroutines+2 && after.files <= before.files+2 {
			break
		}
		time.Sleep(10 * time.Millisecond)
		after = use()
	}
	t.Logf("before: %v; after %d misdeeds of %d kinds over HTTP and as many of %d on stdio, in %v: %v",
		before, repetitions, len(kinds[0])+len(kinds[1]), len(on), took.Round(time.Millisecond), after)
	const slack = 16 << 20 // bytes; what is kept for clients that come back is within it
	if after.goroutines > before.goroutines+2 || after.files > before.files+2 || after.heap > before.heap+slack {
		t.Errorf("before: %v; after: %v", before, after)
	}
}

// usage is what a process holds.
type usage struct {
	goroutines, files int
	heap              int64
}

func (u usage) String() string {
	return fmt.Sprintf("%d goroutines, %d descriptors, heap of %d KiB", u.goroutines, u.files, u.heap>>10)
}

func use() usage {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	files, _ := filepath.Glob("/proc/self/fd/*") // none where there is no such folder
	return usage{runtime.NumGoroutine(), len(files), int64(m.HeapAlloc)}
}

// has reports whether something was recorded with a code.
func (r *records) has(code string) bool {
	return slices.Contains(r.list(), code)
}

// forget drops what was recorded.
func (r *records) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.codes = nil
}
