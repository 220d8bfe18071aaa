package upstream_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/bridge/internal/fleet"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/internal/testing/gatetest"
)

const (
	askName  = `{"method":"elicitation/create","params":{"mode":"form","message":"Name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}`
	askRoots = `{"method":"roots/list"}`
	canAll   = `{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}`
)

// needs is an answer that asks for more.
func needs(requests, state string) string {
	b := `{"resultType":"input_required"`
	if requests != "" {
		b += `,"inputRequests":` + requests
	}
	if state != "" {
		b += `,"requestState":` + state
	}
	return b + `}`
}

// accepts answers everything that servers ask.
func accepts(_ context.Context, method gate.Action, _ gate.Doc) (gate.Doc, error) {
	if method == actions.ListRoots {
		return gate.MustDoc(`{"roots":[{"uri":"file:///home"}]}`), nil
	}
	return gate.MustDoc(`{"action":"accept","content":{"name":"Ann"}}`), nil
}

// rounds returns a server that answers a call by one of its answers after the other.
func rounds(answers ...string) *rig.Modern {
	m := rig.NewModern(nil)
	var mu sync.Mutex
	n := 0
	m.Answer = func(gate.Doc) string {
		mu.Lock()
		defer mu.Unlock()
		n++
		return answers[min(n, len(answers))-1]
	}
	return m
}

// brought returns what a request has that was made again.
func brought(s rig.Sent) string {
	state := s.Params.Get("requestState")
	if state.IsZero() {
		return s.Params.Get("inputResponses").String()
	}
	return strings.TrimSpace(s.Params.Get("inputResponses").String() + fmt.Sprintf(" %q", state.Text()))
}

// TestRoundsAnswered: a client that cannot be asked by the answer to its call is asked
// while it waits, as often as the server asks.
func TestRoundsAnswered(t *testing.T) {
	final := map[gate.Action]string{gate.CallTool: `{"resultType":"complete","content":[]}`, gate.GetPrompt: `{"messages":[]}`, gate.ReadResource: `{"contents":[]}`}
	names := map[gate.Action]string{gate.CallTool: "s__echo", gate.GetPrompt: "s__p", gate.ReadResource: "file:///ä"}
	for action, done := range final {
		t.Run(string(action), func(t *testing.T) {
			m := rounds(strings.Replace(needs(`{"a":`+askName+`,"b":`+askRoots+`}`, `"<one>"`), "{", `{"content":[],"messages":[],"contents":[],`, 1), needs(`{"c":`+askName+`}`, ""), needs("", `"two"`), needs(`{"d":`+askRoots+`}`, `""`), done)
			f := rig.NewFleet(t, fleet.Config{Servers: []options.Endpoint{{Server: "s", URL: rig.URLOf(t, m), Tools: rig.Options()}}})
			if err := f.Connect(t.Context()); err != nil {
				t.Fatal(err)
			}
			g, r := rig.NewGate(t, f)
			c := gate.Call{Action: action, Name: names[action], Who: gate.Local(), Client: gatetest.Asked(canAll, accepts)}
			if action == gate.CallTool {
				c.Args = gate.MustDoc(`{"x":1}`)
			}
			res, err := g.Do(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if res.InputRequired || res.Doc.String() != done {
				t.Errorf("result %s", res.Doc)
			}
			var got []string
			for _, s := range m.Of(string(action)) {
				got = append(got, brought(s))
				if action == gate.CallTool && s.Params.Get("arguments").String() != `{"x":1}` {
					t.Errorf("arguments %s", s.Params.Get("arguments"))
				}
			}
			ann, home := `{"action":"accept","content":{"name":"Ann"}}`, `{"roots":[{"uri":"file:///home"}]}`
			want := []string{"", `{"a":` + ann + `,"b":` + home + `} "<one>"`, `{"c":` + ann + `}`, `"two"`, `{"d":` + home + `} ""`}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			asked := 0
			for _, rec := range r.List() {
				if rec.Event == gate.Done && actions.IsPeerRequest(rec.Call.Action) {
					asked++
				}
			}
			if asked != 4 {
				t.Errorf("%d requests are recorded, want 4", asked)
			}
		})
	}
}

// TestRoundsPassed: a client that can be asked by the answer to its call gets the server's
// questions, sanitized, and the state as the server wrote it; and its answers go back to the
// server.
func TestRoundsPassed(t *testing.T) {
	m := rounds(needs(`{"a":`+strings.Replace(askName, "Name?", "EVIL name?", 1)+`}`, `"EVIL\u003c1>"`), needs("", `"again"`), `{"content":[]}`)
	e, _ := rig.Dialled(t, m)
	r := new(rig.Records)
	g, err := gate.New(gate.Parts{
		Upstream: e, Authorizer: rig.AuthorizerFunc(rig.Allow), Sessions: rig.Sessions{}, Recorder: r,
		Sanitizer: rig.SanitizerFunc(func(s string) (string, []gate.Finding) {
			if !strings.Contains(s, "EVIL") {
				return s, nil
			}
			return strings.ReplaceAll(s, "EVIL", "good"), []gate.Finding{{Rule: "evil", Count: 1, Removed: true}}
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	call := func(responses, state string) gate.Result {
		c := rig.NewCall("s__echo", "{}")
		c.Client, c.Brought.State = gatetest.Asked(canAll, nil), state
		gatetest.Of(&c).Can.Rounds = true
		if responses != "" {
			c.Brought.Responses = gate.MustDoc(responses)
		}
		res, err := g.Do(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	res := call("", "")
	if !res.InputRequired || res.Doc.Get("requestState").Text() != "EVIL<1>" || res.Doc.At("/inputRequests/a/params/message").Text() != "good name?" {
		t.Errorf("first round: %v %s", res.InputRequired, res.Doc)
	}
	if res = call(`{"a":{"action":"decline"}}`, "EVIL<1>"); !res.InputRequired || res.Doc.Get("requestState").Text() != "again" {
		t.Errorf("second round: %v %s", res.InputRequired, res.Doc)
	}
	if res = call("", "again"); res.InputRequired {
		t.Errorf("third round: %s", res.Doc)
	}
	var got []string
	for _, s := range m.Of("tools/call") {
		got = append(got, brought(s))
	}
	if diff := cmp.Diff([]string{"", `{"a":{"action":"decline"}} "EVIL<1>"`, `"again"`}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestRoundsRefused: what a server must not ask, and what clients and the policy do not
// answer.
func TestRoundsRefused(t *testing.T) {
	many := make([]string, 17)
	for i := range many {
		many[i] = fmt.Sprintf(`"%d":%s`, i, askRoots)
	}
	tests := map[string]struct {
		answer string
		client gate.Client
		code   string
	}{
		"nothing is asked":                {needs("", ""), gatetest.Asked(canAll, accepts), "protocol"},
		"requests that are not an object": {needs("[]", ""), gatetest.Asked(canAll, accepts), "protocol"},
		"a request without a method":      {needs(`{"a":{}}`, ""), gatetest.Asked(canAll, accepts), "protocol"},
		"a request that is not an object": {needs(`{"a":1}`, ""), gatetest.Asked(canAll, accepts), "protocol"},
		"an unknown method":               {needs(`{"a":{"method":"tools/call","params":{}}}`, ""), gatetest.Asked(canAll, accepts), "protocol"},
		"params that are not an object":   {needs(`{"a":{"method":"roots/list","params":[]}}`, ""), gatetest.Asked(canAll, accepts), "protocol"},
		"too many requests":               {needs(`{`+strings.Join(many, ",")+`}`, ""), gatetest.Asked(canAll, accepts), "protocol"},
		"a state that is not a string":    {needs("", "{}"), gatetest.Asked(canAll, accepts), "protocol"},
		"a state that is too large":       {needs("", `"`+strings.Repeat("x", 70_000)+`"`), gatetest.Asked(canAll, accepts), "protocol"},
		"content, too":                    {strings.Replace(needs("", `"s"`), "{", `{"content":[{"type":"text","text":"x"}],`, 1), gatetest.Asked(canAll, accepts), "protocol"},
		"a type of results of its own":    {`{"resultType":"maybe","content":[]}`, gatetest.Asked(canAll, accepts), "protocol"},
		"without end":                     {needs(`{"a":`+askRoots+`}`, ""), gatetest.Asked(canAll, accepts), "protocol"},
		"nobody can be asked":             {needs(`{"a":`+askRoots+`}`, ""), nil, "refused_authorize"},
		"the client cannot do that":       {needs(`{"a":`+askRoots+`}`, ""), gatetest.Asked(`{"elicitation":{}}`, accepts), "refused_authorize"},
		"the client answers by an error":  {needs(`{"a":`+askRoots+`}`, ""), gatetest.Asked(canAll, func(context.Context, gate.Action, gate.Doc) (gate.Doc, error) { return gate.Doc{}, errors.New("no") }), "protocol"},
		"the client's answer is not one":  {needs(`{"a":`+askRoots+`}`, ""), gatetest.Asked(canAll, func(context.Context, gate.Action, gate.Doc) (gate.Doc, error) { return gate.MustDoc(`{}`), nil }), "refused_validate_output"},
		"the policy refuses the question": {needs(`{"a":`+askName+`}`, ""), gatetest.Asked(canAll, accepts), "refused_authorize"},
	}
	for name, tt := range tests {
		for _, passed := range []bool{false, true} {
			if passed && (tt.client == nil || strings.HasPrefix(name, "the client a") || strings.HasPrefix(name, "the client's") || name == "without end") {
				continue
			}
			t.Run(fmt.Sprintf("%s, passed on: %v", name, passed), func(t *testing.T) {
				e, _ := rig.Dialled(t, rounds(tt.answer))
				g, err := gate.New(gate.Parts{
					Upstream: e, Sessions: rig.Sessions{}, Sanitizer: rig.SanitizerFunc(rig.Unchanged), Recorder: new(rig.Records),
					Authorizer: rig.AuthorizerFunc(func(q gate.Query) gate.Decision {
						if q.Call != nil && q.Call.Action == actions.Elicit {
							return gate.Decision{Effect: gate.Deny, Reasons: []string{"no forms"}}
						}
						return gate.Decision{Effect: gate.Allow}
					}),
				})
				if err != nil {
					t.Fatal(err)
				}
				c := rig.NewCall("s__echo", "{}")
				c.Client = tt.client
				gatetest.Of(&c).Can.Rounds = passed
				res, err := g.Do(t.Context(), c)
				if code := gate.Code(err); code != tt.code {
					t.Errorf("%s, want %s: %s %v", code, tt.code, res.Doc, err)
				}
			})
		}
	}
}

// TestRoundsOfOlderServers: a server of an older revision asks for nothing with its
// answers, whatever is in them.
func TestRoundsOfOlderServers(t *testing.T) {
	s := rig.NewScript(map[string]string{"tools/call": strings.Replace(needs(`{"a":`+askName+`}`, `"s"`), "{", `{"content":[],`, 1)})
	e := rig.Ready(t, s.Config("s"))
	g, _ := rig.NewGate(t, e)
	c := rig.NewCall("s__echo", "{}")
	c.Client = &gatetest.Client{Can: gate.Reach{Rounds: true}}
	res, err := g.Do(t.Context(), c)
	if err != nil || res.InputRequired {
		t.Errorf("%v %s, %v", res.InputRequired, res.Doc, err)
	}
	if n := s.Count("tools/call"); n != 1 {
		t.Errorf("%d calls", n)
	}
}

// TestRoundsAskAtOnce: what a server asks in one answer is asked of the client at once,
// and the time that a person takes is not the server's.
func TestRoundsAskAtOnce(t *testing.T) {
	m := rounds(needs(`{"a":`+askRoots+`,"b":`+askRoots+`,"c":`+askRoots+`}`, ""), `{"content":[]}`)
	e, _ := rig.Dialled(t, m)
	g, _ := rig.NewGate(t, e)
	var all sync.WaitGroup
	all.Add(3)
	c := rig.NewCall("s__echo", "{}")
	c.Client = gatetest.Asked(canAll, func(ctx context.Context, method gate.Action, params gate.Doc) (gate.Doc, error) {
		all.Done()
		all.Wait() // which none alone gets past
		return accepts(ctx, method, params)
	})
	if _, err := g.Do(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}
