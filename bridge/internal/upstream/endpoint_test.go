package upstream_test

import (
	"context"
	"errors"
	"fmt"
	"io"
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

	"github.com/wasmgate/wasmgate/bridge/fault"
	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/confine"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// TestEndpointWalk takes random walks and compares each phase with a model.
func TestEndpointWalk(t *testing.T) {
	rng := seed.Rand(t)
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			s := rig.NewScript(nil)
			e := rig.NewEndpoint(t, s.Config("s"))
			want, down := status.Idle, false
			for range 20 {
				step := rng.IntN(5)
				switch step {
				case 0: // connect
					err := e.Connect(t.Context())
					if want == status.Idle || want == status.Faulted {
						want = map[bool]status.Phase{false: status.Ready, true: status.Faulted}[down]
					}
					if (err == nil) != (want == status.Ready) {
						t.Fatalf("phase %s: connect: %v", want, err)
					}
				case 1: // the server dies
					s.Cut(errors.New("down"))
					if down = true; want == status.Ready {
						want = status.Faulted
					}
				case 2: // and comes back
					s.Cut(nil)
					if down = false; want == status.Ready {
						want = status.Faulted
					}
				case 3: // a call, after the longest pause
					time.Sleep(time.Minute)
					_, err := rig.Do(t.Context(), t, e, "s__echo", "{}")
					if ok := err == nil; ok && want != status.Ready {
						t.Fatalf("phase %s: a call went through", want)
					}
				case 4: // the end, seldom
					if rng.IntN(10) == 0 {
						e.Close()
						want = status.Closed
					}
				}
				if want == status.Faulted && !down { // it comes back by itself
					time.Sleep(time.Minute)
					want = status.Ready
				}
				synctest.Wait()
				if got := e.Phase(); got != want {
					t.Fatalf("after step %d: phase %s, want %s", step, got, want)
				}
				if st := e.Status(); st.Phase != want || want != status.Closed && (st.Fault != "") != (want == status.Faulted) {
					t.Fatalf("status %+v in phase %s", st, want)
				}
			}
		})
	}
}

func TestEndpointSharesOneAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s := rig.NewScript(nil)
		cfg := s.Config("s")
		cfg.Dial = func() (mcp.Transport, error) { <-release; return s.Dial() }
		e := rig.NewEndpoint(t, cfg)
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
		if e.Phase() != status.Connecting {
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
		if s.Dials != 1 || s.Count("initialize") != 1 {
			t.Errorf("%d attempts", s.Dials)
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
	web := func(url string) options.Endpoint {
		return options.Endpoint{URL: url, Transport: options.TransportHTTP}
	}
	challenges := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "who?", http.StatusUnauthorized)
	}))
	t.Cleanup(challenges.Close)
	scripted := func(method, result string) options.Endpoint {
		return rig.NewScript(map[string]string{method: result}).Config("x")
	}
	script := func(text string) options.Endpoint { return options.Endpoint{Command: "sh", Args: []string{"-c", text}} }
	isExit := func(err error) bool { var e *confine.ExitError; return errors.As(err, &e) && e.Code == 3 }
	isRPC := func(err error) bool { var e *wire.RPCError; return errors.As(err, &e) && e.Code == -32000 }
	is := func(target error) func(error) bool { return func(err error) bool { return errors.Is(err, target) } }
	tests := map[string]struct {
		cfg   options.Endpoint
		kind  fault.Kind
		cause func(error) bool
		says  string
	}{
		"the command is missing":            {options.Endpoint{Command: "/nonexistent/server"}, fault.SpawnFailed, is(os.ErrNotExist), "server"},
		"the command is not in the path":    {options.Endpoint{Command: "no-such-server-at-all", Env: []string{"PATH=/usr/bin"}}, fault.SpawnFailed, nil, "no-such-server-at-all is not installed, or not in the PATH that its env sets"},
		"not in the path of this process":   {options.Endpoint{Command: "no-such-server-at-all"}, fault.SpawnFailed, nil, "no-such-server-at-all is not installed, or not in the PATH that wasmgate was started with"},
		"an environment without a path":     {options.Endpoint{Command: "cat", Env: []string{}}, fault.SpawnFailed, nil, "no PATH"},
		"the confinement is impossible":     {options.Endpoint{Command: "cat", Env: []string{"PATH=/bin:/usr/bin"}, Confine: &confine.Rules{Read: []string{"/nonexistent"}}}, fault.SpawnFailed, is(os.ErrNotExist), "confine.read"},
		"the child ends in the handshake":   {rig.Child("exits"), fault.SpawnFailed, isExit, "no such database"},
		"the child dies in an install":      {script(`echo "added 12 of 30 packages" >&2; kill -9 $$`), fault.SpawnFailed, nil, `killed; it said: "added 12 of 30 packages"`},
		"half of a package is installed":    {script(`echo "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'zod' imported from /h/.npm/_npx/68b53d3fd47bf8db/node_modules/a.js" >&2; exit 1`), fault.SpawnFailed, nil, "remove the folder _npx/68b53d3fd47bf8db of npm's cache"},
		"the child writes nonsense":         {rig.Child("nonsense"), fault.Protocol, nil, "JSON at byte"},
		"the child writes noise":            {rig.Child("noise"), fault.Protocol, nil, "not messages"},
		"the child writes 100 MB":           {rig.Child("floods"), fault.Protocol, nil, "limits.result is"},
		"the configuration is broken":       {options.Endpoint{Broken: "input is not known"}, fault.SpawnFailed, nil, "input is not known"},
		"nobody listens":                    {web("http://127.0.0.1:1"), fault.Transport, is(syscall.ECONNREFUSED), ""},
		"a login that is not configured":    {web(challenges.URL), fault.Credential, nil, "add `auth: oauth`"},
		"HTTP 401":                          {web(answer(401, "text/plain", "who?")), fault.Transport, nil, `401 Unauthorized: "who?"`},
		"a 401, and 400 to what is older":   {modernOnly(t), fault.Credential, nil, "log in"},
		"HTTP 500":                          {web(answer(500, "text/html", "<b>")), fault.Transport, nil, "500"},
		"HTTP 404":                          {web(answer(404, "application/json", `{"detail":"Not Found"}`)), fault.Transport, nil, "404"},
		"HTTP 404, auto":                    {options.Endpoint{URL: answer(404, "text/plain", "no")}, fault.Transport, nil, "older HTTP+SSE"},
		"HTTP 202 to a request":             {web(answer(202, "", "")), fault.Protocol, nil, "no answer"},
		"a web page":                        {web(answer(200, "text/html", "<html>")), fault.Protocol, nil, "<html>"},
		"an answer to nobody":               {web(answer(200, "application/json", `{"jsonrpc":"2.0","id":77,"result":{}}`)), fault.Protocol, nil, "another request"},
		"an error without id":               {web(answer(400, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"bad"}}`)), fault.Transport, nil, "400"},
		"a batch":                           {web(answer(200, "application/json", `[{"jsonrpc":"2.0","id":1,"result":{}}]`)), fault.Protocol, nil, ""},
		"a stream without the answer":       {web(answer(200, "text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\n")), fault.Transport, nil, "ended before the answer"},
		"a stream of nonsense":              {web(answer(200, "text/event-stream", "data: {\n\n")), fault.Protocol, nil, ""},
		"the dialler fails":                 {options.Endpoint{Dial: func() (mcp.Transport, error) { return nil, io.ErrClosedPipe }}, fault.Transport, is(io.ErrClosedPipe), ""},
		"a revision nobody knows":           {scripted("initialize", `{"protocolVersion":"1999-01-01"}`), fault.Protocol, nil, `"1999-01-01"`},
		"no revision":                       {scripted("initialize", `[]`), fault.Protocol, nil, ""},
		"an error to initialize":            {scripted("initialize", "?not today"), fault.Protocol, isRPC, "not today"},
		"the connection ends in handshake":  {scripted("initialize", "!"), fault.Transport, nil, ""},
		"an error to the listing":           {scripted("tools/list", "?not today"), fault.Protocol, isRPC, "list tools"},
		"a listing without tools":           {scripted("tools/list", `{"tools":{}}`), fault.Protocol, nil, "no array"},
		"the connection ends while listing": {scripted("tools/list", "!"), fault.Transport, nil, "list tools"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if strings.Contains(name, "100 MB") {
				unraced.Long(t)
			}
			rig.NoLeaks(t)
			tt.cfg.Server, tt.cfg.Tools = "x", rig.Options()
			e := rig.NewEndpoint(t, tt.cfg)
			err := e.Connect(t.Context())
			if rig.Kind(err) != string(tt.kind) {
				t.Errorf("fault %s, want %s: %v", rig.Kind(err), tt.kind, err)
			}
			if tt.cause != nil && !tt.cause(err) {
				t.Errorf("the cause is not on the chain of %v", err)
			}
			if !strings.Contains(fmt.Sprint(err), tt.says) {
				t.Errorf("%v does not say %q", err, tt.says)
			}
			if st := e.Status(); st.Phase != status.Faulted || st.Fault != tt.kind {
				t.Errorf("status %+v", st)
			}
			if _, err := rig.Do(t.Context(), t, e, "x__echo", "{}"); rig.Kind(err) == "ok" {
				t.Error("a call went through")
			}
			e.Close()
			if e.Phase() != status.Closed {
				t.Errorf("phase %s after Close", e.Phase())
			}
		})
	}
}

// modernOnly is a server of the newest revision alone, which takes no credential.
func modernOnly(t *testing.T) options.Endpoint {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("MCP-Protocol-Version") != rig.Newest {
			http.Error(w, "another revision", http.StatusBadRequest)
			return
		}
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(s.Close)
	return options.Endpoint{URL: s.URL, Transport: options.TransportHTTP, Authorize: func(_ context.Context, _ *gate.Principal, _ gate.Permit, refused *http.Response) (string, error) {
		if refused != nil {
			return "", errors.New("log in")
		}
		return "Bearer x", nil
	}}
}

// TestConnectTimeout: a server that hangs, at each place.
func TestConnectTimeout(t *testing.T) {
	tests := map[string]options.Endpoint{
		"in the handshake": rig.NewScript(map[string]string{"initialize": "-"}).Config("s"),
		"while listing":    rig.NewScript(map[string]string{"tools/list": "-"}).Config("s"),
	}
	for name, cfg := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg.ConnectTimeout = 3 * time.Second
				e := rig.NewEndpoint(t, cfg)
				start := time.Now()
				err := e.Connect(t.Context())
				if rig.Kind(err) != "timeout" || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 5*time.Second {
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
		act    func(*rig.Script, *upstream.Endpoint)
		kind   string
		is     error
	}{
		"an answer":                       {`{"content":[]}`, nil, "ok", nil},
		"no answer in time":               {"-", nil, "timeout", context.DeadlineExceeded},
		"the connection breaks":           {"!", nil, "transport", nil},
		"the result is not an object":     {`[1]`, nil, "protocol", nil},
		"the endpoint is closed":          {`{}`, func(_ *rig.Script, e *upstream.Endpoint) { e.Close() }, "not_connected", nil},
		"the server is gone":              {`{}`, func(s *rig.Script, _ *upstream.Endpoint) { s.Cut(io.EOF) }, "not_connected", nil},
		"gone, and cannot be found again": {`{}`, func(s *rig.Script, _ *upstream.Endpoint) { s.Cut(io.EOF); time.Sleep(time.Minute) }, "not_connected", io.EOF},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := rig.NewScript(map[string]string{"tools/call": tt.answer})
				e := rig.Ready(t, s.Config("s"))
				if tt.act != nil {
					tt.act(s, e)
					synctest.Wait()
				}
				_, err := rig.Do(t.Context(), t, e, "s__echo", "{}")
				if rig.Kind(err) != tt.kind || tt.is != nil && !errors.Is(err, tt.is) {
					t.Errorf("%s, want %s: %v", rig.Kind(err), tt.kind, err)
				}
				if s.Count("tools/call") > 1 {
					t.Error("the call was repeated")
				}
				e.Close()
			})
		})
	}
}

// TestResultsWithoutContent: a result whose content is no list has an empty one, and keeps
// the rest.
func TestResultsWithoutContent(t *testing.T) {
	for name, tt := range map[string]struct{ answer, want string }{
		"nothing":                 {`{"structuredContent":{"n":1}}`, `{"structuredContent":{"n":1},"content":[]}`},
		"null":                    {`{"content":null,"isError":true}`, `{"content":[],"isError":true}`},
		"a text":                  {`{"content":"words","_meta":{"a.example/x":1}}`, `{"content":[{"type":"text","text":"words"}],"_meta":{"a.example/x":1}}`},
		"a block":                 {`{"content":{"type":"text","text":"words"}}`, `{"content":[{"type":"text","text":"words"}]}`},
		"nulls":                   {`{"structuredContent":null,"isError":null,"_meta":null,"x":null,"content":[{"type":"text","text":"null","annotations":null,"_meta":null}]}`, `{"x":null,"content":[{"type":"text","text":"null"}]}`},
		"lists for objects":       {`{"_meta":[],"content":[{"type":"text","text":"a","annotations":[],"_meta":7}]}`, `{"content":[{"type":"text","text":"a"}]}`},
		"texts that are none":     {`{"content":[{"type":"text","text":null},{"type":"text","text":5},{"type":"text", "text" : {"a":[1]}},{"type":"own","text":5}]}`, `{"content":[{"type":"text","text":""},{"type":"text","text":"5"},{"type":"text","text":"{\"a\":[1]}"},{"type":"own","text":5}]}`},
		"its own odd members":     {`{"content":[],"structuredContent":{"text":5,"_meta":[],"annotations":1}}`, `{"content":[],"structuredContent":{"text":5,"_meta":[],"annotations":1}}`},
		"nulls of the tool's own": {`{"structuredContent":{"title":null},"content":[]}`, `{"structuredContent":{"title":null},"content":[]}`},
		"a list":                  {`{"content":[{"type":"text","text":"words"}]}`, `{"content":[{"type":"text","text":"words"}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			e := rig.Ready(t, rig.NewScript(map[string]string{"tools/call": tt.answer}).Config("s"))
			defer e.Close()
			res, err := rig.Do(t.Context(), t, e, "s__echo", "{}")
			if err != nil {
				t.Fatal(err)
			}
			if want := gate.MustDoc(tt.want); res.Doc.Digest() != want.Digest() || res.IsError != want.Get("isError").True() {
				t.Errorf("%s became %s", tt.answer, res.Doc)
			}
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
			srv := httptest.NewServer(rig.JSONServer(func(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,` + tt.resp + `}` }))
			defer srv.Close()
			e := rig.Ready(t, options.Endpoint{Server: "s", URL: srv.URL, Tools: rig.Options()})
			res, err := rig.Do(t.Context(), t, e, "s__echo", "{}")
			if err != nil || !res.IsError {
				t.Fatalf("isError %v, %v", res.IsError, err)
			}
			if diff := cmp.Diff(tt.want, res.Doc.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestDeclaredExtensions: a server over HTTP hears in both revisions which extensions of
// authorization there are, also if it has no apps. One over stdio takes no tokens.
func TestDeclaredExtensions(t *testing.T) {
	const names = `"io.modelcontextprotocol/enterprise-managed-authorization":{},"io.modelcontextprotocol/oauth-client-credentials":{}`
	for _, off := range []bool{false, true} {
		var mu sync.Mutex
		told := make(map[string]string)
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			d, _ := gate.ParseDoc(b)
			mu.Lock()
			told[d.Get("method").Text()] = string(b)
			mu.Unlock()
			http.Error(w, "no", http.StatusBadRequest)
		}))
		tools := rig.Options()
		tools.Apps.Off = off
		e := rig.NewEndpoint(t, options.Endpoint{Server: "s", URL: web.URL, Transport: options.TransportHTTP, Tools: tools})
		_ = e.Connect(t.Context()) // it fails
		e.Close()
		web.Close()
		for _, method := range []string{"initialize", "server/discover"} {
			if got := told[method]; !strings.Contains(got, names) || strings.Contains(got, "modelcontextprotocol/ui") == off {
				t.Errorf("%s, apps off: %v: %s", method, off, got)
			}
		}
		var sent strings.Builder
		c := rig.NewScript(nil).Config("s")
		dial := c.Dial
		c.Tools.Apps.Off, c.Dial = off, func() (mcp.Transport, error) {
			to, err := dial()
			return &mcp.LoggingTransport{Transport: to, Writer: &sent}, err
		}
		rig.Ready(t, c).Close()
		if !strings.Contains(sent.String(), "initialize") || strings.Contains(sent.String(), "authorization") {
			t.Errorf("over stdio: %s", sent.String())
		}
	}
}

// TestClientName: a server learns what the gateway calls itself, in both revisions.
func TestClientName(t *testing.T) {
	for name, want := range map[string]string{"": "wasmgate", "acme-agent": "acme-agent"} {
		var mu sync.Mutex
		told := make(map[string]bool) // whether the name was there, by method
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			for _, method := range []string{"initialize", "server/discover"} {
				if strings.Contains(string(b), `"`+method+`"`) {
					mu.Lock()
					told[method] = strings.Contains(string(b), `"name":"`+want+`"`)
					mu.Unlock()
				}
			}
			http.Error(w, "no", http.StatusBadRequest)
		}))
		e := rig.NewEndpoint(t, options.Endpoint{Server: "s", URL: web.URL, Transport: options.TransportHTTP, ClientName: name, Tools: rig.Options()})
		_ = e.Connect(t.Context()) // it fails
		e.Close()
		web.Close()
		if !told["initialize"] || !told["server/discover"] {
			t.Errorf("%q: told %v", name, told)
		}
	}
}
