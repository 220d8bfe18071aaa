package host_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/host"
	"github.com/wasmgate/wasmgate/bridge/internal/host/dispatch"
	"github.com/wasmgate/wasmgate/bridge/internal/host/transport"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/codes"
	"github.com/wasmgate/wasmgate/gate/step"
)

// byHeader tells principals apart by a header, as an authenticating host does by a token:
// tenant/id, or id alone.
func byHeader(r *http.Request) (*gate.Principal, error) {
	tenant, id, ok := strings.Cut(r.Header.Get("X-Who"), "/")
	if !ok {
		tenant, id = "", tenant
	}
	if id == "" {
		return nil, errors.New("nobody")
	}
	return &gate.Principal{Owner: gate.Owner{Tenant: tenant, ID: id}, Auth: "bearer"}, nil
}

// A sender sends requests as a principal.
type sender struct {
	t   *testing.T
	url string
	who string
}

// open sends a request; the caller reads the answer. headers are pairs.
func (p sender) open(method, body string, headers ...string) *http.Response {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), method, p.url, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("X-Who", p.who)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	return resp
}

// old sends a request of a session, and newest one without, and return status and answer.
func (p sender) old(method, session, body string, headers ...string) string {
	p.t.Helper()
	resp := p.open(method, body, append(headers, "Mcp-Session-Id", session, "Mcp-Protocol-Version", rig.Old)...)
	return resp.Status + " " + rig.AnswerOf(p.t, resp)
}

func (p sender) newest(method, name, params, declares string) string {
	p.t.Helper()
	resp := p.open("POST", sessionless(1, method, params, declares), "Mcp-Protocol-Version", rig.Newest, "Mcp-Method", method, "Mcp-Name", name)
	return resp.Status + " " + rig.AnswerOf(p.t, resp)
}

func (p sender) openSession() (session string) {
	p.t.Helper()
	hello := strings.Replace(rig.Hello, `"capabilities":{}`, `"capabilities":{"elicitation":{}}`, 1)
	resp := p.open("POST", hello)
	rig.AnswerOf(p.t, resp)
	session = resp.Header.Get("Mcp-Session-Id")
	p.old("POST", session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return session
}

// TestNobody: a request has no principal if the host's function returns an error for it, or returns
// nothing at all.
func TestNobody(t *testing.T) {
	for name, by := range map[string]func(*http.Request) (*gate.Principal, error){
		"an error": byHeader, "nothing": func(*http.Request) (*gate.Principal, error) { return nil, nil },
	} {
		d := newDesk(t, host.Config{Access: transport.Access{Principal: by}})
		for _, method := range []string{"POST", "GET", "DELETE"} {
			resp := sender{t, d.url, ""}.open(method, rig.Hello)
			rig.AnswerOf(t, resp)
			if resp.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s, %s: %d", name, method, resp.StatusCode)
			}
		}
	}
	d := newDesk(t, host.Config{Access: transport.Access{Principal: byHeader}})
	r := httptest.NewRequest("POST", "/mcp", strings.NewReader(rig.Hello))
	r.Host = "localhost"
	w := httptest.NewRecorder()
	d.host.ServeHTTP(w, r.WithContext(transport.WithPrincipal(r.Context(), nil)))
	if w.Code != http.StatusUnauthorized {
		t.Errorf("nobody in the context: %d", w.Code)
	}
}

// TestSessionOfAGroup: a session is of the address at which it began, which has tools of its own.
func TestSessionOfAGroup(t *testing.T) {
	d := newDesk(t, host.Config{Access: transport.Access{Group: func(group string) bool { return group != "none" }}})
	at := func(group, session, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("POST", "/mcp", strings.NewReader(body))
		r.Host = "localhost"
		r.SetPathValue(transport.GroupParam, group)
		for name, v := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Session-Id": session} {
			if v != "" {
				r.Header.Set(name, v)
			}
		}
		w := httptest.NewRecorder()
		d.host.ServeHTTP(w, r)
		return w
	}
	for _, began := range []string{"", "docs"} {
		session := at(began, "", rig.Hello).Header().Get("Mcp-Session-Id")
		for _, group := range []string{"", "docs", "ops"} {
			w := at(group, session, `{"jsonrpc":"2.0","id":2,"method":"ping"}`)
			if want := map[bool]int{true: http.StatusOK, false: http.StatusNotFound}[group == began]; w.Code != want {
				t.Errorf("a session of %q at %q: %d, want %d", began, group, w.Code, want)
			}
		}
	}
	if w := at("none", "", rig.Hello); w.Code != http.StatusNotFound || w.Header().Get("Mcp-Session-Id") != "" {
		t.Errorf("a group that there is not: %d", w.Code)
	}
	if d = newDesk(t, host.Config{}); at("docs", "", rig.Hello).Code != http.StatusNotFound {
		t.Error("a host without groups has one")
	}
}

// strangers are not Alice of no tenant, however much they are like her.
var strangers = []string{"bob", "acme/alice", "ALICE"}

// TestSessionTakeover: a client that knows the id of another's session gets the same answer as for
// a session that does not exist, with every verb and every message, and disturbs nothing.
func TestSessionTakeover(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	x, _ := newTaskFixtureWith(t, host.Config{Access: transport.Access{Principal: byHeader}}, tasked(release)...)
	alice := sender{t, x.URL, "alice"}
	session := alice.openSession()
	stream := alice.open("POST", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"local__block","arguments":{},"_meta":{"progressToken":1}}}`,
		"Mcp-Session-Id", session, "Mcp-Protocol-Version", rig.Old)
	defer stream.Body.Close()
	<-x.Begun
	first := make([]byte, 200)
	n, err := stream.Body.Read(first)
	if err != nil {
		t.Fatal(err)
	}
	event := eventID.FindStringSubmatch(string(first[:n]))
	if event == nil {
		t.Fatalf("the stream begins with %q", first[:n])
	}
	request := func(method, params string) string { return rig.Request(rig.Old, "8", method, params) }
	task := gate.MustDoc(strings.TrimPrefix(alice.old("POST", session, request("tools/call", `"name":"local__tasked","arguments":{},"task":{}`)), "200 OK ")).At("/result/task/taskId").String()
	attacks := map[string]struct{ method, body, lastEvent string }{
		"a call":                     {"POST", request("tools/call", `"name":"local__echo","arguments":{}`), ""},
		"a call that is told of":     {"POST", request("tools/call", `"name":"local__echo","arguments":{},"_meta":{"progressToken":1}`), ""},
		"a listing":                  {"POST", request("tools/list", ""), ""},
		"another begin":              {"POST", rig.Hello, ""},
		"a ping":                     {"POST", request("ping", ""), ""},
		"a cancellation":             {"POST", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`, ""},
		"an answer to a question":    {"POST", `{"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}`, ""},
		"roots that changed":         {"POST", `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`, ""},
		"a log level":                {"POST", request("logging/setLevel", `"level":"debug"`), ""},
		"a subscription":             {"POST", request("resources/subscribe", `"uri":"a:b"`), ""},
		"its end":                    {"POST", request("resources/unsubscribe", `"uri":"a:b"`), ""},
		"a task":                     {"POST", request("tasks/get", `"taskId":`+task), ""},
		"no JSON":                    {"POST", `{`, ""},
		"the stream of notices":      {"GET", "", ""},
		"the rest of a stream":       {"GET", "", event[1]},
		"an end that was never sent": {"GET", "", event[1] + "0"},
		"the end of the session":     {"DELETE", "", ""},
		"another verb":               {"PUT", "", ""},
	}
	for _, who := range strangers {
		p := sender{t, x.URL, who}
		own := p.openSession()
		for name, a := range attacks {
			got := p.old(a.method, session, a.body, "Last-Event-ID", a.lastEvent)
			unknown := p.old(a.method, rand.Text(), a.body, "Last-Event-ID", a.lastEvent)
			if got != unknown || !strings.HasPrefix(got, "404 ") {
				t.Errorf("%s, %s: %q; with an unknown session: %q", who, name, got, unknown)
			}
		}
		for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
			got := p.old("POST", own, request(method, `"taskId":`+task))
			if unknown := p.old("POST", own, request(method, `"taskId":"none"`)); got != unknown {
				t.Errorf("%s, %s: %q; of an unknown task: %q", who, method, got, unknown)
			}
		}
		if got := p.old("POST", own, request("tasks/list", "")); !strings.Contains(got, `"tasks":[]`) {
			t.Errorf("%s, tasks/list: %q", who, got)
		}
	}
	if got := alice.old("POST", session, request("tasks/get", `"taskId":`+task)); !strings.Contains(got, `"working"`) {
		t.Errorf("Alice's task: %q", got)
	}
	if got := alice.old("POST", session, request("tools/call", `"name":"local__echo","arguments":{}`)); !strings.Contains(got, "done") {
		t.Errorf("Alice's session: %q", got)
	}
	x.Records.Mu.Lock()
	defer x.Records.Mu.Unlock()
	for _, r := range x.Records.All {
		if r.Code == codes.Cancelled {
			t.Error("Alice's call was cancelled")
		}
		if r.Call.Session.Owner != r.Call.Who.Owner {
			t.Errorf("a call of %s in a session of %s", r.Call.Who.ID, r.Call.Session.Owner.ID)
		}
	}
}

// TestHandleTakeover: what a client without a session gets to bring back is good for its
// principal alone.
func TestHandleTakeover(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	x, _ := newTaskFixtureWith(t, host.Config{Access: transport.Access{Principal: byHeader}}, tasked(release)...)
	alice := sender{t, x.URL, "alice"}
	task := gate.MustDoc(strings.TrimPrefix(alice.newest("tools/call", "local__tasked", `"name":"local__tasked","arguments":{}`, knowsTasks), "200 OK ")).At("/result/taskId").String()
	asked := gate.MustDoc(strings.TrimPrefix(alice.newest("tools/call", "local__before", `"name":"local__before","arguments":{}`, knowsNone), "200 OK "))
	state := asked.At("/result/requestState").Text()
	if task == "" || state == "" {
		t.Fatalf("a task %s, a question %s", task, asked)
	}
	brings := func(state string) string {
		return `"name":"local__before","arguments":{},"requestState":` + rig.Quote(state) + `,"inputResponses":{"ask-1":{"action":"accept","content":{"name":"Eve"}}}`
	}
	for _, who := range strangers {
		p := sender{t, x.URL, who}
		for name, send := range map[string]func(task, state string) string{
			"a question": func(_, state string) string { return p.newest("tools/call", "local__before", brings(state), knowsNone) },
			"a task":     func(task, _ string) string { return p.newest("tasks/get", unquote(task), `"taskId":`+task, knowsTasks) },
			"an answer": func(task, _ string) string {
				return p.newest("tasks/update", unquote(task), `"taskId":`+task+`,"inputResponses":{}`, knowsTasks)
			},
			"a cancel": func(task, _ string) string {
				return p.newest("tasks/cancel", unquote(task), `"taskId":`+task, knowsTasks)
			},
		} {
			got, unknown := send(task, state), send(`"none"`, "p1.none")
			if got != unknown || !strings.Contains(got, "-32602") {
				t.Errorf("%s, %s: %q; unknown: %q", who, name, got, unknown)
			}
		}
		listens := p.open("POST", sessionless(1, "subscriptions/listen", `"notifications":{"toolsListChanged":true,"taskIds":[`+task+`]}`, knowsTasks), "Mcp-Protocol-Version", rig.Newest, "Mcp-Method", "subscriptions/listen")
		err := rig.ReadStream(listens.Body, func(data []byte) (bool, error) {
			if !strings.Contains(string(data), `"taskIds":[]`) {
				return false, fmt.Errorf("it begins with %s", data)
			}
			return false, nil
		})
		listens.Body.Close()
		if err != nil {
			t.Errorf("%s listens: %v", who, err)
		}
	}
	if got := alice.newest("tasks/get", unquote(task), `"taskId":`+task, knowsTasks); !strings.Contains(got, `"working"`) {
		t.Errorf("Alice's task: %q", got)
	}
}

// TestScopesOfWhatIsHidden: a client that lacks scopes for a request over HTTP learns which from
// the status and a challenge. For what is hidden from it, it gets the same answer as for what does
// not exist.
func TestScopesOfWhatIsHidden(t *testing.T) {
	h, err := host.New(host.Config{
		Config: dispatch.Config{
			Do: func(_ context.Context, c gate.Call) (gate.Result, error) {
				if c.Name == "absent" {
					return gate.Result{}, &gate.Refusal{Step: step.Lookup, Name: c.Name}
				}
				return gate.Result{}, &gate.Refusal{Step: step.Authorize, Name: c.Name, Scopes: []string{"files:write"}, Hidden: c.Name == "hidden"}
			},
			Tools:    func(context.Context, *gate.Principal) ([]*gate.Tool, error) { return nil, nil },
			Features: func(context.Context, *gate.Principal, gate.Feature) ([]*gate.Tool, error) { return nil, nil },
			Offering: func(context.Context) mcp.Offering { return mcp.Offering{Prompts: true} },
		},
		Access: transport.Access{Principal: byHeader, Challenge: func(_ *http.Request, scopes []string) string { return "Bearer scope=" + strings.Join(scopes, " ") }},
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	defer server.Close()
	alice := sender{t, server.URL, "alice"}
	session := alice.openSession()
	lines, end := rig.DialStdio(t, &rig.Fixture{Host: h})
	defer end()
	lines(rig.Hello)
	for _, method := range []string{"tools/call", "prompts/get"} {
		for era, ask := range map[string]func(name string) *http.Response{
			rig.Old: func(name string) *http.Response {
				return alice.open("POST", rig.Request(rig.Old, "1", method, `"name":"`+name+`"`), "Mcp-Session-Id", session, "Mcp-Protocol-Version", rig.Old)
			},
			rig.Newest: func(name string) *http.Response {
				return alice.open("POST", sessionless(1, method, `"name":"`+name+`"`, "{}"), "Mcp-Protocol-Version", rig.Newest, "Mcp-Method", method, "Mcp-Name", name)
			},
		} {
			denied, hidden, unknown := ask("denied"), ask("hidden"), ask("absent")
			if got := denied.Header.Get("WWW-Authenticate"); denied.StatusCode != http.StatusForbidden || got != "Bearer scope=files:write" {
				t.Errorf("%s, %s: %s %q", era, method, denied.Status, got)
			}
			rig.AnswerOf(t, denied)
			got, want := rig.AnswerOf(t, hidden), strings.ReplaceAll(rig.AnswerOf(t, unknown), "absent", "hidden")
			if hidden.StatusCode != unknown.StatusCode || hidden.Header.Get("WWW-Authenticate") != "" || got != want {
				t.Errorf("%s, %s: %s %v %s, want %s %s", era, method, hidden.Status, hidden.Header, got, unknown.Status, want)
			}
		}
		if got := lines(rig.Request(rig.Old, "2", method, `"name":"denied"`)); !strings.Contains(got, "refused_authorize") {
			t.Errorf("in lines, %s: %s", method, got)
		}
	}
}

// TestSubscriptionsAreBounded: a session subscribes to 1000 resources at most, and to others once
// it has taken some back.
func TestSubscriptionsAreBounded(t *testing.T) {
	h, err := host.New(host.Config{
		Config: dispatch.Config{
			Do: func(context.Context, gate.Call) (gate.Result, error) {
				return gate.Result{Doc: gate.MustDoc("{}")}, nil
			},
			Tools:       func(context.Context, *gate.Principal) ([]*gate.Tool, error) { return nil, nil },
			Features:    func(context.Context, *gate.Principal, gate.Feature) ([]*gate.Tool, error) { return nil, nil },
			Offering:    func(context.Context) mcp.Offering { return mcp.Offering{Resources: true, Updates: true} },
			SetLevel:    func(context.Context, gate.SessionKey, string) error { return nil },
			Unsubscribe: func(context.Context, string, string) error { return nil },
			Clean:       func(_ string, params gate.Doc) (gate.Doc, bool) { return params, true },
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	defer server.Close()
	alice := sender{t, server.URL, "alice"}
	session := alice.openSession()
	ask := func(method string, i int) string {
		return alice.old("POST", session, rig.Request(rig.Old, "8", method, fmt.Sprintf(`"uri":"up:///%d"`, i)))
	}
	for i := range 1000 {
		if got := ask("resources/subscribe", i); !strings.Contains(got, `"result"`) {
			t.Fatalf("resource %d: %q", i, got)
		}
	}
	if got := ask("resources/subscribe", 1000); !strings.Contains(got, "at most 1000 resources") {
		t.Errorf("one more: %q", got)
	}
	ask("resources/unsubscribe", 0)
	if got := ask("resources/subscribe", 1000); !strings.Contains(got, `"result"`) {
		t.Errorf("in the place of another: %q", got)
	}
}

// TestConnectState: the state of a client that was sent to a page to log in is good only for its
// principal and for that call. A state of any kind that was given to no client is refused.
func TestConnectState(t *testing.T) {
	ended := make(chan struct{})
	close(ended)
	d := newDesk(t, host.Config{
		Config: dispatch.Config{
			Connect: func(_ *gate.Call, err error) (string, <-chan struct{}) {
				if _, refused := errors.AsType[*gate.Refusal](err); !refused {
					return "", nil
				}
				return "https://gw.example.com/connect/x", ended
			},
		},
		Access: transport.Access{Principal: byHeader},
	})
	call := func(who, name, more string) string {
		return sender{t, d.url, who}.newest("tools/call", name, `"name":"`+name+`","arguments":{}`+more, `{"elicitation":{"url":{}}}`)
	}
	state := gate.MustDoc(strings.TrimPrefix(call("alice", "t", ""), "200 OK ")).At("/result/requestState").Text()
	if !strings.HasPrefix(state, "c1.") {
		t.Fatalf("Alice is not asked to log in: %q", state)
	}
	back := func(who, name, state string) string {
		return call(who, name, `,"requestState":`+rig.Quote(state)+`,"inputResponses":{"connect":{"action":"accept"}}`)
	}
	for _, who := range strangers {
		if got := back(who, "t", state); !strings.Contains(got, "-32602") {
			t.Errorf("%s brings it: %q", who, got)
		}
	}
	for _, c := range [][2]string{{"u", state}, {"t", "c1.none"}, {"t", "r1.none"}, {"t", "p1.none"}, {"t", "none"}} {
		if got := back("alice", c[0], c[1]); !strings.Contains(got, "-32602") {
			t.Errorf("%q with %s: %q", c[1], c[0], got)
		}
	}
	if got := back("alice", "t", state); !strings.HasPrefix(got, "200 ") {
		t.Errorf("Alice brings it: %q", got)
	}
}

// TestSessionAsTheRequest: the rights of a session's client are those of the principal of each
// request, not those of the principal that began the session.
func TestSessionAsTheRequest(t *testing.T) {
	roles := make(chan []string, 10)
	h, err := host.New(host.Config{
		Config: dispatch.Config{
			Tools: func(_ context.Context, who *gate.Principal) ([]*gate.Tool, error) {
				roles <- who.Roles
				return nil, nil
			},
			Do: func(_ context.Context, c gate.Call) (gate.Result, error) {
				roles <- c.Who.Roles
				return gate.Result{}, errors.New("none")
			},
		},
		Access: transport.Access{
			Principal: func(r *http.Request) (*gate.Principal, error) {
				who, err := byHeader(r)
				if err == nil {
					who.Roles = r.Header["X-Role"]
				}
				return who, err
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	defer server.Close()
	alice := sender{t, server.URL, "alice"}
	resp := alice.open("POST", rig.Hello, "X-Role", "lead")
	rig.AnswerOf(t, resp)
	session := resp.Header.Get("Mcp-Session-Id")
	alice.old("POST", session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "X-Role", "lead")
	for len(roles) > 0 {
		<-roles
	}
	for _, body := range []string{rig.Request(rig.Old, "2", "tools/list", ""), rig.Request(rig.Old, "3", "tools/call", `"name":"t","arguments":{}`)} {
		alice.old("POST", session, body, "X-Role", "guest")
		if got := <-roles; len(got) != 1 || got[0] != "guest" {
			t.Errorf("%s: as %v", body, got)
		}
	}
}

func unquote(s string) string { return strings.Trim(s, `"`) }

// TestPrincipal: the sender of a request is found out before its body is read. A principal that the
// host around the endpoint has found out takes precedence. A refusal can write its own answer.
func TestPrincipal(t *testing.T) {
	var last *gate.Principal
	h, err := host.New(host.Config{
		Config: dispatch.Config{
			Tools: func(_ context.Context, who *gate.Principal) ([]*gate.Tool, error) {
				last = who
				return nil, nil
			},
			Do: func(context.Context, gate.Call) (gate.Result, error) { return gate.Result{}, errors.New("none") },
		},
		Access: transport.Access{Principal: byHeader},
	})
	if err != nil {
		t.Fatal(err)
	}
	list := func(h http.Handler, change func(*http.Request) *http.Request) *httptest.ResponseRecorder {
		last = nil
		r := httptest.NewRequest("POST", "http://localhost/mcp", strings.NewReader(sessionless(1, "tools/list", "", "{}")))
		for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": rig.Newest, "Mcp-Method": "tools/list"} {
			r.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, change(r))
		return w
	}
	named := func(who string) func(*http.Request) *http.Request {
		return func(r *http.Request) *http.Request { r.Header.Set("X-Who", who); return r }
	}
	if w := list(h, named("acme/alice")); last == nil || last.Owner != (gate.Owner{Tenant: "acme", ID: "alice"}) {
		t.Errorf("%d %s, %v", w.Code, w.Body, last)
	}
	list(h, func(r *http.Request) *http.Request {
		return r.WithContext(transport.WithPrincipal(r.Context(), &gate.Principal{Owner: gate.Owner{ID: "carol"}}))
	})
	if last == nil || last.ID != "carol" {
		t.Errorf("with a principal in the context: %v", last)
	}
	w := list(h, func(r *http.Request) *http.Request {
		r.Body = io.NopCloser(unreadable{t})
		return r
	})
	if w.Code != http.StatusUnauthorized || w.Header().Get("Cache-Control") != "no-store" || strings.Contains(w.Body.String(), "nobody") || last != nil {
		t.Errorf("nobody: %d %s", w.Code, w.Body)
	}
	w = list(h, func(r *http.Request) *http.Request { // who is somebody else once the body is there
		r.Header.Set("X-Who", "alice")
		r.Body = io.NopCloser(io.MultiReader(readFunc(func([]byte) (int, error) {
			time.Sleep(200 * time.Millisecond)
			r.Header.Set("X-Who", "bob")
			return 0, io.EOF
		}), r.Body))
		return r
	})
	if w.Code != http.StatusUnauthorized || last != nil {
		t.Errorf("alice, who has become bob: %d %s, %v", w.Code, w.Body, last)
	}
	own, err := host.New(host.Config{
		Config: dispatch.Config{Tools: func(context.Context, *gate.Principal) ([]*gate.Tool, error) { return nil, nil }, Do: func(context.Context, gate.Call) (gate.Result, error) { return gate.Result{}, nil }},
		Access: transport.Access{Principal: func(*http.Request) (*gate.Principal, error) { return nil, teapot{} }},
	})
	if err != nil {
		t.Fatal(err)
	}
	if w := list(own, named("alice")); w.Code != http.StatusTeapot {
		t.Errorf("an error that answers: %d", w.Code)
	}
}

type teapot struct{}

func (teapot) Error() string                                    { return "short and stout" }
func (teapot) ServeHTTP(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }

// unreadable is a body that must not be read.
type unreadable struct{ t *testing.T }

func (u unreadable) Read([]byte) (int, error) {
	u.t.Error("the body is read")
	return 0, io.EOF
}

// A readFunc is an [io.Reader].
type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }
