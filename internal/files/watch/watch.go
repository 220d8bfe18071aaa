package watch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// Every is how often files are looked at.
const Every = time.Second

// Each calls look every so often until ctx ends.
func Each(ctx context.Context, look func()) { Together(ctx, Every, look) }

// Together calls each of looks every so often until ctx ends, and returns when all have. One
// that takes its time holds up no other, and is called again when it has returned.
func Together(ctx context.Context, every time.Duration, looks ...func()) {
	var wg sync.WaitGroup
	defer wg.Wait()
	busy := make([]atomic.Bool, len(looks))
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		for i, look := range looks {
			if busy[i].CompareAndSwap(false, true) {
				wg.Go(func() {
					defer busy[i].Store(false)
					look()
				})
			}
		}
	}
}

// State tells one version of a file from another: by its size, its time, and where links lead, since a link can be set to
// a file of the same size that was written at the same time.
func State(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return err.Error()
	}
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d %d %s", info.Size(), info.ModTime().UnixNano(), target)
}

// Wait waits for so long, and reports whether ctx has not ended.
func Wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
