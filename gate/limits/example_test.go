package limits_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/limits"
)

func ExampleLimits() {
	ctx := context.Background()
	l := limits.New(limits.Options{Concurrent: 1, Wait: -1})
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
