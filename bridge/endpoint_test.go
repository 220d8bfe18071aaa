package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge"
	"github.com/wasmgate/wasmgate/bridge/confine"
)

// TestEndpointWalk takes random walks and compares each phase with a model.
func TestEndpointWalk(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			s := newScript(nil)
			e := newEndpoint(t, s.config("s"))
			want, down := bridge.Idle, false
			for range 20 {
				step := rng.IntN(5)
				switch step {
				case 0: // connect
					err := e.Connect(t.Context())
					if want == bridge.Idle || want == bridge.Faulted {
						want = map[bool]bridge.Phase{false: bridge.Ready, true: bridge.Faulted}[down]
					}
					if (err == nil) != (want == bridge.Ready) {
						t.Fatalf("phase %s: connect: %v", want, err)
					}
				case 1: // the server dies
					s.cut(errors.New("down"))
					if down = true; want == bridge.Ready {
						want = bridge.Faulted
					}
				case 2: // and comes back
					s.cut(nil)
					if down = false; want == bridge.Ready {
						want = bridge.Faulted
					}
				case 3: // a call, after the longest pause
					time.Sleep(time.Minute)
					_, err := do(t.Context(), t, e, "s__echo", "{}")
					if ok := err == nil; ok && want != bridge.Ready {
						t.Fatalf("phase %s: a call went through", want)
					}
				case 4: // the end, seldom
					if rng.IntN(10) == 0 {
						e.Close()
						want = bridge.Closed
					}
				}
				if want == bridge.Faulted && !down { // it comes back by itself
					time.Sleep(time.Minute)
					want = bridge.Ready
				}
				synctest.Wait()
				if got := e.Phase(); got != want {
					t.Fatalf("after step %d: phase %s, want %s", step, got, want)
				}
				if st := e.Status(); st.Phase != want || (st.Fault != "") != (want == bridge.Faulted) {
					t.Fatalf("status %+v in phase %s", st, want)
				}
			}
		})
	}
}

func TestEndpointSharesOneAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s := newScript(nil)
		cfg := s.config("s")
		cfg.Dial = func() (mcp.Transport, error) { <-release; return s.dial() }
		e := newEndpoint(t, cfg)
		leaver, leave := context.WithCancel(t.Context())
		errs := make([]error, 20)
		var wg sync.WaitGroup
		for i := range errs {
			ctx := t.Context()
			if i == 0 {
				ctx = leaver
			}
			wg.Go(func() { errs[i] = e.Connect(ctx) })
			synctest.Wait()
		}
		leave()
		synctest.Wait()
		if e.Phase() != bridge.Connecting {
			t.Errorf("a caller that left ended the attempt: phase %s", e.Phase())
		}
		close(release)
		wg.Wait()
		if !errors.Is(errs[0], context.Canceled) {
			t.Errorf("who left got %v", errs[0])
		}
		for _, err := range errs[1:] {
			if err != nil {
				t.Error(err)
			}
		}
		if s.dials != 1 || s.count("initialize") != 1 {
			t.Errorf("%d attempts", s.dials)
		}
	})
}

// TestConnectFaults holds each failure against the kind of its place, and its
// cause against the error chain.
func TestConnectFaults(t *testing.T) {
	answer := func(status int, kind, body string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			io.WriteString(w, body)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	web := func(url string) bridge.EndpointConfig {
		return bridge.EndpointConfig{URL: url, Transport: bridge.TransportHTTP}
	}
	scripted := func(method, result string) bridge.EndpointConfig {
		return newScript(map[string]string{method: result}).config("x")
	}
	isExit := func(err error) bool { var e *confine.ExitError; return errors.As(err, &e) && e.Code == 3 }
	isRPC := func(err error) bool { var e *bridge.RPCError; return errors.As(err, &e) && e.Code == -32000 }
	is := func(target error) func(error) bool { return func(err error) bool { return errors.Is(err, target) } }
	tests := map[string]struct {
		cfg   bridge.EndpointConfig
		kind  bridge.FaultKind
		cause func(error) bool
		says  string
	}{
		"the command is missing":            {bridge.EndpointConfig{Command: "/nonexistent/server"}, bridge.SpawnFailed, is(os.ErrNotExist), "server"},
		"the command is not in the path":    {bridge.EndpointConfig{Command: "no-such-server-at-all", Env: []string{"PATH=/usr/bin"}}, bridge.SpawnFailed, nil, "not found"},
		"not in the path of this process":   {bridge.EndpointConfig{Command: "no-such-server-at-all"}, bridge.SpawnFailed, nil, "not found in PATH=" + os.Getenv("PATH")},
		"an environment without a path":     {bridge.EndpointConfig{Command: "cat", Env: []string{}}, bridge.SpawnFailed, nil, "no PATH"},
		"the confinement is impossible":     {bridge.EndpointConfig{Command: "cat", Env: []string{"PATH=/bin:/usr/bin"}, Confine: &confine.Rules{Read: []string{"/nonexistent"}}}, bridge.SpawnFailed, is(os.ErrNotExist), "confine.read"},
		"the child ends in the handshake":   {child("exits"), bridge.SpawnFailed, isExit, "set DB_URL"},
		"the child writes nonsense":         {child("nonsense"), bridge.Protocol, nil, "JSON at byte"},
		"the child writes noise":            {child("noise"), bridge.Protocol, nil, "no messages"},
		"the child writes 100 MB":           {child("floods"), bridge.Protocol, nil, "more than"},
		"the configuration is broken":       {bridge.EndpointConfig{Broken: "input is not known"}, bridge.SpawnFailed, nil, "input is not known"},
		"nobody listens":                    {web("http://127.0.0.1:1"), bridge.Transport, is(syscall.ECONNREFUSED), ""},
		"HTTP 401":                          {web(answer(401, "text/plain", "who?")), bridge.Transport, nil, `401 Unauthorized: "who?"`},
		"HTTP 500":                          {web(answer(500, "text/html", "<b>")), bridge.Transport, nil, "500"},
		"HTTP 404":                          {web(answer(404, "application/json", `{"detail":"Not Found"}`)), bridge.Transport, nil, "404"},
		"HTTP 404, auto":                    {bridge.EndpointConfig{URL: answer(404, "text/plain", "no")}, bridge.Transport, nil, "older HTTP+SSE"},
		"HTTP 202 to a request":             {web(answer(202, "", "")), bridge.Protocol, nil, "no answer"},
		"a web page":                        {web(answer(200, "text/html", "<html>")), bridge.Protocol, nil, "<html>"},
		"an answer to nobody":               {web(answer(200, "application/json", `{"jsonrpc":"2.0","id":77,"result":{}}`)), bridge.Protocol, nil, "another request"},
		"an error without id":               {web(answer(400, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"bad"}}`)), bridge.Transport, nil, "400"},
		"a batch":                           {web(answer(200, "application/json", `[{"jsonrpc":"2.0","id":1,"result":{}}]`)), bridge.Protocol, nil, ""},
		"a stream without the answer":       {web(answer(200, "text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\n")), bridge.Transport, nil, "ended before the answer"},
		"a stream of nonsense":              {web(answer(200, "text/event-stream", "data: {\n\n")), bridge.Protocol, nil, ""},
		"the dialler fails":                 {bridge.EndpointConfig{Dial: func() (mcp.Transport, error) { return nil, io.ErrClosedPipe }}, bridge.Transport, is(io.ErrClosedPipe), ""},
		"a revision nobody knows":           {scripted("initialize", `{"protocolVersion":"1999-01-01"}`), bridge.Protocol, nil, `"1999-01-01"`},
		"no revision":                       {scripted("initialize", `[]`), bridge.Protocol, nil, ""},
		"an error to initialize":            {scripted("initialize", "?not today"), bridge.Protocol, isRPC, "not today"},
		"the connection ends in handshake":  {scripted("initialize", "!"), bridge.Transport, nil, ""},
		"an error to the listing":           {scripted("tools/list", "?not today"), bridge.Protocol, isRPC, "list tools"},
		"a listing without tools":           {scripted("tools/list", `{"tools":{}}`), bridge.Protocol, nil, "no array"},
		"a listing that never ends":         {scripted("tools/list", `{"tools":[],"nextCursor":"more"}`), bridge.Protocol, nil, "goes round in circles"},
		"the connection ends while listing": {scripted("tools/list", "!"), bridge.Transport, nil, "list tools"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			noLeaks(t)
			tt.cfg.Server, tt.cfg.Tools = "x", options()
			e := newEndpoint(t, tt.cfg)
			err := e.Connect(t.Context())
			if kind(err) != string(tt.kind) {
				t.Errorf("fault %s, want %s: %v", kind(err), tt.kind, err)
			}
			if tt.cause != nil && !tt.cause(err) {
				t.Errorf("the cause is not on the chain of %v", err)
			}
			if !strings.Contains(fmt.Sprint(err), tt.says) {
				t.Errorf("%v does not say %q", err, tt.says)
			}
			if st := e.Status(); st.Phase != bridge.Faulted || st.Fault != tt.kind {
				t.Errorf("status %+v", st)
			}
			if _, err := do(t.Context(), t, e, "x__echo", "{}"); kind(err) == "ok" {
				t.Error("a call went through")
			}
			e.Close()
			if e.Phase() != bridge.Closed {
				t.Errorf("phase %s after Close", e.Phase())
			}
		})
	}
}

// TestConnectTimeout: a server that hangs, at each place.
func TestConnectTimeout(t *testing.T) {
	tests := map[string]bridge.EndpointConfig{
		"in the handshake": newScript(map[string]string{"initialize": "-"}).config("s"),
		"while listing":    newScript(map[string]string{"tools/list": "-"}).config("s"),
	}
	for name, cfg := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg.ConnectTimeout = 3 * time.Second
				e := newEndpoint(t, cfg)
				start := time.Now()
				err := e.Connect(t.Context())
				if kind(err) != "timeout" || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 5*time.Second {
					t.Errorf("after %v: %v", time.Since(start), err)
				}
				e.Close()
			})
		})
	}
}

func TestCallFaults(t *testing.T) {
	tests := map[string]struct {
		answer string
		act    func(*script, *bridge.Endpoint)
		kind   string
		is     error
	}{
		"an answer":                       {`{"content":[]}`, nil, "ok", nil},
		"no answer in time":               {"-", nil, "timeout", context.DeadlineExceeded},
		"the connection breaks":           {"!", nil, "transport", nil},
		"the result is no object":         {`[1]`, nil, "protocol", nil},
		"the endpoint is closed":          {`{}`, func(_ *script, e *bridge.Endpoint) { e.Close() }, "not_connected", nil},
		"the server is gone":              {`{}`, func(s *script, _ *bridge.Endpoint) { s.cut(io.EOF) }, "not_connected", nil},
		"gone, and cannot be found again": {`{}`, func(s *script, _ *bridge.Endpoint) { s.cut(io.EOF); time.Sleep(time.Minute) }, "not_connected", io.EOF},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript(map[string]string{"tools/call": tt.answer})
				e := ready(t, s.config("s"))
				if tt.act != nil {
					tt.act(s, e)
					synctest.Wait()
				}
				_, err := do(t.Context(), t, e, "s__echo", "{}")
				if kind(err) != tt.kind || tt.is != nil && !errors.Is(err, tt.is) {
					t.Errorf("%s, want %s: %v", kind(err), tt.kind, err)
				}
				if s.count("tools/call") > 1 {
					t.Error("the call was repeated")
				}
				e.Close()
			})
		})
	}
}

// TestCallError: a JSON-RPC error is the tool's failure, with the server's words
// as a text like any other.
func TestCallError(t *testing.T) {
	tests := map[string]struct{ resp, want string }{
		"with data":      {`"error":{"code":-5,"message":"<no> \"way\"","data":{"n":12345678901234567890}}`, `{"_meta":{"jsonrpc_error":{"code":-5,"data":{"n":12345678901234567890}}},"content":[{"text":"\u003cno\u003e \"way\"","type":"text"}],"isError":true}`},
		"without words":  {`"error":{"code":7,"message":""}`, `{"_meta":{"jsonrpc_error":{"code":7}},"content":[{"text":"the server answered with error 7","type":"text"}],"isError":true}`},
		"with deep data": {`"error":{"code":7,"message":"deep","data":` + strings.Repeat("[", 254) + strings.Repeat("]", 254) + `}`, `{"_meta":{"jsonrpc_error":{"code":7}},"content":[{"text":"deep","type":"text"}],"isError":true}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(jsonServer(func(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,` + tt.resp + `}` }))
			defer srv.Close()
			e := ready(t, bridge.EndpointConfig{Server: "s", URL: srv.URL, Tools: options()})
			res, err := do(t.Context(), t, e, "s__echo", "{}")
			if err != nil || !res.IsError {
				t.Fatalf("isError %v, %v", res.IsError, err)
			}
			if diff := cmp.Diff(tt.want, res.Doc.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
