package gateway_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

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
		Recorder: tt.records, Policy: granting("f__*"), Limits: gateway.Limits{Body: 4 << 20, Concurrent: 16, Wait: time.Minute},
		Functions: map[string][]options.LocalTool{"f": {tool("echo", nil), tool("waits", func(ctx context.Context, _ *gate.Call, _ gate.Permit) (gate.Result, error) {
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

// A bad client does misdeeds in a protocol revision.
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

// well reports that a client that does nothing wrong is served.
func (c *badClient) well(ctx context.Context) error {
	_, answer, err := c.do(ctx, misdeed{body: req("$", "tools/call", `"name":"f__echo","arguments":{"text":"well"},$m`)})
	if err != nil || !strings.Contains(answer, `"text":"well"`) {
		return fmt.Errorf("a call that is as it should be: %.300s, %v", answer, err)
	}
	return nil
}

// TestTortureClient: whatever a client does wrong is answered with what was wrong, and
// harms neither it nor others.
func TestTortureClient(t *testing.T) {
	unraced.Long(t)
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

// TestTortureSessions: a session ends once, and belongs to no client afterwards; an id is that of
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
	rig.Within(t, "the call is under way", func() bool { return tt.records.has("granted ") })
	twice := misdeed{body: stream("500").body, status: 200, code: -32600, says: "duplicate"}
	soon, cancel := context.WithTimeout(t.Context(), patience) // if two requests of one id are under way, neither ends
	defer cancel()
	resp, answer, err := c.do(soon, twice)
	if err := twice.judge(resp, answer, err); err != nil {
		t.Error(err)
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
	resp, answer, err = c.do(t.Context(), misdeed{body: req("$", "tools/list", "")})
	if err != nil || resp.StatusCode != 404 {
		t.Errorf("a session that has ended: %v %s, %v", resp, answer, err)
	}
	if err := tt.client(t, older).well(t.Context()); err != nil {
		t.Errorf("another session: %v", err)
	}
}
