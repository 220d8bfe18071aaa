package session_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/gate/session"
)

// Two calls are decided at once, in a session that has read nothing. The first
// reads what somebody outside wrote; the second is to be decided again.
func ExampleSessions() {
	ctx := context.Background()
	s := session.New(session.Options{})
	k := gate.SessionKey{Owner: gate.Local().Owner, ID: "s1"}
	first, _ := s.View(ctx, k)
	second, _ := s.View(ctx, k)

	_, err := s.Admit(ctx, first, &gate.Call{ID: "read"}, gate.NewLabels(provenance.Untrusted))
	fmt.Println("first:", err)
	now, err := s.Admit(ctx, second, &gate.Call{ID: "send"}, nil)
	fmt.Println("second:", err, now.Labels)
	// Output:
	// first: <nil>
	// second: the session has changed [untrusted]
}

func ExampleLimits() {
	ctx := context.Background()
	l := session.NewLimits(session.LimitOptions{Concurrent: 1, Wait: -1})
	call := gate.Entry{Limit: gate.LimitConcurrent, Caller: gate.SessionKey{Owner: gate.Local().Owner}}

	slot, err := l.Enter(ctx, call)
	fmt.Println("first:", err)
	_, err = l.Enter(ctx, call)
	fmt.Println("second:", err, errors.Is(err, gate.ErrBusy))
	slot.Release(0)
	_, err = l.Enter(ctx, call)
	fmt.Println("third:", err)
	// Output:
	// first: <nil>
	// second: the gateway has as many calls under way as it may have at once, which is 1 true
	// third: <nil>
}
