package gate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/gate/obligation"
	"github.com/wasmgate/wasmgate/gate/provenance"
)

var hostRequest = gate.MustDoc(`{"method":"GET","scheme":"https","host":"api.example.com","port":443,"path":"/"}`)

// newHostRig returns a rig whose tool is sandboxed and asks for one HTTP request
// while it carries out a call. Its effect is the method "effect". The call ends
// well whatever the answer is, which is kept in got.
func newHostRig(got *error) *rig {
	r := newRig()
	r.tool.Sandboxed = true
	r.hosted = func(ctx context.Context, p gate.Permit) (gate.Result, error) {
		*got = p.HostCall(ctx, actions.SandboxHTTP, hostRequest)
		if *got == nil {
			r.step("effect")
		}
		return answer(`{"structuredContent":1}`), nil
	}
	return r
}

// hostDecides answers d to host calls, and lets the call itself pass.
func hostDecides(d gate.Decision) func(*rig) {
	return func(r *rig) {
		r.decide = func(q gate.Query) gate.Decision {
			if q.Call.Action == gate.CallTool {
				return gate.Decision{Effect: gate.Allow}
			}
			return d
		}
	}
}

func TestHostCallDecides(t *testing.T) {
	const nobody = "this needs approval, but approvals cannot be asked for during a call"
	const unable = "the policy demands what this gateway cannot do"
	with := func(o obligation.Obligation) func(*rig) {
		return hostDecides(gate.Decision{Effect: gate.Allow, Obligations: []obligation.Obligation{o}})
	}
	tests := map[string]struct {
		change func(*rig)
		code   string
		reason string
	}{
		"allowed":                   {nil, "ok", ""},
		"denied":                    {hostDecides(gate.Decision{Effect: gate.Deny, Reasons: []string{"not there", "not now"}}), "refused_authorize", "not there; not now"},
		"undefined":                 {hostDecides(gate.Decision{}), "refused_authorize", "not allowed by policy"},
		"an effect that is unknown": {hostDecides(gate.Decision{Effect: "permit"}), "refused_authorize", "not allowed by policy"},
		"ask":                       {hostDecides(gate.Decision{Effect: gate.Ask}), "refused_approve", nobody},
		"an unknown obligation":     {with(foreign{}), "refused_authorize", unable},
		"a timeout":                 {with(obligation.Timeout{After: time.Second}), "refused_authorize", unable},
		"a bound of the result":     {with(obligation.MaxResult{Bytes: 1 << 20}), "refused_authorize", unable},
		"a profile":                 {with(obligation.Profile{Name: "strict"}), "refused_authorize", unable},
		"a narrowing":               {with(obligation.Narrowing{NoKV: true}), "refused_authorize", unable},
		"of a tool in no sandbox":   {func(r *rig) { r.tool.Sandboxed = false }, "refused_authorize", "only sandboxed tools may make host calls"},
		"the session is too busy": {func(r *rig) {
			r.admit = func(s gate.Session, _ gate.Labels) (gate.Session, error) {
				if r.count("admit") > 1 {
					return s, gate.ErrStale
				}
				return s, nil
			}
		}, "refused_authorize", "the session changed with every decision on the call; call again"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var got error
			r := newHostRig(&got)
			if tt.change != nil {
				tt.change(r)
			}
			if _, err := r.do(t, newCall()); err != nil {
				t.Fatal(err)
			}
			if gate.Code(got) != tt.code || reason(got) != tt.reason {
				t.Errorf("answered %v; want %s, %q", got, tt.code, tt.reason)
			}
			if diff := cmp.Diff([]gate.Event{gate.Granted, gate.HostCall, gate.Done}, r.events()); diff != "" {
				t.Fatalf("events (-want +got):\n%s", diff)
			}
			rec := r.records[1]
			if rec.Code != tt.code || rec.Reason != tt.reason || (rec.Err == nil) != (tt.code == "ok") {
				t.Errorf("recorded %q, %q, %v; want %q, %q", rec.Code, rec.Reason, rec.Err, tt.code, tt.reason)
			}
			if (r.count("effect") > 0) != (tt.code == "ok") {
				t.Errorf("trace = %v", r.trace)
			}
			if n := r.done(t).HostCalls; n != 1 {
				t.Errorf("recorded %d host calls of the call, want 1", n)
			}
		})
	}
}

// TestDenyHostCall checks that what the upstream itself refuses is recorded as a
// refusal, and not decided.
func TestDenyHostCall(t *testing.T) {
	var got error
	r := newRig()
	r.tool.Sandboxed = true
	r.hosted = func(ctx context.Context, p gate.Permit) (gate.Result, error) {
		got = p.DenyHostCall(ctx, actions.SandboxHTTP, hostRequest, "not granted")
		return answer(`{"structuredContent":1}`), nil
	}
	decided := 0
	r.decide = func(gate.Query) gate.Decision { decided++; return gate.Decision{Effect: gate.Allow} }
	if _, err := r.do(t, newCall()); err != nil {
		t.Fatal(err)
	}
	var refusal *gate.Refusal
	if !errors.As(got, &refusal) || refusal.Reason != "not granted" || decided != 1 {
		t.Errorf("got %v after %d decisions, want a refusal that nobody else decided", got, decided)
	}
	rec := r.records[1]
	if rec.Event != gate.HostCall || rec.Decision.Effect != gate.Deny || rec.Code != "refused_authorize" || rec.Reason != "not granted" || rec.Call.Args != hostRequest {
		t.Errorf("recorded %+v", rec)
	}
}

func TestHostCallIsOnBehalfOfItsCall(t *testing.T) {
	var got error
	r := newHostRig(&got)
	r.session = gate.Session{Version: 3}
	var asked []gate.Query
	r.decide = func(q gate.Query) gate.Decision {
		asked = append(asked, q)
		return gate.Decision{Effect: gate.Allow, Reasons: []string{"granted"}, Labels: gate.NewLabels(string(q.Call.Action)), Revision: "rev"}
	}
	c := newCall()
	c.ClientName, c.ClientVersion = "inspector", "1"
	if _, err := r.do(t, c); err != nil || got != nil {
		t.Fatal(err, got)
	}
	parent, host := asked[0].Call, asked[1].Call
	if len(host.ID) != 36 || host.ID == parent.ID || host.Parent != parent.ID || host.Action != actions.SandboxHTTP ||
		host.Name != parent.Name || host.Who != parent.Who || host.Session != parent.Session ||
		host.ClientName != "inspector" || host.ClientVersion != "1" || host.Args != hostRequest || asked[1].Tool != r.tool {
		t.Errorf("decided on %+v of %v", host, asked[1].Tool)
	}
	if !asked[1].Session.Labels.Cover(gate.NewLabels("tools/call")) {
		t.Errorf("decided in %+v, want at least the labels that the call was admitted with", asked[1].Session)
	}
	rec := r.records[1]
	if rec.Call != host || rec.Tool != r.tool || rec.Snapshot != "s1" || rec.Session.Version != 3 || rec.Decision.Revision != "rev" ||
		!rec.After.Cover(gate.NewLabels("sandbox/http", "tools/call")) || rec.Time.IsZero() || len(rec.Steps) == 0 || rec.HostCalls != 0 {
		t.Errorf("recorded %+v", rec)
	}
}

// TestHostCallFailsClosed breaks each method of each collaborator that a host
// call comes by, in each way.
func TestHostCallFailsClosed(t *testing.T) {
	ways := map[string]func(cancel func()) error{
		"fails":           func(func()) error { return errInternal },
		"panics":          func(func()) error { panic(internal) },
		"fails badly":     func(func()) error { return badError{} },
		"fails cancelled": func(cancel func()) error { cancel(); return errInternal },
		"is cancelled":    func(cancel func()) error { cancel(); return nil },
	}
	for _, method := range strings.Fields("view authorize admit record_host_call") {
		method = strings.Replace(method, "_", " ", 1)
		for name, fault := range ways {
			if name == "is cancelled" && strings.HasPrefix(method, "record") {
				continue // it may be done: it is decided and recorded
			}
			t.Run(method+" "+name, func(t *testing.T) {
				var got error
				r := newHostRig(&got)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				met := false
				r.at = func(m string) error {
					if m == method && r.count("invoke") > 0 && !met {
						met = true
						return fault(cancel)
					}
					return nil
				}
				if _, err := r.doContext(t, ctx, newCall()); !met {
					t.Fatalf("the method was not called: %v, %v", r.trace, err)
				}
				if got == nil || r.count("effect") > 0 || gate.Code(got) == "ok" {
					t.Errorf("answered %v, trace = %v; want an error alone", got, r.trace)
				}
				if strings.Contains(reason(got), internal) {
					t.Errorf("the guest reads %q", reason(got))
				}
				if r.count("record host_call") != 1 || r.count("record done") != 1 {
					t.Errorf("trace = %v, want one record of the host call and one of the call", r.trace)
				}
			})
		}
	}
}

// The order is part of the argument for the gate's security.
func TestHostCallKeepsTheOrder(t *testing.T) {
	var got error
	r := newHostRig(&got)
	if _, err := r.do(t, newCall()); err != nil {
		t.Fatal(err)
	}
	want := "record granted invoke view authorize admit record host_call effect"
	if trace := strings.Join(r.trace, " "); !strings.Contains(trace, want) {
		t.Errorf("order:\n got %s\nwant %s", trace, want)
	}
}

func TestHostCallNeedsACallUnderWay(t *testing.T) {
	if err := (gate.Permit{}).HostCall(t.Context(), actions.SandboxHTTP, hostRequest); gate.Code(err) != "refused_authorize" {
		t.Errorf("the zero permit: %v", err)
	}
	for _, action := range []gate.Action{"", gate.CallTool, "sandbox/exec", "sandbox/http "} {
		var got error
		r := newHostRig(&got)
		r.hosted = func(ctx context.Context, p gate.Permit) (gate.Result, error) {
			got = p.HostCall(ctx, action, hostRequest)
			return answer(`{"structuredContent":1}`), nil
		}
		if _, err := r.do(t, newCall()); err != nil || gate.Code(got) != "refused_parse" || r.count("authorize") != 1 {
			t.Errorf("action %q: %v, trace = %v", action, got, r.trace)
		}
	}
	for _, request := range []gate.Doc{{}, gate.MustDoc(`[]`), gate.MustDoc(`"x"`)} {
		var got error
		r := newHostRig(&got)
		r.hosted = func(ctx context.Context, p gate.Permit) (gate.Result, error) {
			got = p.HostCall(ctx, actions.SandboxKV, request)
			return answer(`{"structuredContent":1}`), nil
		}
		if _, err := r.do(t, newCall()); err != nil || gate.Code(got) != "refused_parse" {
			t.Errorf("request %s: %v", request, got)
		}
	}

	for _, ending := range []string{"well", "refused", "in a panic", "in a trap"} {
		var kept gate.Permit
		r := newHostRig(new(error))
		r.hosted = func(_ context.Context, p gate.Permit) (gate.Result, error) {
			kept = p
			switch ending {
			case "refused":
				return answer(`{}`), nil
			case "in a panic":
				panic(internal)
			case "in a trap":
				return gate.Result{}, codedError("trap_guest")
			}
			return answer(`{"structuredContent":1}`), nil
		}
		if _, err := r.do(t, newCall()); (err == nil) != (ending == "well") {
			t.Errorf("the call that is to end %s: %v", ending, err)
		}
		n := len(r.trace)
		if err := kept.HostCall(t.Context(), actions.SandboxHTTP, hostRequest); gate.Code(err) != "refused_authorize" || len(r.trace) != n {
			t.Errorf("after a call that ended %s: %v, trace = %v", ending, err, r.trace[n:])
		}
	}
}

// A call that ends while its host call is being decided ends that, too.
func TestHostCallEndsWithItsCall(t *testing.T) {
	var got error
	r := newHostRig(&got)
	deciding, ended := make(chan struct{}), make(chan struct{})
	p := r.parts()
	p.Authorizer = authorizerFunc(func(q gate.Query) (gate.Decision, error) {
		if q.Call.Action == actions.SandboxHTTP {
			close(deciding)
			<-ended
		}
		return gate.Decision{Effect: gate.Allow}, nil
	})
	var mu sync.Mutex
	var records []gate.Record
	p.Recorder = recorderFunc(func(_ context.Context, rec *gate.Record) error {
		mu.Lock()
		defer mu.Unlock()
		records = append(records, *rec)
		return nil
	})
	p.Sessions = newInstant("s", new(atomic.Int64))
	answered := make(chan error)
	r.hosted = func(_ context.Context, p gate.Permit) (gate.Result, error) {
		go func() { answered <- p.HostCall(t.Context(), actions.SandboxHTTP, hostRequest) }()
		<-deciding
		return answer(`{"structuredContent":1}`), nil
	}
	g := newGate(t, p)
	if _, err := g.Do(t.Context(), newCall()); err != nil {
		t.Fatal(err)
	}
	close(ended)
	if err := <-answered; gate.Code(err) != "refused_record" || reason(err) != "the tool's call has ended" {
		t.Errorf("answered %v", err)
	}
	if last := records[len(records)-1]; last.Event != gate.HostCall || last.Code != "refused_record" {
		t.Errorf("recorded %s %s, want the refusal", last.Event, last.Code)
	}
}

type authorizerFunc func(gate.Query) (gate.Decision, error)

func (f authorizerFunc) Authorize(_ context.Context, q gate.Query) (gate.Decision, error) {
	return f(q)
}

func (authorizerFunc) Visible(_ context.Context, _ *gate.Principal, tools []*gate.Tool) ([]bool, error) {
	return make([]bool, len(tools)), nil
}

func (authorizerFunc) Offer(_ context.Context, _ *gate.Principal, t *gate.Tool) gate.Doc {
	return t.Definition
}

// A rule that knows nothing of host calls gives its obligation to them as well.
// It holds for them, because it holds for the whole call; anything more does not.
func TestHostCallUnderTheObligationsOfItsCall(t *testing.T) {
	call := []obligation.Obligation{
		obligation.Timeout{After: 5 * time.Second}, obligation.MaxResult{Bytes: 4096}, obligation.Profile{Name: "strict"},
		obligation.Narrowing{HTTP: []string{"https://b", "https://a"}, Dirs: []string{"/srv"}, Secrets: []string{}, Fuel: 1000},
	}
	tests := map[string]struct {
		host []obligation.Obligation
		code string
	}{
		"none":                   {nil, "ok"},
		"the same":               {call, "ok"},
		"a part of them":         {call[1:3], "ok"},
		"a longer time":          {[]obligation.Obligation{obligation.Timeout{After: time.Hour}}, "ok"},
		"a shorter time":         {[]obligation.Obligation{obligation.Timeout{After: time.Second}}, "refused_authorize"},
		"a smaller result":       {[]obligation.Obligation{obligation.MaxResult{Bytes: 1}}, "refused_authorize"},
		"another profile":        {[]obligation.Obligation{obligation.Profile{Name: "text"}}, "refused_authorize"},
		"a wider narrowing":      {[]obligation.Obligation{obligation.Narrowing{HTTP: []string{"https://a", "https://b", "https://c"}, Dirs: []string{"/"}, Fuel: 2000}}, "ok"},
		"one origin less":        {[]obligation.Obligation{obligation.Narrowing{HTTP: []string{"https://a"}}}, "refused_authorize"},
		"a directory below":      {[]obligation.Obligation{obligation.Narrowing{Dirs: []string{"/srv/docs"}}}, "refused_authorize"},
		"no key-value store":     {[]obligation.Obligation{obligation.Narrowing{NoKV: true}}, "refused_authorize"},
		"one that is unknown":    {[]obligation.Obligation{call[0], foreign{}}, "refused_authorize"},
		"a time it did not have": {[]obligation.Obligation{obligation.Narrowing{Timeout: time.Hour}}, "refused_authorize"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var got error
			r := newHostRig(&got)
			r.decide = func(q gate.Query) gate.Decision {
				if q.Call.Action == gate.CallTool {
					return gate.Decision{Effect: gate.Allow, Obligations: call}
				}
				return gate.Decision{Effect: gate.Allow, Obligations: tt.host}
			}
			if _, err := r.do(t, newCall()); err != nil || gate.Code(got) != tt.code {
				t.Errorf("answered %v, want %s (call: %v)", got, tt.code, err)
			}
		})
	}
}

func TestHostCallDecidesAgainWhenTheSessionChanged(t *testing.T) {
	var got error
	r := newHostRig(&got)
	r.decide = func(q gate.Query) gate.Decision {
		if q.Session.Labels.Cover(gate.NewLabels(provenance.Untrusted)) {
			return gate.Decision{Effect: gate.Deny, Reasons: []string{"it has read the web"}}
		}
		return gate.Decision{Effect: gate.Allow}
	}
	r.admit = func(s gate.Session, _ gate.Labels) (gate.Session, error) {
		if r.count("invoke") > 0 {
			s.Labels = gate.NewLabels(provenance.Untrusted)
			return s, gate.ErrStale
		}
		return s, nil
	}
	if _, err := r.do(t, newCall()); err != nil || reason(got) != "it has read the web" {
		t.Errorf("answered %v (call: %v)", got, err)
	}
}

// The parts may be replaced in the middle of a call. Its host calls are decided
// and recorded by those that it began with.
func TestHostCallKeepsThePartsOfItsCall(t *testing.T) {
	var got error
	old, next := newHostRig(&got), newRig()
	g := newGate(t, old.parts())
	ask := old.hosted
	old.hosted = func(ctx context.Context, p gate.Permit) (gate.Result, error) {
		if err := g.Swap(next.parts()); err != nil {
			t.Error(err)
		}
		return ask(ctx, p)
	}
	if _, err := g.Do(t.Context(), newCall()); err != nil || got != nil {
		t.Fatal(err, got)
	}
	if len(next.trace) > 0 || len(old.records) != 3 {
		t.Errorf("the new parts saw %v, the old ones %v", next.trace, old.trace)
	}
}

// hostRecords has a tool make host calls, and returns what was recorded of them.
func hostRecords(t *testing.T, calls func(ctx context.Context, p gate.Permit)) (told []gate.Record, done gate.Record) {
	t.Helper()
	var mixed atomic.Int64
	x := newInstant("v", &mixed)
	x.tool.Sandboxed = true
	p := x.parts()
	var mu sync.Mutex
	p.Recorder = recorderFunc(func(_ context.Context, r *gate.Record) error {
		mu.Lock()
		defer mu.Unlock()
		if r.Event == gate.HostCall {
			told = append(told, *r)
		} else {
			done = *r
		}
		return nil
	})
	u := newRig()
	u.tool = x.tool
	u.hosted = func(ctx context.Context, p gate.Permit) (gate.Result, error) {
		calls(ctx, p)
		return x.result, nil
	}
	p.Upstream = u
	if _, err := newGate(t, p).Do(t.Context(), newCall()); err != nil {
		t.Fatal(err)
	}
	return told, done
}

func kvGet(key any) gate.Doc { return gate.MustDoc(fmt.Sprintf(`{"op":"get","key":"%v"}`, key)) }

// count returns the number of host calls in records.
func count(told []gate.Record) (n uint64) {
	for _, r := range told {
		n += max(1, r.Count)
	}
	return n
}

func TestHostCallsAtOnce(t *testing.T) {
	const callers, rounds = 8, 50
	for name, equal := range map[string]bool{"equal ones": true, "different ones": false} {
		told, done := hostRecords(t, func(ctx context.Context, p gate.Permit) {
			var wg sync.WaitGroup
			for i := range callers {
				wg.Go(func() {
					for j := range rounds {
						key := kvGet(i*rounds + j)
						if equal {
							key = kvGet("k")
						}
						if err := p.HostCall(ctx, actions.SandboxKV, key); err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
		})
		if count(told) != callers*rounds || done.HostCalls != callers*rounds || !equal && len(told) != callers*rounds {
			t.Errorf("%s: %d records tell of %d host calls, %d counted; want %d", name, len(told), count(told), done.HostCalls, callers*rounds)
		}
	}
}

// TestEqualHostCallsAreCounted: of equal host calls in a row the first is recorded
// before it is done, and one more record has the number of the others.
func TestEqualHostCallsAreCounted(t *testing.T) {
	synctest.Test(t, testEqualHostCallsAreCounted) // no time passes here: longer calls are reported each second
}

func testEqualHostCallsAreCounted(t *testing.T) {
	told, done := hostRecords(t, func(ctx context.Context, p gate.Permit) {
		for range 9900 {
			if err := p.HostCall(ctx, actions.SandboxKV, kvGet("a")); err != nil {
				t.Fatal(err)
			}
		}
		p.HostCall(ctx, actions.SandboxKV, kvGet("b"))
		p.HostCall(ctx, actions.SandboxKV, kvGet("a"))
		p.HostCall(ctx, actions.SandboxFile, kvGet("a")) // another action
		p.DenyHostCall(ctx, actions.SandboxFile, kvGet("a"), "not there")
		p.DenyHostCall(ctx, actions.SandboxFile, kvGet("a"), "not there")
		p.DenyHostCall(ctx, actions.SandboxFile, kvGet("a"), "not now")
	})
	var got []string
	ids := map[string]bool{}
	for _, r := range told {
		ids[r.Call.ID] = true
		got = append(got, fmt.Sprintf("%s %s %s %s, %d", r.Call.Action, r.Call.Args.Get("key").Text(), r.Code, r.Reason, r.Count))
	}
	want := []string{
		"sandbox/kv a ok , 0", "sandbox/kv a ok , 9899", "sandbox/kv b ok , 0", "sandbox/kv a ok , 0", "sandbox/file a ok , 0",
		"sandbox/file a refused_authorize not there, 0", "sandbox/file a refused_authorize not there, 1", "sandbox/file a refused_authorize not now, 0",
	}
	if diff := cmp.Diff(want, got); diff != "" || len(ids) != len(told) || done.HostCalls != 9906 {
		t.Errorf("%d host calls, %d records, %d ids, records (-want +got):\n%s", done.HostCalls, len(told), len(ids), diff)
	}
}

// TestEqualHostCallsThatEndOtherwise: what is decided otherwise is a record of its own.
func TestEqualHostCallsThatEndOtherwise(t *testing.T) {
	var got []string
	r := newRig()
	r.tool.Sandboxed = true
	decided := 0
	r.decide = func(q gate.Query) gate.Decision {
		if q.Call.Action == gate.CallTool {
			return gate.Decision{Effect: gate.Allow}
		}
		decided++
		return gate.Decision{Effect: gate.Allow, Revision: []string{"a", "a", "b"}[(decided-1)%3], Labels: gate.NewLabels(fmt.Sprint("l", decided/4))}
	}
	r.hosted = func(ctx context.Context, p gate.Permit) (gate.Result, error) {
		for range 6 {
			if err := p.HostCall(ctx, actions.SandboxKV, kvGet("k")); err != nil {
				t.Error(err)
			}
		}
		return answer(`{"structuredContent":1}`), nil
	}
	if _, err := r.do(t, newCall()); err != nil {
		t.Fatal(err)
	}
	for _, rec := range r.records[1 : len(r.records)-1] {
		got = append(got, fmt.Sprintf("%s %v %d", rec.Decision.Revision, rec.After[:1], rec.Count))
	}
	if want := []string{"a [l0] 0", "a [l0] 1", "b [l0] 0", "a [l1] 0", "a [l1] 1", "b [l1] 0"}; !cmp.Equal(want, got) || decided != 6 {
		t.Errorf("%d decisions, records %q, want %q", decided, got, want)
	}
}

// TestAFloodOfHostCalls: one call writes a bounded number of records, however many host calls it
// makes. Refused host calls are not carried out, but counted.
func TestAFloodOfHostCalls(t *testing.T) {
	const flood = 9900
	var allowed uint64
	began := time.Now()
	told, done := hostRecords(t, func(ctx context.Context, p gate.Permit) {
		for i := range flood {
			err := p.HostCall(ctx, actions.SandboxKV, kvGet(i))
			switch code := gate.Code(err); code {
			case "ok":
				allowed++
			case "refused_limit":
				if !strings.Contains(reason(err), "more host calls than are recorded for one call") {
					t.Fatalf("the guest reads %q", reason(err))
				}
			default:
				t.Fatal(err)
			}
		}
	})
	seconds := int(time.Since(began).Seconds())
	if most := 1000 + 100*(seconds+1); len(told) > most+seconds+1 || allowed < 1000 {
		t.Errorf("%d records in %d s, %d allowed", len(told), seconds, allowed)
	}
	var refused uint64
	for _, r := range told {
		if r.Code == "refused_limit" {
			refused += max(1, r.Count)
		}
	}
	if count(told) != flood || done.HostCalls != flood || refused != flood-allowed {
		t.Errorf("%d records tell of %d host calls, %d refused; %d were made, %d allowed", len(told), count(told), refused, done.HostCalls, allowed)
	}
}

// TestRoomForHostCallsComesBack: a call that waits may have more of them recorded.
func TestRoomForHostCallsComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hostRecords(t, func(ctx context.Context, p gate.Permit) {
			for _, want := range []int{1000, 100, 200, 1000} {
				allowed := 0
				for i := range 2 * want {
					if p.HostCall(ctx, actions.SandboxKV, kvGet(i)) == nil {
						allowed++
					}
				}
				if allowed != want {
					t.Errorf("%d host calls are allowed, want %d", allowed, want)
				}
				switch want {
				case 1000:
					time.Sleep(time.Second)
				case 100:
					time.Sleep(2 * time.Second)
				case 200:
					time.Sleep(time.Hour)
				}
			}
		})
	})
}

// TestTheNumberOfHostCallsIsRecorded: a call whose host calls cannot be recorded
// whole has not ended well.
func TestTheNumberOfHostCallsIsRecorded(t *testing.T) {
	var got error
	r := newHostRig(&got)
	hosted := r.hosted
	r.hosted = func(ctx context.Context, p gate.Permit) (gate.Result, error) {
		p.HostCall(ctx, actions.SandboxHTTP, hostRequest)
		return hosted(ctx, p)
	}
	told := 0
	r.at = func(method string) error {
		if method == "record host_call" {
			if told++; told == 2 {
				return errInternal
			}
		}
		return nil
	}
	if _, err := r.do(t, newCall()); gate.Code(err) != "refused_record" || told != 2 {
		t.Errorf("%v after %d records of host calls, want refused_record", err, told)
	}
}

// A trap is recorded with the limit that it names, what was used until then and
// how many host calls there were.
func TestDoRecordsTraps(t *testing.T) {
	var got error
	r := newHostRig(&got)
	ask := r.hosted
	trap := fmt.Errorf("used more than 1000 instructions: %w", codedError("trap_fuel"))
	r.hosted = func(ctx context.Context, p gate.Permit) (gate.Result, error) {
		ask(ctx, p)
		return gate.Result{Usage: gate.Usage{Fuel: 1000, MemoryPeak: 65536}}, trap
	}
	_, err := r.do(t, newCall())
	rec := r.done(t)
	if rec.Code != "trap_fuel" || rec.Usage.Fuel != 1000 || rec.Usage.MemoryPeak != 65536 || rec.HostCalls != 1 || !errors.Is(rec.Err, trap) {
		t.Errorf("recorded %q, %+v, %d host calls, %v (err: %v)", rec.Code, rec.Usage, rec.HostCalls, rec.Err, err)
	}
}
