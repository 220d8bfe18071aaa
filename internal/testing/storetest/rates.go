package storetest

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/limits"
	"github.com/wasmgate/wasmgate/gate/obligation"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
)

// Rates tests how calls are counted. Open returns limits without calls, as several gateways
// have them.
func Rates(t *testing.T, open func(*testing.T) []*limits.Limits) {
	for name, test := range map[string]func(*testing.T, []*limits.Limits){
		"as many calls as one gateway lets pass": testRateOfAll,
		"calls at once":                          testRateAtOnce,
		"what is refused uses nothing":           testRateGivenBack,
		"bytes count everywhere":                 testRateOfBytes,
		"an owner has a rate of its own":         testRateOwners,
		"a rate fills again":                     testRateFills,
		"a rate that no call keeps":              testRateImpossible,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

// count charges a call to rates, and returns what ends it; nil if it is refused.
func count(t *testing.T, l *limits.Limits, who gate.Owner, all ...obligation.Rate) (release func(int64)) {
	s, err := l.Enter(t.Context(), gate.Entry{Limit: gate.LimitConcurrent, Caller: keyOf(who), Session: keyOf(who)})
	if err != nil {
		t.Error(err)
		return nil
	}
	c := gate.Charges{Server: "s", Tool: "s__t"}
	for _, r := range all {
		c.Rates = append(c.Rates, gate.Charge{Limit: r.String(), Owner: who, Rate: &r})
	}
	if err = s.Charge(t.Context(), c); err == nil {
		return s.Release
	}
	s.Release(0)
	if over, ok := errors.AsType[*obligation.OverRate](err); !ok || over.After <= 0 {
		t.Errorf("it is refused with %v, not with an OverRate and a time", err)
	}
	return nil
}

func counts(t *testing.T, l *limits.Limits, who gate.Owner, bytes int64, all ...obligation.Rate) bool {
	t.Helper()
	release := count(t, l, who, all...)
	if release != nil {
		release(bytes)
	}
	return release != nil
}

func returned(t *testing.T, all []*limits.Limits) {
	t.Helper()
	for _, l := range all {
		must(t, l.ReturnRates(t.Context()))
	}
}

// testRateOfAll: with portions as many calls pass as without, and no more.
func testRateOfAll(t *testing.T, all []*limits.Limits) {
	r := obligation.Rate{Calls: 25, Per: 1000 * time.Hour}
	passed := 0
	timelimit.Wait(t, "25 calls pass", func() bool {
		for _, l := range all {
			if counts(t, l, alice, 0, r) {
				passed++
			}
		}
		returned(t, all)
		return passed >= 25
	})
	for range 3 {
		for i, l := range all {
			if counts(t, l, alice, 0, r) {
				t.Errorf("gateway %d lets call %d pass", i, passed+1)
			}
		}
		returned(t, all)
	}
}

func testRateAtOnce(t *testing.T, all []*limits.Limits) {
	r := obligation.Rate{Calls: 40, Per: 1000 * time.Hour}
	var passed atomic.Int64
	var wg sync.WaitGroup
	for _, l := range all {
		for range 10 {
			wg.Go(func() {
				for range 5 {
					if counts(t, l, alice, 0, r) {
						passed.Add(1)
					}
				}
			})
		}
	}
	wg.Wait()
	if n := passed.Load(); n > 40 || n < 20 { // the others may be in portions
		t.Errorf("%d of 40 calls pass", n)
	}
}

func testRateGivenBack(t *testing.T, all []*limits.Limits) {
	free, used := obligation.Rate{Calls: 1, Per: 1000 * time.Hour}, obligation.Rate{Calls: 1, Per: 2000 * time.Hour}
	if !counts(t, all[0], alice, 0, used) || counts(t, all[0], alice, 0, free, used) {
		t.Error("one call passes, and the next one does not")
	}
	timelimit.Wait(t, "the refused call has used nothing", func() bool {
		returned(t, all)
		return counts(t, all[1], alice, 0, free)
	})
	if counts(t, all[2], alice, 0, free) {
		t.Error("another call passes, too")
	}
}

func testRateOfBytes(t *testing.T, all []*limits.Limits) {
	r := obligation.Rate{Bytes: 1000, Per: 1000 * time.Hour}
	for _, l := range all { // each has a portion
		if !counts(t, l, alice, 1, r) {
			t.Error("a call with a few bytes is refused")
		}
	}
	if !counts(t, all[0], alice, 50_000, r) {
		t.Error("a call is refused though bytes are left")
	}
	returned(t, all)
	for i, l := range all {
		if counts(t, l, alice, 1, r) {
			t.Errorf("gateway %d lets a call pass though no bytes are left", i)
		}
	}
}

func testRateOwners(t *testing.T, all []*limits.Limits) {
	r, named := obligation.Rate{Calls: 1, Per: 1000 * time.Hour}, obligation.Rate{Calls: 1, Per: 3000 * time.Hour}
	for _, who := range []gate.Owner{alice, bob, {Tenant: "acme", ID: alice.ID}} {
		if !counts(t, all[0], who, 0, r) || counts(t, all[1], who, 0, r) || !counts(t, all[2], who, 0, named) {
			t.Errorf("%+v has one call of each rate", who)
		}
	}
}

func testRateFills(t *testing.T, all []*limits.Limits) {
	r := obligation.Rate{Calls: 1, Per: 20 * time.Millisecond}
	for _, l := range all {
		timelimit.Wait(t, "a call passes again", func() bool { return counts(t, l, alice, 0, r) })
	}
}

func testRateImpossible(t *testing.T, all []*limits.Limits) {
	for _, r := range []obligation.Rate{{}, {Calls: 1}, {Calls: -1, Bytes: 2, Per: time.Hour}, {Burst: 5, Per: time.Hour}} {
		s, err := all[0].Enter(t.Context(), gate.Entry{Limit: gate.LimitConcurrent, Caller: keyOf(alice), Session: keyOf(alice)})
		must(t, err)
		if err := s.Charge(t.Context(), gate.Charges{Rates: []gate.Charge{{Limit: "r", Owner: alice, Rate: &r}}}); err == nil {
			t.Errorf("a call keeps the rate %+v", r)
		}
		s.Release(0)
	}
}
