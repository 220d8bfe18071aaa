package gate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/codes"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/gate/obligation"
)

var (
	refused = []gate.Event{gate.Done}
	through = []gate.Event{gate.Granted, gate.Done}
)

const undecidable = "the policy cannot be evaluated for this call; tell your user that the audit log has the reason, under error"

// A doTest is one call through a rig that was changed for it.
type doTest struct {
	change  func(*rig)
	call    func(*gate.Call)
	code    string
	reason  string // what the client reads of a refusal; "" if there is none
	invoked bool
	events  []gate.Event
}

func (tt doTest) run(t *testing.T) {
	r, c := newRig(), newCall()
	if tt.change != nil {
		tt.change(r)
	}
	if tt.call != nil {
		tt.call(&c)
	}
	res, err := r.do(t, c)
	if err == nil && (res.Doc.IsZero() || r.done(t).Result.String() != res.Doc.String()) {
		t.Errorf("result = %s, recorded %s", res.Doc, r.done(t).Result)
	}
	if err != nil && !cmp.Equal(res, gate.Result{}, cmpopts.EquateComparable(gate.Doc{})) {
		t.Errorf("result = %v beside the error %v", res, err)
	}
	if got := outcome(res, err); got != tt.code {
		t.Errorf("code = %q, want %q (err: %v)", got, tt.code, err)
	}
	if got := reason(err); got != tt.reason {
		t.Errorf("reason = %q, want %q", got, tt.reason)
	}
	if got := r.count("invoke") > 0; got != tt.invoked {
		t.Errorf("invoked = %t, want %t", got, tt.invoked)
	}
	if diff := cmp.Diff(tt.events, r.events()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if n := len(r.records); n > 0 && r.records[n-1].Event == gate.Done {
		if rec := r.records[n-1]; rec.Code != tt.code || rec.Reason != tt.reason {
			t.Errorf("recorded %q, %q; want %q, %q", rec.Code, rec.Reason, tt.code, tt.reason)
		}
	}
	if took, gave := r.count("enter"), r.count("release"); gave > took {
		t.Errorf("took %d times and released %d times", took, gave)
	}
}

func outcome(res gate.Result, err error) string {
	if err == nil && res.IsError {
		return codes.ToolError
	}
	return gate.Code(err)
}

func reason(err error) string {
	if r, ok := errors.AsType[*gate.Refusal](err); ok {
		return r.Reason
	}
	return ""
}

func decides(d gate.Decision) func(*rig) {
	return func(r *rig) { r.decide = func(gate.Query) gate.Decision { return d } }
}

func fails(method string, err error) func(*rig) {
	return func(r *rig) { r.at = on(method, err) }
}

func answers(s string) func(*rig) {
	return func(r *rig) {
		r.invoke = func(context.Context, *gate.Call) (gate.Result, error) { return answer(s), nil }
	}
}

// foreign is an obligation that the gate cannot know: embedding gives a type of
// another package the unexported method.
type foreign struct{ obligation.Obligation }

func TestDoDecides(t *testing.T) {
	const unable = "the policy demands what this gateway cannot do"
	with := func(o obligation.Obligation) func(*rig) {
		return decides(gate.Decision{Effect: gate.Allow, Obligations: []obligation.Obligation{o}})
	}
	tests := map[string]doTest{
		"allowed":                   {code: "ok", invoked: true, events: through},
		"no arguments count as {}":  {call: func(c *gate.Call) { c.Args = gate.Doc{} }, code: "ok", invoked: true, events: through},
		"denied with two reasons":   {change: decides(gate.Decision{Effect: gate.Deny, Reasons: []string{"a", "b"}}), code: "refused_authorize", reason: "a; b", events: refused},
		"denied without a reason":   {change: decides(gate.Decision{Effect: gate.Deny}), code: "refused_authorize", reason: "not allowed by policy", events: refused},
		"undefined":                 {change: decides(gate.Decision{}), code: "refused_authorize", reason: "not allowed by policy", events: refused},
		"an effect that is unknown": {change: decides(gate.Decision{Effect: "permit"}), code: "refused_authorize", reason: "not allowed by policy", events: refused},
		"ask":                       {change: decides(gate.Decision{Effect: gate.Ask}), code: "refused_approve", reason: "this call needs approval, and this gateway has no way to ask a person", events: refused},
		"nobody is asked about a call that cannot run": {change: func(r *rig) {
			decides(gate.Decision{Effect: gate.Ask})(r)
			r.input = func(gate.Doc) error { return doc.Violations{{Pointer: "/path", Message: "too long"}} }
		}, code: "refused_validate_input", reason: "the arguments break the tool's input schema: /path: too long", events: refused},
		"policy fails, whatever it decided": {change: fails("authorize", errInternal), code: "refused_authorize", reason: undecidable, events: refused},
		"policy fails over broken arguments": {change: func(r *rig) {
			fails("authorize", errInternal)(r)
			r.input = func(gate.Doc) error { return doc.Violations{{Pointer: "/path", Message: "expected string"}} }
		}, code: "refused_validate_input", reason: "the arguments break the tool's input schema: /path: expected string", events: refused},
		"policy fails over broken arguments, and over who sees the tool": {change: func(r *rig) {
			r.at = func(method string) error {
				if method == "authorize" || method == "visible" {
					return errInternal
				}
				return nil
			}
			r.input = func(gate.Doc) error { return doc.Violations{{Pointer: "/path", Message: "expected string"}} }
		}, code: "refused_authorize", reason: undecidable, events: refused},
		"a policy that is overdue denies nothing": {change: fails("authorize", fmt.Errorf("after 500ms: %w", gate.ErrOverdue)), code: "refused_busy", reason: "the gateway is too busy to decide on the call; try again", events: refused},
		"session cannot be viewed":                {change: fails("view", errInternal), code: "refused_authorize", reason: "the session's state cannot be read", events: refused},
		"session cannot be kept":                  {change: fails("admit", errInternal), code: "refused_authorize", reason: "the session's state cannot be stored", events: refused},
		"an obligation of another package":        {change: with(foreign{}), code: "refused_authorize", reason: unable, events: refused},
		"an obligation that is nil":               {change: with(nil), code: "refused_authorize", reason: unable, events: refused},
		"a pointer to an obligation":              {change: with(&obligation.MaxResult{Bytes: 1 << 20}), code: "refused_authorize", reason: unable, events: refused},
	}
	for name, tt := range tests {
		t.Run(name, tt.run)
	}
}

const withheld = "the call was carried out, and its result is withheld because the audit log cannot be written; see what it has done before you call again"

func TestDoChecksBeforeTheUpstream(t *testing.T) {
	tests := map[string]doTest{
		"malformed":               {call: func(c *gate.Call) { c.Args, c.Refused = gate.Doc{}, errInternal }, code: "refused_parse", reason: "the arguments are not an acceptable JSON object", events: refused},
		"arguments are an array":  {call: func(c *gate.Call) { c.Args = gate.MustDoc("[]") }, code: "refused_parse", reason: "the arguments are not an acceptable JSON object", events: refused},
		"arguments are null":      {call: func(c *gate.Call) { c.Args = gate.MustDoc("null") }, code: "refused_parse", reason: "the arguments are not an acceptable JSON object", events: refused},
		"unknown":                 {change: fails("lookup", fmt.Errorf("%s: %w", internal, gate.ErrUnknown)), code: "refused_lookup", reason: "no such tool", events: refused},
		"lookup fails":            {change: fails("lookup", errInternal), code: "refused_lookup", reason: "no such tool", events: refused},
		"input schema is missing": {change: func(r *rig) { r.tool.Input = nil }, code: "refused_validate_input", reason: "the tool has no usable input schema", events: refused},
		"input cannot be checked": {change: fails("input", errInternal), code: "refused_validate_input", reason: "the arguments cannot be checked against the tool's input schema", events: refused},
		"input breaks its schema": {change: fails("input", doc.Violations{{Pointer: "", Message: "no"}, {Pointer: "/a", Message: "not a string"}}),
			code: "refused_validate_input", reason: "the arguments break the tool's input schema: (root): no; /a: not a string", events: refused},
		"no slot": {change: fails("enter", fmt.Errorf("%s: %w", internal, gate.ErrBusy)), code: "refused_busy", reason: "the gateway is busy; try again later", events: refused},
		"no slot, and the tool is hidden": {change: func(r *rig) {
			fails("enter", fmt.Errorf("%s: %w", internal, gate.ErrBusy))(r)
			r.hides = true
		}, code: "refused_busy", reason: "no such tool", events: refused},
		"busy":             {change: fails("take", fmt.Errorf("%s: %w", internal, gate.ErrBusy)), code: "refused_busy", reason: "the gateway is busy; try again later", events: refused},
		"log full at once": {change: fails("record granted", errInternal), code: "refused_record", reason: "the audit log cannot be written", events: refused},
		"log full throughout": {change: func(r *rig) {
			r.at = func(m string) error {
				if strings.HasPrefix(m, "record") {
					return errInternal
				}
				return nil
			}
		}, code: "refused_record", reason: "the audit log cannot be written"},
		"log full afterwards":     {change: fails("record done", errInternal), code: "refused_record", reason: withheld, invoked: true, events: []gate.Event{gate.Granted}},
		"denied and the log full": {change: func(r *rig) { decides(gate.Decision{})(r); fails("record done", errInternal)(r) }, code: "refused_record", reason: "the audit log cannot be written"},
	}
	for name, tt := range tests {
		t.Run(name, tt.run)
	}
}

func TestDoChecksTheAnswer(t *testing.T) {
	const (
		broken = "the result breaks the output schema that the tool declares; the server has carried out the call"
		at     = "the result breaks the output schema that the tool declares, at %s; the server has carried out the call"
		dirty  = `{"content":[],"structuredContent":{"a":"bad"}}`
	)
	violated := fails("output", doc.Violations{{Pointer: "/a/0/words of the server", Message: internal}})
	names := func(schema string) func(*rig) {
		return func(r *rig) {
			violated(r)
			r.tool.Definition = gate.MustDoc(`{"outputSchema":` + schema + `}`)
		}
	}
	warn := func(r *rig) { r.tool.OutputWarn = true }
	both := func(changes ...func(*rig)) func(*rig) {
		return func(r *rig) {
			for _, change := range changes {
				change(r)
			}
		}
	}
	short := decides(gate.Decision{Effect: gate.Allow, Obligations: []obligation.Obligation{obligation.MaxResult{Bytes: 10}}})
	scrub := func(r *rig) { r.sanitize = replace("bad", "[removed]") }
	notBad := func(r *rig) {
		r.output = func(d gate.Doc) error {
			if d.Get("a").Text() != "bad" {
				return doc.Violations{{Pointer: "/a", Message: internal}}
			}
			return nil
		}
	}
	tests := map[string]doTest{
		"output breaks its schema":            {change: names(`{"properties":{"a":{}}}`), code: "refused_validate_output", reason: fmt.Sprintf(at, "/a/0")},
		"at a name that the schema has not":   {change: names(`{"type":"object"}`), code: "refused_validate_output", reason: fmt.Sprintf(at, "(root)")},
		"output breaks its schema, warn":      {change: both(violated, warn), code: "ok"},
		"output cannot be checked":            {change: fails("output", errInternal), code: "refused_validate_output", reason: broken},
		"structured content is missing":       {change: answers(`{"content":[]}`), code: "refused_validate_output", reason: fmt.Sprintf(at, "(root)")},
		"structured content is missing, warn": {change: both(answers(`{"content":[]}`), warn), code: "ok"},
		"a tool error has no output to check": {change: both(answers(`{"content":[],"isError":true}`), violated), code: "tool_error"},
		"isError false is checked":            {change: both(answers(`{"content":[],"isError":false}`)), code: "refused_validate_output", reason: fmt.Sprintf(at, "(root)")},
		"no output schema, any result":        {change: both(answers(`{"structuredContent":7}`), func(r *rig) { r.tool.Output = nil }), code: "ok"},
		"larger than the policy lets":         {change: both(answers(`{"structuredContent":7}`), short), code: "refused_validate_output", reason: "the result is larger than 10 bytes; ask for less of it"},
		"as large as the policy lets":         {change: both(answers(`{"isOk":1}`), func(r *rig) { r.tool.Output = nil }, decides(gate.Decision{Effect: gate.Allow, Obligations: []obligation.Obligation{obligation.MaxResult{Bytes: 10}}})), code: "ok"},
		"no object":                           {change: answers(`[]`), code: "protocol"},
		"nothing": {change: func(r *rig) {
			r.invoke = func(context.Context, *gate.Call) (gate.Result, error) { return gate.Result{}, nil }
		}, code: "protocol"},
		"sanitizer changes it":                   {change: both(answers(dirty), scrub), code: "ok"},
		"made safe it breaks its schema":         {change: both(answers(dirty), scrub, notBad), code: "refused_sanitize", reason: "the sanitized result breaks the output schema that the tool declares; the server has carried out the call"},
		"made safe it breaks its schema, warn":   {change: both(answers(dirty), scrub, notBad, warn), code: "ok"},
		"a tool error is sanitized too":          {change: both(answers(`{"content":[{"text":"bad"}],"isError":true}`), scrub), code: "tool_error"},
		"made safe it has two members of a name": {change: both(answers(`{"structuredContent":{"bad":1,"[removed]":2}}`), scrub), code: "refused_sanitize", reason: "the result cannot be sanitized"},
		"made safe, JSON in a text has two members of a name": {change: both(
			answers(`{"structuredContent":1,"content":[{"text":"{\"bad\":1,\"[removed]\":2}"},{"text":"fine"}]}`), scrub,
		), code: "refused_sanitize", reason: "the result cannot be sanitized"},
		"sanitizer makes text that is not a Unicode": {change: both(answers(dirty), func(r *rig) { r.sanitize = replace("bad", "\xff") }), code: "refused_sanitize", reason: "the result cannot be sanitized"},
		"session cannot learn":                       {change: fails("learn", errInternal), code: "refused_sanitize", reason: "the session's state cannot be stored"},
	}
	for name, tt := range tests {
		tt.invoked, tt.events = true, through
		t.Run(name, tt.run)
	}
}

func TestDoPassesOnWhatTheUpstreamFailsWith(t *testing.T) {
	tests := map[string]struct {
		err  error
		code string
	}{
		"a fault":                       {codedError("transport"), "transport"},
		"a fault that is wrapped":       {fmt.Errorf("call: %w", codedError("trap_fuel")), "trap_fuel"},
		"a JSON-RPC error":              {codedError("tool_error"), "tool_error"},
		"the end of its own context":    {fmt.Errorf("call: %w", context.DeadlineExceeded), "timeout"},
		"a cancellation":                {context.Canceled, "cancelled"},
		"an error that nobody foresaw":  {errInternal, "protocol"},
		"an error without a known code": {codedError("banana"), "protocol"},
		"an error that calls itself ok": {codedError("ok"), "protocol"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRig()
			r.at = on("invoke", tt.err)
			_, err := r.do(t, newCall())
			if !errors.Is(err, tt.err) || !errors.Is(r.done(t).Err, tt.err) {
				t.Errorf("err = %v, recorded %v; want %v in both", err, r.done(t).Err, tt.err)
			}
			if got := gate.Code(err); got != tt.code || r.done(t).Code != tt.code {
				t.Errorf("code = %q, recorded %q; want %q", got, r.done(t).Code, tt.code)
			}
			if r.count("learn") > 0 || r.count("release") != 1 {
				t.Errorf("trace = %v, want a release and nothing learned", r.trace)
			}
		})
	}
}

// The zero principal differs from a named one; a call without a principal says so.
func TestDoRefusesNobody(t *testing.T) {
	r, c := newRig(), newCall()
	c.Who = nil
	_, err := r.do(t, c)
	if gate.Code(err) != "refused_parse" || r.count("lookup") > 0 {
		t.Errorf("err = %v, trace = %v; want refused_parse before anything is looked up", err, r.trace)
	}
	if strings.Contains(reason(err), "arguments") {
		t.Errorf("reason = %q, which blames the arguments", reason(err))
	}
}

// The refusal of a hidden tool must not differ from that of an unknown tool.
func TestDoHidesToolsAsIfTheyWereUnknown(t *testing.T) {
	refusal := func(change func(*rig)) *gate.Refusal {
		r := newRig()
		change(r)
		_, err := r.do(t, newCall())
		e, ok := errors.AsType[*gate.Refusal](err)
		if !ok {
			t.Fatalf("err = %v, want a refusal", err)
		}
		return e
	}
	hidden := refusal(decides(gate.Decision{Effect: gate.Deny, Hidden: true, Reasons: []string{internal}, Remedy: "wasmgate grant x"}))
	unknown := refusal(fails("lookup", gate.ErrUnknown))
	if hidden.Reason != unknown.Reason || !hidden.Hidden || !unknown.Hidden {
		t.Errorf("hidden: %q, %t; unknown: %q, %t; want the same reason, and Hidden", hidden.Reason, hidden.Hidden, unknown.Reason, unknown.Hidden)
	}
	if hidden.Remedy != "wasmgate grant x" {
		t.Errorf("remedy = %q, want it kept for the operator", hidden.Remedy)
	}
}

func TestDoTellsOverALimitFromBusyInItsOwnWords(t *testing.T) {
	r := newRig()
	r.at = on("take", errInternal)
	_, err := r.do(t, newCall())
	if gate.Code(err) != "refused_limit" || !errors.Is(err, errInternal) || r.count("invoke") > 0 {
		t.Errorf("err = %v, want refused_limit and its cause", err)
	}
	if strings.Contains(reason(err), internal) {
		t.Errorf("reason = %q holds the limiter's words", reason(err))
	}
}

// A schema library lists a violation for each element of an array: what a
// client sent must not come back many times as large.
func TestDoBoundsTheReason(t *testing.T) {
	r := newRig()
	var v doc.Violations
	for i := range 100_000 {
		v = append(v, doc.Violation{Pointer: fmt.Sprintf("/list/%d", i), Message: "not a string"})
	}
	r.at = on("input", v)
	_, err := r.do(t, newCall())
	if n := len(reason(err)); n == 0 || n > 8<<10 {
		t.Errorf("the reason has %d bytes, want some and at most 8 KiB", n)
	}
	if !strings.Contains(reason(err), "99980 more") {
		t.Errorf("reason = %.200s, want 20 violations and how many more there are", reason(err))
	}
	if !cmp.Equal(errors.Unwrap(err), error(v)) {
		t.Error("the operator does not see all violations")
	}
}

func TestDoNeedsATool(t *testing.T) {
	doTest{change: func(r *rig) { r.tool = nil }, code: "refused_lookup", reason: "no such tool", events: refused}.run(t)
}

// The sanitizer's and the schema's exception for tool errors hangs on isError,
// so what the client will read decides, not what the upstream says of it.
func TestDoReadsIsErrorFromTheDocument(t *testing.T) {
	tests := map[string]struct {
		res  gate.Result
		code string
	}{
		"claimed only beside the document": {gate.Result{Doc: gate.MustDoc(`{"content":[]}`), IsError: true}, "refused_validate_output"},
		"claimed only in the document":     {gate.Result{Doc: gate.MustDoc(`{"content":[],"isError":true}`)}, "tool_error"},
		"no boolean":                       {gate.Result{Doc: gate.MustDoc(`{"content":[],"isError":"true"}`), IsError: true}, "refused_validate_output"},
	}
	for name, tt := range tests {
		t.Run(name, doTest{change: func(r *rig) {
			r.invoke = func(context.Context, *gate.Call) (gate.Result, error) { return tt.res, nil }
		}, code: tt.code, reason: map[bool]string{true: "the result breaks the output schema that the tool declares, at (root); the server has carried out the call"}[tt.code != "tool_error"], invoked: true, events: through}.run)
	}
}

func TestNewAndToolsFailClosed(t *testing.T) {
	for _, missing := range []func(*gate.Parts){
		func(p *gate.Parts) { p.Upstream = nil }, func(p *gate.Parts) { p.Authorizer = nil },
		func(p *gate.Parts) { p.Sessions = nil }, func(p *gate.Parts) { p.Sanitizer = nil }, func(p *gate.Parts) { p.Recorder = nil },
	} {
		p := newRig().parts()
		missing(&p)
		if g, err := gate.New(p); err == nil || g != nil {
			t.Errorf("New(%+v) = %v, %v; want no gate and an error", p, g, err)
		}
	}
	for _, method := range []string{"tools", "visible"} {
		r := newRig()
		g := newGate(t, r.parts())
		if tools, err := g.Tools(t.Context(), gate.Local()); err != nil || len(tools) != 1 {
			t.Errorf("tools = %v, %v; want one", tools, err)
		}
		r.at = func(m string) error {
			if m == method {
				panic(internal)
			}
			return nil
		}
		if tools, err := g.Tools(t.Context(), gate.Local()); err == nil || tools != nil {
			t.Errorf("%s panics: tools = %v, %v; want an error", method, tools, err)
		}
	}
	p := newRig().parts()
	p.Authorizer = fewerVerdicts{p.Authorizer}
	g := newGate(t, p)
	if tools, err := g.Tools(t.Context(), gate.Local()); err == nil || tools != nil {
		t.Errorf("no verdicts: tools = %v, %v; want an error, not a panic", tools, err)
	} else if strings.Contains(err.Error(), "panic") {
		t.Errorf("no verdicts: err = %v", err)
	}
	r := newRig()
	r.at = on("visible", errInternal)
	g, _ = gate.New(r.parts())
	if tools, err := g.Tools(t.Context(), gate.Local()); err == nil || tools != nil {
		t.Errorf("tools = %v, %v; want an error that hides them all", tools, err)
	}
}

// fewerVerdicts answers for none of the tools.
type fewerVerdicts struct{ gate.Authorizer }

func (fewerVerdicts) Visible(context.Context, *gate.Principal, []*gate.Tool) ([]bool, error) {
	return nil, nil
}

func (fewerVerdicts) Offer(_ context.Context, _ *gate.Principal, t *gate.Tool) gate.Doc {
	return t.Definition
}

func TestZeroGateRefuses(t *testing.T) {
	var g gate.Gate
	if _, err := g.Do(t.Context(), newCall()); err == nil {
		t.Error("the zero gate let a call pass")
	}
}
