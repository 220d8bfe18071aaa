package host_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/internal/host"
	"github.com/wasmgate/wasmgate/bridge/internal/host/dispatch"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/approval"
	"github.com/wasmgate/wasmgate/gate/inquiry"
	"github.com/wasmgate/wasmgate/gate/step"
)

// A desk is a host in front of a gate that asks about each call, once for each
// binding of name and arguments, and lets what is approved return its verdict.
type desk struct {
	host   *host.Host
	url    string
	hangUp func() // all clients at once

	mu      sync.Mutex
	expires time.Time      // of the questions
	takes   func()         // takes the last question to a client back
	asked   map[string]int // by approval: how often it was redeemed
	bad     []error        // of answers that are not acceptable
	ended   []error        // of questions to clients that were left without an answer
	shapes  int            // malformed calls
}

func newDesk(t testing.TB, cfg host.Config) *desk {
	t.Helper()
	d := &desk{expires: time.Now().Add(time.Hour), asked: make(map[string]int)}
	cfg.Do, cfg.Tools = d.do, func(context.Context, *gate.Principal) ([]*gate.Tool, error) { return nil, nil }
	var err error
	if d.host, err = host.New(cfg); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(d.host)
	t.Cleanup(srv.Close)
	d.url, d.hangUp = srv.URL, srv.CloseClientConnections
	return d
}

func (d *desk) do(ctx context.Context, c gate.Call) (gate.Result, error) {
	p := gate.Pending{ID: "for-" + c.Name + c.Args.Digest(), Expires: d.expires, Inquiry: inquiry.Inquiry{Caller: "it", Calls: []inquiry.Call{{Server: "s", Tool: c.Name, Arguments: []inquiry.Line{{At: "/", Value: c.Args.String()}}}}}, CanAnswer: c.Reach().ByAnswer}
	refuse := func(reason string, err error) (gate.Result, error) {
		return gate.Result{}, &gate.Refusal{Step: step.Approve, Call: c.ID, Name: c.Name, Reason: reason, Err: err}
	}
	var a gate.Answer
	var err error
	switch {
	case c.Refused != nil:
		d.keep(func() { d.shapes++ })
		return gate.Result{}, &gate.Refusal{Step: step.Parse, Reason: "malformed"}
	case c.Brought.Approval != nil && c.Brought.Approval.Err != nil:
		d.keep(func() { d.bad = append(d.bad, c.Brought.Approval.Err) })
		return refuse("a bad answer", c.Brought.Approval.Err)
	case c.Brought.Approval != nil:
		if c.Brought.Approval.ID != p.ID {
			return refuse("an answer to "+c.Brought.Approval.ID, nil)
		}
		a = c.Brought.Approval.Answer
	case c.Reach().Approves:
		ask, cancel := context.WithCancel(ctx)
		defer cancel()
		d.keep(func() { d.takes = cancel })
		if a, err = c.Client.Approve(ask, p); err != nil {
			d.keep(func() { d.ended = append(d.ended, err) })
		}
	}
	if ctx.Err() != nil {
		return gate.Result{}, ctx.Err()
	}
	switch {
	case a.Verdict == "":
		return refuse(p.Error(), &p)
	case a.Verdict == gate.Approved:
		used := 0
		d.keep(func() { d.asked[p.ID]++; used = d.asked[p.ID] })
		if c.Brought.Approval != nil && used > 1 {
			return refuse("already redeemed", nil)
		}
	}
	text := fmt.Sprintf(`{"content":[{"type":"text","text":"%s %s %v"}]}`, p.ID[:5], a.Verdict, a.Always)
	return gate.Result{Doc: gate.MustDoc(text)}, nil
}

func (d *desk) keep(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

// A person answers what a client asks.
type person func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error)

func says(action, decision string) person {
	return func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		r := &mcp.ElicitResult{Action: action}
		if decision != "" {
			r.Content = map[string]any{"decision": decision}
		}
		return r, nil
	}
}

// client connects the SDK's client of a protocol revision; without a person it can ask none.
func (d *desk) client(t testing.TB, way, era string, who person, o mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	o.ElicitationHandler = who
	c := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "9"}, &o)
	return d.connect(t, c, way, era)
}

func (d *desk) connect(t testing.TB, c *mcp.Client, way, era string) *mcp.ClientSession {
	t.Helper()
	var transport mcp.Transport = &mcp.StreamableClientTransport{Endpoint: d.url}
	if way == "stdio" {
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		go func() {
			_ = d.host.Serve(context.WithoutCancel(t.Context()), gate.Local(), inR, outW)
			outW.Close()
		}()
		d.hangUp = func() { inW.Close() }
		transport = &mcp.IOTransport{Reader: outR, Writer: inW}
	}
	cs, err := c.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: era})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cs.Close() })
	if got := cs.InitializeResult().ProtocolVersion; got != era {
		t.Fatalf("speaks %s", got)
	}
	return cs
}

// textOf calls a tool, and returns the text of its result.
func textOf(ctx context.Context, cs *mcp.ClientSession, name string, args any) (string, error) {
	res, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		return "", err
	}
	if res.NeedsInput() || len(res.Content) != 1 {
		return "", fmt.Errorf("result %+v", res)
	}
	return res.Content[0].(*mcp.TextContent).Text, nil
}

// everyWay runs a test in each way in which a client can be asked.
func everyWay(t *testing.T, f func(t *testing.T, way, era string)) {
	for _, era := range []string{"2025-06-18", rig.Old, rig.Newest} {
		for _, way := range []string{"HTTP", "stdio"} {
			t.Run(way+" "+era, func(t *testing.T) { f(t, way, era) })
		}
	}
}

// TestAsk puts a question to the person at a client, with what the person can do
// about it.
func TestAsk(t *testing.T) {
	tests := map[string]struct {
		person person
		want   string
	}{
		"approve":             {says("accept", "approve"), "for-t approved false"},
		"accept":              {says("accept", ""), "for-t approved false"},
		"always":              {says("accept", "approve always for this tool"), "for-t approved true"},
		"deny":                {says("accept", "deny"), "for-t denied false"},
		"decline":             {says("decline", ""), "for-t denied false"},
		"dismiss":             {says("cancel", ""), "for-t dismissed false"},
		"no, and a yes in it": {says("decline", "approve"), "for-t denied false"},
	}
	everyWay(t, func(t *testing.T, way, era string) {
		for name, tt := range tests {
			d := newDesk(t, host.Config{Terms: host.Terms{Asks: true}})
			var asked []string
			cs := d.client(t, way, era, func(ctx context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				schema, err := json.Marshal(r.Params.RequestedSchema)
				if err != nil {
					t.Error(err)
				}
				asked = append(asked, r.Params.Message, string(schema))
				return tt.person(ctx, r)
			}, mcp.ClientOptions{})
			got, err := textOf(t.Context(), cs, "t", map[string]any{"n": 1})
			if err != nil || got != tt.want {
				t.Errorf("%s: %q, %v; want %q", name, got, err, tt.want)
			}
			want := []string{"May it call t of server s?\n- /: {\"n\":1}\n\nThe session has read: nothing that is labelled", `{"properties":{"decision":{"description":"Empty: approve","enum":["approve","deny","approve always for this tool"],"title":"Decision","type":"string"}},"type":"object"}`}
			if diff := cmp.Diff(want, asked); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
	})
}

// rawResult is a result that is bytes.
type rawResult struct {
	mcp.ResultBase
	raw string
}

func (r *rawResult) MarshalJSON() ([]byte, error) { return []byte(r.raw), nil }

// nothings are results of a request to elicit that say neither yes nor no.
var nothings = map[string]string{
	"nothing":               `{}`,
	"null":                  `{"action":"accept","content":{"decision":null}}`,
	"a number":              `{"action":"accept","content":{"decision":1}}`,
	"a list":                `{"action":"accept","content":{"decision":["approve"]}}`,
	"true":                  `{"action":"accept","content":{"decision":true}}`,
	"another choice":        `{"action":"accept","content":{"decision":"approved"}}`,
	"capitals":              `{"action":"accept","content":{"decision":"Approve"}}`,
	"white space":           `{"action":"accept","content":{"decision":"approve "}}`,
	"more than a choice":    `{"action":"accept","content":{"decision":"approve","x":1}}`,
	"another name":          `{"action":"accept","content":{"Decision":"approve"}}`,
	"an action in capitals": `{"action":"ACCEPT","content":{"decision":"approve"}}`,
	"another action":        `{"action":"ok","content":{"decision":"approve"}}`,
	"a megabyte":            `{"action":"accept","content":{"decision":"` + strings.Repeat("a", 1<<20) + `"}}`,
}

// TestAskNothing: what is no clear answer is none.
func TestAskNothing(t *testing.T) {
	more := map[string]string{ // what cannot come with a call
		"an action that is none": `{"action":5}`,
		"a form that is none":    `{"action":"accept","content":["approve"]}`,
		"a string":               `"approve"`,
		"null, whole":            `null`,
	}
	for _, way := range []string{"HTTP", "stdio"} {
		t.Run(way, func(t *testing.T) {
			d := newDesk(t, host.Config{Terms: host.Terms{Asks: true}})
			c := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "9"}, &mcp.ClientOptions{ElicitationHandler: says("accept", "approve")})
			raw := ""
			c.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
				return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
					if method == "elicitation/create" {
						return &rawResult{raw: raw}, nil
					}
					return next(ctx, method, req)
				}
			})
			cs := d.connect(t, c, way, rig.Old)
			for _, all := range []map[string]string{nothings, more} {
				for name, answer := range all {
					raw = answer
					if got, err := textOf(t.Context(), cs, "t", nil); err != nil || got != "for-t dismissed false" {
						t.Errorf("%s: %q, %v", name, got, err)
					}
				}
			}
			raw = `{"action":"accept","content":{"decision":"approve"}}`
			if got, err := textOf(t.Context(), cs, "t", nil); err != nil || got != "for-t approved false" {
				t.Errorf("then: %q, %v", got, err)
			}
		})
	}
}

// TestAskFails: a client that fails to ask is one that cannot be asked.
func TestAskFails(t *testing.T) {
	d := newDesk(t, host.Config{Terms: host.Terms{Asks: true}})
	cs := d.client(t, "HTTP", rig.Old, func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return nil, errors.New("no screen")
	}, mcp.ClientOptions{})
	got, err := textOf(t.Context(), cs, "t", nil)
	if err != nil || !strings.HasPrefix(got, "refused: waits for approval for-t") {
		t.Errorf("%q, %v", got, err)
	}
	if len(d.ended) != 1 || !strings.Contains(d.ended[0].Error(), "no screen") {
		t.Errorf("ended with %v", d.ended)
	}
}

// TestCannotAsk: a client that cannot put a form to a person, or must not be
// asked to, reads which approval its call waits for.
func TestCannotAsk(t *testing.T) {
	url := mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{URL: &mcp.URLElicitationCapabilities{}}}}
	tests := map[string]struct {
		asks    bool
		person  person
		options mcp.ClientOptions
	}{
		"without the capability":   {true, nil, mcp.ClientOptions{}},
		"with pages alone":         {true, says("accept", "approve"), url},
		"where no client is asked": {false, says("accept", "approve"), mcp.ClientOptions{}},
	}
	everyWay(t, func(t *testing.T, way, era string) {
		for name, tt := range tests {
			d := newDesk(t, host.Config{Terms: host.Terms{Asks: tt.asks}})
			cs := d.client(t, way, era, tt.person, tt.options)
			res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "t"})
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			meta, _ := res.Meta[gate.MetaRefusal].(map[string]any)
			text := res.Content[0].(*mcp.TextContent).Text
			if !res.IsError || meta["code"] != "refused_approve" || !strings.Contains(text, "waits for approval for-t") {
				t.Errorf("%s: %q %v", name, text, meta)
			}
		}
	})
}

// TestLargeCapabilities: of a client that says of itself more than 16 KiB nothing is kept by which
// it could be asked.
func TestLargeCapabilities(t *testing.T) {
	h, err := host.New(host.Config{
		Config: dispatch.Config{
			Do: func(_ context.Context, c gate.Call) (gate.Result, error) {
				return gate.Result{Doc: gate.MustDoc(fmt.Sprintf(`{"content":[],"kept":%d}`, len(c.Reach().Capabilities.Raw())))}, nil
			},
			Tools: func(context.Context, *gate.Principal) ([]*gate.Tool, error) { return nil, nil },
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(h)
	defer srv.Close()
	const most = 16 << 10
	for size, want := range map[int]int{most: most, most + 1: 0} {
		can := `{"sampling":{"x":"` + strings.Repeat("x", size-len(`{"sampling":{"x":""}}`)) + `"}}`
		session := rig.OpenSessionWith(t, srv.URL, strings.Replace(rig.Hello, `"capabilities":{}`, `"capabilities":`+can, 1))
		old, err := rig.Post(t.Context(), srv.URL, rig.Old, session, rig.Request(rig.Old, "1", "tools/call", `"name":"t"`))
		if err != nil {
			t.Fatal(err)
		}
		newest, err := rig.Post(t.Context(), srv.URL, rig.Newest, "", sessionless(1, "tools/call", `"name":"t"`, can))
		if err != nil {
			t.Fatal(err)
		}
		for era, resp := range map[string]*http.Response{rig.Old: old, rig.Newest: newest} {
			if got := gate.MustDoc(rig.AnswerOf(t, resp)).At("/result/kept").String(); got != fmt.Sprint(want) {
				t.Errorf("%s: of %d bytes %s are kept, want %d", era, size, got, want)
			}
		}
	}
}

// TestAskEnds: a question ends with its call, whatever ends that.
func TestAskEnds(t *testing.T) {
	tests := map[string]func(d *desk, cancel func()){
		"the call is cancelled": func(_ *desk, cancel func()) { cancel() },
		"the client has gone":   func(d *desk, _ func()) { d.hangUp() },
	}
	for _, way := range []string{"HTTP", "stdio"} {
		for name, end := range tests {
			if way == "HTTP" && name == "the client has gone" {
				continue // it may come back, see TestBrokenStream
			}
			t.Run(way+", "+name, func(t *testing.T) {
				d := newDesk(t, host.Config{Terms: host.Terms{Asks: true}})
				asked, over := make(chan bool, 1), make(chan bool)
				defer close(over)
				cs := d.client(t, way, rig.Old, func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					asked <- true
					<-over // a person who is slow to look
					return nil, errors.New("too late")
				}, mcp.ClientOptions{})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				done := make(chan error, 1)
				go func() { _, err := textOf(ctx, cs, "t", nil); done <- err }()
				<-asked
				end(d, cancel)
				deadline := time.After(time.Minute)
				for n := 0; n == 0; {
					d.keep(func() { n = len(d.ended) })
					select {
					case <-deadline:
						t.Fatal("the question goes on")
					case <-time.After(time.Millisecond):
					}
				}
				if !errors.Is(d.ended[0], context.Canceled) {
					t.Errorf("ended with %v", d.ended[0])
				}
				cancel()
				if err := <-done; err == nil {
					t.Error("the call has a result")
				}
			})
		}
	}
}

// TestAskTooLong: a question that the gate takes back ends at the client too, and
// the call gets its answer.
func TestAskTooLong(t *testing.T) {
	for _, way := range []string{"HTTP", "stdio"} {
		t.Run(way, func(t *testing.T) {
			d := newDesk(t, host.Config{Terms: host.Terms{Asks: true}})
			ended := make(chan error, 1)
			cs := d.client(t, way, rig.Old, func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				d.keep(func() { d.takes() })
				<-ctx.Done()
				ended <- ctx.Err()
				return nil, ctx.Err()
			}, mcp.ClientOptions{})
			got, err := textOf(t.Context(), cs, "t", nil)
			if err != nil || !strings.Contains(got, "waits for approval") {
				t.Errorf("%q, %v", got, err)
			}
			select {
			case <-ended:
			case <-time.After(time.Minute):
				t.Error("the client asks on")
			}
		})
	}
}

// TestAnswerToAnother: what a client answers to the gateway that it had before is no
// answer to the first question of this one.
func TestAnswerToAnother(t *testing.T) {
	d := newDesk(t, host.Config{Terms: host.Terms{Asks: true}})
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	go func() {
		_ = d.host.Serve(context.WithoutCancel(t.Context()), gate.Local(), inR, outW)
		outW.Close()
	}()
	defer inW.Close()
	lines := bufio.NewReader(outR)
	next := func() gate.Doc {
		l, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return gate.MustDoc(l)
	}
	fmt.Fprintln(inW, helloElicits)
	next()
	fmt.Fprintln(inW, rig.Request(rig.Old, "7", "tools/call", `"name":"t","arguments":{}`))
	question := next().Get("id")
	for _, id := range []string{"1", `"1"`, `"ABCDEFGH-1"`, `"-1"`, `"` + question.Text() + `1"`} {
		fmt.Fprintf(inW, `{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"decision":"approve"}}}`+"\n", id)
	}
	fmt.Fprintf(inW, `{"jsonrpc":"2.0","id":%s,"result":{"action":"decline"}}`+"\n", question)
	if got := next(); got.At("/result/content/0/text").Text() != "for-t denied false" {
		t.Errorf("question %s: %s", question, got)
	}
}

// TestAskTwo: two calls of one client are asked about at once, and each gets its
// own answer.
func TestAskTwo(t *testing.T) {
	everyWay(t, func(t *testing.T, way, era string) {
		d := newDesk(t, host.Config{Terms: host.Terms{Asks: true}})
		var both sync.WaitGroup
		both.Add(2)
		cs := d.client(t, way, era, func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			both.Done()
			both.Wait() // until both are asked
			decision := "approve"
			if strings.Contains(r.Params.Message, "May it call b of server s?") {
				decision = "deny"
			}
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": decision}}, nil
		}, mcp.ClientOptions{})
		var calls sync.WaitGroup
		for tool, want := range map[string]string{"a": "for-a approved false", "b": "for-b denied false"} {
			calls.Go(func() {
				if got, err := textOf(t.Context(), cs, tool, nil); err != nil || got != want {
					t.Errorf("%s: %q, %v", tool, got, err)
				}
			})
		}
		calls.Wait()
	})
}

// helloElicits is hello of a client that can put a form to its person.
var helloElicits = strings.Replace(rig.Hello, `"capabilities":{}`, `"capabilities":{"elicitation":{}}`, 1)

// TestAnswersAreJSON: what is answered at once and asks nothing is answered as JSON, also
// to clients that can be asked, and with a token of progress.
func TestAnswersAreJSON(t *testing.T) {
	tests := map[string]struct {
		asks  bool
		hello string
		meta  string
		asker bool
	}{
		"it cannot be asked":            {true, rig.Hello, "", false},
		"servers alone may ask it":      {false, helloElicits, "", false},
		"it can be asked, and it is so": {true, helloElicits, "", true},
		"it is told of progress":        {true, rig.Hello, `,"_meta":{"progressToken":1}`, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			h, err := host.New(host.Config{
				Config: dispatch.Config{
					Do: func(_ context.Context, c gate.Call) (gate.Result, error) {
						return gate.Result{Doc: gate.MustDoc(fmt.Sprintf(`{"content":[],"asker":%v}`, c.Reach().Approves))}, nil
					},
					Tools: func(context.Context, *gate.Principal) ([]*gate.Tool, error) { return nil, nil },
				},
				Terms: host.Terms{Asks: tt.asks},
			})
			if err != nil {
				t.Fatal(err)
			}
			srv := httptest.NewServer(h)
			defer srv.Close()
			session := rig.OpenSessionWith(t, srv.URL, tt.hello)
			resp, err := rig.Post(t.Context(), srv.URL, rig.Old, session, rig.Request(rig.Old, "1", "tools/call", `"name":"t","arguments":{}`+tt.meta))
			if err != nil {
				t.Fatal(err)
			}
			if got := rig.AnswerOf(t, resp); resp.Header.Get("Content-Type") != "application/json" || !strings.Contains(got, fmt.Sprintf(`"asker":%v`, tt.asker)) {
				t.Errorf("%s: %s", resp.Header.Get("Content-Type"), got)
			}
		})
	}
}

// askingFixture returns a desk whose gate asks about each call, through a queue
// that asks people at clients alone; what passes returns its arguments.
func askingFixture(t testing.TB) (*rig.Fixture, *desk) {
	t.Helper()
	x := rig.NewFixture(t)
	x.Results["echo"] = "args"
	q, err := approval.New(approval.Options{Channels: []approval.Channel{approval.Client}, Recorder: x.Records})
	if err != nil {
		t.Fatal(err)
	}
	g, err := gate.New(gate.Parts{
		Upstream: x.Fleet, Sessions: rig.Sessions{}, Sanitizer: rig.SanitizerFunc(rig.Unchanged), Recorder: x.Records, Approver: q,
		Authorizer: rig.AuthorizerFunc(func(q gate.Query) gate.Decision {
			return gate.Decision{Effect: gate.Ask, Reasons: []string{"it does something"}}
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{}
	if d.host, err = host.New(host.Config{Config: dispatch.Config{Do: g.Do, Tools: g.Tools}, Terms: host.Terms{Asks: true}}); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(d.host)
	t.Cleanup(srv.Close)
	d.url = srv.URL
	return x, d
}

// TestAskForReal asks through a gate and a queue: what is approved passes once,
// what is not does not, and the upstream sees the arguments alone.
func TestAskForReal(t *testing.T) {
	everyWay(t, func(t *testing.T, way, era string) {
		x, d := askingFixture(t)
		var asked []string
		action := "accept"
		cs := d.client(t, way, era, func(ctx context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			asked = append(asked, r.Params.Message)
			return says(action, "approve")(ctx, r)
		}, mcp.ClientOptions{})
		call := func(n int) (*mcp.CallToolResult, error) {
			return cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "local__echo", Arguments: map[string]any{"n": n}})
		}
		for range 2 { // an approval is for one call
			if res, err := call(1); err != nil || res.IsError || res.NeedsInput() {
				t.Fatalf("approved: %+v, %v", res, err)
			}
		}
		const question = "May local call echo of server local?\n- /n: 1\n\nWhy you are asked: it does something\nThe session has read: nothing that is labelled"
		if diff := cmp.Diff([]string{question, question}, asked); diff != "" {
			t.Error(diff)
		}
		for _, action = range []string{"decline", "cancel"} {
			res, err := call(len(action))
			if err != nil || !res.IsError || res.Meta[gate.MetaRefusal].(map[string]any)["code"] != "refused_approve" {
				t.Errorf("%s: %+v, %v", action, res, err)
			}
		}
		if x.Calls() != 2 {
			t.Errorf("%d calls came through", x.Calls())
		}
		const ok, refused = "local__echo ok", "local__echo refused_approve"
		want := []string{ok, ok, refused, refused}
		if era == rig.Newest { // each is called twice
			want = []string{refused, ok, refused, ok, refused, refused, refused, refused}
		}
		if diff := cmp.Diff(want, x.Records.Done()); diff != "" {
			t.Error(diff)
		}
	})
}

// FuzzElicited: only three answers approve, to the letter.
func FuzzElicited(f *testing.F) {
	for _, s := range nothings {
		if len(s) < 1000 {
			f.Add([]byte(s))
		}
	}
	f.Add([]byte(`{"action":"accept","content":{"decision":"approve"}}`))
	f.Add([]byte(`{"content":{"decision":"approve always for this tool"},"action":"accept","_meta":{}}`))
	f.Add([]byte(`{"action":"decline","content":{"decision":"deny"}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		doc, err := gate.ParseDoc(b)
		if err != nil {
			return
		}
		a := host.Elicited(doc)
		want := ""
		switch content := string(doc.Get("content").Canonical()); {
		case doc.Get("action").Text() != "accept":
		case content == `{"decision":"approve"}`, content == `{}`, doc.Get("content").IsZero():
			want = "once"
		case content == `{"decision":"approve always for this tool"}`:
			want = "always"
		}
		got := ""
		if a.Verdict == gate.Approved {
			got = "once"
			if a.Always {
				got = "always"
			}
		}
		if got != want {
			t.Fatalf("%s: approved %q, want %q", doc, got, want)
		}
		if a.Verdict == "" {
			t.Fatalf("%s: no verdict", doc)
		}
	})
}
