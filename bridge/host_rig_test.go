package bridge_test

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

	"github.com/wasmgate/wasmgate/bridge"
	"github.com/wasmgate/wasmgate/gate"
)

// A fixture is a host in front of a gate in front of tools that do as they are
// told.
type fixture struct {
	host    *bridge.Host
	fleet   *bridge.Fleet
	local   *bridge.Local
	records *records
	url     string

	mu      sync.Mutex
	results map[string]string // by tool
	begun   chan struct{}     // a call of block has begun
	dos     int
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	x := &fixture{results: map[string]string{"echo": `{"content":[]}`}, begun: make(chan struct{}, 100)}
	var tools []bridge.LocalTool
	for _, name := range []string{"echo", "hidden", "denied", "fails", "block"} {
		tools = append(tools, bridge.LocalTool{Definition: gate.MustDoc(tool(name)), Call: x.call})
	}
	var err error
	if x.local, err = bridge.NewLocal("local", options(), tools...); err != nil {
		t.Fatal(err)
	}
	x.fleet = newFleet(t, bridge.FleetConfig{Locals: []*bridge.Local{x.local}})
	x.records = new(records)
	g, err := gate.New(gate.Parts{
		Upstream: x.fleet, Sessions: sessions{}, Sanitizer: sanitizerFunc(unchanged), Recorder: x.records,
		Authorizer: authorizerFunc(func(q gate.Query) gate.Decision {
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
	x.host, err = bridge.NewHost(bridge.HostConfig{
		Version: "1", MaxBody: 2 << 20, Tools: g.Tools,
		Do: func(ctx context.Context, c gate.Call) (gate.Result, error) {
			if c.Name == "panic" {
				panic("in Do")
			}
			return g.Do(ctx, c)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(x.host)
	t.Cleanup(srv.Close)
	x.url = srv.URL
	return x
}

func (x *fixture) call(ctx context.Context, c *gate.Call, _ gate.Permit) (gate.Result, error) {
	x.mu.Lock()
	x.dos++
	result := x.results["echo"]
	x.mu.Unlock()
	switch {
	case strings.HasSuffix(c.Name, "block"):
		x.begun <- struct{}{}
		<-ctx.Done()
		return gate.Result{}, ctx.Err()
	case strings.HasSuffix(c.Name, "fails"):
		return gate.Result{}, &bridge.Fault{Kind: bridge.Transport, Server: "local", Doing: "call", Err: io.ErrUnexpectedEOF}
	case result == "args":
		return gate.Result{Doc: gate.MustDoc(`{"content":[]}`).With("args", c.Args.Raw())}, nil
	}
	return gate.Result{Doc: gate.MustDoc(result)}, nil
}

func (x *fixture) calls() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.dos
}

// A wire sends a message, and returns the answer as it came, "" if none did.
type wire func(msg string) string

const (
	old    = "2025-11-25"
	newest = "2026-07-28"
)

// wires are the four ways in which clients speak with a host.
var wires = map[string]struct {
	era  string
	dial func(testing.TB, *fixture) wire
}{
	"HTTP, sessions":  {old, func(t testing.TB, x *fixture) wire { return dialHTTP(t, x, old) }},
	"HTTP, stateless": {newest, func(t testing.TB, x *fixture) wire { return dialHTTP(t, x, newest) }},
	"stdio, sessions": {old, func(t testing.TB, x *fixture) wire {
		w, _ := dialStdio(t, x)
		w(hello)
		w(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		return w
	}},
	"stdio, stateless": {newest, func(t testing.TB, x *fixture) wire { w, _ := dialStdio(t, x); return w }},
}

const hello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"9"}}}`

// request writes a request in the words of an era. params is the inside of an
// object.
func request(era, id, method, params string) string {
	if era == newest {
		if params != "" {
			params += ","
		}
		params += `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"9"},"io.modelcontextprotocol/clientCapabilities":{}}`
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":{%s}}`, id, method, params)
}

// post sends a message over HTTP as a client of an era does.
func post(ctx context.Context, url, era, session, msg string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(msg))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	if session != "" || era == newest {
		r.Header.Set("Mcp-Protocol-Version", era)
	}
	if doc, err := gate.ParseDoc([]byte(msg)); err == nil && era == newest {
		r.Header.Set("Mcp-Method", doc.Get("method").Text())
		for _, at := range []string{"/params/name", "/params/uri", "/params/taskId"} {
			if name := doc.At(at); !name.IsZero() {
				r.Header.Set("Mcp-Name", name.Text())
			}
		}
	}
	return http.DefaultClient.Do(r)
}

// answerOf reads the answer out of a response.
func answerOf(t testing.TB, resp *http.Response) string {
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

// readStream calls f with the data of each event of a stream until f wants no more.
func readStream(r io.Reader, f func(data []byte) (more bool, err error)) error {
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

// openSession initializes a session over HTTP.
func openSession(t testing.TB, url string) (session string) {
	t.Helper()
	return openSessionWith(t, url, hello)
}

func openSessionWith(t testing.TB, url, hello string) (session string) {
	t.Helper()
	resp, err := post(t.Context(), url, old, "", hello)
	if err != nil {
		t.Fatal(err)
	}
	answerOf(t, resp)
	session = resp.Header.Get("Mcp-Session-Id")
	if session == "" {
		t.Fatal("no session")
	}
	resp, err = post(t.Context(), url, old, session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return session
}

func dialHTTP(t testing.TB, x *fixture, era string) wire {
	session := ""
	if era == old {
		session = openSession(t, x.url)
	}
	return func(msg string) string {
		resp, err := post(t.Context(), x.url, era, session, msg)
		if err != nil {
			t.Fatal(err)
		}
		return answerOf(t, resp)
	}
}

// dialStdio serves one client over pipes; end closes its side.
func dialStdio(t testing.TB, x *fixture) (w wire, end func()) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = x.host.Serve(context.WithoutCancel(t.Context()), gate.Local(), inR, outW)
		outW.Close()
	}()
	lines := bufio.NewReader(outR)
	end = sync.OnceFunc(func() {
		inW.Close()
		go io.Copy(io.Discard, outR)
		<-served
	})
	t.Cleanup(end)
	return func(msg string) string {
		if _, err := io.WriteString(inW, msg+"\n"); err != nil {
			t.Fatal(err)
		}
		if doc, err := gate.ParseDoc([]byte(msg)); err == nil && doc.Kind() == gate.Object && doc.Get("id").IsZero() && doc.Get("jsonrpc").Text() == "2.0" && !doc.Get("method").IsZero() {
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

// postWith sends a message as a client without a session does, with other headers.
func postWith(t testing.TB, url, msg string, change func(map[string][]string)) gate.Doc {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(msg))
	if err != nil {
		t.Fatal(err)
	}
	doc := gate.MustDoc(msg)
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": newest,
		"Mcp-Method": doc.Get("method").Text(), "Mcp-Name": doc.At("/params/taskId").Text(),
	} {
		r.Header.Set(name, value)
	}
	change(r.Header)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return gate.MustDoc(answerOf(t, resp))
}
