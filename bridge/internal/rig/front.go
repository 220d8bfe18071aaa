package rig

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/wasmgate/wasmgate/bridge/fault"
	"github.com/wasmgate/wasmgate/bridge/internal/fleet"
	"github.com/wasmgate/wasmgate/bridge/internal/host"
	"github.com/wasmgate/wasmgate/bridge/internal/host/dispatch"
	"github.com/wasmgate/wasmgate/bridge/internal/local"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

// A Fixture is a host in front of a gate in front of tools with given results.
type Fixture struct {
	Host    *host.Host
	Fleet   *fleet.Fleet
	Local   *local.Server
	Records *Records
	URL     string

	Mu      sync.Mutex
	Results map[string]string // by tool
	Begun   chan struct{}     // a call of block has begun
	dos     int
}

// NewFixture returns a fixture that is served over HTTP.
func NewFixture(t testing.TB) *Fixture {
	t.Helper()
	x := &Fixture{Results: map[string]string{"echo": `{"content":[]}`}, Begun: make(chan struct{}, 100)}
	var tools []options.LocalTool
	for _, name := range []string{"echo", "hidden", "denied", "fails", "block"} {
		tools = append(tools, options.LocalTool{Definition: gate.MustDoc(Tool(name)), Call: x.Call})
	}
	var err error
	if x.Local, err = local.New("local", Options(), tools...); err != nil {
		t.Fatal(err)
	}
	x.Fleet = NewFleet(t, fleet.Config{Locals: []*local.Server{x.Local}})
	x.Records = new(Records)
	g, err := gate.New(gate.Parts{
		Upstream: x.Fleet, Sessions: Sessions{}, Sanitizer: SanitizerFunc(Unchanged), Recorder: x.Records,
		Authorizer: AuthorizerFunc(func(q gate.Query) gate.Decision {
			switch q.Tool.Local {
			case "hidden":
				return gate.Decision{Effect: gate.Deny, Hidden: true}
			case "denied":
				return gate.Decision{Effect: gate.Deny, Reasons: []string{"not <yours>"}}
			default:
				return gate.Decision{Effect: gate.Allow}
			}
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	x.Host, err = host.New(host.Config{
		Config: dispatch.Config{
			Tools: g.Tools,
			Do: func(ctx context.Context, c gate.Call) (gate.Result, error) {
				if c.Name == "panic" {
					panic("in Do")
				}
				return g.Do(ctx, c)
			},
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

// Call is the function of all its tools.
func (x *Fixture) Call(ctx context.Context, c *gate.Call, _ gate.Permit) (gate.Result, error) {
	x.Mu.Lock()
	x.dos++
	result := x.Results["echo"]
	x.Mu.Unlock()
	switch {
	case strings.HasSuffix(c.Name, "block"):
		x.Begun <- struct{}{}
		<-ctx.Done()
		return gate.Result{}, ctx.Err()
	case strings.HasSuffix(c.Name, "fails"):
		return gate.Result{}, &fault.Fault{Kind: fault.Transport, Server: "local", Doing: "call", Err: io.ErrUnexpectedEOF}
	case result == "args":
		return gate.Result{Doc: gate.MustDoc(`{"content":[]}`).With("args", c.Args.Raw())}, nil
	}
	return gate.Result{Doc: gate.MustDoc(result)}, nil
}

// Calls returns how many calls have reached the tools.
func (x *Fixture) Calls() int {
	x.Mu.Lock()
	defer x.Mu.Unlock()
	return x.dos
}

// A Wire sends a message, and returns the answer as it came, "" if none did.
type Wire func(msg string) string

const (
	// Old and Newest are the revisions that clients speak.
	Old    = "2025-11-25"
	Newest = "2026-07-28"
)

// Wires are the four ways in which clients speak with a host.
var Wires = map[string]struct {
	Era  string
	Dial func(testing.TB, *Fixture) Wire
}{
	"HTTP, sessions":  {Old, func(t testing.TB, x *Fixture) Wire { return DialHTTP(t, x, Old) }},
	"HTTP, stateless": {Newest, func(t testing.TB, x *Fixture) Wire { return DialHTTP(t, x, Newest) }},
	"stdio, sessions": {Old, func(t testing.TB, x *Fixture) Wire {
		w, _ := DialStdio(t, x)
		w(Hello)
		w(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		return w
	}},
	"stdio, stateless": {Newest, func(t testing.TB, x *Fixture) Wire { w, _ := DialStdio(t, x); return w }},
}

// Hello initializes a session.
const Hello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"9"}}}`

// Request writes a request of a protocol revision. params is the inside of an object.
func Request(era, id, method, params string) string {
	if era == Newest {
		if params != "" {
			params += ","
		}
		params += `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"9"},"io.modelcontextprotocol/clientCapabilities":{}}`
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":{%s}}`, id, method, params)
}

// Post sends a message over HTTP as a client of a protocol revision does.
func Post(ctx context.Context, url, era, session, msg string) (*http.Response, error) {
	r, err := NewPost(ctx, url, era, session, msg)
	if err != nil {
		return nil, err
	}
	return http.DefaultClient.Do(r)
}

// Serve has a handler answer the same without a network.
func Serve(t testing.TB, h http.Handler, era, msg string) *http.Response {
	t.Helper()
	r, err := NewPost(t.Context(), "http://localhost/mcp", era, "", msg)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

// NewPost returns the request by which a client of a revision sends a message.
func NewPost(ctx context.Context, url, era, session, msg string) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(msg))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	if session != "" || era == Newest {
		r.Header.Set("Mcp-Protocol-Version", era)
	}
	if doc, err := gate.ParseDoc([]byte(msg)); err == nil && era == Newest {
		r.Header.Set("Mcp-Method", doc.Get("method").Text())
		for _, at := range []string{"/params/name", "/params/uri", "/params/taskId"} {
			if name := doc.At(at); !name.IsZero() {
				r.Header.Set("Mcp-Name", name.Text())
			}
		}
	}
	return r, nil
}

// AnswerOf reads the answer out of a response.
func AnswerOf(t testing.TB, resp *http.Response) string {
	t.Helper()
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return strings.TrimSpace(string(b))
	}
	for l := range strings.Lines(string(b)) {
		if data, ok := strings.CutPrefix(strings.TrimSuffix(l, "\n"), "data: "); ok && data != "" { // a stream begins with an id alone
			return data
		}
	}
	return ""
}

// ReadStream calls f with the data of each event of a stream until f wants no more.
func ReadStream(r io.Reader, f func(data []byte) (more bool, err error)) error {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok {
			continue
		}
		if more, err := f(data); err != nil || !more {
			return err
		}
	}
	return lines.Err()
}

// OpenSession initializes a session over HTTP.
func OpenSession(t testing.TB, url string) (session string) {
	t.Helper()
	return OpenSessionWith(t, url, Hello)
}

// OpenSessionWith is OpenSession with another first message.
func OpenSessionWith(t testing.TB, url, hello string) (session string) {
	t.Helper()
	resp, err := Post(t.Context(), url, Old, "", hello)
	if err != nil {
		t.Fatal(err)
	}
	AnswerOf(t, resp)
	session = resp.Header.Get("Mcp-Session-Id")
	if session == "" {
		t.Fatal("no session")
	}
	resp, err = Post(t.Context(), url, Old, session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return session
}

// DialHTTP returns a client over HTTP.
func DialHTTP(t testing.TB, x *Fixture, era string) Wire {
	session := ""
	if era == Old {
		session = OpenSession(t, x.URL)
	}
	return func(msg string) string {
		resp, err := Post(t.Context(), x.URL, era, session, msg)
		if err != nil {
			t.Fatal(err)
		}
		return AnswerOf(t, resp)
	}
}

// DialStdio serves one client over pipes; end closes its side.
func DialStdio(t testing.TB, x *Fixture) (w Wire, end func()) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = x.Host.Serve(context.WithoutCancel(t.Context()), gate.Local(), inR, outW)
		outW.Close()
	}()
	lines := bufio.NewReader(outR)
	end = sync.OnceFunc(func() {
		inW.Close()
		go func() { _, _ = io.Copy(io.Discard, outR) }()
		<-served
	})
	t.Cleanup(end)
	return func(msg string) string {
		if _, err := io.WriteString(inW, msg+"\n"); err != nil {
			t.Fatal(err)
		}
		if d, err := gate.ParseDoc([]byte(msg)); err == nil && d.Kind() == doc.Object && d.Get("id").IsZero() && d.Get("jsonrpc").Text() == "2.0" && !d.Get("method").IsZero() {
			return ""
		}
		for {
			l, err := lines.ReadString('\n')
			if err != nil {
				return "" // the host has ended
			}
			if doc := gate.MustDoc(l); doc.Get("method").IsZero() {
				return strings.TrimSuffix(l, "\n")
			}
		}
	}, end
}

// PostWith sends a message as a client without a session does, with other headers.
func PostWith(t testing.TB, url, msg string, change func(map[string][]string)) gate.Doc {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(msg))
	if err != nil {
		t.Fatal(err)
	}
	doc := gate.MustDoc(msg)
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": Newest,
		"Mcp-Method": doc.Get("method").Text(), "Mcp-Name": doc.At("/params/taskId").Text(),
	} {
		r.Header.Set(name, value)
	}
	change(r.Header)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return gate.MustDoc(AnswerOf(t, resp))
}
