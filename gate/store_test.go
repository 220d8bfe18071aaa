package gate_test

import (
	"context"
	"errors"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/codes"
	"github.com/wasmgate/wasmgate/gate/step"
)

const (
	storeAway     = "the database that the gateways share cannot be used now; try again later"
	storeWithheld = "the call was carried out, and its result is withheld because the database that the gateways share cannot be used now; see what it has done before you call again"
)

// errStore is of a database that several gateways share.
var errStore error = codedError("refused_store")

// If a session cannot be read or written, nothing passes, and the client learns whether
// it may call again.
func TestStoreAway(t *testing.T) {
	prompted := func(r *rig, p *gate.Parts, c *gate.Call) { p.TrackValues, c.Prompt = true, "the user's own words" }
	tests := map[string]struct {
		method  string // that fails
		change  func(*rig, *gate.Parts, *gate.Call)
		invoked bool
	}{
		"the session cannot be read":          {method: "view"},
		"the call cannot be admitted":         {method: "admit"},
		"the prompt cannot be kept":           {method: "learn", change: prompted},
		"the arguments cannot be vouched for": {method: "learn", change: func(_ *rig, p *gate.Parts, _ *gate.Call) { p.TrackValues = true }},
		"the result cannot be learned":        {method: "learn", invoked: true},
		"a person cannot be asked": {change: func(r *rig, p *gate.Parts, _ *gate.Call) {
			r.decide = func(gate.Query) gate.Decision { return gate.Decision{Effect: gate.Ask} }
			p.Approver = approverFunc(func(context.Context, gate.Question) (gate.Approval, error) { return gate.Approval{}, errStore })
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r, c := newRig(), newCall()
			r.at = on(tt.method, errStore)
			p := r.parts()
			if tt.change != nil {
				tt.change(r, &p, &c)
			}
			_, err := newGate(t, p).Do(t.Context(), c)
			refused, ok := errors.AsType[*gate.Refusal](err)
			if !ok || refused.Step != step.Store || gate.Code(err) != "refused_store" || !errors.Is(err, errStore) {
				t.Fatalf("error %v, want refused_store", err)
			}
			want := storeAway
			if tt.invoked {
				want = storeWithheld
			}
			if refused.Invoked != tt.invoked || gate.Retryable(err) == tt.invoked || (refused.RetryAfter > 0) == tt.invoked || refused.Reason != want {
				t.Errorf("%+v, retryable %t", refused, gate.Retryable(err))
			}
			if n := r.count("invoke"); n > 0 != tt.invoked {
				t.Errorf("the upstream had %d calls", n)
			}
			if done := r.done(t); done.Code != "refused_store" || done.Reason != want || !errors.Is(done.Err, errStore) {
				t.Errorf("recorded %s, %q, %v", done.Code, done.Reason, done.Err)
			}
		})
	}
}

func TestStoreAwayOfWhatIsNested(t *testing.T) {
	for _, method := range []string{"view", "admit"} {
		var got error
		r := newHostRig(&got)
		at := nth(method, 2)
		r.at = func(m string) error {
			if at(m) != nil {
				return errStore
			}
			return nil
		}
		if _, err := r.do(t, newCall()); err != nil || gate.Code(got) != "refused_store" || r.count("effect") > 0 {
			t.Errorf("%s: the call %v, the host call %v, %d effects", method, err, got, r.count("effect"))
		}
	}
}

// A caller that has left learns nothing of it, and a failure of the upstream is the upstream's.
func TestStoreAwayIsNotAll(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := newRig()
	r.at = func(method string) error {
		if method != "admit" {
			return nil
		}
		cancel()
		return errStore
	}
	if _, err := r.doContext(t, ctx, newCall()); gate.Code(err) != codes.Cancelled || r.count("invoke") > 0 {
		t.Errorf("error %v, want cancelled", err)
	}
	r = newRig()
	r.at = on("invoke", errStore)
	_, err := r.do(t, newCall())
	if _, refused := errors.AsType[*gate.Refusal](err); refused {
		t.Errorf("an error of the upstream is a refusal: %v", err)
	}
}
