// Package watch looks at files every so often, which works on every file system and costs
// some stats.
package watch

import (
	"context"
	"fmt"
	"os"
	"time"
)

// Every is how often files are looked at.
const Every = time.Second

// Each calls look every so often until ctx ends.
func Each(ctx context.Context, look func()) {
	tick := time.NewTicker(Every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			look()
		case <-ctx.Done():
			return
		}
	}
}

// State tells one version of a file from another.
func State(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d %d", info.Size(), info.ModTime().UnixNano())
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
