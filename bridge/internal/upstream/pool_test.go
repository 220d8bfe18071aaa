package upstream

import (
	"fmt"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/fair"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
)

// However many processes other callers have, in use or not, a caller that has none gets one. No
// caller loses its only process to another one before the time that it is left alone.
func TestShareOfProcesses(t *testing.T) {
	rand := seed.Rand(t)
	for range 2000 {
		most := 1 + rand.IntN(20)
		s := &audiences{}
		base := &Endpoint{}
		base.cfg.Command = "server"
		key := func(i int) gate.SessionKey { return gate.SessionKey{ID: fmt.Sprint(i)} }
		var newcomers int
		for caller := range 1 + rand.IntN(30) {
			greedy := rand.IntN(3) == 0
			for n := 0; n < 1 || greedy && n < 40; n++ {
				a := &audience{caller: key(caller), owner: s, endpoint: base, made: 1, calls: rand.IntN(2), used: time.Now()}
				var all tally
				s.tally(&all)
				p, ok := all.room(most, a.caller)
				if n == 0 && !ok {
					newcomers++
				}
				if !ok {
					break
				}
				if goes, _ := p.(*audience); goes != nil {
					if goes.calls > 0 || all.by[goes.caller] < 2 {
						t.Fatalf("a process with %d calls, one of %d of its caller, makes room", goes.calls, all.by[goes.caller])
					}
					for i := range s.all {
						if s.all[i] == goes {
							s.all = append(s.all[:i], s.all[i+1:]...)
							break
						}
					}
				}
				s.all = append(s.all, a)
			}
		}
		beyond := min(most, fair.Extras)
		if len(s.all) > most+beyond {
			t.Fatalf("%d processes, of %d", len(s.all), most)
		}
		if newcomers > 0 && len(s.all) < most+beyond {
			t.Fatalf("%d callers got no process, and there were %d of %d and %d", newcomers, len(s.all), most, beyond)
		}
	}
}
