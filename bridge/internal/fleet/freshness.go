package fleet

import (
	"context"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/upstream"
	"github.com/wasmgate/wasmgate/gate"
)

const (
	// relistWait is how long who lists waits for a listing that may not be kept at all.
	relistWait = 2 * time.Second
	// maxFresh bounds for how long clients may keep a listing: grants and policies can
	// change what is in it at any time, and not every client listens.
	maxFresh = time.Minute
)

// refresh has the servers listed whose listings of a feature must not be kept, and waits for a
// moment.
func (f *Fleet) refresh(ctx context.Context, one gate.Feature) {
	if ctx.Value(settledKey{}) != nil {
		return // Settle has done it
	}
	var waited []*upstream.Endpoint
	for _, m := range f.snapshot() {
		if m.endpoint == nil {
			continue
		}
		if m.endpoint.Refresh() || one == gate.FeatureSkill && m.endpoint.RefreshSkills() {
			waited = append(waited, m.endpoint)
		}
	}
	if len(waited) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, relistWait)
	defer cancel()
	for _, e := range waited {
		e.Relisted(ctx)
	}
}

type settledKey struct{}

// Fresh returns for how long clients may keep a listing of what the fleet offers: for no
// longer than any of the servers says that have a part in it. One that says nothing, or
// is not connected, has its part kept for no time. What the gateway has itself changes
// only when it says so.
func (f *Fleet) Fresh(one gate.Feature) time.Duration {
	least, said := maxFresh, false
	for _, m := range f.snapshot() {
		if m.endpoint == nil {
			continue
		}
		if left, lists := m.endpoint.Fresh(one); lists {
			least, said = min(least, left), true
		}
	}
	if !said {
		return 0
	}
	return max(0, least)
}
