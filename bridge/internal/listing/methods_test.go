package listing_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/fleet"
	"github.com/wasmgate/wasmgate/bridge/internal/host"
	"github.com/wasmgate/wasmgate/bridge/internal/host/dispatch"
	"github.com/wasmgate/wasmgate/bridge/internal/listing"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
)

// rawMethod and rawAnswer are parameters and results of methods as they stand on the wire.
type rawMethod struct {
	sdk.ParamsBase
	doc gate.Doc
}

func (p *rawMethod) UnmarshalJSON(b []byte) (err error) {
	p.doc, err = gate.ParseDoc(bytes.Clone(b))
	return err
}

type rawAnswer struct {
	sdk.ResultBase
	text string
}

func (r *rawAnswer) MarshalJSON() ([]byte, error) { return []byte(r.text), nil }

// A custom server has methods that MCP does not have, and keeps what it was asked.
type custom struct {
	*sdk.Server
	begun, ended chan struct{} // of acme/block

	mu   sync.Mutex
	seen []string
}

var customMethods = []string{"acme/search", "acme/hidden", "acme/denied", "acme/fail", "acme/odd", "acme/walk", "acme/ask", "acme/block"}

func newCustom(t testing.TB) *custom {
	c := &custom{
		Server: sdk.NewServer(&sdk.Implementation{Name: "custom", Version: "1"}, &sdk.ServerOptions{Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}}}),
		begun:  make(chan struct{}, 10), ended: make(chan struct{}, 10),
	}
	for _, method := range customMethods {
		err := sdk.AddReceivingCustomMethod(c.Server, method, func(ctx context.Context, ss *sdk.ServerSession, p *rawMethod) (*rawAnswer, error) {
			c.mu.Lock()
			c.seen = append(c.seen, method+" "+p.doc.String())
			c.mu.Unlock()
			return c.answer(ctx, method, ss, p.doc)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func (c *custom) answer(ctx context.Context, method string, ss *sdk.ServerSession, params gate.Doc) (*rawAnswer, error) {
	switch method {
	case "acme/fail":
		return nil, &jsonrpc.Error{Code: -32077, Message: "no <luck>", Data: json.RawMessage(`{"big":12345678901234567890}`)}
	case "acme/odd":
		return &rawAnswer{text: `[1]`}, nil
	case "acme/walk":
		for i := range 3 {
			_ = ss.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: json.Number(params.At("/_meta/progressToken").String()), Progress: float64(i + 1)})
		}
	case "acme/ask":
		res, err := ss.Elicit(ctx, &sdk.ElicitParams{Message: "who?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}}}`)})
		if err != nil {
			return nil, err
		}
		return &rawAnswer{text: `{"said":` + rig.Quote(fmt.Sprint(res.Content["name"])) + `}`}, nil
	case "acme/block":
		c.begun <- struct{}{}
		<-ctx.Done()
		c.ended <- struct{}{}
		return nil, ctx.Err()
	}
	return &rawAnswer{text: `{"text":"found <b>it</b>","big":12345678901234567890,"isError":true}`}, nil
}

// asked returns what the server was asked, without _meta.
func (c *custom) asked() (all []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.seen {
		method, params, _ := strings.Cut(one, " ")
		plain := "{"
		for name, v := range gate.MustDoc(params).Members() {
			if name != "_meta" {
				plain += name + ":" + v.String() + " "
			}
		}
		all = append(all, method+" "+strings.TrimSpace(plain)+"}")
	}
	return all
}

// customUpstreams are the ways in which a custom server is reached.
var customUpstreams = map[string]func(testing.TB, *sdk.Server) options.Endpoint{
	"HTTP, sessions":  func(t testing.TB, s *sdk.Server) options.Endpoint { return overHTTP(t, s, mcp.Revision) },
	"HTTP, stateless": func(t testing.TB, s *sdk.Server) options.Endpoint { return overHTTP(t, s, mcp.Stateless) },
	"in process, sessions": func(_ testing.TB, s *sdk.Server) options.Endpoint {
		return options.Endpoint{Dial: wire.InProcess(s)}
	},
	"in process, stateless": func(_ testing.TB, s *sdk.Server) options.Endpoint {
		return options.Endpoint{Dial: wire.InProcess(s), Protocol: mcp.Stateless}
	},
}

func overHTTP(t testing.TB, s *sdk.Server, protocol string) options.Endpoint {
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{Stateless: protocol == mcp.Stateless, PropagateRequestCancellation: protocol == mcp.Stateless}))
	t.Cleanup(web.Close)
	return options.Endpoint{URL: web.URL, Protocol: protocol}
}

// newMethodFixture returns a host in front of servers with methods. One that is named
// hidden, or denied, is that.
func newMethodFixture(t testing.TB, servers ...options.Endpoint) *rig.Fixture {
	t.Helper()
	for i := range servers {
		servers[i].Tools = rig.Options()
		if servers[i].Server == "" {
			servers[i].Server = "files"
		}
		if servers[i].Methods == nil {
			servers[i].Methods = customMethods
		}
	}
	x := &rig.Fixture{Records: new(rig.Records)}
	x.Fleet = rig.NewFleet(t, fleet.Config{Servers: servers})
	if err := x.Fleet.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	g, err := gate.New(gate.Parts{
		Upstream: x.Fleet, Sessions: rig.Sessions{}, Recorder: x.Records,
		Sanitizer: rig.SanitizerFunc(func(s string) (string, []gate.Finding) {
			return strings.NewReplacer("<", "(", ">", ")").Replace(s), nil
		}),
		Authorizer: rig.AuthorizerFunc(func(q gate.Query) gate.Decision {
			switch q.Tool.Local {
			case "acme/hidden":
				return gate.Decision{Effect: gate.Deny, Hidden: true}
			case "acme/denied":
				return gate.Decision{Effect: gate.Deny, Reasons: []string{"not <yours>"}}
			}
			return gate.Decision{Effect: gate.Allow}
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	x.Host, err = host.New(host.Config{
		Config: dispatch.Config{
			Do:       g.Do,
			Tools:    g.Tools,
			Features: g.Features,
			Offering: x.Fleet.Offering,
			Lookup:   x.Fleet.Lookup,
			Ended:    x.Fleet.Sessions.End,
		},
		Terms: host.Terms{Version: "1", MaxBody: 2 << 20},
	})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(x.Host)
	t.Cleanup(srv.Close)
	x.URL = srv.URL
	return x
}

// actions returns the calls that have ended, as "action tool code".
func actions(r *rig.Records) (all []string) {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	for _, rec := range r.All {
		if rec.Event == gate.Done {
			name := "-"
			if rec.Tool != nil {
				name = rec.Tool.Name.String()
			}
			all = append(all, fmt.Sprintf("%s %s %s", rec.Call.Action, name, rec.Code))
		}
	}
	return all
}

// TestMethods: a method that MCP does not have passes in each combination of protocol revisions and
// transports. Parameters and result pass as they were written, except for unsafe texts. For a
// client that may not use a method, the method does not exist. A result may contain isError, as it
// may contain anything, and is then recorded as an error.
func TestMethods(t *testing.T) {
	const found = `{"text":"found (b)it(/b)","big":12345678901234567890,"isError":true`
	for up, reach := range customUpstreams {
		for down, w := range rig.Wires {
			t.Run(up+" from "+down, func(t *testing.T) {
				server := newCustom(t)
				x := newMethodFixture(t, reach(t, server.Server))
				say := w.Dial(t, x)
				for _, tt := range []struct{ why, method, params, want string }{
					{"with parameters", "acme/search", `"q":"x","n":12345678901234567890,"deep":{"a":[1.0]}`, `"result":` + found},
					{"by the server's name", "files__acme/search", ``, `"result":` + found},
					{"with a name of MCP's for a parameter", "acme/search", `"requestState":"s","inputResponses":{},"name":"n","task":{}`, `"result":` + found},
					{"by another server's name", "wiki__acme/search", ``, `"code":-32601,"message":"method not found"`},
					{"that is hidden", "acme/hidden", `"q":"x"`, `"code":-32601,"message":"method not found"`},
					{"that is hidden, by the server's name", "files__acme/hidden", ``, `"code":-32601,"message":"method not found"`},
					{"that nobody lists", "acme/other", ``, `"code":-32601,"message":"method not found"`},
					{"that is denied", "acme/denied", ``, `"code":-32010,"message":"refused: not (yours)"`},
					{"that fails at the server", "acme/fail", ``, `"code":-32077,"message":"no (luck)","data":{"big":12345678901234567890}`},
				} {
					got := say(rig.Request(w.Era, "7", tt.method, tt.params))
					if !strings.Contains(got, tt.want) || !strings.Contains(got, `"id":7`) {
						t.Errorf("a method %s: %s; want %s", tt.why, got, tt.want)
					}
				}
				if got := say(rig.Request(w.Era, "8", "acme/search", "")); w.Era == rig.Newest && !strings.Contains(got, `"resultType":"complete"`) {
					t.Errorf("a client without a session is not told that the result is complete: %s", got)
				}
				want := []string{
					`acme/search {q:"x" n:12345678901234567890 deep:{"a":[1.0]}}`, `acme/search {}`,
					`acme/search {requestState:"s" inputResponses:{} name:"n" task:{}}`, `acme/fail {}`, `acme/search {}`,
				}
				if diff := cmp.Diff(want, server.asked()); diff != "" {
					t.Errorf("the server was asked (-want +got):\n%s", diff)
				}
				want = []string{
					"acme/search files__acme/search tool_error", "acme/search files__acme/search tool_error", "acme/search files__acme/search tool_error",
					"acme/hidden files__acme/hidden refused_authorize", "acme/hidden files__acme/hidden refused_authorize",
					"acme/denied files__acme/denied refused_authorize", "acme/fail files__acme/fail tool_error", "acme/search files__acme/search tool_error",
				}
				if diff := cmp.Diff(want, actions(x.Records)); diff != "" {
					t.Errorf("records (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestHostileMethods: what is no request of a method gets an error, and no server sees it.
func TestHostileMethods(t *testing.T) {
	server := newCustom(t)
	x := newMethodFixture(t, options.Endpoint{Dial: wire.InProcess(server.Server)})
	for down, w := range rig.Wires {
		say := w.Dial(t, x)
		for why, tt := range map[string]struct{ msg, want string }{
			"a control character":         {rig.Request(w.Era, "7", "acme/sea\x01rch", ""), `"error"`},
			"an escaped one":              {rig.Request(w.Era, "7", "METHOD", ""), `"code":-32601`},
			"a megabyte":                  {rig.Request(w.Era, "7", "acme/"+strings.Repeat("x", 1<<20), ""), `"code":-32601`},
			"another case":                {rig.Request(w.Era, "7", "Acme/Search", ""), `"code":-32601`},
			"what stands for all of them": {rig.Request(w.Era, "7", "wasmgate/method", `"q":1`), `"code":-32601`},
			"one behind two servers":      {rig.Request(w.Era, "7", "files__files__acme/search", ""), `"code":-32601`},
			"one that MCP has":            {rig.Request(w.Era, "7", "files__tools/call", `"name":"x"`), `"code":-32601`},
			"an array of parameters":      {`{"jsonrpc":"2.0","id":7,"method":"acme/search","params":[1]}`, `"code":-32602`},
			"no parameters but null":      {`{"jsonrpc":"2.0","id":7,"method":"acme/search","params":null}`, `"code":-32602`},
			"parameters of a hidden one":  {`{"jsonrpc":"2.0","id":7,"method":"acme/hidden","params":[1]}`, `"code":-32601,"message":"method not found"`},
			"parameters of no one":        {`{"jsonrpc":"2.0","id":7,"method":"acme/other","params":[1]}`, `"code":-32601,"message":"method not found"`},
			"_meta that is none":          {`{"jsonrpc":"2.0","id":7,"method":"acme/search","params":{"_meta":1}}`, `"code":-32602`},
			"a key twice":                 {`{"jsonrpc":"2.0","id":7,"method":"acme/search","params":{"q":1,"q":2}}`, `"code":-32602`},
		} {
			if down == "HTTP, stateless" && (why == "a control character" || why == "an escaped one") {
				continue // no header can say that
			}
			msg := strings.Replace(tt.msg, "METHOD", `acme/sea\u0001rch`, 1)
			if got := say(msg); !strings.Contains(got, tt.want) {
				t.Errorf("%s: %s: %.300s; want %s", down, why, got, tt.want)
			}
		}
		if got := say(`{"jsonrpc":"2.0","method":"acme/search","params":{}}`); got != "" {
			t.Errorf("%s: a notification is answered: %s", down, got)
		}
		say(rig.Request(w.Era, "9", "tools/list", "")) // whatever was said before has been read
	}
	if asked := server.asked(); asked != nil {
		t.Errorf("the server was asked %q", asked)
	}
	if !slices.Contains(actions(x.Records), "acme/search - refused_parse") {
		t.Errorf("bad parameters are not recorded: %q", actions(x.Records))
	}
	for _, one := range actions(x.Records) {
		if strings.HasPrefix(one, "acme/other") {
			t.Errorf("a method that nobody has is recorded: %s", one)
		}
	}
}

// TestMethodOddResults: a result that is no object is the server's fault, and its
// connection goes on.
func TestMethodOddResults(t *testing.T) {
	s := rig.NewScript(map[string]string{"acme/odd": `[1]`, "acme/search": `{"ok":1}`})
	cfg := s.Config("files")
	x := newMethodFixture(t, cfg)
	say := rig.DialHTTP(t, x, rig.Old)
	if got := say(rig.Request(rig.Old, "1", "acme/odd", "")); !strings.Contains(got, `"code":-32010`) || !strings.Contains(got, `"code":"protocol"`) {
		t.Errorf("%s", got)
	}
	if got := say(rig.Request(rig.Old, "2", "acme/search", "")); !strings.Contains(got, `"result":{"ok":1}`) {
		t.Errorf("afterwards: %s", got)
	}
}

// TestMethodHeader: a client without a session says the method in a header too, and
// nothing passes if that says another thing.
func TestMethodHeader(t *testing.T) {
	server := newCustom(t)
	x := newMethodFixture(t, options.Endpoint{Dial: wire.InProcess(server.Server)})
	for why, tt := range map[string]struct {
		headers []string
		want    string
	}{
		"the same":     {[]string{"acme/search"}, `"result"`},
		"another":      {[]string{"acme/fail"}, `"code":-32020`},
		"none":         {nil, `"code":-32020`},
		"two":          {[]string{"acme/search", "acme/search"}, `"code":-32020`},
		"the host's":   {[]string{"wasmgate/method"}, `"code":-32020`},
		"another case": {[]string{"Acme/search"}, `"code":-32020`},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, x.URL, strings.NewReader(rig.Request(rig.Newest, "1", "acme/search", "")))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{
			"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
			"Mcp-Protocol-Version": {rig.Newest}, "Mcp-Method": tt.headers,
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if got := rig.AnswerOf(t, resp); !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s; want %s", why, got, tt.want)
		}
	}
	if asked := server.asked(); len(asked) != 1 {
		t.Errorf("the server was asked %q", asked)
	}
}

// TestMethodUnknownAlike: who may not use a method cannot tell it from one that is not
// there, by nothing that HTTP says.
func TestMethodUnknownAlike(t *testing.T) {
	x := newMethodFixture(t, options.Endpoint{Dial: wire.InProcess(newCustom(t).Server)})
	session := rig.OpenSession(t, x.URL)
	for era, session := range map[string]string{rig.Old: session, rig.Newest: ""} {
		said := map[string]string{}
		for _, method := range []string{"acme/hidden", "acme/other", "files__acme/hidden", "none__acme/hidden"} {
			resp, err := rig.Post(t.Context(), x.URL, era, session, rig.Request(era, "1", method, `"q":1`))
			if err != nil {
				t.Fatal(err)
			}
			resp.Header.Del("Date")
			said[fmt.Sprint(resp.Status, resp.Header, rig.AnswerOf(t, resp))] = method
		}
		if len(said) != 1 {
			t.Errorf("%s: %v", era, said)
		}
	}
}

// TestMethodProgress: a client with a token gets the progress of the method.
func TestMethodProgress(t *testing.T) {
	for up, reach := range customUpstreams {
		x := newMethodFixture(t, reach(t, newCustom(t).Server))
		session := rig.OpenSession(t, x.URL)
		resp, err := rig.Post(t.Context(), x.URL, rig.Old, session, `{"jsonrpc":"2.0","id":1,"method":"acme/walk","params":{"_meta":{"progressToken":"mine"}}}`)
		if err != nil {
			t.Fatal(err)
		}
		body := new(bytes.Buffer)
		if _, err := body.ReadFrom(resp.Body); err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if n := strings.Count(body.String(), `"progressToken":"mine"`); n != 3 {
			t.Errorf("%s: told %d times: %s", up, n, body)
		}
	}
}

// TestMethodCancelled: what a client cancels ends at the server.
func TestMethodCancelled(t *testing.T) {
	for up, reach := range customUpstreams {
		server := newCustom(t)
		x := newMethodFixture(t, reach(t, server.Server))
		for _, era := range []string{rig.Old, rig.Newest} {
			session := ""
			if era == rig.Old {
				session = rig.OpenSession(t, x.URL)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				if resp, err := rig.Post(ctx, x.URL, era, session, rig.Request(era, "5", "acme/block", "")); err == nil {
					resp.Body.Close()
				}
			}()
			<-server.begun
			if era == rig.Old {
				resp, err := rig.Post(t.Context(), x.URL, era, session, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
			} else {
				cancel()
			}
			<-server.ended
			cancel()
			<-done
			t.Logf("%s, %s: ended", up, era)
		}
	}
}

// TestMethodAsks: a server may ask the client of a session something while it works on its
// method, over the client's own connection. A client without a session it cannot ask then.
func TestMethodAsks(t *testing.T) {
	x := newMethodFixture(t, options.Endpoint{Dial: wire.InProcess(newCustom(t).Server)})
	inMemory := func(revision string) *sdk.ClientSession {
		client := sdk.NewClient(&sdk.Implementation{Name: "c", Version: "1"}, &sdk.ClientOptions{
			ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
				return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}, nil
			},
		})
		if err := sdk.AddSendingCustomMethod[*rawMethod, *rawResultOf](client, "acme/ask"); err != nil {
			t.Fatal(err)
		}
		c, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: x.URL}, &sdk.ClientSessionOptions{ProtocolVersion: revision})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	res, err := sdk.CallCustomMethod[*rawMethod, *rawResultOf](t.Context(), inMemory(rig.Old), "acme/ask", &rawMethod{})
	if err != nil || !strings.Contains(string(res.raw), `"said":"Ada"`) {
		t.Errorf("with a session: %v, %v", res, err)
	}
	if res, err := sdk.CallCustomMethod[*rawMethod, *rawResultOf](t.Context(), inMemory(rig.Newest), "acme/ask", &rawMethod{}); err == nil {
		t.Errorf("without a session: %s", res.raw)
	}
}

type rawResultOf struct {
	sdk.ResultBase
	raw json.RawMessage
}

func (r *rawResultOf) UnmarshalJSON(b []byte) error { r.raw = bytes.Clone(b); return nil }

// TestMethodConflicts: if two servers have the same method, the first in the configuration keeps
// it, the other is reached by its name, and the conflict is reported. The lists can change.
func TestMethodConflicts(t *testing.T) {
	first, second := rig.NewScript(map[string]string{"acme/search": `{"by":"files"}`}), rig.NewScript(map[string]string{"acme/search": `{"by":"wiki"}`, "acme/new": `{"by":"wiki, new"}`})
	files, wiki := first.Config("files"), second.Config("wiki")
	files.Methods, wiki.Methods = []string{"acme/search"}, []string{"acme/search", "wiki/own"}
	x := newMethodFixture(t, files, wiki)
	say := rig.DialHTTP(t, x, rig.Newest)
	ask := func(method, want string) {
		t.Helper()
		if got := say(rig.Request(rig.Newest, "1", method, "")); !strings.Contains(got, want) {
			t.Errorf("%s: %s; want %s", method, got, want)
		}
	}
	ask("acme/search", `"by":"files"`)
	ask("files__acme/search", `"by":"files"`)
	ask("wiki__acme/search", `"by":"wiki"`)
	ask("wiki__wiki/own", `-32601,"message":"no such method"`) // the server's own answer
	want := []status.Conflict{{
		Feature: gate.FeatureMethod, Name: "acme/search", Server: "wiki", ShadowedBy: "files",
		Offered: "wiki__acme/search", Resolution: "offered as wiki__acme/search",
	}}
	if diff := cmp.Diff(want, x.Fleet.Conflicts()); diff != "" {
		t.Errorf("conflicts (-want +got):\n%s", diff)
	}
	status := x.Fleet.Status()
	if status[0].Methods != 1 || status[1].Methods != 2 || len(status[1].Notes) != 1 || !strings.Contains(status[1].Notes[0].Text, "offered as wiki__acme/search") {
		t.Errorf("status: %+v", status)
	}

	wiki.Methods = []string{"acme/new"}
	wiki.Tools = rig.Options()
	if err := x.Fleet.Add(t.Context(), wiki); err != nil {
		t.Fatal(err)
	}
	ask("acme/new", `"by":"wiki, new"`)
	ask("wiki__acme/search", `-32601,"message":"method not found"`)
	if len(x.Fleet.Conflicts()) != 0 {
		t.Errorf("conflicts: %+v", x.Fleet.Conflicts())
	}
}

// TestMethodGone: a call that was permitted does not reach a server that has lost the method
// meanwhile.
func TestMethodGone(t *testing.T) {
	s := rig.NewScript(map[string]string{"acme/search": `{}`})
	with, without := s.Config("files"), s.Config("files")
	with.Methods = []string{"acme/search"}
	fleet := rig.NewFleet(t, fleet.Config{Servers: []options.Endpoint{with}})
	if err := fleet.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	g, err := gate.New(gate.Parts{
		Upstream: fleet, Sessions: rig.Sessions{}, Recorder: new(rig.Records), Sanitizer: rig.SanitizerFunc(rig.Unchanged),
		Authorizer: rig.AuthorizerFunc(func(gate.Query) gate.Decision {
			if err := fleet.Add(t.Context(), without); err != nil {
				t.Error(err)
			}
			return gate.Decision{Effect: gate.Allow}
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = g.Do(t.Context(), gate.Call{Action: "acme/search", Name: "acme/search", Who: gate.Local()})
	if rig.Kind(err) != "not_connected" || s.Count("acme/search") != 0 {
		t.Errorf("%v; the server was asked %d times", err, s.Count("acme/search"))
	}
}

// TestMethodActionIsItsName: what is decided on is what the server is asked.
func TestMethodActionIsItsName(t *testing.T) {
	s := rig.NewScript(map[string]string{"acme/search": `{}`, "acme/delete": `{}`})
	cfg := s.Config("files")
	cfg.Methods = []string{"acme/search", "acme/delete"}
	fleet := rig.NewFleet(t, fleet.Config{Servers: []options.Endpoint{cfg}})
	if err := fleet.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	g, _ := rig.NewGate(t, fleet)
	for name, want := range map[string]string{"acme/search": "ok", "files__acme/search": "ok", "acme/delete": "refused_lookup", "files__acme/delete": "refused_lookup"} {
		if _, err := g.Do(t.Context(), gate.Call{Action: "acme/search", Name: name, Who: gate.Local()}); rig.Kind(err) != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	if n := s.Count("acme/delete"); n != 0 {
		t.Errorf("the server was asked %d times for what was not decided on", n)
	}
}

// TestMethodConfig: no server can be said to have what is not its own to have.
func TestMethodConfig(t *testing.T) {
	many := make([]string, listing.MaxMethods+1)
	for i := range many {
		many[i] = fmt.Sprintf("acme/m%d", i)
	}
	for why, tt := range map[string]struct {
		methods []string
		want    string
	}{
		"a method of MCP":   {[]string{"tools/call"}, `method "tools/call" begins with tools/`},
		"a pattern":         {[]string{"acme/*"}, "is not a method"},
		"one twice":         {[]string{"acme/a", "acme/a"}, "listed twice"},
		"too many":          {many, "65 methods; at most 64 are allowed"},
		"a server's, too":   {[]string{"wiki__acme/a"}, "between a server and its method"},
		"as many as it can": {many[1:], ""},
	} {
		cfg := rig.NewScript(nil).Config("files")
		cfg.Methods = tt.methods
		_, err := upstream.New(cfg)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", why, err)
		}
	}
}
