package host_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/internal/fleet"
	"github.com/wasmgate/wasmgate/bridge/internal/host"
	"github.com/wasmgate/wasmgate/bridge/internal/host/dispatch"
	"github.com/wasmgate/wasmgate/bridge/internal/local"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/gate/step"
)

// An asking rig is a host in front of a gate in front of tools that ask their client
// before they answer.
type asking struct {
	*desk
	records *rig.Records

	mu      sync.Mutex
	changed []gate.SessionKey
	ended   []gate.SessionKey
	lasted  []time.Duration
	over    chan error // how calls of the tool "form" have ended
}

const asksName = `{"message":"Who are you?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}`

const asksModel = `{"messages":[{"role":"user","content":{"type":"text","text":"write"}}],"maxTokens":9}`

func newAsking(t testing.TB, cfg host.Config) *asking {
	t.Helper()
	x := offline(t, cfg)
	srv := httptest.NewServer(x.host)
	t.Cleanup(srv.Close)
	x.url, x.hangUp = srv.URL, srv.CloseClientConnections
	return x
}

// offline is the same without a network, as a bubble wants it.
func offline(t testing.TB, cfg host.Config) *asking {
	t.Helper()
	x := &asking{records: new(rig.Records), over: make(chan error, 1000)}
	var tools []options.LocalTool
	for name, ask := range map[string]func(context.Context, gate.Permit) (string, error){
		"form": func(ctx context.Context, p gate.Permit) (string, error) {
			doc, err := p.Request(ctx, actions.Elicit, gate.MustDoc(asksName))
			x.over <- err
			return doc.At("/content/name").Text(), err
		},
		"twice": func(ctx context.Context, p gate.Permit) (string, error) {
			one, err := p.Request(ctx, actions.Elicit, gate.MustDoc(asksName))
			if err != nil {
				return "", err
			}
			two, err := p.Request(ctx, actions.Elicit, gate.MustDoc(strings.Replace(asksName, "Who", one.At("/content/name").Text()+", who", 1)))
			return one.At("/content/name").Text() + " " + two.At("/content/name").Text(), err
		},
		"all": atOnce,
		"roots": func(ctx context.Context, p gate.Permit) (string, error) {
			doc, err := p.Request(ctx, actions.ListRoots, gate.Doc{})
			return doc.At("/roots/0/uri").Text(), err
		},
		"sample": func(ctx context.Context, p gate.Permit) (string, error) {
			doc, err := p.Request(ctx, actions.Sample, gate.MustDoc(asksModel))
			return doc.At("/content/text").Text(), err
		},
		"blocks": func(ctx context.Context, p gate.Permit) (string, error) {
			_, err := p.Request(ctx, actions.Elicit, gate.MustDoc(asksName))
			x.over <- err
			<-ctx.Done()
			x.over <- ctx.Err()
			return "", ctx.Err()
		},
		"floods": func(ctx context.Context, p gate.Permit) (string, error) {
			errs := make(chan error, 20)
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			for range 20 {
				go func() {
					_, err := p.Request(ctx, actions.Elicit, gate.MustDoc(asksName))
					errs <- err
				}()
			}
			return "", <-errs
		},
	} {
		tools = append(tools, options.LocalTool{Definition: gate.MustDoc(rig.Tool(name)), Call: func(ctx context.Context, c *gate.Call, p gate.Permit) (gate.Result, error) {
			p.Notify(ctx, "notifications/progress", gate.MustDoc(`{"progressToken":1,"progress":1}`))
			text, err := ask(ctx, p)
			if ctx.Err() != nil {
				return gate.Result{}, ctx.Err()
			}
			if err != nil {
				text = "error: " + err.Error()
			}
			p.Notify(ctx, "notifications/progress", gate.MustDoc(`{"progressToken":1,"progress":2}`))
			return gate.Result{Doc: gate.MustDoc(`{"content":[{"type":"text","text":` + rig.Quote(text) + `}]}`)}, nil
		}})
	}
	tools = append(tools, options.LocalTool{Definition: gate.MustDoc(rig.Tool("rounds")), Call: asksByAnswer},
		options.LocalTool{Definition: gate.MustDoc(rig.Tool("heavy")), Call: asksHeavily})
	functions, err := local.New("local", rig.Options(), tools...)
	if err != nil {
		t.Fatal(err)
	}
	g, err := gate.New(gate.Parts{
		Upstream: rig.NewFleet(t, fleet.Config{Locals: []*local.Server{functions}}), Sessions: rig.Sessions{}, Sanitizer: rig.SanitizerFunc(rig.Unchanged), Recorder: x.records,
		Authorizer: rig.AuthorizerFunc(func(gate.Query) gate.Decision { return gate.Decision{Effect: gate.Allow} }),
	})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Do, cfg.Tools = g.Do, g.Tools
	cfg.PeerChanged = func(k gate.SessionKey) { x.keep(func() { x.changed = append(x.changed, k) }) }
	cfg.Lasted = func(d time.Duration) { x.keep(func() { x.lasted = append(x.lasted, d) }) }
	cfg.Ended = func(k gate.SessionKey) { x.keep(func() { x.ended = append(x.ended, k) }) }
	x.desk = new(desk)
	if x.host, err = host.New(cfg); err != nil {
		t.Fatal(err)
	}
	return x
}

func (x *asking) keep(f func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	f()
}

func (x *asking) recorded() []gate.Record {
	return x.records.List()
}

// atOnce asks three things at once.
func atOnce(ctx context.Context, p gate.Permit) (string, error) {
	var texts [3]string
	var errs [3]error
	var wg sync.WaitGroup
	for i, ask := range []struct {
		method     gate.Action
		params, at string
	}{{actions.Elicit, asksName, "/content/name"}, {actions.Sample, asksModel, "/content/text"}, {actions.ListRoots, "{}", "/roots/0/uri"}} {
		wg.Go(func() {
			doc, err := p.Request(ctx, ask.method, gate.MustDoc(ask.params))
			texts[i], errs[i] = doc.At(ask.at).Text(), err
		})
	}
	wg.Wait()
	return strings.Join(texts[:], " "), errors.Join(errs[:]...)
}

// asksByAnswer asks as a server without sessions does: by its answer, and with a state of its
// own that has what came before.
func asksByAnswer(ctx context.Context, c *gate.Call, p gate.Permit) (gate.Result, error) {
	name := c.Brought.Responses.At("/who/content/name").Text()
	if c.Brought.State == "asked twice" {
		return gate.Result{Doc: gate.MustDoc(`{"content":[{"type":"text","text":` + rig.Quote(name) + `}]}`)}, nil
	}
	params, err := p.Screen(ctx, actions.Elicit, gate.MustDoc(asksName))
	if err != nil {
		return gate.Result{}, err
	}
	state := "asked once"
	if c.Brought.State == state {
		state = "asked twice"
	}
	doc := gate.MustDoc(`{"resultType":"input_required","inputRequests":{"who":{"method":"elicitation/create","params":` + params.String() + `}},"requestState":` + rig.Quote(state) + `}`)
	return gate.Result{Doc: doc, InputRequired: true}, nil
}

// asksHeavily asks once, with as large a state as there may be.
func asksHeavily(_ context.Context, c *gate.Call, _ gate.Permit) (gate.Result, error) {
	if c.Brought.State != "" {
		return gate.Result{Doc: gate.MustDoc(fmt.Sprintf(`{"content":[{"type":"text","text":"%d"}]}`, len(c.Brought.State)))}, nil
	}
	state := strings.Repeat("s", gate.RoundState)
	return gate.Result{Doc: gate.MustDoc(`{"resultType":"input_required","requestState":` + rig.Quote(state) + `}`), InputRequired: true}, nil
}

// asksWell connects a client that can be asked anything.
func (x *asking) asksWell(t testing.TB, way, era string, o sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	o.ElicitationHandler = func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
		name := "Ada"
		if strings.HasPrefix(r.Params.Message, name) { // it is asked who else
			name = "Bob"
		}
		return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"name": name}}, nil
	}
	o.CreateMessageHandler = func(context.Context, *sdk.CreateMessageRequest) (*sdk.CreateMessageResult, error) {
		return &sdk.CreateMessageResult{Role: "assistant", Model: "m", Content: &sdk.TextContent{Text: "written"}}, nil
	}
	c := sdk.NewClient(&sdk.Implementation{Name: "c", Version: "9"}, &o)
	c.AddRoots(&sdk.Root{URI: "file:///srv"})
	return x.connect(t, c, way, era)
}

// With either protocol revision, a server can ask its client within a call: a form, its model, its
// folders, one after the other and at once.
func TestServersAskClients(t *testing.T) {
	everyWay(t, func(t *testing.T, way, era string) {
		x := newAsking(t, host.Config{})
		for name, want := range map[string]string{
			"form": "Ada", "twice": "Ada Bob", "all": "Ada written file:///srv", "roots": "file:///srv", "sample": "written",
		} {
			cs := x.asksWell(t, way, era, sdk.ClientOptions{})
			for range 2 { // no call leaves anything behind that the next one would meet
				if got, err := textOf(t.Context(), cs, "local__"+name, map[string]any{}); err != nil || got != want {
					t.Errorf("%s: %q, %v", name, got, err)
				}
			}
			cs.Close()
		}
		for _, r := range x.recorded() {
			if actions.IsPeerRequest(r.Call.Action) && (r.Call.Parent == "" || r.Event == gate.Done && r.Code != "ok") {
				t.Errorf("recorded %s %s %s", r.Call.Action, r.Code, r.Call.Parent)
			}
		}
	})
}

// A client is asked only for what it has declared.
func TestServersAskWhatIsDeclared(t *testing.T) {
	everyWay(t, func(t *testing.T, way, era string) {
		x := newAsking(t, host.Config{})
		c := sdk.NewClient(&sdk.Implementation{Name: "c"}, &sdk.ClientOptions{Capabilities: &sdk.ClientCapabilities{RootsV2: &sdk.RootCapabilities{}}})
		c.AddRoots(&sdk.Root{URI: "file:///srv"})
		cs := x.connect(t, c, way, era)
		for name, want := range map[string]string{"roots": "file:///srv", "form": "declared", "sample": "declared"} {
			if got, err := textOf(t.Context(), cs, "local__"+name, map[string]any{}); err != nil || !strings.Contains(got, want) {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		}
		cs = x.connect(t, sdk.NewClient(&sdk.Implementation{Name: "c"}, &sdk.ClientOptions{Capabilities: &sdk.ClientCapabilities{}}), way, era)
		if got, err := textOf(t.Context(), cs, "local__roots", map[string]any{}); err != nil || !strings.Contains(got, "cannot be asked") {
			t.Errorf("of a client that declares nothing: %q, %v", got, err)
		}
	})
}

// What the client's person or program refuses, the server reads.
func TestClientRefusesServer(t *testing.T) {
	for _, way := range []string{"HTTP", "stdio"} {
		x := newAsking(t, host.Config{})
		cs := x.connect(t, sdk.NewClient(&sdk.Implementation{Name: "c"}, &sdk.ClientOptions{ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			return nil, errors.New("not before tea")
		}}), way, rig.Old)
		if got, err := textOf(t.Context(), cs, "local__form", map[string]any{}); err != nil || !strings.Contains(got, "not before tea") {
			t.Errorf("%s: %q, %v", way, got, err)
		}
	}
}

// A server of the stateless revision asks by its answer, which goes through; its state
// the client can neither read nor change.
func TestRoundsPassThrough(t *testing.T) {
	for _, way := range []string{"HTTP", "stdio"} {
		x := newAsking(t, host.Config{})
		cs := x.asksWell(t, way, rig.Newest, sdk.ClientOptions{})
		if got, err := textOf(t.Context(), cs, "local__rounds", map[string]any{}); err != nil || got != "Ada" {
			t.Errorf("%s: %q, %v", way, got, err)
		}
	}
	x := newAsking(t, host.Config{})
	got := x.calls(t, "rounds", "", "")
	state := got.At("/result/requestState").Text()
	if !strings.HasPrefix(state, "r1.") || strings.Contains(got.String(), "asked once") {
		t.Fatalf("the client got %s", got)
	}
	const answer = `{"who":{"action":"accept","content":{"name":"Ada"}}}`
	if got := x.calls(t, "rounds", state, answer); got.At("/result/resultType").Text() != "input_required" {
		t.Errorf("the second round: %s", got)
	}
	for name, state := range map[string]string{"a forged one": "r1.asked", "one of another kind": "p1." + state[3:], "the server's own": "asked twice", "altered": state[:len(state)-2] + "AA"} {
		if got := x.calls(t, "rounds", state, answer); got.At("/error/code").String() != "-32602" || !strings.Contains(got.String(), "requestState") {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := x.calls(t, "form", state, answer); got.At("/error/code").String() != "-32602" {
		t.Errorf("for another tool: %s", got)
	}
	state = x.calls(t, "heavy", "", "").At("/result/requestState").Text()
	if got := x.calls(t, "heavy", state, "").At("/result/content/0/text").Text(); got != fmt.Sprint(gate.RoundState) {
		t.Errorf("of the largest state the server got %q bytes", got)
	}
}

// calls sends a call of a stateless client that can be asked, as the host gets it.
func (x *asking) calls(t testing.TB, name, state, responses string) gate.Doc {
	t.Helper()
	more := ""
	if state != "" {
		more += `,"requestState":` + rig.Quote(state)
	}
	if responses != "" {
		more += `,"inputResponses":` + responses
	}
	return x.call(t, "local__"+name, `,"arguments":{}`+more)
}

// TestParkedState: the state of a parked call is good once, for that call alone.
func TestParkedState(t *testing.T) {
	x := newAsking(t, host.Config{})
	first := x.calls(t, "twice", "", "")
	state := first.At("/result/requestState").Text()
	want := `{"ask-1":{"method":"elicitation/create","params":` + asksName + `}}`
	if diff := cmp.Diff(want, first.At("/result/inputRequests").String()); diff != "" || first.At("/result/resultType").Text() != "input_required" {
		t.Fatalf("%s\n%s", first, diff)
	}
	if again := x.calls(t, "twice", state, ""); again.At("/result/inputRequests").String() != want {
		t.Errorf("without an answer: %s", again)
	}
	if again := x.calls(t, "twice", state, `{"ask-7":{"action":"accept"}}`); again.At("/result/inputRequests").String() != want {
		t.Errorf("with another answer: %s", again)
	}
	answer := func(key, name string) string {
		return fmt.Sprintf(`{%q:{"action":"accept","content":{"name":%q}}}`, key, name)
	}
	refused := func(name string, got gate.Doc, why string) {
		t.Helper()
		if got.At("/error/code").String() != "-32602" || !strings.Contains(got.At("/error/message").Text(), why) {
			t.Errorf("%s: %s", name, got)
		}
	}
	refused("for another tool", x.calls(t, "form", state, answer("ask-1", "Ada")), "did not give this requestState")
	refused("forged", x.calls(t, "twice", state[:len(state)-3]+"AAA", answer("ask-1", "Ada")), "did not give this requestState")
	refused("with other arguments", x.call(t, "local__twice", `,"arguments":{"a":1},"requestState":`+rig.Quote(state)+`,"inputResponses":`+answer("ask-1", "Ada")), "did not give this requestState")
	refused("at another gateway", newAsking(t, host.Config{}).calls(t, "twice", state, answer("ask-1", "Ada")), "did not give this requestState")

	second := x.calls(t, "twice", state, answer("ask-1", "Ada"))
	next := second.At("/result/requestState").Text()
	if second.At("/result/inputRequests/ask-2/params/message").Text() != "Ada, who are you?" || next == state {
		t.Fatalf("the second round: %s", second)
	}
	refused("replayed", x.calls(t, "twice", state, answer("ask-1", "Eve")), "was used before")
	last := x.calls(t, "twice", next, answer("ask-2", "Bob"))
	if last.At("/result/content/0/text").Text() != "Ada Bob" {
		t.Errorf("the last round: %s", last)
	}
	refused("after the call", x.calls(t, "twice", next, answer("ask-2", "Eve")), "has ended")
	bad := 0
	for _, r := range x.recorded() {
		if r.Code == "refused_parse" {
			bad++
		}
	}
	if bad != 5 { // that of another gateway is recorded there
		t.Errorf("%d refusals are recorded, want 5", bad)
	}
}

// Two who bring the same state at once: one is heard.
func TestParkedStateRace(t *testing.T) {
	x := newAsking(t, host.Config{})
	state := x.calls(t, "form", "", "").At("/result/requestState").Text()
	var wg sync.WaitGroup
	var mu sync.Mutex
	heard := 0
	for i := range 8 {
		wg.Go(func() {
			got := x.calls(t, "form", state, fmt.Sprintf(`{"ask-1":{"action":"accept","content":{"name":"Ada%d"}}}`, i))
			mu.Lock()
			defer mu.Unlock()
			if strings.HasPrefix(got.At("/result/content/0/text").Text(), "Ada") {
				heard++
			}
		})
	}
	wg.Wait()
	if heard != 1 {
		t.Errorf("%d were heard, want 1", heard)
	}
}

// What was asked at once and not answered at once is asked again, with what is new.
func TestParkedSeveral(t *testing.T) {
	x := newAsking(t, host.Config{})
	got := x.callAs(t, "all", "", `{}`)
	for round := 0; got.At("/result/content").IsZero(); round++ {
		if round > 9 {
			t.Fatalf("asked without end: %s", got)
		}
		for key, r := range got.At("/result/inputRequests").Members() { // one answer a round
			answer := map[string]string{
				"elicitation/create": `{"action":"accept","content":{"name":"Ada"}}`, "roots/list": `{"roots":[{"uri":"file:///srv"}]}`,
				"sampling/createMessage": `{"role":"assistant","model":"m","content":{"type":"text","text":"written"}}`,
			}[r.Get("method").Text()]
			state := got.At("/result/requestState").Text()
			got = x.callAs(t, "all", state, `{`+rig.Quote(key)+`:`+answer+`}`)
			if again := x.callAs(t, "all", state, "{}"); again.At("/error/code").String() != "-32602" {
				t.Errorf("the state of round %d is good for one more: %s", round, again)
			}
			break
		}
	}
	if text := got.At("/result/content/0/text").Text(); text != "Ada written file:///srv" {
		t.Errorf("got %q", text)
	}
}

// callAs is calls of a client that can be asked anything.
func (x *asking) callAs(t testing.TB, name, state, responses string) gate.Doc {
	t.Helper()
	more := ""
	if state != "" {
		more = `,"requestState":` + rig.Quote(state) + `,"inputResponses":` + responses
	}
	msg := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"local__` + name + `","arguments":{}` + more + `,` +
		strings.Replace(canElicit, `{"elicitation":{}}`, `{"elicitation":{},"roots":{},"sampling":{}}`, 1) + `}}`
	resp, err := rig.Post(t.Context(), x.url, rig.Newest, "", msg)
	if err != nil {
		t.Fatal(err)
	}
	return gate.MustDoc(rig.AnswerOf(t, resp))
}

// A call whose client does not come back ends, and is recorded.
func TestParkedExpires(t *testing.T) {
	x := newAsking(t, host.Config{Config: dispatch.Config{ParkIdle: 50 * time.Millisecond}})
	state := x.calls(t, "form", "", "").At("/result/requestState").Text()
	if err := <-x.over; !errors.Is(err, context.Canceled) {
		t.Errorf("the server got %v", err)
	}
	got := x.calls(t, "form", state, `{"ask-1":{"action":"accept"}}`)
	if text := got.At("/error/message").Text(); !strings.Contains(text, "expired") && !strings.Contains(text, "has ended") {
		t.Errorf("the client got %s", got)
	}
	waitUntil(t, func() bool {
		return slices.ContainsFunc(x.recorded(), func(r gate.Record) bool {
			return r.Event == gate.Done && r.Call.Action == gate.CallTool && r.Code == "cancelled"
		})
	})
}

// Calls that wait are bounded, and a gateway that shuts down waits for none of them.
func TestParkedIsBounded(t *testing.T) {
	x := newAsking(t, host.Config{})
	var states []string
	for range 64 {
		got := x.calls(t, "form", "", "")
		if got.At("/result/resultType").Text() != "input_required" {
			t.Fatalf("got %s", got)
		}
		states = append(states, got.At("/result/requestState").Text())
	}
	if got := x.calls(t, "form", "", "").At("/result/content/0/text").Text(); !strings.Contains(got, "too many calls wait") {
		t.Errorf("one too many: %q", got)
	}
	<-x.over
	if got := x.calls(t, "form", states[3], `{"ask-1":{"action":"accept","content":{"name":"Ada"}}}`).At("/result/content/0/text").Text(); got != "Ada" {
		t.Errorf("got %q", got)
	}
	<-x.over
	if got := x.calls(t, "form", "", "").At("/result/resultType").Text(); got != "input_required" {
		t.Errorf("there is room again, and got %q", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := x.host.Drain(ctx); err != nil {
		t.Errorf("drained: %v", err)
	}
	for range 64 {
		if err := <-x.over; !errors.Is(err, context.Canceled) {
			t.Errorf("the server got %v", err)
		}
	}
}

func TestParkedFlood(t *testing.T) {
	x := newAsking(t, host.Config{})
	got := x.calls(t, "floods", "", "")
	for state := got.At("/result/requestState").Text(); state != ""; state = got.At("/result/requestState").Text() {
		if n := strings.Count(got.At("/result/inputRequests").String(), "ask-"); n > 16 {
			t.Fatalf("%d questions at once", n)
		}
		got = x.calls(t, "floods", state, `{"none":{"action":"decline"}}`)
	}
	if text := got.At("/result/content/0/text").Text(); !strings.Contains(text, "without waiting for an answer") {
		t.Errorf("got %s", got)
	}
}

// A client that leaves while its call goes on ends it, and one that leaves a parked
// call does not.
func TestParkedClientLeaves(t *testing.T) {
	x := newAsking(t, host.Config{})
	state := x.calls(t, "form", "", "").At("/result/requestState").Text()
	http.DefaultClient.CloseIdleConnections()
	if got := x.calls(t, "form", state, `{"ask-1":{"action":"accept","content":{"name":"Ada"}}}`).At("/result/content/0/text").Text(); got != "Ada" {
		t.Errorf("got %q", got)
	}
	<-x.over

	state = x.calls(t, "blocks", "", "").At("/result/requestState").Text()
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan struct{})
	go func() {
		defer close(left)
		msg := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"local__blocks","arguments":{},"requestState":` + rig.Quote(state) + `,"inputResponses":{"ask-1":{"action":"decline"}},` + canElicit + `}}`
		if resp, err := rig.Post(ctx, x.url, rig.Newest, "", msg); err == nil {
			resp.Body.Close()
		}
	}()
	if err := <-x.over; err != nil {
		t.Fatal(err)
	}
	leave()
	<-left
	if err := <-x.over; !errors.Is(err, context.Canceled) {
		t.Errorf("the call ended with %v", err)
	}
}

// A gateway that shuts down ends the calls whose clients are away, and waits for one whose client
// has come back.
func TestParkedClientIsBackAtTheEnd(t *testing.T) {
	x := newAsking(t, host.Config{})
	state := x.calls(t, "blocks", "", "").At("/result/requestState").Text()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	go func() {
		msg := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"local__blocks","arguments":{},"requestState":` + rig.Quote(state) + `,"inputResponses":` + answers + `,` + canElicit + `}}`
		if resp, err := rig.Post(ctx, x.url, rig.Newest, "", msg); err == nil {
			resp.Body.Close()
		}
	}()
	if err := <-x.over; err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := x.host.Drain(short); !errors.Is(err, context.DeadlineExceeded) || len(x.over) > 0 {
		t.Errorf("drained with a client that waits for its call: %v", err)
	}
	leave()
	if err := <-x.over; !errors.Is(err, context.Canceled) {
		t.Errorf("the call ended with %v", err)
	}
}

// Progress comes on the stream of the request that waits, under its token.
func TestParkedProgress(t *testing.T) {
	for _, way := range []string{"HTTP", "stdio"} {
		x := newAsking(t, host.Config{})
		var mu sync.Mutex
		var told []float64
		cs := x.asksWell(t, way, rig.Newest, sdk.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			mu.Lock()
			defer mu.Unlock()
			if r.Params.ProgressToken == "mine" {
				told = append(told, r.Params.Progress)
			}
		}})
		params := &sdk.CallToolParams{Name: "local__form", Arguments: map[string]any{}}
		params.SetProgressToken("mine")
		if _, err := cs.CallTool(t.Context(), params); err != nil {
			t.Fatal(err)
		}
		deadline := time.Now().Add(time.Minute)
		for mu.Lock(); len(told) < 2 && time.Now().Before(deadline); mu.Lock() {
			mu.Unlock()
			time.Sleep(time.Millisecond)
		}
		if !slices.Equal(told, []float64{1, 2}) {
			t.Errorf("%s: told %v", way, told)
		}
		mu.Unlock()
	}
}

// Messages of a server for a call that no request waits for, or for a client without a stream, are
// dropped, and the call goes on; a call that panics is answered with an error.
func TestParkedIsToldNothing(t *testing.T) {
	parked, told := make(chan struct{}), make(chan struct{})
	h, err := host.New(host.Config{
		Config: dispatch.Config{
			Do: func(ctx context.Context, c gate.Call) (gate.Result, error) {
				if c.Name == "panics" {
					panic("at once")
				}
				tell := func() { c.Client.Notify(ctx, "notifications/message", gate.MustDoc(`{"data":"x"}`)) }
				if c.Action == gate.GetPrompt {
					tell()
				} else {
					go func() {
						<-parked
						tell()
						close(told)
					}()
				}
				doc, err := c.Client.Request(ctx, actions.Elicit, gate.MustDoc(asksName))
				return gate.Result{Doc: gate.MustDoc(`{"name":` + doc.At("/content/name").String() + `}`)}, err
			},
			Tools:    func(context.Context, *gate.Principal) ([]*gate.Tool, error) { return nil, nil },
			Features: func(context.Context, *gate.Principal, gate.Feature) ([]*gate.Tool, error) { return nil, nil },
			Offering: func(context.Context) mcp.Offering { return mcp.Offering{Prompts: true} },
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(method, params string) gate.Doc {
		return gate.MustDoc(rig.AnswerOf(t, rig.Serve(t, h, rig.Newest, sessionless(1, method, params, knowsNone))))
	}
	for _, method := range []string{"tools/call", "prompts/get"} {
		state := ask(method, `"name":"x"`).At("/result/requestState").String()
		if method == "tools/call" {
			close(parked)
			<-told
		}
		if got := ask(method, `"name":"x","requestState":`+state+`,"inputResponses":`+answers); got.At("/result/name").Text() != "Ada" {
			t.Errorf("%s: %s", method, got)
		}
	}
	if got := ask("tools/call", `"name":"panics"`).At("/error/code").String(); got != "-32603" {
		t.Errorf("a call that panics: %s", got)
	}
}

// Prompts and resources are used as tools are called.
func TestServersAskWithinUses(t *testing.T) {
	d := new(desk)
	host, err := host.New(host.Config{
		Config: dispatch.Config{
			Do: func(ctx context.Context, c gate.Call) (gate.Result, error) {
				if c.Refused != nil {
					return gate.Result{}, &gate.Refusal{Step: step.Parse}
				}
				doc, err := c.Client.Request(ctx, actions.Elicit, gate.MustDoc(asksName))
				if err != nil {
					return gate.Result{}, err
				}
				return gate.Result{Doc: gate.MustDoc(`{"messages":[],"contents":[],"description":` + doc.At("/content/name").String() + `}`)}, nil
			},
			Tools:    func(context.Context, *gate.Principal) ([]*gate.Tool, error) { return nil, nil },
			Features: func(context.Context, *gate.Principal, gate.Feature) ([]*gate.Tool, error) { return nil, nil },
			Offering: func(context.Context) mcp.Offering { return mcp.Offering{Prompts: true, Resources: true} },
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(host)
	t.Cleanup(srv.Close)
	d.host, d.url = host, srv.URL
	everyWay(t, func(t *testing.T, way, era string) {
		x := &asking{desk: d}
		cs := x.asksWell(t, way, era, sdk.ClientOptions{})
		res, err := cs.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "p"})
		if err != nil || res.Description != "Ada" {
			t.Errorf("a prompt: %+v, %v", res, err)
		}
		if _, err := cs.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "file:///a"}); err != nil {
			t.Errorf("a resource: %v", err)
		}
	})
}

// The gateway learns when a client's roots change, and when its session ends.
func TestPeerHooks(t *testing.T) {
	for _, way := range []string{"HTTP", "stdio"} {
		x := newAsking(t, host.Config{})
		c := sdk.NewClient(&sdk.Implementation{Name: "c"}, nil)
		cs := x.connect(t, c, way, rig.Old)
		c.AddRoots(&sdk.Root{URI: "file:///srv"})
		waitUntil(t, func() (done bool) { x.keep(func() { done = len(x.changed) == 1 }); return done })
		if way == "stdio" {
			x.desk.hangUp()
		}
		cs.Close()
		waitUntil(t, func() (done bool) {
			x.keep(func() {
				done = len(x.ended) == 1 && x.ended[0] == x.changed[0] && len(x.lasted) == 1 && x.lasted[0] > 0
			})
			return done
		})
		if x.ended[0].ID == "" {
			t.Errorf("%s: session %+v", way, x.ended[0])
		}
	}
}

func waitUntil(t *testing.T, done func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it did not come to that")
		}
	}
}
