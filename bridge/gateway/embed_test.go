package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/internal/host/message"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/bridge/recording"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/gate/step"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
	"github.com/wasmgate/wasmgate/policy"
)

// TestCloseEndsSessions: a client that has gone without a word leaves nothing behind.
func TestCloseEndsSessions(t *testing.T) {
	var ended atomic.Int64
	g := start(t, gateway.Config{Recorder: new(records), SessionLasted: func(time.Duration) { ended.Add(1) }})
	srv := httptest.NewServer(g)
	defer srv.Close()
	rig.OpenSession(t, srv.URL+"/mcp")
	if err := g.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := ended.Load(); n != 1 {
		t.Errorf("%d sessions have ended of one", n)
	}
	if err := g.Connect(t.Context()); !errors.Is(err, gateway.ErrDraining) {
		t.Errorf("connect after Close: %v", err)
	}
}

// TestCloseRecordsAll: each call that Close cuts off has the record of its end, and Close waits
// for one that does not listen no longer than it may.
func TestCloseRecordsAll(t *testing.T) {
	path, deaf := filepath.Join(t.TempDir(), "audit.jsonl"), make(chan struct{})
	begun := make(chan struct{}, 100)
	g, err := gateway.New(t.Context(), gateway.Config{
		Audit: path, AuditOptions: audit.Options{Node: "n"}, Policy: granting("f__*"),
		Functions: map[string][]options.LocalTool{"f": {tool("waits", func(ctx context.Context, _ *gate.Call, _ gate.Permit) (gate.Result, error) {
			begun <- struct{}{}
			<-ctx.Done()
			return gate.Result{}, ctx.Err()
		}), tool("deaf", func(context.Context, *gate.Call, gate.Permit) (gate.Result, error) {
			begun <- struct{}{}
			<-deaf
			return text("at last"), nil
		})}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() { _, _ = g.NewClient(gateway.ClientConfig{}).CallTool(context.Background(), "f__waits", nil) })
		<-begun
	}
	if err := g.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	calls.Wait()
	open := 0
	for e, err := range audit.Read(t.Context(), path, audit.Filter{}) {
		switch {
		case err != nil:
			t.Fatal(err)
		case e.Event == gate.Granted:
			open++
		case e.Event == gate.Done:
			open--
		}
	}
	if open != 0 {
		t.Errorf("%d calls have no record of their end", open)
	}
	if _, err := g.Do(t.Context(), gate.Call{Action: gate.CallTool, Name: "f__waits", Who: gate.Local()}); !errors.Is(err, gateway.ErrDraining) {
		t.Errorf("a call after the end: %v", err)
	}
}

// TestCloseIsBounded: however a call came that does not listen, Close waits for it no longer than
// it may, and says so.
func TestCloseIsBounded(t *testing.T) {
	for name, call := range map[string]func(t *testing.T, g *gateway.Gateway){
		"a client": func(_ *testing.T, g *gateway.Gateway) {
			go func() { _, _ = g.NewClient(gateway.ClientConfig{}).CallTool(context.Background(), "f__deaf", nil) }()
		},
		"a connection in memory": func(t *testing.T, g *gateway.Gateway) {
			conn := g.Dial(gate.Local())
			speak(t, &mcp.IOTransport{Reader: conn, Writer: conn})
		},
		"HTTP": func(t *testing.T, g *gateway.Gateway) {
			srv := httptest.NewServer(g)
			t.Cleanup(srv.Close)
			speak(t, &mcp.StreamableClientTransport{Endpoint: srv.URL + "/mcp"})
		},
		"a job": func(t *testing.T, g *gateway.Gateway) {
			if _, err := g.NewClient(gateway.ClientConfig{}).CallTool(t.Context(), "jobs__start", map[string]any{"tool": "f__deaf"}); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			begun, end := make(chan bool), make(chan bool)
			g, err := gateway.New(t.Context(), gateway.Config{
				Recorder: new(records), Policy: granting("*"), Jobs: &gateway.Jobs{Offer: true},
				Functions: map[string][]options.LocalTool{"f": {tool("deaf", func(context.Context, *gate.Call, gate.Permit) (gate.Result, error) {
					begun <- true
					<-end
					return text("at last"), nil
				})}},
			})
			if err != nil {
				t.Fatal(err)
			}
			g.Start(t.Context())
			call(t, g)
			<-begun
			short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if err := g.Close(short); err == nil || !strings.Contains(err.Error(), "did not end in time") {
				t.Error(err)
			}
			close(end)
			if err := g.Close(t.Context()); err != nil {
				t.Errorf("once it has ended: %v", err)
			}
			gone, cancel := context.WithCancel(t.Context())
			cancel()
			if err := g.Close(gone); err != nil {
				t.Errorf("with nothing to wait for, and a context that has ended: %v", err)
			}
		})
	}
}

// speak calls f__deaf as a client that speaks MCP, and does not wait for the answer.
func speak(t *testing.T, over mcp.Transport) {
	s, err := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil).Connect(t.Context(), over, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	go func() { _, _ = s.CallTool(context.Background(), &mcp.CallToolParams{Name: "f__deaf"}) }()
}

// TestClosedClientIsForgotten, so that short ones do not push out what is known of long ones.
func TestClosedClientIsForgotten(t *testing.T) {
	g := start(t, gateway.Config{Recorder: new(records), Policy: granting("f__*"), Functions: map[string][]options.LocalTool{"f": {tool("says", nil)}}})
	use := func() *gateway.Client {
		c := g.NewClient(gateway.ClientConfig{})
		if _, err := c.CallTool(t.Context(), "f__says", map[string]string{"text": "a"}); err != nil {
			t.Fatal(err)
		}
		return c
	}
	use()
	for range 10 {
		if err := use().Close(); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(g.Operator().Sessions().List()); n != 1 {
		t.Errorf("%d sessions are kept of one client", n)
	}
}

// TestClientAs: a client of another principal is that principal's alone, and nothing is left of
// those that were closed.
func TestClientAs(t *testing.T) {
	says := tool("says", func(ctx context.Context, c *gate.Call, _ gate.Permit) (gate.Result, error) {
		return text(c.Who.ID + " " + c.ClientName), nil
	})
	g := start(t, gateway.Config{
		Recorder: full(""), Functions: map[string][]options.LocalTool{"f": {says}}, // which keeps nothing
		Policy: gateway.Policy{Options: policy.Options{Timeout: patience, Grants: []policy.Grant{{To: []string{"role:user"}, Tools: []string{"f__*"}}}}},
	})
	all := g.NewClient(gateway.ClientConfig{Name: "backend", Version: "1"})
	var people [100]*gate.Principal // what policies have found out about so many is kept
	for i := range people {
		people[i] = &gate.Principal{Owner: gate.Owner{ID: fmt.Sprint("u", i)}, Roles: []string{"user"}}
	}
	use := func(i int) *gateway.Client {
		who := people[i%len(people)]
		c := all.As(who)
		if res, err := c.CallTool(t.Context(), "f__says", nil); err != nil || res.Text() != who.ID+" backend" {
			t.Fatalf("%s: %q, %v", who.ID, res.Text(), err)
		}
		return c
	}
	long := use(0)
	left := func() (goroutines int, heap uint64) {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return runtime.NumGoroutine(), m.HeapAlloc
	}
	const clients = 5000
	for i := range clients { // what is kept of anything, within bounds, is kept by then
		use(i).Close()
	}
	goroutines, heap := left()
	for i := range clients {
		use(i).Close()
	}
	after, more := left()
	if perClient := (int64(more) - int64(heap)) / clients; after > goroutines+5 || perClient > 100 {
		t.Errorf("%d clients leave %d goroutines, and %d bytes each", clients, after-goroutines, perClient)
	}
	if all := g.Operator().Sessions().List(); len(all) != 1 || all[0].Key != long.Session() {
		t.Errorf("of %d sessions one is open", len(all))
	}
	if _, err := long.CallTool(t.Context(), "f__says", nil); err != nil {
		t.Errorf("the one that was not closed: %v", err)
	}
	if list, err := all.Tools(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("the first client may what others may: %v, %v", list, err)
	}
	nobody := all.As(nil)
	if list, err := nobody.Tools(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("nobody is offered %v, %v", list, err)
	}
	if _, err := nobody.CallTool(t.Context(), "f__says", nil); gate.Code(err) != "refused_parse" {
		t.Errorf("a call by nobody: %v", err)
	}
	if err := all.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := long.CallTool(t.Context(), "f__says", nil); err != nil {
		t.Errorf("it ends with the client that it was made of: %v", err)
	}
}

// TestToolsOfReadyServers: a listing does not wait for a server that hangs until it connects,
// which here it does when the test is over.
func TestToolsOfReadyServers(t *testing.T) {
	unraced.Long(t)
	open := make(chan struct{})
	g := start(t, gateway.Config{
		Recorder: new(records), Policy: granting("*"), Functions: map[string][]options.LocalTool{"f": {tool("says", nil)}},
		Servers: []options.Endpoint{{Server: "hangs", Dial: func() (mcp.Transport, error) {
			<-open
			return nil, errors.New("at last")
		}}},
	})
	g.Start(t.Context())
	defer close(open)
	list, err := g.NewClient(gateway.ClientConfig{}).Tools(t.Context())
	if err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
}

// TestApproveAlone: without Config.Approvals a client is asked by its own function; one that
// speaks MCP is not, nor does any other call wait.
func TestApproveAlone(t *testing.T) {
	g := start(t, gateway.Config{Recorder: new(records), Policy: asking(), Functions: map[string][]options.LocalTool{"mail": {tool("send", nil)}}})
	asked := 0
	c := g.NewClient(gateway.ClientConfig{Approve: func(context.Context, gate.Pending) (gate.Answer, error) {
		asked++
		return gate.Answer{Verdict: gate.Approved}, nil
	}})
	if _, err := c.CallTool(t.Context(), "mail__send", nil); err != nil || asked != 1 {
		t.Errorf("asked %d times: %v", asked, err)
	}
	if _, err := g.NewClient(gateway.ClientConfig{}).CallTool(t.Context(), "mail__send", nil); gate.Code(err) != "refused_approve" {
		t.Errorf("a client that cannot be asked: %v", err)
	}
	if g.Approvals() != nil {
		t.Error("questions can be answered by whoever has the gateway")
	}
	conn := g.Dial(gate.Local())
	session, err := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			t.Error("a client of MCP is asked")
			return &mcp.ElicitResult{Action: "accept"}, nil
		},
	}).Connect(t.Context(), &mcp.IOTransport{Reader: conn, Writer: conn}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "mail__send"}); err == nil && !res.IsError {
		t.Error("its call passes")
	}
}

func TestWhatAnErrorSays(t *testing.T) {
	c := gate.Call{Action: gate.CallTool, Name: "s__t"}
	e := gateway.AsError(c, &recording.MissingError{Tool: "s__t"})
	if e.Code != gateway.NotConnected || e.Outcome != "not_connected" || e.Retryable() || e.NeedsReconnect() {
		t.Errorf("a call that was not recorded: %+v", e)
	}
	e = gateway.AsError(c, &gate.Refusal{Step: step.Limit, Call: "id", RetryAfter: time.Second})
	if e.Outcome != "refused_limit" || e.Record != "id" || e.RetryAfter != time.Second || e.Details["retry_after_ms"] != int64(1000) || !e.Retryable() {
		t.Errorf("a call beyond a limit: %+v", e)
	}
	if _, err := gateway.Func[struct{}, struct{}]("nothing", "", nil); err == nil {
		t.Error("a tool without a function")
	}
}

// A rule that only looks as if it held is reported, once with each policy.
func TestPolicyWithoutEffect(t *testing.T) {
	var said strings.Builder
	files := fstest.MapFS{"app.rego": {Data: []byte("package app\nallow if true\n")}}
	g := start(t, gateway.Config{Recorder: new(records), Log: slog.New(slog.NewTextHandler(&said, nil)), Policy: gateway.Policy{Files: files}})
	for range 2 {
		if err := g.SetPolicy(t.Context(), gateway.Policy{Files: files, Options: policy.Options{Timeout: patience}}); err != nil {
			t.Fatal(err)
		}
	}
	if got := said.String(); strings.Count(got, "policy rule without effect") != 1 || !strings.Contains(got, "app.rego") {
		t.Errorf("told %q", got)
	}
	said.Reset()
	if err := g.SetPolicy(t.Context(), gateway.Policy{Files: files, Options: policy.Options{Data: map[string]any{"x": 1}}}); err != nil {
		t.Fatal(err)
	}
	if got := said.String(); strings.Count(got, "policy rule without effect") != 1 {
		t.Errorf("told of another one %q", got)
	}
}

// TestTypingErrorIsTold: a rule over arguments takes their types from the schema. A client that is
// offered the tool reads what is wrong with its arguments, and no other client learns of it.
func TestTypingErrorIsTold(t *testing.T) {
	read := options.LocalTool{
		Definition: gate.MustDoc(`{"name":"read","inputSchema":{"type":"object","properties":{"path":{"type":"string"}}}}`), Call: tool("read", nil).Call,
	}
	for mode, want := range map[gate.InputMode]string{"": gatewayRead, "warn": "refused: the policy cannot be evaluated for this call; tell your user that the audit log has the reason, under error"} {
		g := start(t, gateway.Config{
			Functions: map[string][]options.LocalTool{"f": {read}}, Recorder: new(records), Inputs: map[string]*gateway.InputRules{"f": {Mode: mode}},
			Policy: gateway.Policy{
				Files:   fstest.MapFS{"a.rego": {Data: []byte("package wasmgate\ndeny contains \"elsewhere\" if not startswith(input.arguments.path, \"/x\")\n")}},
				Options: policy.Options{Timeout: patience, Grants: []policy.Grant{{To: []string{"local"}, Tools: []string{"f__*"}}}},
			},
		})
		c := g.NewClient(gateway.ClientConfig{})
		for args, want := range map[string]string{`{"path":{}}`: want, `{"path":"/y"}`: "refused: elsewhere"} {
			if _, err := c.CallTool(t.Context(), "f__read", gate.MustDoc(args)); message.Public(err) != want {
				t.Errorf("%s %s: %s", mode, args, message.Public(err))
			}
		}
		_, err := c.As(&gate.Principal{Owner: gate.Owner{ID: "other"}}).CallTool(t.Context(), "f__read", gate.MustDoc(`{"path":{}}`))
		if strings.Contains(message.Public(err), "/path") {
			t.Errorf("who is not offered it reads %s", message.Public(err))
		}
	}
}

const gatewayRead = "refused: the arguments break the tool's input schema: /path: expected string, found object; it takes {path?: string}"
