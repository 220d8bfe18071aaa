package gate_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/obligation"
)

var slow = obligation.Rate{Name: "slow", Key: []obligation.RateKey{obligation.ByPrincipal}, Calls: 1, Per: time.Minute}

// meter is a limiter that notes what it is charged.
type meter struct {
	charged []gate.Charge
	used    []int64
	refuse  error
}

func (m *meter) Enter(ctx, gate.Entry) (gate.Slot, error) {
	return &slot{
		charge: func(c gate.Charges) error {
			m.charged = append(m.charged, c.Rates...)
			return m.refuse
		},
		release: func(bytes int64) { m.used = append(m.used, bytes) },
	}, nil
}

func (m *meter) do(t *testing.T, r *rig, c gate.Call) error {
	t.Helper()
	p := r.parts()
	p.Limiter = m
	g := newGate(t, p)
	_, err := g.Do(t.Context(), c)
	return err
}

func (m *meter) rates() []string {
	var names []string
	for _, c := range m.charged {
		names = append(names, c.Rate.Name)
	}
	slices.Sort(names)
	return names
}

func TestRatesAreChargedOnceForACall(t *testing.T) {
	other := slow
	other.Name = "other"
	r, m := obliged(slow, other, slow), new(meter)
	c := newCall()
	if err := m.do(t, r, c); err != nil {
		t.Fatal(err)
	}
	if got := m.rates(); !slices.Equal(got, []string{"other", "slow"}) {
		t.Errorf("charged %v", got)
	}
	result := `{"content":[{"type":"text","text":"hello"}],"structuredContent":{"a":1}}`
	if want := int64(len(c.Args.Raw()) + len(result)); len(m.used) != 1 || m.used[0] != want {
		t.Errorf("used %v bytes, want %d", m.used, want)
	}
}

// The session may come to owe more while it is admitted.
func TestRatesOfALaterDecisionAreCharged(t *testing.T) {
	r, m := newRig(), new(meter)
	decided := 0
	r.decide = func(gate.Query) gate.Decision {
		d := gate.Decision{Effect: gate.Allow, Obligations: []obligation.Obligation{slow}}
		if decided++; decided > 1 {
			other := slow
			other.Name = "other"
			d.Obligations = append(d.Obligations, other)
		}
		return d
	}
	r.admit = func(s gate.Session, l gate.Labels) (gate.Session, error) {
		if s.Version == 0 {
			s.Version = 1
			return s, gate.ErrStale
		}
		return s, nil
	}
	if err := m.do(t, r, newCall()); err != nil {
		t.Fatal(err)
	}
	if got := m.rates(); !slices.Equal(got, []string{"other", "slow"}) || len(m.used) != 1 {
		t.Errorf("charged %v, released %v", got, m.used)
	}
}

func TestOverARate(t *testing.T) {
	r := obliged(slow)
	m := &meter{refuse: &obligation.OverRate{Rate: slow, After: 1500 * time.Millisecond}}
	err := m.do(t, r, newCall())
	refused, ok := errors.AsType[*gate.Refusal](err)
	if !ok || gate.Code(err) != "refused_limit" || refused.RetryAfter != 1500*time.Millisecond || r.count("invoke") > 0 {
		t.Fatalf("err = %v", err)
	}
	if want := "the rate limit of 1 call in 1m0s is reached; try again in 1.5s"; refused.Reason != want {
		t.Errorf("reason %q, want %q", refused.Reason, want)
	}
}

// Without a limiter a rate is an obligation that cannot be met.
func TestRatesNeedALimiter(t *testing.T) {
	r := obliged(slow)
	p := r.parts()
	p.Limiter = nil
	g := newGate(t, p)
	if _, err := g.Do(t.Context(), newCall()); gate.Code(err) != "refused_limit" || r.count("invoke") > 0 {
		t.Errorf("err = %v", err)
	}
}

// Keys say whose calls are counted together; whatever a client can choose of them, it
// cannot make one key of two.
func TestRateKeys(t *testing.T) {
	charge := func(key []obligation.RateKey, principal, session, tool string) gate.Charge {
		rate := slow
		rate.Key = key
		r, m := obliged(rate), new(meter)
		name, err := gate.ParseToolName(tool)
		if err != nil {
			t.Fatal(err)
		}
		r.tool.Name = name
		c := newCall()
		who := *c.Who
		who.ID = principal
		c.Who, c.Session = &who, gate.SessionKey{Owner: who.Owner, ID: session}
		if err := m.do(t, r, c); err != nil {
			t.Fatal(err)
		}
		for _, c := range m.charged {
			if c.Rate != nil {
				c.Rate = nil
				return c
			}
		}
		t.Fatal("nothing is charged")
		panic("")
	}
	one := charge(nil, "a", "s", "x__y")
	tests := map[string]struct {
		key      []obligation.RateKey
		together bool
		b        gate.Charge
	}{
		"without a key all":             {nil, true, charge(nil, "b", "t", "z__y")},
		"principal: not another":        {[]obligation.RateKey{obligation.ByPrincipal}, false, charge([]obligation.RateKey{obligation.ByPrincipal}, "b", "s", "x__y")},
		"principal: of any session":     {[]obligation.RateKey{obligation.ByPrincipal}, true, charge([]obligation.RateKey{obligation.ByPrincipal}, "a", "t", "z__y")},
		"session: not another":          {[]obligation.RateKey{obligation.BySession}, false, charge([]obligation.RateKey{obligation.BySession}, "a", "t", "x__y")},
		"session: not another's":        {[]obligation.RateKey{obligation.BySession}, false, charge([]obligation.RateKey{obligation.BySession}, "b", "s", "x__y")},
		"tool: not another":             {[]obligation.RateKey{obligation.ByTool}, false, charge([]obligation.RateKey{obligation.ByTool}, "a", "s", "x__z")},
		"tool: of anybody":              {[]obligation.RateKey{obligation.ByTool}, true, charge([]obligation.RateKey{obligation.ByTool}, "b", "s", "x__y")},
		"server: all of its tools":      {[]obligation.RateKey{obligation.ByServer}, true, charge([]obligation.RateKey{obligation.ByServer}, "a", "s", "x__z")},
		"server: not another":           {[]obligation.RateKey{obligation.ByServer}, false, charge([]obligation.RateKey{obligation.ByServer}, "a", "s", "xx__y")},
		"a session named like a suffix": {[]obligation.RateKey{obligation.ByServer, obligation.BySession}, false, charge([]obligation.RateKey{obligation.ByServer, obligation.BySession}, "a", "s server 1:x", "x__y")},
	}
	for name, tt := range tests {
		first := one
		if tt.key != nil {
			first = charge(tt.key, "a", "s", "x__y")
		}
		if (first == tt.b) != tt.together {
			t.Errorf("%s: %+v and %+v", name, first, tt.b)
		}
	}
}

func TestTooManyRates(t *testing.T) {
	var all []obligation.Obligation
	for i := range 65 {
		rate := slow
		rate.Name = strings.Repeat("x", i)
		all = append(all, rate)
	}
	if _, err := obliged(all...).do(t, newCall()); gate.Code(err) != "refused_authorize" {
		t.Errorf("err = %v", err)
	}
	if err := new(meter).do(t, obliged(all[:64]...), newCall()); err != nil {
		t.Error(err)
	}
}

type ctx = context.Context
