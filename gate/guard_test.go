package gate_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/obligation"
)

// A badError is an error whose methods fail, as those of a nil pointer in an
// error do.
type badError struct{}

func (badError) Error() string { panic(internal) }
func (badError) Code() string  { panic(internal) }

// TestDoFailsClosed breaks each method of each collaborator, at each place at
// which a call comes by, in each way, and holds the gate to what it promises
// whatever happens.
func TestDoFailsClosed(t *testing.T) {
	ways := map[string]func(cancel func()) error{
		"fails":           func(func()) error { return errInternal },
		"panics":          func(func()) error { panic(internal) },
		"fails badly":     func(func()) error { return badError{} },
		"fails cancelled": func(cancel func()) error { cancel(); return errInternal },
		"panics with nil": func(func()) error { panic(nil) },
		"panics, an error": func(func()) error {
			var r *rig
			return r.at("")
		},
	}
	sound := newRig()
	if _, err := sound.do(t, newCall()); err != nil {
		t.Fatal(err)
	}
	for i, method := range sound.trace {
		for name, fault := range ways {
			if strings.HasPrefix(name, "fails") && (method == "sanitize" || method == "release") {
				continue // they return no error
			}
			t.Run(fmt.Sprintf("%d %s %s", i, method, name), func(t *testing.T) {
				checkFault(t, i, fault)
			})
		}
	}
}

// checkFault lets the method that is called after n others fail.
func checkFault(t *testing.T, n int, fault func(cancel func()) error) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := newRig()
	r.at = func(string) error {
		if len(r.trace) == n+1 {
			return fault(cancel)
		}
		return nil
	}
	res, err := r.doContext(t, ctx, newCall())
	failed := r.trace[n]

	if failed == "release" { // too late to matter to this call
		if code := gate.Code(err); !slices.Contains(allCodes, code) {
			t.Errorf("code = %q is not in the set", code)
		}
	} else if err == nil || !res.Doc.IsZero() {
		t.Errorf("result = %s, err = %v; want an error alone", res.Doc, err)
	}
	granted := slices.Index(r.trace, "record granted")
	if at := slices.Index(r.trace, "invoke"); at >= 0 && (granted < 0 || granted >= at || failed == "record granted") {
		t.Errorf("the upstream saw a call without a record: %v", r.trace)
	}
	if r.count("invoke") > 1 {
		t.Errorf("the upstream saw the call twice: %v", r.trace)
	}
	if r.count("record done") != 1 || r.trace[len(r.trace)-1] != "record done" {
		t.Errorf("trace = %v, want one done record, as the last", r.trace)
	}
	if taken := r.count("enter") == 1 && failed != "enter"; taken != (r.count("release") == 1) {
		t.Errorf("trace = %v, want a release for what was taken", r.trace)
	}
	if strings.Contains(reason(err), internal) || strings.Contains(reason(err), "goroutine") {
		t.Errorf("the client reads %q", reason(err))
	}
	if failed != "record done" {
		if rec := r.done(t); rec.Err == nil || !slices.Contains(allCodes, rec.Code) || rec.Code == "ok" {
			if failed != "release" {
				t.Errorf("recorded %q, %v", rec.Code, rec.Err)
			}
		}
	}
}

// A guard is one thing that refuses calls: how to make it refuse, and how to
// replace it by one that lets everything by.
type guard struct {
	refuse, remove func(*rig, *gate.Parts)
	code           string
	invoked        bool
}

func guards() map[string]guard {
	decide := func(d gate.Decision) func(*rig, *gate.Parts) {
		return func(r *rig, _ *gate.Parts) { decides(d)(r) }
	}
	fail := func(method string) func(*rig, *gate.Parts) {
		return func(r *rig, _ *gate.Parts) { r.at = on(method, errInternal) }
	}
	allow := decide(gate.Decision{Effect: gate.Allow})
	small := decide(gate.Decision{Effect: gate.Allow, Obligations: []obligation.Obligation{obligation.MaxResult{Bytes: 1}}})
	noRecord := func(_ *rig, p *gate.Parts) {
		p.Recorder = recorderFunc(func(context.Context, *gate.Record) error { return nil })
	}
	stale := func(r *rig, _ *gate.Parts) {
		r.admit = func(s gate.Session, _ gate.Labels) (gate.Session, error) { return s, gate.ErrStale }
	}
	admitAll := func(r *rig, _ *gate.Parts) {
		r.admit = func(s gate.Session, _ gate.Labels) (gate.Session, error) { return s, nil }
	}
	anyInput := func(r *rig, _ *gate.Parts) { r.tool.Input = schemaFunc(func(gate.Doc) error { return nil }) }
	noOutput := func(r *rig, _ *gate.Parts) { r.tool.Output = nil }
	unpinned := func(_ *rig, p *gate.Parts) { p.Pins = pinsFunc(func(*gate.Tool) error { return errInternal }) }
	noPins := func(_ *rig, p *gate.Parts) { p.Pins = nil }
	noLimiter := func(_ *rig, p *gate.Parts) { p.Limiter = nil }
	learnsAll := func(r *rig, _ *gate.Parts) { r.at = nil }
	return map[string]guard{
		"the pins":                       {unpinned, noPins, "refused_pin", false},
		"the authorizer":                 {decide(gate.Decision{Effect: gate.Deny}), allow, "refused_authorize", false},
		"the question to a person":       {decide(gate.Decision{Effect: gate.Ask}), allow, "refused_approve", false},
		"the obligations":                {decide(gate.Decision{Effect: gate.Allow, Obligations: []obligation.Obligation{foreign{}}}), allow, "refused_authorize", false},
		"the input schema":               {fail("input"), anyInput, "refused_validate_input", false},
		"the limiter":                    {fail("enter"), noLimiter, "refused_limit", false},
		"the order of the session":       {stale, admitAll, "refused_authorize", false},
		"the record before the upstream": {fail("record granted"), noRecord, "refused_record", false},
		"the record after it":            {fail("record done"), noRecord, "refused_record", true},
		"the output schema":              {fail("output"), noOutput, "refused_validate_output", true},
		"the bound of the result":        {small, allow, "refused_validate_output", true},
		"what the session learns":        {fail("learn"), learnsAll, "refused_sanitize", true},
	}
}

// TestOneGuardRefuses shows that each refusal is the work of one guard only: with that guard
// removed, the call passes.
func TestOneGuardRefuses(t *testing.T) {
	for name, tt := range guards() {
		t.Run(name, func(t *testing.T) {
			for _, removed := range []bool{false, true} {
				r := newRig()
				p := r.parts()
				tt.refuse(r, &p)
				want, invoked := tt.code, tt.invoked
				if removed {
					tt.remove(r, &p)
					want, invoked = "ok", true
				}
				g := newGate(t, p)
				res, err := g.Do(t.Context(), newCall())
				if got := outcome(res, err); got != want || (r.count("invoke") > 0) != invoked {
					t.Errorf("guard removed: %t: code = %q, invoked = %t; want %q, %t (err: %v)", removed, got, !invoked, want, invoked, err)
				}
			}
		})
	}
}

// TestDoKeepsTheOrder pins the order of the steps, which is part of the
// argument for the gate's security.
func TestDoKeepsTheOrder(t *testing.T) {
	r := newRig()
	answers(`{"structuredContent":"bad"}`)(r)
	r.sanitize = replace("bad", "good")
	if _, err := r.do(t, newCall()); err != nil {
		t.Fatal(err)
	}
	want := "lookup enter view authorize input take admit record granted invoke output sanitize output learn release record done"
	if got := strings.Join(slices.Compact(r.trace), " "); got != want {
		t.Errorf("order:\n got %s\nwant %s", got, want)
	}
}

// The upstream gets, byte for byte, what the policy and the validator saw.
func TestDoForwardsWhatWasJudged(t *testing.T) {
	const args = "{ \"b\" : 1.50,\n\"a\":\"\\u0041\", \"n\":9007199254740993 }"
	r, c := newRig(), newCall()
	c.Args = gate.MustDoc(args)
	seen := map[string]string{}
	r.decide = func(q gate.Query) gate.Decision {
		seen["policy"] = q.Call.Args.String()
		return gate.Decision{Effect: gate.Allow}
	}
	r.input = func(d gate.Doc) error { seen["schema"] = d.String(); return nil }
	r.invoke = func(_ context.Context, c *gate.Call) (gate.Result, error) {
		seen["upstream"] = c.Args.String()
		return answer(`{"structuredContent":1}`), nil
	}
	if _, err := r.do(t, c); err != nil {
		t.Fatal(err)
	}
	for _, who := range []string{"policy", "schema", "upstream"} {
		if seen[who] != args {
			t.Errorf("%s saw %q, want %q", who, seen[who], args)
		}
	}
}

func TestZeroPermitOpensNothing(t *testing.T) {
	if c, tool, ok := (gate.Permit{}).Open(); ok || c != nil || tool != nil {
		t.Errorf("Open() = %v, %v, %t", c, tool, ok)
	}
}

// A limiter that takes and gives nothing back is broken, and a call of it ends
// as a refusal before the upstream, not as a panic after it.
func TestDoNeedsARelease(t *testing.T) {
	r := newRig()
	p := r.parts()
	p.Limiter = limiterFunc(func(gate.Entry) (gate.Slot, error) { return nil, nil })
	g := newGate(t, p)
	if _, err := g.Do(t.Context(), newCall()); gate.Code(err) != "refused_limit" || r.count("invoke") > 0 {
		t.Errorf("err = %v, trace = %v; want refused_limit before the upstream", err, r.trace)
	}
}

type limiterFunc func(gate.Entry) (gate.Slot, error)

func (f limiterFunc) Enter(_ context.Context, e gate.Entry) (gate.Slot, error) { return f(e) }

// A call takes one slot for its caller, and then what it needs of its server and its tool.
func TestLimiterIsAskedForOneSlot(t *testing.T) {
	r := newRig()
	p := r.parts()
	c := newCall()
	var asked []any
	p.Limiter = limiterFunc(func(e gate.Entry) (gate.Slot, error) {
		asked = append(asked, e)
		return &slot{charge: func(c gate.Charges) error { asked = append(asked, c); return nil }}, nil
	})
	want := []any{gate.Entry{Limit: gate.LimitConcurrent, Caller: c.Caller(), Session: c.Session}, gate.Charges{Server: "files", Tool: "files__read"}}
	g := newGate(t, p)
	if _, err := g.Do(t.Context(), c); err != nil || !reflect.DeepEqual(asked, want) {
		t.Errorf("asked for %+v, %v; want %+v", asked, err, want)
	}
}

// A panic is not lost: its value and place are in the record, for the operator.
func TestDoRecordsPanics(t *testing.T) {
	for _, method := range []string{"lookup", "authorize", "invoke", "learn"} {
		r := newRig()
		r.at = func(m string) error {
			if m == method {
				panic(internal)
			}
			return nil
		}
		_, err := r.do(t, newCall())
		if rec := r.done(t); rec.Err == nil || !strings.Contains(rec.Err.Error(), internal) || !strings.Contains(rec.Err.Error(), "guard_test.go") {
			t.Errorf("%s panics: recorded %v (err: %v)", method, rec.Err, err)
		}
		// An error of the upstream is its failure, not a refusal.
		if _, refusal := errors.AsType[*gate.Refusal](err); refusal == (method == "invoke") {
			t.Errorf("%s panics: err = %v, a refusal: %t", method, err, refusal)
		}
	}
}
