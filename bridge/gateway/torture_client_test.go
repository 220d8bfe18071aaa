package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/bridge"
	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/gate"
)

// repetitionsEnv is how many misdeeds [TestTortureClientLeavesNothing] does.
const repetitionsEnv = "WASMGATE_REPETITIONS"

const (
	older = "2025-11-25"
	newer = "2026-07-28"
)

// A tortured gateway has a tool that answers and one that takes until it is let.
type tortured struct {
	*gateway.Gateway
	url     string
	records *records
	let     chan struct{}
}

func torture(t *testing.T) *tortured {
	t.Helper()
	tt := &tortured{records: new(records), let: make(chan struct{})}
	tt.Gateway = start(t, gateway.Config{
		Recorder: tt.records, Policy: granting("f__*"), Limits: gateway.Limits{Body: 4 << 20, Concurrent: 16, Wait: 5 * time.Second},
		Functions: map[string][]bridge.LocalTool{"f": {tool("echo", nil), tool("waits", func(ctx context.Context, _ *gate.Call, _ gate.Permit) (gate.Result, error) {
			select {
			case <-tt.let:
				return text("done"), nil
			case <-ctx.Done():
				return gate.Result{}, ctx.Err()
			}
		})}},
	})
	web := httptest.NewServer(tt)
	t.Cleanup(web.Close)
	tt.url = web.URL + "/mcp"
	return tt
}

// A misdeed is a request that no client should send, and what it must be answered.
type misdeed struct {
	method string            // of HTTP; POST if empty
	header map[string]string // beside or in the place of what is usual; "" takes it out
	body   string            // $ is the id of a request that has none of its own
	status int
	code   int    // of the JSON-RPC error; 0 if it is none
	says   string // in the answer
}

const metaNewer = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"9"},"io.modelcontextprotocol/clientCapabilities":{}}`

func req(id, method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":{%s}}`, id, method, params)
}

// nested is an object in as many others.
func nested(depth int) string {
	return strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth)
}

// ofBothEras are misdeeds of clients with and without sessions. $m stands for what the
// era wants in params.
var ofBothEras = map[string]misdeed{
	"a batch":                        {body: `[` + req("1", "ping", "") + `,` + req("2", "ping", "") + `]`, status: 400, code: -32600, says: "batch"},
	"an empty batch":                 {body: `[]`, status: 400, code: -32600},
	"nothing":                        {body: ``, status: 400, code: -32700},
	"no JSON":                        {body: `hello`, status: 400, code: -32700},
	"half a message":                 {body: `{"jsonrpc":"2.0","id":1,"meth`, status: 400, code: -32700},
	"two messages":                   {body: req("1", "ping", "") + req("2", "ping", ""), status: 400},
	"JSON-RPC 1.0":                   {body: `{"jsonrpc":"1.0","id":1,"method":"ping"}`, status: 400, code: -32600},
	"no version of JSON-RPC":         {body: `{"id":1,"method":"ping"}`, status: 400, code: -32600},
	"a message that is nothing":      {body: `{"jsonrpc":"2.0"}`, status: 400, code: -32600},
	"a method that is a number":      {body: `{"jsonrpc":"2.0","id":1,"method":5}`, status: 400, code: -32600},
	"an id that is null":             {body: req("null", "ping", ""), status: 400, code: -32600},
	"an id that is true":             {body: req("true", "ping", ""), status: 400, code: -32600},
	"an id that is half a number":    {body: req("1.5", "ping", ""), status: 400, code: -32600},
	"an id that is an object":        {body: req("{}", "ping", ""), status: 400, code: -32600},
	"an id that is a list":           {body: req("[1]", "ping", ""), status: 400, code: -32600},
	"an id beyond 2^53":              {body: req("9007199254740993", "ping", ""), status: 400, code: -32600},
	"an id of 1 MB":                  {body: req(`"`+strings.Repeat("x", 1<<20)+`"`, "ping", ""), status: 400, code: -32600},
	"a tool's name that is a number": {body: req("$", "tools/call", `"name":5,"arguments":{},$m`), status: 400, code: -32602},
	"a call of nothing":              {body: req("$", "tools/call", `"arguments":{},$m`), status: 400, code: -32602},
	"arguments that are a list":      {body: req("$", "tools/call", `"name":"f__echo","arguments":[1],$m`), status: 400, code: -32602, says: "arguments is no object"},
	"arguments that are text":        {body: req("$", "tools/call", `"name":"f__echo","arguments":"x",$m`), status: 400, code: -32602},
	"a key twice":                    {body: req("$", "tools/call", `"name":"f__echo","arguments":{"text":"a","text":"b"},$m`), status: 400, code: -32602, says: "the same name"},
	"bytes that are no UTF-8":        {body: req("$", "tools/call", `"name":"f__echo","arguments":{"text":"`+"\xff\xfe"+`"},$m`), status: 400, code: -32602},
	"half a surrogate":               {body: req("$", "tools/call", `"name":"f__echo","arguments":{"text":"\ud800"},$m`), status: 400, code: -32602},
	"a number beyond all":            {body: req("$", "tools/call", `"name":"f__echo","arguments":{"n":1e99999},$m`), status: 400},
	"objects in objects":             {body: req("$", "tools/call", `"name":"f__echo","arguments":`+nested(100_000)+`,$m`), status: 400, code: -32602},
	"lists in lists":                 {body: strings.Repeat("[", 100_000), status: 400, code: -32700},
	"a message that is too large":    {body: req("$", "tools/call", `"name":"f__echo","arguments":{"text":"`+strings.Repeat("x", 5<<20)+`"},$m`), status: 413, says: "limits.body"},
	"a cursor of another list":       {body: req("$", "tools/list", `"cursor":"Mw==",$m`), status: 400, code: -32602, says: "cursor"},
	"a cursor that is garbage":       {body: req("$", "tools/list", `"cursor":"\u0000\u0001",$m`), status: 400, code: -32602, says: "cursor"},
	"a cursor that is a number":      {body: req("$", "tools/list", `"cursor":7,$m`), status: 400, code: -32602, says: "cursor"},
	"another content type":           {header: map[string]string{"Content-Type": "text/plain"}, body: req("$", "tools/list", `$m`), status: 415},
	"no content type":                {header: map[string]string{"Content-Type": ""}, body: req("$", "tools/list", `$m`), status: 415},
	"a host that is not ours":        {header: map[string]string{"Host": "evil.example"}, body: req("$", "tools/list", `$m`), status: 403, says: "http.hosts"},
	"a page of the web":              {header: map[string]string{"Origin": "https://evil.example"}, body: req("$", "tools/list", `$m`), status: 403, says: "http.origins"},
	"a method that HTTP has not":     {method: "BREW", status: 405},
	"a PUT":                          {method: http.MethodPut, body: req("$", "tools/list", `$m`), status: 405},
}

// ofSessions are misdeeds of clients of the older revisions, in a session.
var ofSessions = map[string]misdeed{
	"a method that nobody has":       {body: req("$", "tools/burn", ""), status: 200, code: -32601},
	"a notification that nobody has": {body: `{"jsonrpc":"2.0","method":"notifications/burnt"}`, status: 202},
	"an answer to no question":       {body: `{"jsonrpc":"2.0","id":99,"result":{}}`, status: 202},
	"params that are a list":         {body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}`, status: 400, code: -32602},
	"params that are text":           {body: `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":"x"}`, status: 400, code: -32602, says: "params is no object"},
	"the session of another":         {header: map[string]string{"Mcp-Session-Id": "AAAAAAAAAAAAAAAAAAAAAAAAAA"}, body: req("$", "tools/list", ""), status: 404},
	"a session's id of 16 KB":        {header: map[string]string{"Mcp-Session-Id": strings.Repeat("x", 16<<10)}, body: req("$", "tools/list", ""), status: 404},
	"no session":                     {header: map[string]string{"Mcp-Session-Id": "", "Mcp-Protocol-Version": ""}, body: req("$", "tools/list", ""), status: 400, code: -32600, says: "initialize"},
	"a revision that is none":        {header: map[string]string{"Mcp-Protocol-Version": "1999-12-31"}, body: req("$", "tools/list", ""), status: 400},
	"no stream wanted":               {header: map[string]string{"Accept": "application/json"}, body: req("$", "tools/list", ""), status: 400},
	"a GET of what is no stream":     {method: http.MethodGet, header: map[string]string{"Accept": "text/html"}, status: 400},
	"a GET without a session":        {method: http.MethodGet, header: map[string]string{"Mcp-Session-Id": "", "Accept": "text/event-stream"}, status: 400},
	"the rest of what was never":     {method: http.MethodGet, header: map[string]string{"Accept": "text/event-stream", "Last-Event-Id": "ABC_7"}, status: 400},
	"the rest of garbage":            {method: http.MethodGet, header: map[string]string{"Accept": "text/event-stream", "Last-Event-Id": "\t_"}, status: 400},
	"the end of no session":          {method: http.MethodDelete, header: map[string]string{"Mcp-Session-Id": "nobody"}, status: 404},
}

// withoutSessions are misdeeds of clients of revision 2026-07-28.
var withoutSessions = map[string]misdeed{
	"a method that nobody has":         {header: map[string]string{"Mcp-Method": "tools/burn"}, body: req("$", "tools/burn", "$m"), status: 404, code: -32601},
	"a notification that nobody has":   {header: map[string]string{"Mcp-Method": "notifications/burnt"}, body: `{"jsonrpc":"2.0","method":"notifications/burnt","params":{$m}}`, status: 202},
	"another method in the header":     {header: map[string]string{"Mcp-Method": "tools/list"}, body: req("$", "tools/call", `"name":"f__echo","arguments":{},$m`), status: 400, code: -32020},
	"another tool in the header":       {header: map[string]string{"Mcp-Name": "f__waits"}, body: req("$", "tools/call", `"name":"f__echo","arguments":{},$m`), status: 400, code: -32020},
	"no method in the header":          {header: map[string]string{"Mcp-Method": ""}, body: req("$", "tools/list", `$m`), status: 400, code: -32020},
	"another revision in the body":     {body: strings.ReplaceAll(req("$", "tools/list", metaNewer), newer, "2026-07-29"), status: 400},
	"an older revision in the body":    {body: strings.ReplaceAll(req("$", "tools/list", metaNewer), newer, older), status: 400},
	"a revision to come":               {header: map[string]string{"Mcp-Protocol-Version": "2999-01-01"}, body: strings.ReplaceAll(req("$", "tools/list", metaNewer), newer, "2999-01-01"), status: 400, code: -32022},
	"no _meta":                         {body: req("$", "tools/call", `"name":"f__echo","arguments":{}`), status: 400},
	"a _meta that is a list":           {body: req("$", "tools/call", `"name":"f__echo","arguments":{},"_meta":[]`), status: 400, code: -32602},
	"a requestState of its own making": {body: req("$", "tools/call", `"name":"f__echo","arguments":{},"requestState":"Zm9yZ2Vk","inputResponses":{"q":{"action":"accept"}},$m`), status: 400, code: -32602, says: "requestState"},
	"inputResponses that are a list":   {body: req("$", "tools/call", `"name":"f__echo","arguments":{},"requestState":"x","inputResponses":[],$m`), status: 400, code: -32602},
	"no stream wanted":                 {header: map[string]string{"Accept": "application/json"}, body: req("$", "tools/list", "$m"), status: 400},
}

// A bad client does misdeeds in an era.
type badClient struct {
	*tortured
	http    *http.Client
	session string // "" without one
	last    atomic.Int64
}

func (tt *tortured) client(t testing.TB, era string) *badClient {
	t.Helper()
	c := &badClient{tortured: tt, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	t.Cleanup(c.http.CloseIdleConnections)
	if era == older {
		c.session = c.open(t)
	}
	return c
}

func (c *badClient) open(t testing.TB) (session string) {
	t.Helper()
	hello := req("0", "initialize", `"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"9"}`)
	resp, _, err := c.do(t.Context(), misdeed{body: hello})
	if err != nil {
		t.Fatal(err)
	}
	session = resp.Header.Get("Mcp-Session-Id")
	_, _, err = c.do(t.Context(), misdeed{header: map[string]string{"Mcp-Session-Id": session, "Mcp-Protocol-Version": older}, body: `{"jsonrpc":"2.0","method":"notifications/initialized"}`})
	if err != nil || session == "" {
		t.Fatalf("session %q, %v", session, err)
	}
	return session
}

// do does a misdeed, and returns the answer, without its framing.
func (c *badClient) do(ctx context.Context, m misdeed) (*http.Response, string, error) {
	method := m.method
	if method == "" {
		method = http.MethodPost
	}
	body, meta := m.body, `"x":1`
	header := map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
	if c.session != "" {
		header["Mcp-Session-Id"], header["Mcp-Protocol-Version"] = c.session, older
	} else if !strings.Contains(body, `"initialize"`) && header["Mcp-Session-Id"] == "" {
		meta = metaNewer
		header["Mcp-Protocol-Version"] = newer
		if _, after, ok := strings.Cut(body, `"method":"`); ok {
			header["Mcp-Method"], _, _ = strings.Cut(after, `"`)
		}
		if _, after, ok := strings.Cut(body, `"name":"`); ok && header["Mcp-Method"] == "tools/call" {
			header["Mcp-Name"], _, _ = strings.Cut(after, `"`)
		}
	}
	body = strings.ReplaceAll(strings.Replace(body, `"id":$`, fmt.Sprintf(`"id":%d`, c.last.Add(1)), 1), "$m", meta)
	r, err := http.NewRequestWithContext(ctx, method, c.url, strings.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	for k, v := range header {
		r.Header.Set(k, v)
	}
	for k, v := range m.header {
		r.Header.Set(k, v)
		if v == "" {
			r.Header.Del(k)
		}
		if k == "Host" {
			r.Host = v
		}
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	answer := strings.TrimSpace(string(b))
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		for l := range strings.Lines(answer + "\n") {
			if data, ok := strings.CutPrefix(l, "data: {"); ok {
				answer = "{" + strings.TrimSpace(data)
			}
		}
	}
	return resp, answer, err
}

// judge returns what is wrong with the answer to a misdeed.
func (m *misdeed) judge(resp *http.Response, answer string, err error) error {
	if err != nil && m.status == 413 {
		return nil // the rest of the message was not waited for
	}
	if err != nil {
		return err
	}
	code := 0
	if doc, err := gate.ParseDoc([]byte(answer)); err == nil {
		code, _ = strconv.Atoi(doc.At("/error/code").String())
	}
	switch {
	case m.status > 0 && resp.StatusCode != m.status, m.status >= 0 && m.code != 0 && code != m.code, !strings.Contains(answer, m.says), resp.StatusCode >= 500:
		return fmt.Errorf("status %d, code %d: %.300s; want status %d, code %d, %q", resp.StatusCode, code, answer, m.status, m.code, m.says)
	}
	return nil
}

// well reports that a client that does nothing wrong is served.
func (c *badClient) well(ctx context.Context) error {
	_, answer, err := c.do(ctx, misdeed{body: req("$", "tools/call", `"name":"f__echo","arguments":{"text":"well"},$m`)})
	if err != nil || !strings.Contains(answer, `"text":"well"`) {
		return fmt.Errorf("a call that is as it should be: %.300s, %v", answer, err)
	}
	return nil
}

func misdeeds(era string) map[string]misdeed {
	own := ofSessions
	if era == newer {
		own = withoutSessions
	}
	all := make(map[string]misdeed)
	for _, some := range []map[string]misdeed{ofBothEras, own} {
		for name, m := range some {
			all[name] = m
		}
	}
	return all
}

// TestTortureClient: whatever a client does wrong is answered with what was wrong, and
// harms neither it nor others.
func TestTortureClient(t *testing.T) {
	for _, era := range []string{older, newer} {
		tt := torture(t)
		c := tt.client(t, era)
		for name, m := range misdeeds(era) {
			t.Run(era+", "+name, func(t *testing.T) {
				resp, answer, err := c.do(t.Context(), m)
				if err := m.judge(resp, answer, err); err != nil {
					t.Error(err)
				}
				if err := c.well(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestTortureSessions: a session ends once, and is nobody's afterwards; an id is that of
// one request at a time.
func TestTortureSessions(t *testing.T) {
	tt := torture(t)
	c := tt.client(t, older)
	stream := func(id string) misdeed { // a call whose answer is a stream
		return misdeed{body: req(id, "tools/call", `"name":"f__waits","arguments":{},"_meta":{"progressToken":`+id+`}`)}
	}
	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	gone := make(chan struct{})
	go func() { defer close(gone); _, _, _ = c.do(ctx, stream("500")) }()
	twice := misdeed{body: stream("500").body, status: 400, code: -32600, says: "duplicate"}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		resp, answer, err := c.do(short, twice)
		cancel()
		if err == nil {
			if err := twice.judge(resp, answer, nil); err != nil {
				t.Error(err)
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("two requests of one id are under way")
		}
	}
	if err := c.well(t.Context()); err != nil {
		t.Error(err)
	}
	for i, want := range []int{204, 404} {
		resp, answer, err := c.do(t.Context(), misdeed{method: http.MethodDelete})
		if err != nil || resp.StatusCode != want {
			t.Errorf("DELETE %d: %v %s, %v; want %d", i+1, resp, answer, err, want)
		}
	}
	<-gone // its call was cancelled with the session
	resp, answer, err := c.do(t.Context(), misdeed{body: req("$", "tools/list", "")})
	if err != nil || resp.StatusCode != 404 {
		t.Errorf("a session that has ended: %v %s, %v", resp, answer, err)
	}
	if err := tt.client(t, older).well(t.Context()); err != nil {
		t.Errorf("another session: %v", err)
	}
}

// TestTortureParallel: of thousands of calls at once those beyond the limits are
// refused, and say so; another client is served meanwhile.
func TestTortureParallel(t *testing.T) {
	const waits = `"name":"f__waits","arguments":{},$m`
	overHTTP := func(era string) func(*testing.T, *tortured, func(string, error)) {
		return func(t *testing.T, tt *tortured, answered func(string, error)) {
			const calls, atOnce = 600, 128 // connections
			c := tt.client(t, era)
			var left atomic.Int64
			left.Store(calls)
			var wg sync.WaitGroup
			for range atOnce {
				wg.Go(func() {
					for left.Add(-1) >= 0 {
						_, answer, err := c.do(t.Context(), misdeed{body: req("$", "tools/call", waits)})
						answered(answer, err)
					}
				})
			}
			wg.Wait()
		}
	}
	ways := map[string]func(t *testing.T, tt *tortured, answered func(string, error)){
		"HTTP, sessions": overHTTP(older), "HTTP, stateless": overHTTP(newer),
		"stdio, ten thousand": func(t *testing.T, tt *tortured, answered func(string, error)) {
			const calls = 10_000
			c := tt.lines(t)
			defer c.close(t)
			go func() {
				for i := range calls {
					_, _ = io.WriteString(c.in, req(strconv.Itoa(i+1), "tools/call", strings.TrimSuffix(waits, ",$m"))+"\n") // the answers that lack say so
				}
			}()
			for range calls {
				answered(c.out.ReadString('\n'))
			}
		},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			tt := torture(t)
			other := tt.client(t, older)
			before := runtime.NumGoroutine()
			var ok, busy atomic.Int64
			var others sync.WaitGroup
			ctx, stop := context.WithCancel(t.Context())
			met := make(chan struct{}) // closed when the limit has been met
			meets := sync.OnceFunc(func() { close(met) })
			others.Go(func() { // then places become free, a few at a time
				select {
				case <-met:
				case <-ctx.Done():
				}
				for i := 0; ; i++ {
					select {
					case tt.let <- struct{}{}:
					case <-ctx.Done():
						return
					}
					if i%16 == 0 {
						time.Sleep(time.Millisecond)
					}
				}
			})
			others.Go(func() {
				select {
				case <-met:
				case <-ctx.Done():
				}
				for range 20 { // it takes its turn, and does not wait for theirs
					if err := other.well(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
			way(t, tt, func(answer string, err error) {
				switch {
				case err == nil && strings.Contains(answer, `"text":"done"`):
					ok.Add(1)
				case err == nil && strings.Contains(answer, `"code":"refused_busy"`) && strings.Contains(answer, "as many calls under way as it may have at once"):
					busy.Add(1)
					meets()
				default:
					t.Errorf("%.300s, %v", answer, err)
				}
			})
			stop()
			others.Wait()
			if ok.Load() == 0 || busy.Load() == 0 {
				t.Error("the limit was not met, or nothing else")
			}
			t.Logf("%d carried out, %d refused", ok.Load(), busy.Load())
			other.http.CloseIdleConnections()
			for range 500 {
				if runtime.NumGoroutine() <= before+2*128 { // the connections of idle clients
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
			t.Errorf("%d goroutines before, %d after", before, runtime.NumGoroutine())
		})
	}
}

// TestTortureSlowSenders: clients that begin a request and do not go on hold up nobody.
func TestTortureSlowSenders(t *testing.T) {
	tt := torture(t)
	c := tt.client(t, newer)
	where, err := url.Parse(tt.url)
	if err != nil {
		t.Fatal(err)
	}
	var dialer net.Dialer
	for _, begun := range []string{"PO", "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX: ", "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"} {
		for range 100 {
			conn, err := dialer.DialContext(t.Context(), "tcp", where.Host)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, begun); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := c.well(t.Context()); err != nil {
		t.Error(err)
	}
}

// onLines are the misdeeds of a client on stdio, and the code of their answer; 0 for
// none.
var onLines = map[string]struct {
	line string
	code int
}{
	"nothing":                        {"", 0},
	"blanks":                         {" \t ", 0},
	"no JSON":                        {"hello", -32700},
	"half a message":                 {`{"jsonrpc":"2.0","id":1,"meth`, -32700},
	"a batch":                        {`[` + req("1", "ping", "") + `]`, -32600},
	"JSON-RPC 1.0":                   {`{"jsonrpc":"1.0","id":1,"method":"ping"}`, -32600},
	"an id that is null":             {req("null", "ping", ""), -32600},
	"an id that is an object":        {req("{}", "ping", ""), -32600},
	"an id of 1 MB":                  {req(`"`+strings.Repeat("x", 1<<20)+`"`, "ping", ""), -32600},
	"a method that nobody has":       {req("7", "tools/burn", ""), -32601},
	"a notification that nobody has": {`{"jsonrpc":"2.0","method":"notifications/burnt"}`, 0},
	"an answer to no question":       {`{"jsonrpc":"2.0","id":99,"result":{}}`, 0},
	"arguments that are a list":      {req("8", "tools/call", `"name":"f__echo","arguments":[]`), -32602},
	"params that are text":           {`{"jsonrpc":"2.0","id":9,"method":"tools/list","params":"x"}`, -32602},
	"bytes that are no UTF-8":        {req("10", "tools/call", `"name":"f__echo","arguments":{"text":"`+"\xff"+`"}`), -32602},
	"objects in objects":             {req("11", "tools/call", `"name":"f__echo","arguments":`+nested(100_000)), -32602},
	"a cursor of another list":       {req("12", "tools/list", `"cursor":"x"`), -32602},
	"a line that is too long":        {req("13", "tools/call", `"name":"f__echo","arguments":{"text":"`+strings.Repeat("x", 5<<20)+`"}`), -32602},
}

// A line client speaks with a gateway in lines.
type lineClient struct {
	in    io.WriteCloser
	out   *bufio.Reader
	ended chan error
}

func (tt *tortured) lines(t testing.TB) *lineClient {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	c := &lineClient{in: inW, out: bufio.NewReader(outR), ended: make(chan error, 1)}
	go func() {
		err := tt.Serve(context.Background(), gate.Local(), inR, outW)
		outW.Close()
		inR.Close()
		c.ended <- err
	}()
	if _, err := c.ask(req("0", "initialize", `"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"9"}`)); err != nil {
		t.Fatal(err)
	}
	return c
}

// ask sends a line and returns the next answer.
func (c *lineClient) ask(line string) (gate.Doc, error) {
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		return gate.Doc{}, err
	}
	answer, err := c.out.ReadBytes('\n')
	if err != nil {
		return gate.Doc{}, err
	}
	return gate.ParseDoc(answer)
}

// tries does a misdeed, and a call that is as it should be.
func (c *lineClient) tries(line string, code int) error {
	if code != 0 {
		answer, err := c.ask(line)
		if got := answer.At("/error/code").String(); err != nil || got != strconv.Itoa(code) {
			return fmt.Errorf("%.300s, %v; want code %d", answer, err, code)
		}
	} else if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		return err
	}
	answer, err := c.ask(req("77", "tools/call", `"name":"f__echo","arguments":{"text":"well"}`))
	if err != nil || answer.At("/result/content/0/text").Text() != "well" || answer.Get("id").String() != "77" {
		return fmt.Errorf("a call that is as it should be: %.300s, %v", answer, err)
	}
	return nil
}

func (c *lineClient) close(t testing.TB) {
	c.in.Close()
	if err := <-c.ended; err != nil {
		t.Errorf("the connection ended with %v", err)
	}
}

func TestTortureStdio(t *testing.T) {
	tt := torture(t)
	c := tt.lines(t)
	for name, m := range onLines {
		if err := c.tries(m.line, m.code); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	c.close(t)
}

// TestTortureClientLeavesNothing: however many misdeeds there are, in both eras and on
// stdio, goroutines, descriptors and memory stay what they were.
func TestTortureClientLeavesNothing(t *testing.T) {
	repetitions := 60
	if s := os.Getenv(repetitionsEnv); s != "" {
		var err error
		if repetitions, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	tt := torture(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	clients := []*badClient{tt.client(t, older), tt.client(t, newer)}
	round := func(n int) {
		r := rand.New(rand.NewPCG(seed, 0))
		lines := tt.lines(t)
		defer lines.close(t)
		for i := range n {
			c := clients[i%2]
			all := misdeeds([]string{older, newer}[i%2])
			names := slices.Sorted(maps.Keys(all))
			name := names[r.IntN(len(names))]
			m := all[name]
			resp, answer, err := c.do(t.Context(), m)
			if err := m.judge(resp, answer, err); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			on := slices.Sorted(maps.Keys(onLines))
			line := onLines[on[r.IntN(len(on))]]
			if err := lines.tries(line.line, line.code); err != nil {
				t.Fatal(err)
			}
			tt.records.forget()
		}
		for _, c := range clients {
			c.http.CloseIdleConnections()
		}
	}
	round(40) // what is made once is made now
	before := use()
	round(repetitions)
	after := use()
	for range 200 { // connections are closing
		if after.goroutines <= before.goroutines && after.files <= before.files {
			break
		}
		time.Sleep(10 * time.Millisecond)
		after = use()
	}
	t.Logf("before: %v; after %d misdeeds over HTTP and as many on stdio: %v", before, repetitions, after)
	const slack = 16 << 20 // bytes; what is kept for clients that come back is within it
	if after.goroutines > before.goroutines+2 || after.files > before.files+2 || after.heap > before.heap+slack {
		t.Errorf("before: %v; after: %v", before, after)
	}
}

// usage is what a process holds.
type usage struct {
	goroutines, files int
	heap              int64
}

func (u usage) String() string {
	return fmt.Sprintf("%d goroutines, %d descriptors, heap of %d KiB", u.goroutines, u.files, u.heap>>10)
}

func use() usage {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	files, _ := filepath.Glob("/proc/self/fd/*") // none where there is no such folder
	return usage{runtime.NumGoroutine(), len(files), int64(m.HeapAlloc)}
}

// forget drops what was recorded.
func (r *records) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.codes = nil
}
