package gate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/gate/obligation"
)

// A client is a peer that answers at once.
type client struct {
	gate.Nobody
	declares string
	rounds   bool
	answer   func(context.Context, gate.Action, gate.Doc) (gate.Doc, error)
}

func (c client) Reach() gate.Reach {
	return gate.Reach{Capabilities: gate.MustDoc(c.declares), Rounds: c.rounds}
}

func (c client) Request(ctx context.Context, a gate.Action, params gate.Doc) (gate.Doc, error) {
	return c.answer(ctx, a, params)
}

func answering(doc string) client {
	return client{declares: `{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{}}`, answer: func(context.Context, gate.Action, gate.Doc) (gate.Doc, error) {
		return gate.MustDoc(doc), nil
	}}
}

// inRounds is a client that can be asked by the answer to its call, too.
func inRounds(doc string) client {
	c := answering(doc)
	c.rounds = true
	return c
}

// What a server asks, and what clients answer.
const (
	asksName   = `{"message":"Who are you?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}`
	asksPIN    = `{"message":"Who are you?","requestedSchema":{"type":"object","properties":{"PIN":{"type":"integer"}}}}`
	asksModel  = `{"messages":[{"role":"user","content":{"type":"text","text":"write"}}],"maxTokens":9}`
	givesName  = `{"action":"accept","content":{"name":"Ada"}}`
	givesRoots = `{"roots":[{"uri":"file:///srv"}]}`
	givesText  = `{"role":"assistant","model":"m","content":{"type":"text","text":"hi"}}`
)

// asked makes a call in which its server asks the client once, and returns what the
// server got.
func asked(t *testing.T, r *rig, c gate.Client, a gate.Action, params string, more ...func(*gate.Parts)) (got gate.Doc, err error) {
	t.Helper()
	r.hosted = func(ctx context.Context, p gate.Permit) (gate.Result, error) {
		var doc gate.Doc
		if params != "" {
			doc = gate.MustDoc(params)
		}
		got, err = p.Request(ctx, a, doc)
		return answer(`{"structuredContent":1}`), nil
	}
	parts := r.parts()
	for _, f := range more {
		f(&parts)
	}
	g := newGate(t, parts)
	call := newCall()
	call.Client = c
	if _, derr := g.Do(t.Context(), call); derr != nil {
		t.Fatal(derr)
	}
	return got, err
}

// The client sees a request only after it was decided on, cleaned and recorded.
func TestRequest(t *testing.T) {
	r := newRig()
	r.sanitize = replace("evil", "[removed]")
	var seen string
	c := answering("")
	c.answer = func(_ context.Context, a gate.Action, params gate.Doc) (gate.Doc, error) {
		r.step("ask " + string(a))
		seen = params.String()
		return gate.MustDoc(givesName), nil
	}
	var q gate.Query
	r.decide = func(now gate.Query) gate.Decision { q = now; return gate.Decision{Effect: gate.Allow} }
	got, err := asked(t, r, c, actions.Elicit, strings.Replace(asksName, "Who", "evil who", 1))
	if err != nil || got.String() != givesName {
		t.Fatalf("the server got %s, %v", got, err)
	}
	if want := strings.Replace(asksName, "Who", "[removed] who", 1); seen != want {
		t.Errorf("the client saw %s", seen)
	}
	if q.Call.Action != actions.Elicit || q.Call.Parent != "c1" || q.Call.Name != "files__read" || q.Tool != r.tool || q.Call.Args.String() != seen {
		t.Errorf("decided on %+v", q.Call)
	}
	if diff := cmp.Diff([]gate.Event{gate.Granted, gate.Granted, gate.Done, gate.Done}, r.events()); diff != "" {
		t.Fatalf("events (-want +got):\n%s", diff)
	}
	granted, done := r.records[1], r.records[2]
	if granted.Call.ID == "c1" || granted.Call.ID != done.Call.ID || done.Code != "ok" || done.Result.String() != givesName || len(done.Findings) != 1 {
		t.Errorf("recorded %+v, %+v", granted, done)
	}
	trace := strings.Join(r.trace, " ")
	if i, j := strings.LastIndex(trace, "record granted"), strings.Index(trace, "ask "); i < 0 || j < i {
		t.Errorf("trace = %s", trace)
	}
}

func TestRequestIsRefused(t *testing.T) {
	peer := func(f func(*client)) *client { c := answering(givesName); f(&c); return &c }
	declares := func(d string) *client { return peer(func(c *client) { c.declares = d }) }
	link := func(u string) string {
		return fmt.Sprintf(`{"mode":"url","elicitationId":"1","message":"go","url":%q}`, u)
	}
	with := func(o obligation.Obligation) func(*rig) {
		return only(gate.Decision{Effect: gate.Allow, Obligations: []obligation.Obligation{o}})
	}
	tests := map[string]struct {
		change func(*rig)
		client *client
		action gate.Action
		params string
		code   string
		reason string
	}{
		"what the policy denies":                       {only(gate.Decision{Effect: gate.Deny, Reasons: []string{"no"}}), nil, "", "", "refused_authorize", "no"},
		"what nothing allows":                          {only(gate.Decision{}), nil, "", "", "refused_authorize", "not allowed by policy"},
		"what a person would be asked":                 {only(gate.Decision{Effect: gate.Ask}), nil, "", "", "refused_approve", "approvals cannot be asked for during a call"},
		"an obligation to a call within a tool's call": {with(obligation.Profile{Name: "strict"}), nil, "", "", "refused_authorize", "demands"},
		"without a record of it":                       {func(r *rig) { r.at = nth("record granted", 2) }, nil, "", "", "refused_record", "audit log"},
		"a method that is none":                        {nil, nil, "tools/call", `{"messages":[]}`, "refused_parse", "does not pass this request on"},
		"parameters that are not an object":            {nil, nil, "", `[]`, "refused_parse", "not an object"},
		"a form without properties":                    {nil, nil, "", `{"message":"x"}`, "refused_parse", "no properties"},
		"a form with an object in it":                  {nil, nil, "", strings.Replace(asksName, `"string"`, `"object"`, 1), "refused_parse", `"name"`},
		"a mode that is none":                          {nil, nil, "", `{"mode":"x","message":"x"}`, "refused_parse", "mode"},
		"a script in the place of a URL":               {nil, nil, "", link("javascript:alert(1)"), "refused_parse", "url"},
		"a file in the place of a URL":                 {nil, nil, "", link("file:///etc/passwd"), "refused_parse", "url"},
		"a URL with a user":                            {nil, nil, "", link("https://good.example@evil.example/"), "refused_parse", "url"},
		"a form that refers to itself":                 {nil, nil, "", strings.Replace(asksName, `"type":"object"`, `"$ref":"#"`, 1), "refused_parse", "$ref"},
		"a property that refers to the form":           {nil, nil, "", strings.Replace(asksName, `"string"`, `"string","$dynamicRef":"#"`, 1), "refused_parse", "$dynamicRef"},
		"choices that refer to the form":               {nil, nil, "", strings.Replace(asksName, `"string"`, `"array","items":{"anyOf":[{"$ref":"#"}]}`, 1), "refused_parse", "$ref"},
		"a form that is nested too deep":               {nil, nil, "", strings.Replace(asksName, `"string"`, `"array","items":`+strings.Repeat(`{"not":`, 40)+`{}`+strings.Repeat(`}`, 40), 1), "refused_parse", "too deep"},
		"a URL with data":                              {nil, nil, "", link("data:text/html,hi"), "refused_parse", "url"},
		"a host in letters that look like others":      {nil, nil, "", link("https://g\u043e\u043ed.example/"), "refused_parse", "url"},
		"such a host in escapes":                       {nil, nil, "", link("https://g%D0%BEod.example/"), "refused_parse", "url"},
		"sampling without messages":                    {nil, nil, actions.Sample, `{}`, "refused_parse", "messages"},
		"a request that is too large":                  {nil, nil, "", strings.Replace(asksName, "Who", strings.Repeat("w", 1<<20), 1), "refused_parse", "larger than 1048576"},
		"a client that has declared nothing":           {nil, declares(`{}`), "", "", "refused_authorize", "elicitation"},
		"sampling that was not declared":               {nil, declares(`{"roots":{}}`), actions.Sample, asksModel, "refused_authorize", "sampling"},
		"sampling with tools that were not declared":   {nil, declares(`{"sampling":{}}`), actions.Sample, `{"messages":[],"tools":[]}`, "refused_authorize", "sampling with tools"},
		"roots that were not declared":                 {nil, declares(`{"sampling":{}}`), actions.ListRoots, "", "refused_authorize", "roots"},
		"a URL that was not declared":                  {nil, declares(`{"elicitation":{"form":{}}}`), "", link("https://a.example"), "refused_authorize", "by URL"},
		"a form where only URLs were declared":         {nil, declares(`{"elicitation":{"url":{}}}`), "", "", "refused_authorize", "by form"},
		"a sanitizer that panics":                      {func(r *rig) { r.sanitize = breaks("Who") }, nil, "", "", "refused_sanitize", "internal error"},
		"a URL that cannot be shown as it is":          {func(r *rig) { r.sanitize = replace("evil", "good") }, nil, "", link("https://evil.example"), "refused_sanitize", "URL"},
		"an answer that is none":                       {nil, peer(func(c *client) { c.answer = nothing }), "", "", "refused_validate_output", "not an object"},
		"an action that is none":                       {nil, says(`{"action":"yes"}`), "", "", "refused_validate_output", "action"},
		"an answer with an object in it":               {nil, says(`{"action":"accept","content":{"a":{}}}`), "", "", "refused_validate_output", `"a"`},
		"an answer with numbers in a list":             {nil, says(`{"action":"accept","content":{"a":[1]}}`), "", "", "refused_validate_output", `"a"`},
		"an answer that is too large":                  {nil, says(`{"action":"accept","x":"` + strings.Repeat("x", 1<<20) + `"}`), "", "", "refused_validate_output", "larger"},
		"roots that are not a list":                    {nil, says(`{"roots":{}}`), actions.ListRoots, "", "refused_validate_output", "not an array"},
		"a root that is not a folder":                  {nil, says(`{"roots":[{"uri":"https://x.example/y"},{"uri":5}]}`), actions.ListRoots, "", "refused_validate_output", "uri"},
		"a root without a uri":                         {nil, says(`{"roots":[{"name":"a"}]}`), actions.ListRoots, "", "refused_validate_output", "uri"},
		"a sample without a model":                     {nil, says(`{"role":"assistant","content":{}}`), actions.Sample, asksModel, "refused_validate_output", "model"},
		"a sample whose content is text":               {nil, says(`{"role":"assistant","model":"m","content":"x"}`), actions.Sample, asksModel, "refused_validate_output", "content"},
		"a client that panics":                         {nil, peer(func(c *client) { c.answer = nil }), "", "", "refused_validate_output", "internal error"},
		"a client that refuses":                        {nil, refusing("not now"), "", "", "tool_error", ""},
		"a client whose refusal has a secret":          {nil, refusing("not with KEY"), "", "", "refused_sanitize", "holds a secret"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRig()
			if tt.change != nil {
				tt.change(r)
			}
			if tt.client == nil {
				c := answering(givesName)
				tt.client = &c
			}
			asks := 0
			inner := tt.client.answer
			tt.client.answer = func(ctx context.Context, a gate.Action, p gate.Doc) (gate.Doc, error) {
				asks++
				return inner(ctx, a, p)
			}
			if tt.action == "" {
				tt.action = actions.Elicit
			}
			if tt.params == "" && tt.action == actions.Elicit {
				tt.params = asksName
			}
			got, err := asked(t, r, *tt.client, tt.action, tt.params, func(p *gate.Parts) { p.Secrets = spy{} })
			code := gate.Code(err)
			if tt.code == "tool_error" { // it is the client's own, which has no code
				code = "tool_error"
			}
			if err == nil || code != tt.code || !got.IsZero() || !strings.Contains(reason(err), tt.reason) {
				t.Fatalf("got %.100s, %v; want %s, %q", got, err, tt.code, tt.reason)
			}
			mayAsk := tt.code == "refused_validate_output" || tt.code == "tool_error" || strings.Contains(name, "refusal")
			if (asks > 0) != mayAsk {
				t.Errorf("the client was asked %d times", asks)
			}
			last := r.records[len(r.records)-2]
			if last.Event != gate.Done || last.Call.Action != tt.action || last.Reason != reason(err) {
				t.Errorf("recorded %s %s %q", last.Event, last.Code, last.Reason)
			}
		})
	}
}

// only answers d to what servers ask, and lets the call itself pass.
func only(d gate.Decision) func(*rig) { return hostDecides(d) }

func nothing(context.Context, gate.Action, gate.Doc) (gate.Doc, error) { return gate.Doc{}, nil }

func says(doc string) *client { c := answering(doc); return &c }

func refusing(text string) *client {
	c := answering("{}")
	c.answer = func(context.Context, gate.Action, gate.Doc) (gate.Doc, error) { return gate.Doc{}, errors.New(text) }
	return &c
}

// breaks panics at one text.
func breaks(at string) func(gate.Text) (string, []gate.Finding) {
	return func(x gate.Text) (string, []gate.Finding) {
		if strings.Contains(x.Text, at) {
			panic(errInternal)
		}
		return x.Text, nil
	}
}

// nth fails a method when it is called for the nth time.
func nth(method string, n int) func(string) error {
	return func(m string) error {
		if m != method {
			return nil
		}
		if n--; n == 0 {
			return errInternal
		}
		return nil
	}
}

// What a person or a model answers goes to a server as arguments do.
func TestRequestGuardsTheAnswer(t *testing.T) {
	const holds = `{"action":"accept","content":{"name":"my KEY"}}`
	const clean = `{"action":"accept","content":{"name":"my [redacted: word]"}}`
	tests := map[string]struct {
		treat  gate.Treatment
		params string
		want   string
	}{
		"they are redacted":                 {"redact", asksName, clean},
		"they are redacted by default":      {"", asksName, clean},
		"they are refused":                  {"refuse", asksName, ""},
		"nobody can be asked":               {"ask", asksName, ""},
		"they are allowed":                  {"allow", asksName, holds},
		"a secret is what was asked for":    {"redact", asksPIN, holds},
		"a secret, though they are refused": {"refuse", asksPIN, holds},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRig()
			got, err := asked(t, r, answering(holds), actions.Elicit, tt.params, func(p *gate.Parts) { p.Secrets = spy{arguments: tt.treat} })
			if got.String() != tt.want || (err == nil) != (tt.want != "") {
				t.Errorf("the server got %s, %v", got, err)
			}
			done := r.records[2]
			if kept := !done.Result.IsZero(); kept != (tt.want != "" && tt.params == asksName) {
				t.Errorf("recorded %s", done.Result)
			}
		})
	}
}

func TestRequestCannot(t *testing.T) {
	r := newRig()
	if _, err := asked(t, r, nil, actions.Elicit, asksName); gate.Code(err) != "refused_authorize" || len(r.records) != 2 {
		t.Errorf("without a client: %v", err)
	}
	if _, err := (gate.Permit{}).Request(t.Context(), actions.Elicit, gate.MustDoc(asksName)); gate.Code(err) != "refused_authorize" {
		t.Errorf("the zero permit: %v", err)
	}
	var permit gate.Permit
	r = newRig()
	r.hosted = func(_ context.Context, p gate.Permit) (gate.Result, error) {
		permit = p
		return answer(`{"structuredContent":1}`), nil
	}
	c := newCall()
	c.Client = inRounds(givesName)
	if _, err := r.do(t, c); err != nil {
		t.Fatal(err)
	}
	n := len(r.records)
	_, err := permit.Request(t.Context(), actions.Elicit, gate.MustDoc(asksName))
	_, err2 := permit.Screen(t.Context(), actions.Elicit, gate.MustDoc(asksName))
	if gate.Code(err) != "refused_authorize" || gate.Code(err2) != "refused_authorize" || len(r.records) != n {
		t.Errorf("after the call: %v, %v", err, err2)
	}
}

// A request that waits ends with its call.
func TestRequestEndsWithItsCall(t *testing.T) {
	r := newRig()
	var mu sync.Mutex
	var records []gate.Record
	parts := r.parts()
	parts.Recorder = recorderFunc(func(_ context.Context, rec *gate.Record) error {
		mu.Lock()
		defer mu.Unlock()
		records = append(records, *rec)
		return nil
	})
	asks, ended := make(chan struct{}), make(chan error, 1)
	c := answering("")
	c.answer = func(ctx context.Context, _ gate.Action, _ gate.Doc) (gate.Doc, error) {
		close(asks)
		<-ctx.Done()
		return gate.Doc{}, ctx.Err()
	}
	r.hosted = func(_ context.Context, p gate.Permit) (gate.Result, error) {
		go func() { // as a server whose connection outlives the call
			_, err := p.Request(context.WithoutCancel(t.Context()), actions.Elicit, gate.MustDoc(asksName))
			ended <- err
		}()
		<-asks
		return answer(`{"structuredContent":1}`), nil
	}
	g := newGate(t, parts)
	call := newCall()
	call.Client = c
	if _, err := g.Do(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; gate.Code(err) != "cancelled" {
		t.Errorf("the server got %v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	if !slices.ContainsFunc(records, func(r gate.Record) bool {
		return r.Event == gate.Done && r.Call.Action == actions.Elicit && r.Code == "cancelled"
	}) {
		t.Errorf("the end of the request is not recorded: %+v", records)
	}
}

// A server that asks without end fills neither the person's day nor the log.
func TestRequestsAreBounded(t *testing.T) {
	const most = 100
	var mixed, askedFor, recorded atomic.Int64
	x := newInstant("v", &mixed)
	p := x.parts()
	p.Recorder = recorderFunc(func(_ context.Context, r *gate.Record) error {
		if r.Call.Action == actions.ListRoots {
			recorded.Add(1)
		}
		return nil
	})
	c := answering("")
	c.answer = func(context.Context, gate.Action, gate.Doc) (gate.Doc, error) {
		askedFor.Add(1)
		return gate.MustDoc(givesRoots), nil
	}
	u := newRig()
	u.tool = x.tool
	u.hosted = func(ctx context.Context, p gate.Permit) (gate.Result, error) {
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range most {
					if _, err := p.Request(ctx, actions.ListRoots, gate.Doc{}); err != nil && gate.Code(err) != "refused_limit" {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		return x.result, nil
	}
	p.Upstream = u
	g := newGate(t, p)
	call := newCall()
	call.Client = c
	if _, err := g.Do(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	// Those that had begun when one too many came may be refused as well.
	if n := askedFor.Load(); n > most || n < most-4 {
		t.Errorf("the client was asked %d times", n)
	}
	if n := recorded.Load(); n > 2*most+1 {
		t.Errorf("%d records", n)
	}
}

// Roots that are no folders are left out: what a server takes for a path is one.
func TestRootsAreFolders(t *testing.T) {
	folder := `{"uri":"FILE:///srv","name":"a"}`
	got, err := asked(t, newRig(), says(`{"roots":[{"uri":"https://x.example/y"},`+folder+`,{"uri":"vscode-vfs://github/a"}]}`), actions.ListRoots, "")
	if want := `{"roots":[` + folder + `]}`; err != nil || got.String() != want {
		t.Errorf("the server got %s, %v; want %s", got, err, want)
	}
}
