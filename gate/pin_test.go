package gate_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/step"
)

type pinsFunc func(*gate.Tool) error

func (f pinsFunc) Check(t *gate.Tool) error { return f(t) }

func gateWithPins(t *testing.T, r *rig, f pinsFunc) *gate.Gate {
	t.Helper()
	p := r.parts()
	p.Pins = f
	g := newGate(t, p)
	return g
}

// A tool that is not approved is refused before a policy is asked, with what the operator can do
// about it, and recorded.
func TestDoRefusesWhatIsNotPinned(t *testing.T) {
	for name, tt := range map[string]struct {
		err            error
		reason, remedy string
	}{
		"by pins that say why": {&gate.Unpinned{Reason: "it is new", Remedy: "approve it", Err: errInternal}, "it is new", "approve it"},
		"by pins that do not":  {errInternal, "the tool's definition is not approved", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig()
			_, err := gateWithPins(t, r, func(*gate.Tool) error { return tt.err }).Do(t.Context(), newCall())
			var refusal *gate.Refusal
			if !errors.As(err, &refusal) {
				t.Fatalf("err = %v", err)
			}
			if refusal.Step != step.Pin || refusal.Reason != tt.reason || refusal.Remedy != tt.remedy || refusal.Hidden {
				t.Errorf("refusal = %+v", refusal)
			}
			if strings.Join(r.trace, " ") != "lookup sanitize visible record done" {
				t.Errorf("trace = %v", r.trace)
			}
			if rec := r.done(t); rec.Code != "refused_pin" || rec.Tool != r.tool || rec.Err == nil {
				t.Errorf("recorded %q, %v", rec.Code, rec.Err)
			}
		})
	}
}

// A caller that could not call the tool either way does not learn that there is one.
func TestDoHidesWhatIsNotPinnedFromWhoMayNotSeeIt(t *testing.T) {
	r := newRig()
	r.at = on("visible", errInternal)
	_, err := gateWithPins(t, r, func(*gate.Tool) error { return &gate.Unpinned{Reason: "it is new", Remedy: "approve it"} }).Do(t.Context(), newCall())
	var refusal *gate.Refusal
	if !errors.As(err, &refusal) || !refusal.Hidden || refusal.Reason != "no such tool" || refusal.Remedy != "" || refusal.Code() != "refused_pin" {
		t.Errorf("refusal = %+v", refusal)
	}
}

func TestPinsThatPanicRefuse(t *testing.T) {
	r := newRig()
	g := gateWithPins(t, r, func(*gate.Tool) error { panic(internal) })
	if _, err := g.Do(t.Context(), newCall()); gate.Code(err) != "refused_pin" || r.count("invoke") > 0 || strings.Contains(reason(err), internal) {
		t.Errorf("err = %v, trace = %v", err, r.trace)
	}
	if tools, err := g.Tools(t.Context(), gate.Local()); err == nil || tools != nil {
		t.Errorf("listed %v, %v", tools, err)
	}
}

// A listing has what is approved, and nothing else.
func TestToolsAreThoseThatArePinned(t *testing.T) {
	for _, approved := range []bool{true, false} {
		r := newRig()
		g := gateWithPins(t, r, func(t *gate.Tool) error {
			if approved && t == r.tool {
				return nil
			}
			return errInternal
		})
		tools, err := g.Tools(t.Context(), gate.Local())
		if err != nil || (len(tools) == 1) != approved {
			t.Errorf("approved: %t; listed %v, %v", approved, tools, err)
		}
	}
}
