package gate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/gate/obligation"
	"github.com/wasmgate/wasmgate/gate/provenance"
)

// Whatever way two packs are put together, both of their bounds hold.
func TestDoMeetsAllObligations(t *testing.T) {
	for _, sizes := range [][]int64{{10, 1 << 20}, {1 << 20, 10}} {
		var o []obligation.Obligation
		for _, n := range sizes {
			o = append(o, obligation.MaxResult{Bytes: n})
		}
		r := newRig()
		decides(gate.Decision{Effect: gate.Allow, Obligations: o})(r)
		if _, err := r.do(t, newCall()); gate.Code(err) != "refused_validate_output" {
			t.Errorf("results of at most %d bytes: code = %q, want refused_validate_output", sizes, gate.Code(err))
		}
	}
	for _, after := range [][]time.Duration{{time.Second, time.Hour}, {time.Hour, time.Second}} {
		r := newRig()
		decides(gate.Decision{Effect: gate.Allow, Obligations: []obligation.Obligation{obligation.Timeout{After: after[0]}, obligation.Timeout{After: after[1]}}})(r)
		r.invoke = func(ctx context.Context, _ *gate.Call) (gate.Result, error) {
			if d, ok := ctx.Deadline(); !ok || time.Until(d) > time.Minute {
				t.Errorf("timeouts %v: deadline in %v, want the nearest", after, time.Until(d))
			}
			return answer(`{"structuredContent":1}`), nil
		}
		if _, err := r.do(t, newCall()); err != nil {
			t.Errorf("timeouts %v: %v", after, err)
		}
	}
	r := newRig()
	decides(gate.Decision{Effect: gate.Allow, Obligations: []obligation.Obligation{obligation.Profile{Name: "text"}, obligation.Profile{Name: "strict"}}})(r)
	if _, err := r.do(t, newCall()); err == nil || r.count("invoke") > 0 {
		t.Errorf("two profiles: err = %v, want a refusal before the upstream: both cannot be met", err)
	}
}

func TestDoCancelled(t *testing.T) {
	tests := map[string]struct {
		at      string // the method during which the client goes; "" is before
		code    string
		invoked bool
		events  []gate.Event
	}{
		"before":                {"", "cancelled", false, refused},
		"during the decision":   {"authorize", "cancelled", false, refused},
		"while taking a slot":   {"enter", "cancelled", false, refused},
		"while charged":         {"take", "cancelled", false, refused},
		"during the admission":  {"admit", "cancelled", false, refused},
		"at the upstream":       {"invoke", "cancelled", true, through},
		"after the answer came": {"output", "ok", true, through},
		"while it is recorded":  {"record done", "ok", true, through},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r := newRig()
			if tt.at == "" {
				cancel()
			}
			r.at = func(m string) error {
				if m == tt.at {
					cancel()
				}
				if m == "invoke" {
					return ctx.Err()
				}
				return nil // an answer that came in time although the client has gone
			}
			res, err := r.doContext(t, ctx, newCall())
			if got := outcome(res, err); got != tt.code || r.done(t).Code != tt.code {
				t.Errorf("code = %q, recorded %q; want %q", got, r.done(t).Code, tt.code)
			}
			if tt.code == "cancelled" && !errors.Is(err, context.Canceled) {
				t.Errorf("err = %v, want context.Canceled in it", err)
			}
			if got := r.count("invoke") > 0; got != tt.invoked {
				t.Errorf("invoked = %t, want %t", got, tt.invoked)
			}
			if diff := cmp.Diff(tt.events, r.events()); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// The client's going must not hide from the operator what went wrong.
func TestDoKeepsTheCauseOfACancelledCall(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := newRig()
	r.at = func(m string) error {
		if m != "output" {
			return nil
		}
		cancel()
		return doc.Violations{{Pointer: "/a", Message: internal}}
	}
	_, err := r.doContext(t, ctx, newCall())
	if got := r.done(t); got.Code != "cancelled" || !strings.Contains(got.Err.Error(), internal) {
		t.Errorf("recorded %q, %v; want cancelled and what the output broke", got.Code, err)
	}
}

func TestDoBoundsTheUpstreamsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		decides(gate.Decision{Effect: gate.Allow, Obligations: []obligation.Obligation{obligation.Timeout{After: 3 * time.Second}}})(r)
		r.invoke = func(ctx context.Context, _ *gate.Call) (gate.Result, error) {
			<-ctx.Done()
			return gate.Result{}, ctx.Err()
		}
		_, err := r.do(t, newCall())
		if got := r.done(t); gate.Code(err) != "timeout" || got.Code != "timeout" || got.Took != 3*time.Second {
			t.Errorf("err = %v, recorded %q after %v; want timeout after 3s", err, got.Code, got.Took)
		}
	})
}

func TestDoDecidesAgainWhenTheSessionChanged(t *testing.T) {
	tests := map[string]struct {
		stale     int // how often the session has changed; -1 for ever
		deny      gate.Effect
		code      string
		decisions int
		invoked   bool
	}{
		"not at all":                   {0, "", "ok", 1, true},
		"once":                         {1, "", "ok", 2, true},
		"eight times":                  {8, "", "ok", 9, true},
		"for ever":                     {-1, "", "refused_authorize", 9, false},
		"the new label denies":         {1, gate.Deny, "refused_authorize", 2, false},
		"the new label asks":           {1, gate.Ask, "refused_approve", 2, false},
		"the new label is not defined": {1, "?", "refused_authorize", 2, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRig()
			r.decide = func(q gate.Query) gate.Decision {
				if tt.deny != "" && q.Session.Labels.Cover(gate.NewLabels(provenance.Untrusted)) {
					return gate.Decision{Effect: tt.deny, Labels: gate.NewLabels(fmt.Sprint("v", q.Session.Version))}
				}
				return gate.Decision{Effect: gate.Allow, Labels: gate.NewLabels(fmt.Sprint("v", q.Session.Version))}
			}
			admits := 0
			r.admit = func(s gate.Session, l gate.Labels) (gate.Session, error) {
				if s.Version != uint64(admits) || !slices.Equal(l, gate.NewLabels(provenance.Untrusted, fmt.Sprint("v", admits))) {
					t.Errorf("admission %d of version %d with labels %v", admits, s.Version, l)
				}
				if admits++; tt.stale < 0 || admits <= tt.stale {
					s.Version++
					s.Labels = gate.NewLabels(provenance.Untrusted)
					return s, fmt.Errorf("store: %w", gate.ErrStale)
				}
				s.Labels = s.Labels.Join(l)
				return s, nil
			}
			res, err := r.do(t, newCall())
			if got := outcome(res, err); got != tt.code {
				t.Errorf("code = %q, want %q (err: %v)", got, tt.code, err)
			}
			if got := r.count("authorize"); got != tt.decisions {
				t.Errorf("decided %d times, want %d", got, tt.decisions)
			}
			if got := r.count("invoke") > 0; got != tt.invoked {
				t.Errorf("invoked = %t, want %t", got, tt.invoked)
			}
			rec := r.done(t)
			if tt.stale > 0 && !rec.Session.Labels.Cover(gate.NewLabels(provenance.Untrusted)) {
				t.Errorf("recorded session = %v, want the one that was decided on", rec.Session)
			}
			if want := fmt.Sprint("v", tt.stale); tt.invoked && !slices.Contains(rec.After, want) {
				t.Errorf("labels after = %v, want %s among them", rec.After, want)
			}
			if r.count("release") != r.count("enter") {
				t.Errorf("trace = %v, want what was taken released", r.trace)
			}
		})
	}
}

// A decision that could not be taken again leaves nothing of the one before.
func TestDoForgetsADecisionThatIsStale(t *testing.T) {
	r := newRig()
	r.admit = func(s gate.Session, _ gate.Labels) (gate.Session, error) { return s, gate.ErrStale }
	r.at = func(m string) error {
		if m == "authorize" && r.count(m) == 2 {
			return errInternal
		}
		return nil
	}
	_, err := r.do(t, newCall())
	if gate.Code(err) != "refused_authorize" || r.count("invoke") > 0 {
		t.Errorf("err = %v, want refused_authorize before the upstream", err)
	}
	if d := r.done(t).Decision; d.Effect == gate.Allow {
		t.Errorf("recorded the decision %+v, which did not stand", d)
	}
}

// A session that forgets is broken: labels only rise.
func TestDoRefusesASessionThatLosesLabels(t *testing.T) {
	r := newRig()
	r.session.Labels = gate.NewLabels(provenance.Untrusted)
	r.admit = func(s gate.Session, _ gate.Labels) (gate.Session, error) {
		if len(s.Labels) > 0 {
			return gate.Session{Version: 1}, gate.ErrStale
		}
		return s, nil
	}
	if _, err := r.do(t, newCall()); gate.Code(err) != "refused_authorize" || r.count("invoke") > 0 {
		t.Errorf("err = %v, want refused_authorize before the upstream", err)
	}
}
