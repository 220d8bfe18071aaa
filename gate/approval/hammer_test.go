package approval_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/approval"
)

// If calls race for one approval, exactly one of them passes, no matter which channel answers, and
// the records agree.
func TestHammer(t *testing.T) {
	const rounds, racers = 50, 8
	q, l := newQueue(t, approval.Options{Hold: time.Minute})
	for round := range rounds {
		args := gate.MustDoc(fmt.Sprintf(`{"round":%d}`, round))
		one := func(id string, change ...func(*gate.Question)) gate.Question {
			return ask(id, append(change, func(q *gate.Question) { q.Call.Args = args })...)
		}
		id := waits(t, q, one("first"))
		var passed, decided atomic.Int32
		var all sync.WaitGroup
		start := make(chan struct{})
		for i := range racers {
			call := fmt.Sprintf("%d/%d", round, i)
			race := func(asked gate.Question) {
				all.Go(func() {
					<-start
					if _, err := q.Approve(t.Context(), asked); err == nil {
						passed.Add(1)
					}
				})
			}
			race(one(call+"a", held))                                // waits
			race(one(call+"b", answering(id, gate.Approved)))        // answers
			race(one(call+"c", by(says(gate.Approved))))             // is asked, perhaps once more
			race(one(call+"d", answering("n1-none", gate.Approved))) // guesses
			all.Go(func() {
				<-start
				if _, err := q.Decide(t.Context(), id, gate.Approved, "cli:local", ""); err == nil {
					decided.Add(1)
				}
			})
		}
		stop := make(chan struct{})
		var operator sync.WaitGroup
		operator.Go(func() { // lets those go that were asked about anew
			for {
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
				}
				for _, r := range q.Pending(t.Context()) {
					if r.ID != id {
						_, _ = q.Decide(t.Context(), r.ID, gate.Denied, "cli:local", "")
					}
				}
			}
		})
		close(start)
		all.Wait()
		close(stop)
		operator.Wait()
		if decided.Load() > 1 {
			t.Fatalf("round %d: decided %d times", round, decided.Load())
		}
		redeemed := map[string]int{}
		for _, r := range l.records {
			if r.Approval.State == approval.StateRedeemed && r.Call.Args.Digest() == args.Digest() {
				redeemed[r.Approval.ID]++
			}
		}
		total := 0
		for which, n := range redeemed {
			if total += n; n != 1 {
				t.Fatalf("round %d: approval %s was redeemed %d times", round, which, n)
			}
		}
		if redeemed[id] != 1 || total != int(passed.Load()) {
			t.Fatalf("round %d: %d calls passed by %d approvals, of which this one %d times", round, passed.Load(), total, redeemed[id])
		}
	}
	if _, err := q.Approve(t.Context(), ask("last")); !errors.As(err, new(*gate.Pending)) {
		t.Errorf("error %v", err)
	}
}
