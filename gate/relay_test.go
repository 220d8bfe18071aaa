package gate_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/session"
)

// A relayRig is a rig that has a tool beside its own which carries out calls of it.
type relayRig struct {
	*rig
	relay *gate.Tool
	carry func(context.Context, *gate.Call, gate.Permit) (gate.Result, error)
}

const relayName = "catalog__call"

func newRelayRig() *relayRig {
	r := &relayRig{rig: newRig()}
	r.relay = &gate.Tool{
		Name: gate.ToolName{Server: "catalog", Tool: "call"}, Local: "call", Offered: relayName, Relay: true,
		Input: schemaFunc(func(d gate.Doc) error {
			if d.Get("bad").IsZero() {
				return nil
			}
			return gate.Violations{{Pointer: "/bad", Message: "unknown"}}
		}),
	}
	r.carry = func(ctx context.Context, c *gate.Call, p gate.Permit) (gate.Result, error) {
		inner := *c
		inner.Name, inner.Args = "files__read", gate.MustDoc(`{"path":"/a"}`)
		return p.Relay(ctx, inner)
	}
	return r
}

func (r *relayRig) Lookup(ctx context.Context, a gate.Action, name string) (*gate.Tool, error) {
	switch name {
	case relayName:
		return r.relay, nil
	case "nothing":
		return nil, gate.ErrUnknown
	default:
		return r.rig.Lookup(ctx, a, name)
	}
}

func (r *relayRig) Tools(context.Context) []*gate.Tool { return []*gate.Tool{r.tool, r.relay} }

func (r *relayRig) Invoke(ctx context.Context, p gate.Permit) (gate.Result, error) {
	c, tool, _ := p.Open()
	if tool == r.relay {
		return r.carry(ctx, c, p)
	}
	return r.rig.Invoke(ctx, p)
}

func (r *relayRig) gate(t *testing.T, change func(*gate.Parts)) *gate.Gate {
	t.Helper()
	p := r.parts()
	p.Upstream = r
	if change != nil {
		change(&p)
	}
	g, err := gate.New(p)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// outer is a call of the tool that makes calls.
func outer(args string) gate.Call {
	c := newCall()
	c.ID, c.Name, c.Args = "outer", relayName, gate.MustDoc(args)
	return c
}

func TestRelay(t *testing.T) {
	carries := func(name string) func(context.Context, *gate.Call, gate.Permit) (gate.Result, error) {
		return func(ctx context.Context, c *gate.Call, p gate.Permit) (gate.Result, error) {
			inner := *c
			inner.Name, inner.Args = name, gate.MustDoc(`{}`)
			return p.Relay(ctx, inner)
		}
	}
	deny := func(gate.Query) gate.Decision { return gate.Decision{Effect: gate.Deny, Reasons: []string{"no"}} }
	for name, tt := range map[string]struct {
		args   string
		change func(*relayRig)
		code   string
		events []gate.Event
		by     string // the tool of the last record
		inner  bool   // the records are the inner call's
	}{
		"the inner call alone is decided and recorded": {`{}`, nil, "ok", []gate.Event{gate.Granted, gate.Done}, "files__read", true},
		"an inner call that is denied is refused by its own record": {`{}`, func(r *relayRig) { r.decide = deny },
			"refused_authorize", []gate.Event{gate.Done}, "files__read", true},
		"an inner call that breaks its schema is refused": {`{}`, func(r *relayRig) {
			r.input = func(gate.Doc) error { return gate.Violations{{Message: "wrong"}} }
		}, "refused_validate_input", []gate.Event{gate.Done}, "files__read", true},
		"an inner call whose result breaks its schema is refused": {`{}`, func(r *relayRig) {
			r.output = func(gate.Doc) error { return gate.Violations{{Message: "wrong"}} }
		}, "refused_validate_output", []gate.Event{gate.Granted, gate.Done}, "files__read", true},
		"an inner call of nothing is unknown": {`{}`, func(r *relayRig) { r.carry = carries("nothing") },
			"refused_lookup", []gate.Event{gate.Done}, "nothing", true},
		"a tool that makes calls calls no other": {`{}`, func(r *relayRig) { r.carry = carries(relayName) },
			"refused_authorize", []gate.Event{gate.Done}, relayName, true},
		"arguments that break the tool's own schema are refused and recorded": {`{"bad":1}`, nil,
			"refused_validate_input", []gate.Event{gate.Done}, relayName, false},
		"without a schema of its own it is refused": {`{}`, func(r *relayRig) { r.relay.Input = nil },
			"refused_validate_input", []gate.Event{gate.Done}, relayName, false},
		"an error of its own is recorded": {`{}`, func(r *relayRig) {
			r.carry = func(context.Context, *gate.Call, gate.Permit) (gate.Result, error) {
				return gate.Result{}, codedError("transport")
			}
		}, "transport", []gate.Event{gate.Done}, relayName, false},
		"a panic of its own is recorded": {`{}`, func(r *relayRig) {
			r.carry = func(context.Context, *gate.Call, gate.Permit) (gate.Result, error) { panic(internal) }
		}, "protocol", []gate.Event{gate.Done}, relayName, false},
		"an answer of its own is no call": {`{}`, func(r *relayRig) {
			r.carry = func(context.Context, *gate.Call, gate.Permit) (gate.Result, error) {
				return answer(`{"content":[]}`), nil
			}
		}, "ok", nil, "", false},
		"an answer of its own breaks its output schema": {`{}`, func(r *relayRig) {
			r.relay.Output = schemaFunc(func(gate.Doc) error { return gate.Violations{{Message: "wrong"}} })
			r.carry = func(context.Context, *gate.Call, gate.Permit) (gate.Result, error) {
				return answer(`{"content":[],"structuredContent":{}}`), nil
			}
		}, "refused_validate_output", []gate.Event{gate.Done}, relayName, false},
		"its output schema is not that of what it calls": {`{}`, func(r *relayRig) {
			r.relay.Output = schemaFunc(func(gate.Doc) error { return gate.Violations{{Message: "wrong"}} })
		}, "ok", []gate.Event{gate.Granted, gate.Done}, "files__read", true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRelayRig()
			if tt.change != nil {
				tt.change(r)
			}
			_, err := r.gate(t, nil).Do(t.Context(), outer(tt.args))
			if got := gate.Code(err); got != tt.code {
				t.Errorf("code = %q, want %q (%v)", got, tt.code, err)
			}
			if got := r.events(); !slices.Equal(got, tt.events) {
				t.Fatalf("events = %v, want %v", got, tt.events)
			}
			for _, rec := range r.records {
				if rec.Call.Name != tt.by {
					t.Errorf("the record is of %s, want %s", rec.Call.Name, tt.by)
				}
				if inner := rec.Call.Parent == "outer" && rec.Call.ID != "outer"; inner != tt.inner {
					t.Errorf("the record is of call %q for %q", rec.Call.ID, rec.Call.Parent)
				}
				if got := gate.RecordID("outer", err); err != nil && got != rec.Call.ID {
					t.Errorf("the refusal names record %q, want %q", got, rec.Call.ID)
				}
			}
		})
	}
}

// TestRelayDecidesAsTheClient has the inner call carry what the outer one came with,
// whatever the tool says.
func TestRelayDecidesAsTheClient(t *testing.T) {
	r := newRelayRig()
	var seen []gate.Query
	r.decide = func(q gate.Query) gate.Decision {
		seen = append(seen, q)
		return gate.Decision{Effect: gate.Allow}
	}
	r.carry = func(ctx context.Context, c *gate.Call, p gate.Permit) (gate.Result, error) {
		return p.Relay(ctx, gate.Call{
			ID: "mine", Parent: "forged", Action: gate.CallTool, Name: "files__read", Args: gate.MustDoc(`{"a":1}`), Prompt: "forged",
			Who: &gate.Principal{Owner: gate.Owner{ID: "root"}}, Session: gate.SessionKey{ID: "other"}, ClientName: "forged",
		})
	}
	c := outer(`{}`)
	c.ClientName, c.ClientVersion, c.Meta = "client", "1", gate.MustDoc(`{"m":1}`)
	if _, err := r.gate(t, nil).Do(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if len(seen) != 1 {
		t.Fatalf("%d decisions, want one", len(seen))
	}
	got := seen[0].Call
	if got.ID != "mine" || got.Parent != "outer" || got.Who != c.Who || got.Session != c.Session || got.ClientName != "client" ||
		got.ClientVersion != "1" || got.Meta != c.Meta || got.Prompt != "" {
		t.Errorf("the inner call is %+v", got)
	}
}

func TestRelaySanitizesOnceAndLearnsOnce(t *testing.T) {
	r := newRelayRig()
	r.sanitize = replace("hello", "hello hello") // not idempotent, so that twice shows
	res, err := r.gate(t, func(p *gate.Parts) { p.TrackValues = true }).Do(t.Context(), outer(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := res.Doc.At("/content/0/text").Text(); got != "hello hello" {
		t.Errorf("text = %q", got)
	}
	if len(r.learned) != 2 { // the arguments, which are vouched for, and the result
		t.Errorf("learnt %v", r.learned)
	}
	if !slices.Equal(res.Labels, gate.NewLabels(gate.Untrusted)) {
		t.Errorf("labels = %v", res.Labels)
	}
}

func TestRelaysOwnAnswerIsSanitized(t *testing.T) {
	r := newRelayRig()
	r.sanitize = replace("evil", "kind")
	r.carry = func(ctx context.Context, c *gate.Call, p gate.Permit) (gate.Result, error) {
		inner := *c
		inner.Name = "files__read"
		if _, err := p.Relay(ctx, inner); err != nil {
			return gate.Result{}, err
		}
		return answer(`{"content":[{"type":"text","text":"evil"}]}`), nil
	}
	res, err := r.gate(t, nil).Do(t.Context(), outer(`{}`))
	if err != nil || res.Doc.At("/content/0/text").Text() != "kind" {
		t.Errorf("result = %s, %v", res.Doc, err)
	}
}

// TestRelayTakesOnePlace would wait for ever if the outer call held one too.
func TestRelayTakesOnePlace(t *testing.T) {
	r := newRelayRig()
	g := r.gate(t, func(p *gate.Parts) { p.Limiter = session.NewLimits(session.LimitOptions{Concurrent: 1}) })
	if _, err := g.Do(t.Context(), outer(`{}`)); err != nil {
		t.Fatal(err)
	}
}

func TestRelayIsListedForEverybody(t *testing.T) {
	r := newRelayRig()
	g := r.gate(t, func(p *gate.Parts) { p.Authorizer = hidesAll{r} })
	tools, err := g.Tools(t.Context(), gate.Local())
	if err != nil || len(tools) != 1 || tools[0] != r.relay {
		t.Errorf("tools = %v, %v", tools, err)
	}
	r.relay.Relay = false // the zero value is a tool like others
	if tools, err := g.Tools(t.Context(), gate.Local()); err != nil || len(tools) != 0 {
		t.Errorf("tools = %v, %v", tools, err)
	}
}

type hidesAll struct{ *relayRig }

func (hidesAll) Visible(_ context.Context, _ *gate.Principal, tools []*gate.Tool) ([]bool, error) {
	return make([]bool, len(tools)), nil
}

// TestRelayNeedsItsCall has permits of other calls, and of none, relay nothing.
func TestRelayNeedsItsCall(t *testing.T) {
	kept := gate.Result{Doc: gate.MustDoc(`{"content":[]}`)}
	refuses := func(t *testing.T, p gate.Permit) {
		t.Helper()
		_, err := p.Relay(t.Context(), newCall())
		_, kerr := p.Recall(t.Context(), kept)
		for _, err := range []error{err, kerr} {
			if _, ok := errors.AsType[*gate.Refusal](err); !ok {
				t.Errorf("err = %v", err)
			}
		}
	}
	refuses(t, gate.Permit{})

	r := newRelayRig()
	var other, ended gate.Permit
	r.hosted = func(_ context.Context, p gate.Permit) (gate.Result, error) {
		other = p
		refuses(t, p)
		return answer(`{"content":[],"structuredContent":{}}`), nil
	}
	carry := r.carry
	r.carry = func(ctx context.Context, c *gate.Call, p gate.Permit) (gate.Result, error) {
		ended = p
		return carry(ctx, c, p)
	}
	if _, err := r.gate(t, nil).Do(t.Context(), outer(`{}`)); err != nil {
		t.Fatal(err)
	}
	if _, _, ok := other.Open(); !ok {
		t.Fatal("the inner call was not made")
	}
	refuses(t, ended)
}

// TestRecall has whoever fetches a result learn its labels, and get it as it was.
func TestRecall(t *testing.T) {
	kept := gate.Result{
		Doc:    gate.MustDoc(`{"content":[{"type":"text","text":"evil"}],"_meta":{"io.github.wasmgate/findings":[]}}`),
		Labels: gate.NewLabels("untrusted", "private"),
	}
	r := newRelayRig()
	r.sanitize = replace("evil", "kind")
	r.carry = func(ctx context.Context, _ *gate.Call, p gate.Permit) (gate.Result, error) {
		return p.Recall(ctx, kept)
	}
	res, err := r.gate(t, func(p *gate.Parts) { p.TrackValues = true }).Do(t.Context(), outer(`{}`))
	if err != nil || res.Doc != kept.Doc {
		t.Fatalf("result = %s, %v", res.Doc, err)
	}
	if !r.taught.Cover(kept.Labels) || len(r.learned) != 1 || r.learned[0] != kept.Doc {
		t.Errorf("learnt %v of %v", r.taught, r.learned)
	}

	r.at = on("learn", errInternal)
	if _, err := r.gate(t, nil).Do(t.Context(), outer(`{}`)); err == nil || strings.Contains(reason(err), internal) {
		t.Errorf("a session that learns nothing got the result: %v", err)
	}
}

// Tools that carry out others have places of their own: however many of them wait, a call
// that they wait for finds its place, and how many wait is bounded all the same.
func TestRelaysAreBounded(t *testing.T) {
	r := newRelayRig()
	begun, end, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	r.carry = func(context.Context, *gate.Call, gate.Permit) (gate.Result, error) {
		begun <- struct{}{}
		<-end
		return answer(`{"content":[]}`), nil
	}
	g := r.gate(t, func(p *gate.Parts) { p.Limiter = session.NewLimits(session.LimitOptions{Concurrent: 1, Wait: -1}) })
	of := func(id string) gate.Call {
		c := outer(`{}`)
		c.Who = &gate.Principal{Owner: gate.Owner{ID: id}}
		return c
	}
	wait := func(id string) {
		go func() { _, _ = g.Do(t.Context(), of(id)); ended <- struct{}{} }()
		<-begun
	}
	refused := func(id, whose string) {
		t.Helper()
		_, err := g.Do(t.Context(), of(id))
		if gate.Code(err) != "refused_busy" || !strings.Contains(err.Error(), whose+" has as many calls under way to tools that carry out others") {
			t.Errorf("%s: %v, want it refused for %s", id, err, whose)
		}
	}
	wait("alice")
	wait("alice")
	refused("alice", "this principal")
	wait("bob")
	wait("bob")
	refused("carol", "the gateway")
	c := newCall()
	c.ID, c.Name = "", "files__read"
	if _, err := g.Do(t.Context(), c); err != nil {
		t.Errorf("another call: %v", err)
	}
	for range 4 { // one after the other, for the rig notes what they do
		end <- struct{}{}
		<-ended
	}
}

// A relay gives its place back before it carries out another call, for that may wait for
// a person.
func TestRelayLeavesBeforeTheOtherCall(t *testing.T) {
	r := newRelayRig()
	limits := session.NewLimits(session.LimitOptions{Concurrent: 1, Wait: -1})
	g := r.gate(t, func(p *gate.Parts) { p.Limiter = limits })
	r.invoke = func(ctx context.Context, _ *gate.Call) (gate.Result, error) {
		var taken []gate.Release
		for range 2 { // half of the four are one principal's
			release, err := limits.Take(ctx, []gate.Charge{{Limit: gate.Relays, Owner: gate.Local().Owner, N: 1, Session: "other"}})
			if err != nil {
				t.Errorf("a relay holds its place while the other call is under way: %v", err)
				break
			}
			taken = append(taken, release)
		}
		for _, release := range taken {
			release(0)
		}
		return answer(`{"structuredContent":1}`), nil
	}
	if _, err := g.Do(t.Context(), outer(`{}`)); err != nil {
		t.Fatal(err)
	}
}
