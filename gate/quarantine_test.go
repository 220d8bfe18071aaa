package gate_test

import (
	"errors"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
)

// A tool that its upstream has quarantined is neither listed nor called, whatever
// pins say, and without pins.
func TestDoRefusesWhatIsQuarantined(t *testing.T) {
	for name, pins := range map[string]gate.Pins{"without pins": nil, "pins approve of it": pinsFunc(func(*gate.Tool) error { return nil })} {
		t.Run(name, func(t *testing.T) {
			r := newRig()
			held := *r.tool
			held.Quarantine = "its name looks like another's"
			r.tool = &held
			p := r.parts()
			p.Pins = pins
			g := newGate(t, p)
			_, err := g.Do(t.Context(), newCall())
			var refusal *gate.Refusal
			if !errors.As(err, &refusal) || refusal.Code() != "refused_pin" || refusal.Reason != held.Quarantine {
				t.Errorf("err = %v", err)
			}
			if rec := r.done(t); rec.Code != "refused_pin" {
				t.Errorf("recorded %q", rec.Code)
			}
			if tools, err := g.Tools(t.Context(), gate.Local()); err != nil || len(tools) != 0 {
				t.Errorf("listed %v, %v", tools, err)
			}
		})
	}
}
