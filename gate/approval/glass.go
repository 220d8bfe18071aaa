package approval

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/gate"
)

// BreakGlass is the operator in an emergency. [Queue.DecideAs] takes its answers even if neither
// Approvers nor the question names it. It answers as local.
var BreakGlass = gate.Local()

// MaxGlass bounds for how long a [Glass] is broken at once.
const MaxGlass = 24 * time.Hour

// A Glass is broken for a time, in an emergency. The zero Glass is whole. It may be used from
// several goroutines, and is whole again when its process ends; [Glass.Follow] has it as another gateway
// has left it.
type Glass struct {
	mu    sync.Mutex
	until time.Time
	timer *time.Timer
}

// Break breaks the glass for a time, from now on, once note has recorded that. If the time is 0, it
// makes the glass whole again. Note also gets the end that comes by itself.
func (g *Glass) Break(d time.Duration, note func(what string) error) (until time.Time, err error) {
	if d < 0 || d > MaxGlass {
		return until, fmt.Errorf("%v is not a time from 0 to %v", d, MaxGlass)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if d == 0 && g.timer == nil && !time.Now().Before(g.until) {
		return until, errors.New("there is no break-glass to end")
	}
	if d > 0 {
		until = time.Now().Add(d).Truncate(time.Second)
	}
	what := "ended"
	if d > 0 {
		what = "until " + until.UTC().Format(time.RFC3339)
	} else {
		g.until = time.Time{} // also if that is not recorded
	}
	if err := note(what); err != nil {
		return until, err
	}
	if g.timer != nil {
		g.timer.Stop()
		g.timer = nil
	}
	if g.until = until; d > 0 {
		var mine *time.Timer
		mine = time.AfterFunc(time.Until(until), func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			if g.timer == mine { // else it was broken anew, or ended
				g.timer = nil
				_ = note("ended by itself")
			}
		})
		g.timer = mine
	}
	return until, nil
}

// Follow has the glass broken until a time that another gateway has recorded.
func (g *Glass) Follow(until time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if until.Equal(g.until) {
		return
	}
	if g.until = until; g.timer != nil {
		g.timer.Stop()
		g.timer = nil
	}
}

// Until returns when the glass is whole again; the zero time if it is.
func (g *Glass) Until() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	if time.Now().Before(g.until) {
		return g.until
	}
	return time.Time{}
}
