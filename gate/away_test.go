package gate_test

import (
	"context"
	"errors"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/gate/limits"
)

// A call holds no place while its client is asked, and has one again when its server goes
// on.
func TestRequestGivesThePlaceBack(t *testing.T) {
	for name, refuses := range map[string]bool{"a client that answers": false, "a client that refuses": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig()
			limits := limits.New(limits.Options{Concurrent: 1, Wait: -1})
			free := func() bool {
				c := newCall()
				slot, err := limits.Enter(t.Context(), gate.Entry{Limit: gate.LimitConcurrent, Caller: c.Caller()})
				if err == nil {
					slot.Release(0)
				}
				return err == nil
			}
			c := answering("")
			c.answer = func(context.Context, gate.Action, gate.Doc) (gate.Doc, error) {
				if !free() {
					t.Error("the call holds a place while its client is asked")
				}
				if refuses {
					return gate.Doc{}, errors.New("no")
				}
				return gate.MustDoc(givesName), nil
			}
			r.hosted = func(ctx context.Context, p gate.Permit) (gate.Result, error) {
				if _, err := p.Request(ctx, actions.Elicit, gate.MustDoc(asksName)); (err != nil) != refuses {
					t.Error(err)
				}
				if free() {
					t.Error("the call goes on without a place")
				}
				return answer(`{"structuredContent":1}`), nil
			}
			parts := r.parts()
			parts.Limiter = limits
			g, err := gate.New(parts)
			if err != nil {
				t.Fatal(err)
			}
			call := newCall()
			call.Client = c
			if _, err := g.Do(t.Context(), call); err != nil {
				t.Fatal(err)
			}
			if !free() {
				t.Error("the call has left something behind")
			}
		})
	}
}
