package gate_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/gate/codes"
	"github.com/wasmgate/wasmgate/gate/provenance"
)

type approverFunc func(context.Context, gate.Question) (gate.Approval, error)

func (f approverFunc) Approve(ctx context.Context, q gate.Question) (gate.Approval, error) {
	return f(ctx, q)
}

// approves is the answer of a person that approves everything.
func approves(context.Context, gate.Question) (gate.Approval, error) {
	return gate.Approval{ID: "n-1", By: "cli:local"}, nil
}

func asks(gate.Query) gate.Decision {
	return gate.Decision{Effect: gate.Ask, Reasons: []string{"because"}, Revision: "r1"}
}

// asking makes a call of the rig, with an approver.
func (r *rig) asking(t testing.TB, approve approverFunc, c gate.Call) (gate.Result, error) {
	t.Helper()
	p := r.parts()
	p.Approver = approverFunc(func(ctx context.Context, q gate.Question) (gate.Approval, error) {
		r.step("approve")
		return approve(ctx, q)
	})
	g := newGate(t, p)
	return g.Do(t.Context(), c)
}

func TestAsk(t *testing.T) {
	fails := func(err error) approverFunc {
		return func(context.Context, gate.Question) (gate.Approval, error) { return gate.Approval{}, err }
	}
	pending := &gate.Pending{ID: "n-7", Expires: time.Unix(1e9, 0), Remedy: "wasmgate approvals approve n-7"}
	tests := map[string]struct {
		approve approverFunc
		after   gate.Effect // of the decision that is taken again; "" asks again
		code    string
		reason  string // begins that of the refusal
	}{
		"a person approves":                       {approves, "", "ok", ""},
		"approved, and allowed by then":           {approves, gate.Allow, "ok", ""},
		"approved, and denied by then":            {approves, gate.Deny, "refused_authorize", "because"},
		"a person denies":                         {fails(&gate.NotApproved{Reason: "denied", Err: errInternal}), "", "refused_approve", "denied"},
		"no one has answered yet":                 {fails(pending), "", "refused_approve", "waits for approval n-7 until 2001-09-09T01:46:40Z; once a person has approved it, call again"},
		"no one can be asked":                     {fails(errInternal), gate.Allow, "refused_approve", "this call needs approval, and no person can be asked now"},
		"an approval that is none":                {fails(nil), "", "refused_approve", "this call needs approval, and no person can be asked now"},
		"the approver panics":                     {func(context.Context, gate.Question) (gate.Approval, error) { panic(internal) }, "", "refused_approve", "internal error"},
		"the call's time is up while it is asked": {fails(context.DeadlineExceeded), "", "refused_approve", "this call needs approval"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRig()
			r.decide = func(q gate.Query) gate.Decision {
				d := asks(q)
				if r.count("approve") > 0 && tt.after != "" {
					d.Effect = tt.after
				}
				return d
			}
			_, err := r.asking(t, tt.approve, newCall())
			if got := gate.Code(err); got != tt.code {
				t.Fatalf("code %q, want %q (error %v)", got, tt.code, err)
			}
			if n := r.count("approve"); n != 1 {
				t.Errorf("asked %d times", n)
			}
			if passed := r.count("invoke") > 0; passed != (tt.code == "ok") {
				t.Errorf("invoked: %t", passed)
			}
			if tt.code == "ok" {
				want := strings.Fields("lookup enter view authorize input release approve lookup view enter authorize take admit record_granted invoke")
				if got := strings.ReplaceAll(strings.Join(r.trace[:len(want)], "\n"), " ", "_"); got != strings.Join(want, "\n") {
					t.Errorf("order:\n%s", got)
				}
				for _, rec := range r.records {
					if rec.Approval.ID != "n-1" || rec.Approval.By != "cli:local" || rec.Approval.Binding == "" {
						t.Errorf("record %s tells of approval %+v", rec.Event, rec.Approval)
					}
				}
				return
			}
			if r.count("take") > 0 {
				t.Error("a refused call took a place")
			}
			var refusal *gate.Refusal
			if !errors.As(err, &refusal) || !strings.HasPrefix(refusal.Reason, tt.reason) || strings.Contains(refusal.Reason, internal) {
				t.Errorf("refusal %+v", refusal)
			}
			if p, ok := errors.AsType[*gate.Pending](err); ok {
				if strings.Contains(refusal.Reason, "wasmgate") || refusal.Remedy != p.Remedy {
					t.Errorf("reason %q, remedy %q", refusal.Reason, refusal.Remedy)
				}
				if rec := r.done(t); rec.Approval.ID != "n-7" || rec.Decision.Remedy != p.Remedy {
					t.Errorf("record %+v", rec.Approval)
				}
			}
		})
	}
}

func TestAskWithoutApprover(t *testing.T) {
	r := newRig()
	r.decide = asks
	_, err := r.do(t, newCall())
	if gate.Code(err) != "refused_approve" || r.count("invoke") > 0 {
		t.Errorf("error %v", err)
	}
}

func TestCallerGoesWhileItIsAsked(t *testing.T) {
	r := newRig()
	r.decide = asks
	ctx, cancel := context.WithCancel(t.Context())
	p := r.parts()
	p.Approver = approverFunc(func(ctx context.Context, _ gate.Question) (gate.Approval, error) {
		cancel()
		<-ctx.Done()
		return gate.Approval{}, ctx.Err()
	})
	g := newGate(t, p)
	if _, err := g.Do(ctx, newCall()); gate.Code(err) != codes.Cancelled {
		t.Errorf("error %v", err)
	}
}

// An approved call is checked again after the approval: while it waited, anything may have changed.
func TestAskedMeanwhile(t *testing.T) {
	tests := map[string]struct {
		change func(r *rig, p *gate.Parts) // while the person thinks
		code   string
		reason string
		passed bool // by the approval
	}{
		"nothing":                                 {func(*rig, *gate.Parts) {}, "ok", "", true},
		"another policy asks":                     {func(r *rig, _ *gate.Parts) { r.decide = revised(gate.Ask) }, "refused_approve", "the policy has changed", false},
		"another policy denies":                   {func(r *rig, _ *gate.Parts) { r.decide = revised(gate.Deny) }, "refused_authorize", "because", false},
		"another policy allows":                   {func(r *rig, _ *gate.Parts) { r.decide = revised(gate.Allow) }, "ok", "", false},
		"another configuration":                   {func(_ *rig, p *gate.Parts) { p.Snapshot = "s2" }, "ok", "", true},
		"the tool's definition":                   {func(r *rig, _ *gate.Parts) { r.tool = changed(r.tool, "d2") }, "refused_approve", "the tool has changed", false},
		"the tool, to one that needs no approval": {func(r *rig, _ *gate.Parts) { r.tool = changed(r.tool, "d2"); r.decide = revised(gate.Allow) }, "refused_approve", "the tool has changed", false},
		"the tool is gone":                        {func(r *rig, _ *gate.Parts) { r.at = on("lookup", gate.ErrUnknown) }, "refused_approve", "the tool has changed", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRig()
			r.decide = asks
			p := r.parts()
			var g *gate.Gate
			p.Approver = approverFunc(func(ctx context.Context, q gate.Question) (gate.Approval, error) {
				now := r.parts()
				now.Approver = p.Approver
				tt.change(r, &now)
				if err := g.Swap(now); err != nil {
					t.Error(err)
				}
				return approves(ctx, q)
			})
			g, err := gate.New(p)
			if err != nil {
				t.Fatal(err)
			}
			_, err = g.Do(t.Context(), newCall())
			if got := gate.Code(err); got != tt.code {
				t.Fatalf("code %q, want %q (error %v)", got, tt.code, err)
			}
			if refusal, ok := errors.AsType[*gate.Refusal](err); ok && !strings.HasPrefix(refusal.Reason, tt.reason) {
				t.Errorf("reason %q", refusal.Reason)
			}
			if tt.code == "ok" && (r.done(t).Approval.ID != "") != tt.passed {
				t.Errorf("recorded approval %+v", r.done(t).Approval)
			}
		})
	}
}

func revised(e gate.Effect) func(gate.Query) gate.Decision {
	return func(q gate.Query) gate.Decision {
		d := asks(q)
		d.Effect, d.Revision = e, "r2"
		return d
	}
}

func configured(t *gate.Tool, config string) *gate.Tool {
	other := *t
	other.Config = config
	return &other
}

func changed(t *gate.Tool, digest string) *gate.Tool {
	other := *t
	other.Digest = digest
	return &other
}

// Labels that rise between the decision and the admission are decided on again. A
// call that was approved needs no second approval; one that was allowed, and is
// asked now, waits without its place.
func TestAskWhenLabelsRise(t *testing.T) {
	for name, tt := range map[string]struct {
		first   gate.Effect
		risen   gate.Effect
		code    string
		asked   int
		release bool // of the place, before the question
	}{
		"approved, and still asked": {gate.Ask, gate.Ask, "ok", 1, false},
		"approved, and denied then": {gate.Ask, gate.Deny, "refused_authorize", 1, true},
		"allowed, and asked then":   {gate.Allow, gate.Ask, "ok", 1, true},
		"allowed, and denied then":  {gate.Allow, gate.Deny, "refused_authorize", 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig()
			tainted := gate.NewLabels(provenance.Untrusted)
			r.admit = func(s gate.Session, l gate.Labels) (gate.Session, error) {
				if !s.Labels.Cover(tainted) {
					r.session = gate.Session{Version: 1, Labels: tainted}
					return r.session, gate.ErrStale
				}
				s.Labels = s.Labels.Join(l)
				return s, nil
			}
			r.decide = func(q gate.Query) gate.Decision {
				d := asks(q)
				if d.Effect = tt.first; q.Session.Labels.Cover(tainted) {
					d.Effect = tt.risen
				}
				return d
			}
			var saw gate.Labels
			_, err := r.asking(t, func(ctx context.Context, q gate.Question) (gate.Approval, error) {
				saw = q.Session.Labels
				return approves(ctx, q)
			}, newCall())
			if gate.Code(err) != tt.code || r.count("approve") != tt.asked {
				t.Errorf("code %s, asked %d times (error %v)", gate.Code(err), r.count("approve"), err)
			}
			if tt.first == gate.Allow && tt.asked > 0 {
				if at := slices.Index(r.trace, "approve"); !slices.Contains(r.trace[:at], "release") || !saw.Cover(tainted) {
					t.Errorf("the question came before the place was given back, or without the labels %v: %v", saw, r.trace)
				}
			}
			if r.count("enter") != r.count("release") {
				t.Errorf("%d places taken, %d given back", r.count("enter"), r.count("release"))
			}
		})
	}
}

// The policy sees the arguments of an approved call as approved: in this call, in
// no other and not in what a sandboxed tool does in it.
func TestApprovedProvenance(t *testing.T) {
	r := newRig()
	r.tool.Sandboxed, r.tool.Output = true, nil
	var sources []string
	r.decide = func(q gate.Query) gate.Decision {
		for a := range q.Session.Values.Arguments(q.Tool.Definition, q.Call.Args) {
			sources = append(sources, string(q.Call.Action)+" "+a.Pointer+" "+strings.Join(a.Source.Names(), "+"))
		}
		d := asks(q)
		if q.Call.Action != gate.CallTool {
			d.Effect = gate.Allow
		}
		return d
	}
	r.hosted = func(ctx context.Context, p gate.Permit) (gate.Result, error) {
		return answer(`{"content":[]}`), p.HostCall(ctx, actions.SandboxKV, gate.MustDoc(`{"key":"/a"}`))
	}
	c := newCall()
	c.Args = gate.MustDoc(`{"path":"/a","n":[1]}`)
	if _, err := r.asking(t, approves, c); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"tools/call /path ", "tools/call /n/0 ",
		"tools/call /path approved", "tools/call /n/0 approved",
		"sandbox/kv /key ",
	}
	if diff := cmp.Diff(want, sources); diff != "" {
		t.Error(diff)
	}
	for i, rec := range r.records {
		if s := rec.Session.Values.Of(gate.MustDoc(`"/a"`)); s != 0 {
			t.Errorf("record %d: the session has learned %v", i, s.Names())
		}
	}
}

// An answer that the host does not accept refuses the call, whatever the policy says of it, and no
// one is asked.
func TestAnswerNotAcceptable(t *testing.T) {
	for _, effect := range []gate.Effect{gate.Ask, gate.Allow} {
		r := newRig()
		r.decide = revised(effect)
		c := newCall()
		c.Brought.Approval = &gate.Answered{Err: errInternal}
		_, err := r.asking(t, approves, c)
		if gate.Code(err) != "refused_approve" || r.count("approve")+r.count("invoke") > 0 || !errors.Is(r.done(t).Err, errInternal) {
			t.Errorf("%s: error %v, %v", effect, err, r.trace)
		}
		var refusal *gate.Refusal
		if !errors.As(err, &refusal) || strings.Contains(refusal.Reason, internal) {
			t.Errorf("refusal %+v", refusal)
		}
	}
}

func question() gate.Question {
	c := newCall()
	return gate.Question{
		Query: gate.Query{Call: &c, Tool: &gate.Tool{
			Name: gate.ToolName{Server: "files", Tool: "read"}, Local: "read", Digest: "d1",
		}},
		Reasons: []string{"because"}, Revision: "r1", Snapshot: "s1",
	}
}

// Whatever an approval is bound to makes another binding of it, and nothing else.
func TestBinding(t *testing.T) {
	one := question().Binding()
	for name, tt := range map[string]struct {
		change func(q *gate.Question)
		same   bool
	}{
		"the tenant":               {func(q *gate.Question) { q.Call.Who.Tenant = "t" }, false},
		"the principal":            {func(q *gate.Question) { q.Call.Who.ID = "bob" }, false},
		"the action":               {func(q *gate.Question) { q.Call.Action = "prompts/get" }, false},
		"the server":               {func(q *gate.Question) { q.Tool.Name.Server = "other" }, false},
		"the tool":                 {func(q *gate.Question) { q.Tool.Name.Tool = "write" }, false},
		"the tool's own name":      {func(q *gate.Question) { q.Tool.Local = "read!" }, false},
		"the tool's definition":    {func(q *gate.Question) { q.Tool.Digest = "d2" }, false},
		"the arguments":            {func(q *gate.Question) { q.Call.Args = gate.MustDoc(`{"path":"/b"}`) }, false},
		"the policy":               {func(q *gate.Question) { q.Revision = "r2" }, false},
		"the configuration":        {func(q *gate.Question) { q.Snapshot = "s2" }, true},
		"the server's":             {func(q *gate.Question) { q.Tool = configured(q.Tool, "c2") }, false},
		"a part that runs over":    {func(q *gate.Question) { q.Tool = configured(changed(q.Tool, q.Tool.Digest+"c"), "1") }, false},
		"white space in arguments": {func(q *gate.Question) { q.Call.Args = gate.MustDoc(`{ "path": "/a" }`) }, true},
		"the call's id":            {func(q *gate.Question) { q.Call.ID = "c2" }, true},
		"the session":              {func(q *gate.Question) { q.Call.Session.ID = "other" }, true},
		"the reasons":              {func(q *gate.Question) { q.Reasons = nil }, true},
	} {
		t.Run(name, func(t *testing.T) {
			q := question()
			if q.Binding() != one {
				t.Fatal("two bindings of one question")
			}
			tt.change(&q)
			if got := q.Binding() == one; got != tt.same {
				t.Errorf("the same binding: %t, want %t", got, tt.same)
			}
		})
	}
}
