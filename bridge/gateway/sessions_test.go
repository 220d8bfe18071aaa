package gateway_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/gate/approval"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/gate/session"
	"github.com/wasmgate/wasmgate/policy"
)

// under is a policy that allows all under the given obligations.
func under(obligations ...string) gateway.Policy {
	rules := "package wasmgate\n\nallow contains \"all\" if input.action == \"tools/call\"\n"
	for _, o := range obligations {
		rules += "\nobligations contains " + o + " if input.action == \"tools/call\"\n"
	}
	return gateway.Policy{Files: fstest.MapFS{"p.rego": {Data: []byte(rules)}}, Options: policy.Options{Packs: []string{}, Timeout: patience}}
}

func startUnder(t *testing.T, p gateway.Policy, more func(*gateway.Config)) (*gateway.Gateway, string) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "audit.jsonl")
	cfg := gateway.Config{
		Audit: log, AuditOptions: audit.Options{Node: "n1"}, Policy: p,
		Functions: map[string][]options.LocalTool{"mail": {tool("send", nil)}},
	}
	if more != nil {
		more(&cfg)
	}
	return start(t, cfg), log
}

// callIn calls mail__send in a session of a principal.
func callIn(t *testing.T, g *gateway.Gateway, who, session string) string {
	t.Helper()
	p := gate.Local()
	p.ID = who
	id := gate.NewID()
	if _, err := g.Do(t.Context(), gate.Call{
		ID: id, Action: gate.CallTool, Name: "mail__send", Args: gate.MustDoc(`{"text":"hi"}`), Who: p, Session: gate.SessionKey{Owner: p.Owner, ID: session},
	}); err != nil {
		t.Fatal(err)
	}
	return id
}

func TestSessionsAreResetAndThatIsRecorded(t *testing.T) {
	g, log := startUnder(t, under(), nil)
	first := callIn(t, g, "alice", "s1")
	callIn(t, g, "alice", "s2")
	if list := g.Operator().Sessions().List(); len(list) != 2 || list[1].Key.ID != "s1" || list[1].Raised[provenance.Untrusted] != first {
		t.Fatalf("%+v", list)
	}
	k := gate.SessionKey{Owner: gate.Owner{ID: "alice"}, ID: "s1"}
	seen := g.Operator().Sessions().List()[1].Version
	if _, err := g.Operator().Sessions().Reset(t.Context(), k, seen+1, "a test"); !errors.Is(err, gate.ErrStale) || len(g.Operator().Sessions().List()) != 2 {
		t.Fatalf("another version than was seen: %v, %+v", err, g.Operator().Sessions().List())
	}
	was, err := g.Operator().Sessions().Reset(t.Context(), k, seen, "a test")
	if err != nil || len(was.Labels) != 1 {
		t.Fatalf("%+v, error %v", was, err)
	}
	if list := g.Operator().Sessions().List(); len(list) != 1 || list[0].Key.ID != "s2" {
		t.Errorf("%+v", list)
	}
	if _, err := g.Operator().Sessions().Reset(t.Context(), k, 0, "a test"); !errors.Is(err, session.ErrUnknown) {
		t.Errorf("again: %v", err)
	}
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	last := lines[len(lines)-1]
	for _, want := range []string{`"event":"label"`, `"principal":"alice"`, `"session":"s1"`, `"reset by a test, with 0 values"`, `"labels_before":["untrusted"]`} {
		if !strings.Contains(last, want) {
			t.Errorf("recorded %s, want %s", last, want)
		}
	}
}

// What cannot be recorded is not done.
func TestResetNeedsItsRecord(t *testing.T) {
	g, _ := startUnder(t, under(), nil)
	callIn(t, g, "alice", "s1")
	if err := g.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Operator().Sessions().Reset(t.Context(), gate.SessionKey{Owner: gate.Owner{ID: "alice"}, ID: "s1"}, 0, "a test"); err == nil || len(g.Operator().Sessions().List()) != 1 {
		t.Errorf("error %v, sessions %+v", err, g.Operator().Sessions().List())
	}
}

// With one session for each principal, MCP sessions are all in it, and other
// principals are not.
func TestOneSession(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sessions.json")
	one := func(c *gateway.Config) { c.OneSession, c.Sessions.File = true, file }
	g, _ := startUnder(t, under(), one)
	callIn(t, g, "alice", "s1")
	callIn(t, g, "alice", "s2")
	callIn(t, g, "bob", "s1")
	check := func(g *gateway.Gateway) {
		t.Helper()
		list := g.Operator().Sessions().List()
		if len(list) != 2 || list[0].Key.ID != "" || list[1].Key.ID != "" {
			t.Errorf("%+v", list)
		}
	}
	check(g)
	again, _ := startUnder(t, under(), one)
	check(again)
}

// MCP clients of one principal are in its one session, and what a server asks reaches
// the one whose call it is.
func TestOneSessionOfManyClients(t *testing.T) {
	ask := options.LocalTool{
		Definition: gate.MustDoc(`{"name":"ask","inputSchema":{"type":"object"}}`),
		Call: func(ctx context.Context, c *gate.Call, p gate.Permit) (gate.Result, error) {
			res, err := p.Request(ctx, actions.Elicit, gate.MustDoc(`{"message":"who?","requestedSchema":{"type":"object","properties":{}}}`))
			if err != nil {
				return gate.Result{}, err
			}
			return text(res.At("/content/who").Text() + " in the session " + strconv.Quote(c.Session.ID)), nil
		},
	}
	policy := gateway.Policy{Files: fstest.MapFS{"p.rego": {Data: []byte("package wasmgate\n\nallow contains \"all\" if true\n")}}}
	g, _ := startUnder(t, policy, func(c *gateway.Config) {
		c.OneSession, c.Functions = true, map[string][]options.LocalTool{"mail": {ask}}
	})
	srv := httptest.NewServer(g)
	t.Cleanup(srv.Close)
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		for _, who := range []string{"one", "two"} {
			client := mcp.NewClient(&mcp.Implementation{Name: who, Version: "1"}, &mcp.ClientOptions{
				ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"who": who}}, nil
				},
			})
			c, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: srv.URL + "/mcp"}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "mail__ask"})
			if err != nil {
				t.Fatal(err)
			}
			if got, want := res.Content[0].(*mcp.TextContent).Text, who+` in the session ""`; got != want {
				t.Errorf("%s: %q, want %q", revision, got, want)
			}
		}
	}
	if list := g.Operator().Sessions().List(); len(list) != 1 || list[0].Key.ID != "" {
		t.Errorf("sessions %+v, want one", list)
	}
}

// A client reads how long it has to wait.
func TestRateIsToldToTheClient(t *testing.T) {
	g, _ := startUnder(t, under(`{"rate": {"key": ["principal"], "calls": 1, "per": "1h"}}`), nil)
	in, to := io.Pipe()
	from, out := io.Pipe()
	var served sync.WaitGroup
	served.Go(func() {
		if err := g.Serve(t.Context(), gate.Local(), in, out); err != nil {
			t.Error(err)
		}
		out.Close()
	})
	defer served.Wait()
	defer to.Close()
	answers := bufio.NewReader(from)
	send := func(message string, answered bool) gate.Doc {
		if _, err := io.WriteString(to, message+"\n"); err != nil {
			t.Fatal(err)
		}
		if !answered {
			return gate.Doc{}
		}
		line, err := answers.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return gate.MustDoc(line).Get("result")
	}
	const call = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"mail__send","arguments":{"text":"hi"}}}`
	send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`, true)
	send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, false)
	if res := send(call, true); res.Get("isError").True() {
		t.Fatalf("the first call: %s", res)
	}
	res := send(call, true)
	meta := res.Get("_meta").Get(gate.MetaRefusal)
	wait, err := strconv.Atoi(meta.Get("retry_after_ms").String())
	if err != nil || wait < 3_500_000 || wait > 3_600_000 || meta.Get("code").Text() != "refused_limit" ||
		!strings.Contains(res.At("/content/0/text").Text(), "the rate limit of 1 call in 1h0m0s is reached; try again in ") {
		t.Errorf("the second call: %s", res)
	}
}

// The log holds the documents of a call that has to be recorded in full, as they were
// sent: without what the policy takes out.
func TestRecordFullHoldsWhatWasSent(t *testing.T) {
	g, log := startUnder(t, under(`{"record": "full"}`, `{"redact": {"arguments": ["/secret"], "result": ["/content/0/text"]}}`), nil)
	if _, err := call(g, "mail__send", `{"text":"the answer","secret":"the question"}`); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	if strings.Count(text, `"arguments":{"text":"the answer","secret":"[redacted]"}`) != 2 || strings.Contains(text, "the question") ||
		!strings.Contains(text, `"text":"[redacted]"`) {
		t.Errorf("log:\n%s", text)
	}
}

// A person is shown, and approves, what will be sent.
func TestApprovalShowsWhatWillBeSent(t *testing.T) {
	g, _ := startUnder(t, under(`{"approve": true}`, `{"redact": {"arguments": ["/secret"]}}`), func(c *gateway.Config) {
		c.Approvals = &approval.Options{Node: "n1"}
		c.Functions["mail"] = []options.LocalTool{tool("send", func(_ context.Context, c *gate.Call, _ gate.Permit) (gate.Result, error) {
			return text(c.Args.String()), nil
		})}
	})
	done := make(chan string, 1)
	go func() {
		res, err := call(g, "mail__send", `{"text":"hi","secret":"the question"}`)
		done <- res.Doc.At("/content/0/text").Text() + gate.Code(err)
	}()
	asked := pending(t, g)
	if args := asked.Question.Call.Args.String(); args != `{"text":"hi","secret":"[redacted]"}` {
		t.Errorf("asked about %s", args)
	}
	err := errors.New("not yet")
	for deadline := time.Now().Add(patience); err != nil && time.Now().Before(deadline); { // the question may still be on its way into the log
		_, err = g.Approvals().Decide(t.Context(), asked.ID, gate.Approved, "cli:local", "")
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := <-done; got != `{"text":"hi","secret":"[redacted]"}ok` {
		t.Errorf("sent %s", got)
	}
}
