package gate_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/gate/limits"
	"github.com/wasmgate/wasmgate/gate/obligation"
	"github.com/wasmgate/wasmgate/gate/provenance"
)

// A relayRig is a rig that has, in addition to its own tool, one that carries out calls of it.
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
			return doc.Violations{{Pointer: "/bad", Message: "unknown"}}
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

func (r *relayRig) Features(context.Context, gate.Feature) []*gate.Tool {
	return []*gate.Tool{r.tool, r.relay}
}

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
	own := func(answer func() (gate.Result, error)) func(*relayRig) {
		return func(r *relayRig) {
			r.carry = func(context.Context, *gate.Call, gate.Permit) (gate.Result, error) { return answer() }
		}
	}
	for name, tt := range map[string]struct {
		args   string
		change func(*relayRig)
		code   string
		events string // of the call, and in brackets of the inner call
		inner  string // what the inner call names
	}{
		"both calls are decided and recorded": {`{}`, nil, "ok", "granted (granted done) done", "files__read"},
		"a call that is denied makes no other": {`{}`, func(r *relayRig) {
			r.decide = func(q gate.Query) gate.Decision {
				if q.Tool.Relay {
					return deny(q)
				}
				return gate.Decision{Effect: gate.Allow}
			}
		}, "refused_authorize", "done", ""},
		"an inner call that is denied is refused by its own record": {`{}`, func(r *relayRig) {
			r.decide = func(q gate.Query) gate.Decision {
				if !q.Tool.Relay {
					return deny(q)
				}
				return gate.Decision{Effect: gate.Allow}
			}
		}, "refused_authorize", "granted (done) done", "files__read"},
		"an inner call that breaks its schema is refused": {`{}`, func(r *relayRig) {
			r.input = func(gate.Doc) error { return doc.Violations{{Message: "wrong"}} }
		}, "refused_validate_input", "granted (done) done", "files__read"},
		"an inner call whose result breaks its schema is refused": {`{}`, func(r *relayRig) {
			r.output = func(gate.Doc) error { return doc.Violations{{Message: "wrong"}} }
		}, "refused_validate_output", "granted (granted done) done", "files__read"},
		"an inner call of nothing is unknown": {`{}`, func(r *relayRig) { r.carry = carries("nothing") },
			"refused_lookup", "granted (done) done", "nothing"},
		"a tool that makes calls calls no other": {`{}`, func(r *relayRig) { r.carry = carries(relayName) },
			"refused_authorize", "granted (done) done", relayName},
		"arguments that break the tool's own schema are refused and recorded": {`{"bad":1}`, nil,
			"refused_validate_input", "done", ""},
		"without a schema of its own it is refused": {`{}`, func(r *relayRig) { r.relay.Input = nil },
			"refused_validate_input", "done", ""},
		"an error of its own is recorded": {`{}`, own(func() (gate.Result, error) { return gate.Result{}, codedError("transport") }),
			"transport", "granted done", ""},
		"a panic of its own is recorded": {`{}`, own(func() (gate.Result, error) { panic(internal) }),
			"protocol", "granted done", ""},
		"an answer of its own is recorded": {`{}`, own(func() (gate.Result, error) { return answer(`{"content":[]}`), nil }),
			"ok", "granted done", ""},
		"an answer of its own breaks its output schema": {`{}`, func(r *relayRig) {
			r.relay.Output = schemaFunc(func(gate.Doc) error { return doc.Violations{{Message: "wrong"}} })
			own(func() (gate.Result, error) { return answer(`{"content":[],"structuredContent":{}}`), nil })(r)
		}, "refused_validate_output", "granted done", ""},
		"its output schema is not that of what it calls": {`{}`, func(r *relayRig) {
			r.relay.Output = schemaFunc(func(gate.Doc) error { return doc.Violations{{Message: "wrong"}} })
		}, "ok", "granted (granted done) done", "files__read"},
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
			inner, events := "", ""
			for _, rec := range r.records {
				if rec.Call.ID == "outer" {
					events += " " + string(rec.Event)
					continue
				}
				events += " (" + string(rec.Event) + ")"
				if inner = rec.Call.ID; rec.Call.Name != tt.inner || rec.Call.Parent != "outer" {
					t.Errorf("the inner call is one of %s, for %q", rec.Call.Name, rec.Call.Parent)
				}
			}
			if got := strings.ReplaceAll(strings.TrimSpace(events), ") (", " "); got != tt.events {
				t.Fatalf("events = %s, want %s", got, tt.events)
			}
			done := r.done(t)
			if want := strings.Fields(inner); !slices.Equal(done.Relayed, want) || done.Code != tt.code {
				t.Errorf("the record says %s, and that the call made %v, want %v", done.Code, done.Relayed, want)
			}
			if got := gate.RecordID("outer", err); err != nil && got != cmp.Or(inner, "outer") {
				t.Errorf("the refusal names record %q, want %q", got, cmp.Or(inner, "outer"))
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
	if len(seen) != 2 || seen[0].Call.ID != c.ID {
		t.Fatalf("%d decisions, want one on each call", len(seen))
	}
	got := seen[1].Call
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
	if !slices.Equal(res.Labels, gate.NewLabels(provenance.Untrusted)) {
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
	g := r.gate(t, func(p *gate.Parts) { p.Limiter = limits.New(limits.Options{Concurrent: 1}) })
	if _, err := g.Do(t.Context(), outer(`{}`)); err != nil {
		t.Fatal(err)
	}
}

// TestRelayGivesBackOnce has a relay give back what it holds once, when it makes the other
// call or at its end.
func TestRelayGivesBackOnce(t *testing.T) {
	for name, calls := range map[string]int{"no other call": 0, "one": 1, "two": 2} {
		r := newRelayRig()
		carry := r.carry
		r.carry = func(ctx context.Context, c *gate.Call, p gate.Permit) (gate.Result, error) {
			for range calls {
				if _, err := carry(ctx, c, p); err != nil {
					return gate.Result{}, err
				}
			}
			return answer(`{"content":[]}`), nil
		}
		taken := make(map[string]int)
		g := r.gate(t, func(p *gate.Parts) {
			p.Limiter = limiterFunc(func(e gate.Entry) (gate.Slot, error) {
				taken[e.Limit]++
				return &slot{release: func(int64) { taken[e.Limit+" given back"]++ }}, nil
			})
		})
		if _, err := g.Do(t.Context(), outer(`{}`)); err != nil {
			t.Fatal(err)
		}
		if taken[gate.LimitRelays] != 1 || taken[gate.LimitRelays+" given back"] != 1 || taken[gate.LimitConcurrent] != calls || taken[gate.LimitConcurrent+" given back"] != calls {
			t.Errorf("%s: %v", name, taken)
		}
	}
}

func TestRelayIsListedAsThePolicySays(t *testing.T) {
	r := newRelayRig()
	tools, err := r.gate(t, nil).Tools(t.Context(), gate.Local())
	if err != nil || len(tools) != 2 || tools[1] != r.relay {
		t.Errorf("tools = %v, %v", tools, err)
	}
	g := r.gate(t, func(p *gate.Parts) { p.Authorizer = hidesAll{r} })
	if tools, err := g.Tools(t.Context(), gate.Local()); err != nil || len(tools) != 0 {
		t.Errorf("tools = %v, %v", tools, err)
	}
}

// TestRelayIsUnderItsObligations has what the policy says of the outer call hold for what
// the inner one has returned, whose findings stay as they are.
func TestRelayIsUnderItsObligations(t *testing.T) {
	for name, tt := range map[string]struct {
		o    obligation.Obligation
		code string
		text string
	}{
		"a bound":     {obligation.MaxResult{Bytes: 10}, "refused_validate_output", ""},
		"a redaction": {obligation.Redact{Result: []string{"/content/0/text"}}, "ok", "[redacted]"},
		"a profile":   {obligation.Profile{Name: "strict"}, "ok", "kind"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRelayRig()
			r.sanitize = replace("hello", "kind")
			r.decide = func(q gate.Query) gate.Decision {
				d := gate.Decision{Effect: gate.Allow}
				if q.Tool.Relay {
					d.Obligations = []obligation.Obligation{tt.o}
				}
				return d
			}
			res, err := r.gate(t, nil).Do(t.Context(), outer(`{}`))
			if gate.Code(err) != tt.code {
				t.Fatalf("err = %v", err)
			}
			said := res.Doc.Get("_meta")
			if got := res.Doc.At("/content/0/text").Text(); got != tt.text || err == nil && said.Get(gate.MetaFindings).IsZero() ||
				!said.Get("server:"+gate.MetaFindings).IsZero() {
				t.Errorf("result %s", res.Doc)
			}
		})
	}
}

// TestRelayTeachesNothing has a session learn only by the inner call, though the outer one is
// labelled as an echo and was called before anything untrusted was read.
func TestRelayTeachesNothing(t *testing.T) {
	for name, own := range map[string]bool{"what the inner call returned": false, "an answer of its own": true} {
		t.Run(name, func(t *testing.T) {
			s := &taughtRelay{relayRig: newRelayRig()}
			s.tool.Output = nil
			answers(`{"content":[]}`)(s.rig)
			carry := s.carry
			s.carry = func(ctx context.Context, c *gate.Call, p gate.Permit) (gate.Result, error) {
				res, err := carry(ctx, c, p)
				if own {
					res.Doc = gate.MustDoc(`{"content":[{"type":"text","text":"found it"}]}`)
				}
				return res, err
			}
			s.admit = func(session gate.Session, adds gate.Labels) (gate.Session, error) {
				if adds.Cover(gate.NewLabels(provenance.Private)) {
					t.Errorf("admitted with %v", adds)
				}
				return session, nil
			}
			g := s.gate(t, func(p *gate.Parts) {
				p.Sessions, p.TrackValues = s, true
				p.Labeler = labelerFunc(func(tool *gate.Tool) (provenance.ToolLabels, bool) {
					return provenance.ToolLabels{Result: provenance.ResultEcho, Private: true}, tool.Relay
				})
			})
			if _, err := g.Do(t.Context(), outer(`{}`)); err != nil {
				t.Fatal(err)
			}
			for _, l := range s.lessons {
				if l.Call == "outer" || l.Labels.Cover(gate.NewLabels(provenance.Private)) {
					t.Errorf("the outer call teaches %+v", l)
				}
			}
			if n := len(s.lessons); n != 2 || s.lessons[1].Source != provenance.FromUntrusted {
				t.Errorf("%d lessons: %+v", n, s.lessons)
			}
		})
	}
}

type taughtRelay struct {
	*relayRig
	lessons []gate.Lesson
}

func (s *taughtRelay) Learn(_ context.Context, _ gate.SessionKey, l gate.Lesson) error {
	s.lessons = append(s.lessons, l)
	return nil
}

// TestRelayTellsWhatWasCarriedOut has the missing record of either call tell the client
// that the inner one was carried out, or that it was not.
func TestRelayTellsWhatWasCarriedOut(t *testing.T) {
	for name, tt := range map[string]struct {
		fails   []int // which records cannot be written: granted, granted, done, done
		deny    bool  // the inner call
		invoked bool
	}{
		"neither is let pass":              {[]int{1}, false, false},
		"the inner one is not let pass":    {[]int{2}, false, false},
		"the inner one has no end":         {[]int{3}, false, true},
		"the outer one has no end":         {[]int{4}, false, true},
		"both have none":                   {[]int{3, 4}, false, true},
		"the outer of one that is refused": {[]int{3}, true, false},
	} {
		r := newRelayRig()
		r.decide = func(q gate.Query) gate.Decision {
			if tt.deny && !q.Tool.Relay {
				return gate.Decision{Effect: gate.Deny}
			}
			return gate.Decision{Effect: gate.Allow}
		}
		n := 0
		r.at = func(m string) error {
			if !strings.HasPrefix(m, "record") {
				return nil
			}
			if n++; slices.Contains(tt.fails, n) {
				return errInternal
			}
			return nil
		}
		_, err := r.gate(t, nil).Do(t.Context(), outer(`{}`))
		refusal, ok := errors.AsType[*gate.Refusal](err)
		if !ok || gate.Code(err) != "refused_record" || refusal.Invoked != tt.invoked {
			t.Errorf("%s: %+v", name, err)
		}
	}
}

// TestRelayPassesSecretsOn leaves them to the guard of the inner call's tool.
func TestRelayPassesSecretsOn(t *testing.T) {
	r := newRelayRig()
	r.carry = func(ctx context.Context, c *gate.Call, p gate.Permit) (gate.Result, error) {
		inner := *c
		inner.Name = "files__read"
		return p.Relay(ctx, inner)
	}
	r.invoke = func(_ context.Context, c *gate.Call) (gate.Result, error) {
		if got := c.Args.Get("path").Text(); got != "a KEY" {
			t.Errorf("the server got %q", got)
		}
		return answer(`{"structuredContent":1}`), nil
	}
	g := r.gate(t, func(p *gate.Parts) { p.Secrets = relaySpy{r.relay} })
	if _, err := g.Do(t.Context(), outer(`{"path":"a KEY"}`)); err != nil {
		t.Fatal(err)
	}
}

// relaySpy redacts in everything but the arguments of tools other than relay.
type relaySpy struct{ relay *gate.Tool }

func (s relaySpy) Treat(t *gate.Tool) (arguments, results gate.Treatment) {
	if t == s.relay {
		return "redact", "redact"
	}
	return "allow", "redact"
}

func (relaySpy) Redact(pointer, name, text string) (string, []gate.Finding) {
	return spy{}.Redact(pointer, name, text)
}

type hidesAll struct{ *relayRig }

func (hidesAll) Visible(_ context.Context, _ *gate.Principal, tools []*gate.Tool) ([]bool, error) {
	return make([]bool, len(tools)), nil
}

func (hidesAll) Offer(_ context.Context, _ *gate.Principal, t *gate.Tool) gate.Doc {
	return t.Definition
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

// TestRecall: a session that fetches a result learns its labels, and gets it as it was.
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
	g := r.gate(t, func(p *gate.Parts) { p.Limiter = limits.New(limits.Options{Concurrent: 1, Wait: -1}) })
	of := func(id string) gate.Call {
		c := outer(`{}`)
		c.Who = &gate.Principal{Owner: gate.Owner{ID: id}}
		c.Session.Owner = c.Who.Owner
		return c
	}
	wait := func(id string) {
		go func() { _, _ = g.Do(t.Context(), of(id)); ended <- struct{}{} }()
		<-begun
	}
	refused := func(id string) {
		t.Helper()
		_, err := g.Do(t.Context(), of(id))
		if gate.Code(err) != "refused_busy" || !strings.Contains(err.Error(), "the gateway has as many calls under way to tools that carry out others") {
			t.Errorf("%s: %v, want it refused", id, err)
		}
	}
	wait("alice")
	wait("bob")
	wait("alice")
	refused("alice") // it has half
	wait("carol")
	refused("carol")
	c := newCall()
	c.ID, c.Name = "", "files__read"
	if _, err := g.Do(t.Context(), c); err != nil {
		t.Errorf("another call: %v", err)
	}
	for range 4 { // one after the other, because the rig notes what they do
		end <- struct{}{}
		<-ended
	}
}

// A relay gives its place back before it carries out another call, because that call may wait for a
// person.
func TestRelayLeavesBeforeTheOtherCall(t *testing.T) {
	r := newRelayRig()
	limits := limits.New(limits.Options{Concurrent: 1, Wait: -1})
	g := r.gate(t, func(p *gate.Parts) { p.Limiter = limits })
	r.invoke = func(ctx context.Context, _ *gate.Call) (gate.Result, error) {
		c := newCall()
		for range 4 {
			slot, err := limits.Enter(ctx, gate.Entry{Limit: gate.LimitRelays, Caller: c.Caller()})
			if err != nil {
				t.Errorf("a relay holds its slot while the other call is under way: %v", err)
				break
			}
			defer slot.Release(0)
		}
		return answer(`{"structuredContent":1}`), nil
	}
	if _, err := g.Do(t.Context(), outer(`{}`)); err != nil {
		t.Fatal(err)
	}
}
