package gate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/gate/tracing"
)

func TestDoRecordsEachStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := strings.Fields("parse lookup limit authorize validate_input limit authorize record invoke validate_output sanitize")
		tests := map[string]struct {
			at    string // the method that fails, after one second
			steps int
		}{
			"all of them":                  {"", len(all)},
			"up to the lookup":             {"lookup", 2},
			"up to the decision":           {"authorize", 4},
			"up to the upstream":           {"invoke", 9},
			"up to what the session knows": {"learn", 11},
		}
		for name, tt := range tests {
			r := newRig()
			r.at = func(m string) error {
				if m == tt.at {
					time.Sleep(time.Second)
					return errInternal
				}
				return nil
			}
			r.do(t, newCall())
			var steps []string
			var took time.Duration
			for _, s := range r.done(t).Steps {
				steps, took = append(steps, string(s.Step)), took+s.Took
			}
			if diff := cmp.Diff(all[:tt.steps], steps); diff != "" {
				t.Errorf("%s: steps (-want +got):\n%s", name, diff)
			}
			if took != r.done(t).Took {
				t.Errorf("%s: the steps took %v, the call %v", name, took, r.done(t).Took)
			}
		}
	})
}

func TestDoRecordsTheEvidence(t *testing.T) {
	r, c := newRig(), newCall()
	c.ID = ""
	r.session = gate.Session{Version: 7, Labels: gate.NewLabels("seen")}
	decides(gate.Decision{Effect: gate.Allow, Labels: gate.NewLabels("given"), Revision: "rev"})(r)
	r.invoke = func(context.Context, *gate.Call) (gate.Result, error) {
		res := answer(`{"structuredContent":1}`)
		res.Usage = gate.Usage{Fuel: 5, MemoryPeak: 6}
		return res, nil
	}
	p := r.parts()
	p.TrackValues = true
	g := newGate(t, p)
	if _, err := g.Do(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	granted, done := r.records[0], r.records[1]
	for _, rec := range r.records {
		if len(rec.Call.ID) != 36 || rec.Call.ID != granted.Call.ID || rec.Tool != r.tool || rec.Snapshot != "s1" ||
			rec.Session.Version != 7 || rec.Decision.Revision != "rev" || !rec.After.Cover(gate.NewLabels("given", "seen")) {
			t.Errorf("record = %+v", rec)
		}
	}
	if granted.Code != "" || !granted.Result.IsZero() || len(granted.Steps) != 7 {
		t.Errorf("granted = %+v, want no outcome and the steps so far", granted)
	}
	if done.Usage != (gate.Usage{Fuel: 5, MemoryPeak: 6}) {
		t.Errorf("usage = %+v", done.Usage)
	}
	if !done.After.Cover(r.tool.Teaches) {
		t.Errorf("labels after = %v, want what the result taught, %v", done.After, r.tool.Teaches)
	}
	if diff := cmp.Diff([]string{c.Args.String(), `{"structuredContent":1}`}, []string{r.learned[0].String(), r.learned[1].String()}); diff != "" || !r.taught.Cover(r.tool.Teaches) {
		t.Errorf("learned %v, %v", r.learned, r.taught)
	}
}

// What a sandboxed call used is evidence above all when its result is refused.
func TestDoRecordsUsageOfRefusedResults(t *testing.T) {
	usage := gate.Usage{Fuel: 5, MemoryPeak: 6}
	for name, tt := range map[string]struct {
		res string
		err error
	}{
		"the result is refused": {`{}`, nil},
		"the sandbox trapped":   {``, codedError("trap_fuel")},
	} {
		r := newRig()
		r.invoke = func(context.Context, *gate.Call) (gate.Result, error) {
			if tt.err != nil {
				return gate.Result{Usage: usage}, tt.err
			}
			return gate.Result{Doc: gate.MustDoc(tt.res), Usage: usage}, nil
		}
		if _, err := r.do(t, newCall()); err == nil || r.done(t).Usage != usage {
			t.Errorf("%s: err = %v, usage = %+v, want %+v", name, err, r.done(t).Usage, usage)
		}
	}
}

func TestDoRecordsTheMistakeThatAWarningLetsPass(t *testing.T) {
	r := newRig()
	r.tool.OutputWarn = true
	r.at = on("output", doc.Violations{{Pointer: "/a", Message: internal}})
	res, err := r.do(t, newCall())
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(res.Doc.String(), internal) || !strings.Contains(res.Doc.String(), "schema/output") {
		t.Errorf("result = %s, want a finding without the operator's words", res.Doc)
	}
	if rec := r.done(t); rec.Code != "ok" || rec.Err == nil || !strings.Contains(rec.Err.Error(), internal) {
		t.Errorf("recorded %q, %v; want ok, and the violations for the operator", rec.Code, rec.Err)
	}
}

func TestDoRecordsAfterTheClientHasGone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	alive := false
	p := newRig().parts()
	p.Recorder = recorderFunc(func(ctx context.Context, _ *gate.Record) error { alive = ctx.Err() == nil; return nil })
	g := newGate(t, p)
	if g.Do(ctx, newCall()); !alive {
		t.Error("the record's context ended with the call's")
	}
}

type recorderFunc func(context.Context, *gate.Record) error

func (f recorderFunc) Record(ctx context.Context, r *gate.Record) error { return f(ctx, r) }

// A call that its server has had is not refused in the words of one that never left.
func TestDoTellsWhatWasCarriedOut(t *testing.T) {
	const maybe = "the call was sent and failed, perhaps after it was carried out, and the audit log cannot be written; see what it has done before you call again"
	full := func(event string) func(*rig) {
		return func(r *rig) { r.at = on("record "+event, errInternal) }
	}
	both := func(method string, err error) func(*rig) {
		return func(r *rig) {
			r.at = func(m string) error {
				if m == "record done" {
					return errInternal
				}
				return on(method, err)(m)
			}
		}
	}
	for name, tt := range map[string]struct {
		change  func(*rig)
		reason  string
		invoked bool
	}{
		"it was not let pass":                  {full("granted"), "the audit log cannot be written", false},
		"it was denied":                        {both("authorize", errInternal), "the audit log cannot be written", false},
		"it was carried out":                   {full("done"), withheld, true},
		"its result was refused":               {both("output", errInternal), withheld, true},
		"its server failed":                    {both("invoke", codedError("transport")), maybe, true},
		"its server took too long":             {both("invoke", context.DeadlineExceeded), maybe, true},
		"its server panicked":                  {both("invoke", errInternal), maybe, true},
		"its server could not be reached":      {both("invoke", codedError("not_connected")), "the audit log cannot be written", false},
		"its server could not even be started": {both("invoke", codedError("spawn_failed")), "the audit log cannot be written", false},
	} {
		r := newRig()
		tt.change(r)
		_, err := r.do(t, newCall())
		refusal, ok := errors.AsType[*gate.Refusal](err)
		if !ok || gate.Code(err) != "refused_record" || refusal.Reason != tt.reason || refusal.Invoked != tt.invoked {
			t.Errorf("%s: %+v, want %q, invoked %t", name, refusal, tt.reason, tt.invoked)
		}
	}
}

// The calls before and after the one that could not be recorded are as ever.
func TestRecorderFailsInTurn(t *testing.T) {
	r := newRig()
	n := 0
	r.at = func(m string) error {
		if !strings.HasPrefix(m, "record") {
			return nil
		}
		if n++; n%3 == 0 {
			return errInternal
		}
		return nil
	}
	var got []string
	for range 6 { // granted and done in turn; each third record fails
		_, err := r.do(t, newCall())
		refusal, _ := errors.AsType[*gate.Refusal](err)
		got = append(got, fmt.Sprint(gate.Code(err), " ", refusal != nil && refusal.Invoked))
	}
	// 1 granted, 2 done; 3 granted fails, 4 done; 5 granted, 6 done fails; ...
	want := []string{"ok false", "refused_record false", "refused_record true", "ok false", "refused_record false", "refused_record true"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestTraceOfRecords: each record of a call has its trace.
func TestTraceOfRecords(t *testing.T) {
	r := newRig()
	c := newCall()
	c.Trace = tracing.Context{ID: [16]byte{1}, Server: [8]byte{2}, Client: [8]byte{3}, Sampled: true}
	if _, err := r.do(t, c); err != nil {
		t.Fatal(err)
	}
	for _, rec := range r.records {
		if rec.Call.Trace != c.Trace {
			t.Errorf("%s has the trace %v", rec.Event, rec.Call.Trace)
		}
	}
}
