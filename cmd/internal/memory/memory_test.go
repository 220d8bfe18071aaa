package memory

import (
	"runtime"
	"testing"
	"time"
)

// TestMemoryLimitFollowsTheHeap checks that the limit is above what lives, and
// that it is looked at after collections.
func TestMemoryLimitFollowsTheHeap(t *testing.T) {
	if got := memoryLimit(10 << 20); got != leastLimit {
		t.Errorf("with 10 MiB alive the limit is %d", got)
	}
	if got := memoryLimit(200 << 20); got != 600<<20 {
		t.Errorf("with 200 MiB alive the limit is %d", got)
	}
	ran := make(chan struct{}, 100)
	afterCollection(func() { ran <- struct{}{} })
	for n := range 2 {
		deadline := time.After(time.Minute)
		for done := false; !done; {
			runtime.GC()
			select {
			case <-ran:
				done = true
			case <-deadline:
				t.Fatalf("nothing ran after collection %d", n)
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	kept := make([]byte, 32<<20)
	runtime.GC()
	if live := liveHeap(); live < 32<<20 {
		t.Errorf("%d bytes live, and the test keeps 32 MiB", live)
	}
	runtime.KeepAlive(kept)
}
