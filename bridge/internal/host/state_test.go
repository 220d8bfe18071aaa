package host_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/internal/host"
	"github.com/wasmgate/wasmgate/bridge/internal/host/dispatch"
	"github.com/wasmgate/wasmgate/bridge/internal/host/transport"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/gate"
)

// canElicit is a stateless request's _meta of a client that can be asked.
const canElicit = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"9"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}`

// call sends a call of a stateless client that can be asked, by HTTP. more
// continues its parameters.
func (d *desk) call(t testing.TB, name, more string) gate.Doc {
	t.Helper()
	msg := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + name + `"` + more + `,` + canElicit + `}}`
	if d.url == "" {
		return gate.MustDoc(rig.AnswerOf(t, rig.Serve(t, d.host, rig.Newest, msg)))
	}
	resp, err := rig.Post(t.Context(), d.url, rig.Newest, "", msg)
	if err != nil {
		t.Fatal(err)
	}
	return gate.MustDoc(rig.AnswerOf(t, resp))
}

// approve is the rest of a call that brings an approval with a state.
func approve(args, state string) string {
	return `,"arguments":` + args + `,"requestState":` + rig.Quote(state) + `,"inputResponses":{"approval":{"action":"accept","content":{"decision":"approve"}}}`
}

// TestInputRequired shows the answer that asks for more, byte for byte but its
// state, and what is made of each answer to it.
func TestInputRequired(t *testing.T) {
	d := newDesk(t, host.Config{Terms: host.Terms{Version: "1", Asks: true}})
	for _, args := range []string{"", `,"arguments":{"n":1.0}`} { // absent is equal to empty
		got := d.call(t, "t", args).Get("result")
		state := got.Get("requestState").Text()
		if len(state) < 40 || len(state) > 300 || strings.ContainsFunc(state, func(r rune) bool { return r <= ' ' || r > '~' }) {
			t.Errorf("state %q", state)
		}
		if args == "" {
			args = `,"arguments":{}`
		}
		message := rig.Quote("May it call t of server s?\n- /: " + strings.TrimPrefix(args, `,"arguments":`) + "\n\nThe session has read: nothing that is labelled")
		want := gate.MustDoc(`{"resultType":"input_required","requestState":` + rig.Quote(state) + `,"inputRequests":{"approval":{"method":"elicitation/create","params":{
			"mode":"form","message":` + message + `,"requestedSchema":{"type":"object","properties":{"decision":{"type":"string","title":"Decision","description":"Empty: approve","enum":["approve","deny","approve always for this tool"]}}}}}},
			"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"wasmgate","version":"1"}}}`)
		if diff := cmp.Diff(string(want.Canonical()), string(got.Canonical())); diff != "" {
			t.Error(diff)
		}
	}
	state := d.call(t, "t", "").At("/result/requestState").Text()
	for name, answer := range nothings {
		if gate.MustDoc(answer).Get("action").IsZero() {
			continue // is refused for its shape
		}
		got := d.call(t, "t", `,"requestState":`+rig.Quote(state)+`,"inputResponses":{"approval":`+answer+`}`)
		if text := got.At("/result/content/0/text").Text(); text != "for-t dismissed false" {
			t.Errorf("%s: %.300s", name, got)
		}
	}
	if got := d.call(t, "t", `,"requestState":`+rig.Quote(state)); got.At("/result/resultType").Text() != "input_required" {
		t.Errorf("a state without an answer: %s", got)
	}
	if got := d.call(t, "t", approve("{ }", state)); got.At("/result/content/0/text").Text() != "for-t approved false" {
		t.Errorf("a good answer: %s", got)
	}
	if got := d.call(t, "t", approve("{}", state)); got.At("/result/content/0/text").Text() != "refused: already redeemed" {
		t.Errorf("the same again: %s", got)
	}
}

// TestForgedState: an answer whose state is not what the host gave for this very
// call comes to the gate as a bad one, and the call does not pass.
func TestForgedState(t *testing.T) {
	d := newDesk(t, host.Config{Terms: host.Terms{Asks: true}})
	state := d.call(t, "t", `,"arguments":{"a":[1]}`).At("/result/requestState").Text()
	flip := func(i int) string {
		b := []byte(state)
		if b[i] == 'A' {
			b[i] = 'B'
		} else {
			b[i] = 'A'
		}
		return string(b)
	}
	other := newDesk(t, host.Config{Terms: host.Terms{Asks: true}}).call(t, "t", `,"arguments":{"a":[1]}`).At("/result/requestState").Text()
	late := newDesk(t, host.Config{Terms: host.Terms{Asks: true}})
	tests := map[string]struct{ tool, args, state string }{
		"no state":                {"t", `{"a":[1]}`, ""},
		"its first letter":        {"t", `{"a":[1]}`, flip(3)},
		"its last letter but one": {"t", `{"a":[1]}`, flip(len(state) - 2)},
		"a part of it":            {"t", `{"a":[1]}`, state[:len(state)-4]},
		"its mark alone":          {"t", `{"a":[1]}`, "w1."},
		"another mark":            {"t", `{"a":[1]}`, "w2." + state[3:]},
		"a line end in it":        {"t", `{"a":[1]}`, state[:20] + "\n" + state[20:]},
		"padding":                 {"t", `{"a":[1]}`, state + "="},
		"words":                   {"t", `{"a":[1]}`, "approved"},
		"another gateway's":       {"t", `{"a":[1]}`, other},
		"another tool":            {"u", `{"a":[1]}`, state},
		"other arguments":         {"t", `{"a":[2]}`, state},
		"no arguments":            {"t", `{}`, state},
	}
	for name, tt := range tests {
		d.keep(func() { d.bad = nil })
		got := d.call(t, tt.tool, approve(tt.args, tt.state))
		if got.At("/result/content/0/text").Text() != "refused: a bad answer" || len(d.bad) != 1 {
			t.Errorf("%s: %s (%v)", name, got, d.bad)
		}
	}

	late.expires = time.Now().Add(-time.Second)
	state = late.call(t, "t", "").At("/result/requestState").Text()
	late.call(t, "t", approve("{}", state))
	if len(late.bad) != 1 || !strings.Contains(late.bad[0].Error(), "expired") {
		t.Errorf("an expired state: %v", late.bad)
	}

	state = d.call(t, "t", "").At("/result/requestState").Text()
	d.keep(func() { d.bad = nil })
	got := d.call(t, "t", `,"requestState":`+rig.Quote(state)+`,"inputResponses":{"approval":{"action":"decline"},"more":{"action":"accept"}}`)
	if len(d.bad) != 1 || !strings.Contains(d.bad[0].Error(), `"more"`) {
		t.Errorf("an answer to what was not asked: %s (%v)", got, d.bad)
	}

	cs := d.client(t, "stdio", rig.Newest, nil, mcp.ClientOptions{MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true}})
	d.keep(func() { d.bad = nil })
	// A state of HTTP in a session of stdio.
	res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "t", RequestState: state, InputResponses: mcp.InputResponseMap{"approval": &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "approve"}}}})
	if err != nil || !res.IsError || len(d.bad) != 1 {
		t.Errorf("in another session: %+v, %v %v", res, err, d.bad)
	}
}

// TestForgedShape: what a client brings with a call is refused if it is not what
// it should be, with clear words, and recorded.
func TestForgedShape(t *testing.T) {
	d := newDesk(t, host.Config{Terms: host.Terms{Asks: true}})
	many := ""
	for i := range 17 {
		many += fmt.Sprintf(`,"a%d":{"action":"cancel"}`, i)
	}
	tests := map[string]struct{ more, says string }{
		"a state that is none":      {`"requestState":5`, "requestState is not a string"},
		"a null state":              {`"requestState":null`, "requestState is not a string"},
		"a long state":              {`"requestState":"` + strings.Repeat("x", gate.RoundState*4/3+257) + `"`, "requestState is not a string of at most"},
		"responses that are a list": {`"inputResponses":[]`, "inputResponses is not an object"},
		"null responses":            {`"inputResponses":null`, "inputResponses is not an object"},
		"a response that is none":   {`"inputResponses":{"approval":"approve"}`, "not a result of elicitation/create"},
		"an empty response":         {`"inputResponses":{"approval":{}}`, "not a result of elicitation/create"},
		"roots that are none":       {`"inputResponses":{"approval":{"roots":{}}}`, "not a result of elicitation/create"},
		"a form that is none":       {`"inputResponses":{"approval":{"action":"accept","content":[]}}`, "not a result of elicitation/create"},
		"_meta that is none":        {`"inputResponses":{"approval":{"action":"accept","_meta":[]}}`, "not a result of elicitation/create"},
		"too many":                  {`"inputResponses":{` + many[1:] + `}`, "more than 16"},
	}
	for name, tt := range tests {
		for _, args := range []string{"", `,"arguments":{}`} {
			d.keep(func() { d.shapes = 0 })
			got := d.call(t, "t", args+","+tt.more)
			if got.At("/error/code").String() != "-32602" || !strings.Contains(got.At("/error/message").Text(), tt.says) || d.shapes != 1 {
				t.Errorf("%s: %s (%d)", name, got, d.shapes)
			}
		}
	}
}

// TestAnswerUnasked: clients of the older revisions know no answers that come with a call, and a
// host that asks no client has given no state.
func TestAnswerUnasked(t *testing.T) {
	d := newDesk(t, host.Config{})
	if got := d.call(t, "t", approve("{}", "x")); !strings.Contains(got.String(), "did not give this requestState") || d.shapes != 1 {
		t.Errorf("a host that asks nobody: %s", got)
	}
	d = newDesk(t, host.Config{Terms: host.Terms{Asks: true}})
	state := d.call(t, "t", "").At("/result/requestState").Text()
	session := rig.OpenSession(t, d.url)
	resp, err := rig.Post(t.Context(), d.url, rig.Old, session, rig.Request(rig.Old, "1", "tools/call", `"name":"t"`+approve("{}", state)))
	if err != nil {
		t.Fatal(err)
	}
	if got := rig.AnswerOf(t, resp); !strings.Contains(got, "waits for approval") {
		t.Errorf("an older revision: %s", got)
	}
}

// TestState: a state opens for its call alone, under its secret alone.
func TestState(t *testing.T) {
	secret := make([]byte, 32)
	rand.Read(secret)
	base := func() *gate.Call {
		return &gate.Call{
			Action: gate.CallTool, Name: "s__t", Args: gate.MustDoc(`{"a":1,"b":2}`),
			Who:     &gate.Principal{Owner: gate.Owner{Tenant: "x", ID: "p"}},
			Session: gate.SessionKey{Owner: gate.Owner{Tenant: "x", ID: "p"}, ID: "1"},
		}
	}
	expires := time.Now().Add(time.Minute)
	tests := map[string]struct {
		change func(*gate.Call)
		ok     bool
	}{
		"the same":              {func(*gate.Call) {}, true},
		"arguments in order":    {func(c *gate.Call) { c.Args = gate.MustDoc(`{ "b":2, "a":1 }`) }, true},
		"another id":            {func(c *gate.Call) { c.ID = "z" }, true},
		"another tool":          {func(c *gate.Call) { c.Name = "s__u" }, false},
		"another action":        {func(c *gate.Call) { c.Action = "prompts/get" }, false},
		"another principal":     {func(c *gate.Call) { c.Who = &gate.Principal{Owner: gate.Owner{Tenant: "x", ID: "q"}} }, false},
		"another tenant":        {func(c *gate.Call) { c.Who = &gate.Principal{Owner: gate.Owner{ID: "p"}} }, false},
		"another session":       {func(c *gate.Call) { c.Session.ID = "" }, false},
		"another argument":      {func(c *gate.Call) { c.Args = gate.MustDoc(`{"a":1,"b":3}`) }, false},
		"one argument more":     {func(c *gate.Call) { c.Args = c.Args.With("c", []byte("null")) }, false},
		"a name that runs over": {func(c *gate.Call) { c.Session.ID, c.Name = "1s", "__t" }, false},
	}
	state := host.Seal(secret, base(), "approval-1", expires)
	for name, tt := range tests {
		c := base()
		tt.change(c)
		id, err := host.Open(secret, c, state)
		if (err == nil) != tt.ok || tt.ok && id != "approval-1" {
			t.Errorf("%s: %q, %v", name, id, err)
		}
	}
	if again := host.Seal(secret, base(), "approval-1", expires); again == state {
		t.Error("two states are one")
	}
	secret = slices.Clone(secret)
	secret[31] ^= 1
	if _, err := host.Open(secret, base(), state); err == nil {
		t.Error("opened under another secret")
	}
	if _, err := host.Open(secret[:31], base(), state); err == nil || !strings.Contains(err.Error(), "too short") {
		t.Errorf("a short secret: %v", err)
	}
}

// TestStateRestarts: a state lives as long as the secret of the host does.
func TestStateRestarts(t *testing.T) {
	secret := make([]byte, 32)
	rand.Read(secret)
	for _, seal := range [][]byte{secret, nil} {
		d := newDesk(t, host.Config{Config: dispatch.Config{Seal: seal}, Terms: host.Terms{Asks: true}})
		state := d.call(t, "t", "").At("/result/requestState").Text()
		d = newDesk(t, host.Config{Config: dispatch.Config{Seal: seal}, Terms: host.Terms{Asks: true}})
		got := d.call(t, "t", approve("{}", state)).At("/result/content/0/text").Text()
		want := "refused: a bad answer"
		if seal != nil {
			want = "for-t approved false"
		}
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	d := new(desk)
	_, err := host.New(host.Config{
		Config: dispatch.Config{Do: d.do, Tools: func(context.Context, *gate.Principal) ([]*gate.Tool, error) { return nil, nil }, Seal: secret[:16]},
	})
	if err == nil {
		t.Error("a short secret is taken")
	}
}

// TestAnswerForReal: an answer that a client brings lets one call pass, however
// often and at once it is brought, and nothing of it reaches the upstream.
func TestAnswerForReal(t *testing.T) {
	x, d := askingFixture(t)
	const args = `{"n":1.0}`
	state := d.call(t, "local__echo", `,"arguments":`+args).At("/result/requestState").Text()
	for _, forged := range []string{"", "approved", state[:len(state)-1] + "!"} {
		if got := d.call(t, "local__echo", approve(args, forged)); !strings.Contains(got.String(), "refused_approve") {
			t.Errorf("state %q: %s", forged, got)
		}
	}
	if x.Calls() != 0 {
		t.Fatal("a forged answer came through")
	}
	var passed atomic.Int32
	var tries sync.WaitGroup
	for range 8 {
		tries.Go(func() {
			got := d.call(t, "local__echo", approve(args, state))
			if got.At("/result/isError").True() {
				return
			}
			passed.Add(1)
			if seen := got.At("/result/args").String(); seen != args {
				t.Errorf("the upstream saw %s", seen)
			}
		})
	}
	tries.Wait()
	if passed.Load() != 1 || x.Calls() != 1 {
		t.Errorf("%d passed, %d calls came through", passed.Load(), x.Calls())
	}
	if n := len(x.Records.Done()); n != 1+3+8 {
		t.Errorf("%d calls are recorded", n)
	}
}

// A state is good at the address where it was given: clients elsewhere are offered other
// tools.
func TestStateStaysInItsGroup(t *testing.T) {
	d := newDesk(t, host.Config{Access: transport.Access{Group: func(string) bool { return true }}, Terms: host.Terms{Asks: true}})
	mux := http.NewServeMux()
	mux.Handle("/mcp/{"+transport.GroupParam+"}", d.host)
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	at := func(group, more string) gate.Doc {
		of := &desk{url: web.URL + "/mcp/" + group}
		return of.call(t, "t", more)
	}
	state := at("docs", "").At("/result/requestState").Text()
	if state == "" {
		t.Fatal("no state")
	}
	if got := at("mail", approve("{}", state)).At("/result/content/0/text").Text(); got != "refused: a bad answer" {
		t.Errorf("elsewhere: %q", got)
	}
	if got := at("docs", approve("{}", state)).At("/result/content/0/text").Text(); got != "for-t approved false" {
		t.Errorf("where it was given: %q", got)
	}
}
