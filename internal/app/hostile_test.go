package app_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/app"
	"github.com/wasmgate/wasmgate/internal/auth/authtest"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
)

// A way is one in which a credential can be brought to the endpoint.
type way struct {
	name, method, body string
	headers            []string
}

const (
	clientMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"9"},"io.modelcontextprotocol/clientCapabilities":{}}`
	oldHello   = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"9"}}}`
	oldCall    = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"files__read","arguments":{}}}`
)

// ways are all in which a session, or none, is used: tools/call, streams, and the end of a
// session, in both revisions.
func ways(session string) []way {
	old := func(more ...string) []string {
		return append(more, "Mcp-Protocol-Version", "2025-11-25", "Mcp-Session-Id", session)
	}
	newest := func(method, name string) []string {
		return []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", method, "Mcp-Name", name}
	}
	return []way{
		{"a call", "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"files__read","arguments":{},` + clientMeta + `}}`, newest("tools/call", "files__read")},
		{"a stream", "POST", `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},` + clientMeta + `}}`, newest("subscriptions/listen", "")},
		{"a session's beginning", "POST", oldHello, nil},
		{"a session's call", "POST", oldCall, old()},
		{"a session's stream", "GET", "", old()},
		{"the rest of a session's stream", "GET", "", old("Last-Event-ID", "1_0")},
		{"a session's end", "DELETE", "", old()},
	}
}

// status sends a request as it is written, and returns the status of its answer. What
// net/http would not send is written to the connection by hand.
func (s *site) status(w way, authorization string) int {
	s.t.Helper()
	if strings.ContainsAny(authorization, "\r\n") {
		return s.byHand(w, authorization)
	}
	r, err := http.NewRequestWithContext(s.t.Context(), w.method, s.url, strings.NewReader(w.body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Authorization", authorization)
	for i := 0; i+1 < len(w.headers); i += 2 {
		r.Header.Set(w.headers[i], w.headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatalf("%s: %v", w.name, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 400 || strings.Contains(w.body, "tools/call") { // a client that leaves ends its call
		_, _ = io.Copy(io.Discard, resp.Body)
	}
	return resp.StatusCode
}

func (s *site) byHand(w way, authorization string) (status int) {
	s.t.Helper()
	u, err := url.Parse(s.url)
	if err != nil {
		s.t.Fatal(err)
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: %d\r\nAuthorization: %s\r\n",
		w.method, u.Path, u.Host, len(w.body), authorization)
	for i := 0; i+1 < len(w.headers); i += 2 {
		fmt.Fprintf(&b, "%s: %s\r\n", w.headers[i], w.headers[i+1])
	}
	b.WriteString("\r\n" + w.body)
	if _, err := conn.Write(b.Bytes()); err != nil {
		s.t.Fatal(err)
	}
	if _, err := fmt.Fscanf(conn, "HTTP/1.1 %d", &status); err != nil {
		s.t.Fatal(err)
	}
	return status
}

// session begins a session of revision 2025-11-25, and returns its id.
func (s *site) session(authorization string) string {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), "POST", s.url, strings.NewReader(oldHello))
	if err != nil {
		s.t.Fatal(err)
	}
	for name, v := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": authorization} {
		r.Header.Set(name, v)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	id := resp.Header.Get("Mcp-Session-Id")
	if id == "" {
		s.t.Fatalf("no session: %s", resp.Status)
	}
	return id
}

// calls counts the calls in the audit log.
func (s *site) calls() int { return s.granted("") }

// granted counts those of the tools whose names begin so.
func (s *site) granted(prefix string) (n int) {
	s.t.Helper()
	for e, err := range audit.Read(s.t.Context(), s.cfg.Audit.Path, audit.Filter{}) {
		if err != nil {
			s.t.Fatal(err)
		}
		if e.Event == gate.Granted && strings.HasPrefix(e.Tool, prefix) {
			n++
		}
	}
	return n
}

// TestHostileTokensAtTheEndpoint: what package auth refuses is let in on no way to the
// endpoint, also not into a session that is there, and costs no second look at the keys.
func TestHostileTokensAtTheEndpoint(t *testing.T) {
	s, p := newTeam(t)
	good := s.token(p, nil)
	session := s.session(good)
	all := ways(session)
	works := func() {
		t.Helper()
		for _, w := range []way{all[0], all[3]} {
			if status := s.status(w, good); status != 200 {
				t.Errorf("%s with the good token: %d", w.name, status)
			}
		}
	}
	works()
	begin := time.Now()
	hostile := authtest.Hostile(t, p, s.url)
	if len(hostile) < 29 {
		t.Errorf("%d hostile tokens", len(hostile))
	}
	for name, token := range hostile {
		for _, w := range all {
			want := 401
			if strings.Contains(token, "\n") {
				want = 400 // of the server that reads headers
			}
			if status := s.status(w, "Bearer "+token); status != want {
				t.Errorf("%s, %s: %d", name, w.name, status)
			}
		}
	}
	if n := p.Fetched.Load(); n != 1 {
		t.Errorf("hostile tokens have made the gateway fetch keys %d times", n)
	}
	for name, token := range authtest.UnknownKeys(t, p, s.url) {
		for _, w := range all {
			if status := s.status(w, "Bearer "+token); status != 401 && status != 503 {
				t.Errorf("key %s, %s: %d", name, w.name, status)
			}
		}
	}
	fetches(t, p, begin)
	works()
	if n := s.calls(); n != 4 {
		t.Errorf("%d calls were granted", n)
	}
}

// TestMutationsAtTheEndpoint: of a good token no change of any byte is let in by a running
// gateway, in either revision. WASMGATE_MUTATIONS says how many are tried.
func TestMutationsAtTheEndpoint(t *testing.T) {
	random := seed.Rand(t)
	s, p := newTeam(t)
	body, err := json.Marshal(p.Claims(map[string]any{"aud": s.url, "exp": time.Now().Add(12 * time.Hour).Unix()}))
	if err != nil {
		t.Fatal(err)
	}
	good := authtest.SignWith(t, jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: p.EC, KeyID: "ec"}}, body, nil)
	begin := time.Now()
	all := ways(s.session("Bearer " + good))
	for bad := range authtest.Mutations(random, good, authtest.HowMany(t, os.Getenv("WASMGATE_MUTATIONS"), 1000)) {
		w := all[random.IntN(len(all))]
		if status := s.status(w, "Bearer "+bad); status != 401 && status != 400 && status != 503 {
			t.Fatalf("%s with a mutation of a good token: %d; %s, of %s", w.name, status, bad, good)
		}
	}
	fetches(t, p, begin)
	if status := s.status(all[3], "Bearer "+good); status != 200 {
		t.Errorf("the good token, after all of them: %d", status)
	}
	if n := s.calls(); n != 1 {
		t.Errorf("%d calls were granted", n)
	}
}

// fetches fails if keys were fetched more often than unknown ones may have them be: once in 30 s.
func fetches(t *testing.T, p *authtest.Provider, begin time.Time) {
	t.Helper()
	if n, most := p.Fetched.Load(), 2+int64(time.Since(begin)/(30*time.Second)); n > most {
		t.Errorf("the keys were fetched %d times, which may be %d", n, most)
	}
}

// TestIssuersHaveNoPrivateAddress: a server or an issuer that names an address of this machine or network, however it
// is written, has nothing sent there; and a redirect is not followed.
func TestIssuersHaveNoPrivateAddress(t *testing.T) {
	var reached atomic.Bool
	at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if reached.Store(true); r.URL.Path != "/elsewhere" {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		}
	}))
	defer at.Close()
	_, port, err := net.SplitHostPort(at.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "[::1]", "2130706433", "0x7f000001", "0.0.0.0", "169.254.169.254", "10.0.0.1", "192.168.0.1", "[fd00::1]"} {
		c := app.AskOnly(false, "https://login.example.com/")
		c.Timeout = 5 * time.Second
		resp, err := c.Get("http://" + host + ":" + port + "/")
		if err == nil {
			resp.Body.Close()
		}
		if reached.Swap(false) {
			t.Errorf("%s reaches this machine: %v", host, err)
		}
	}
	if resp, err := app.AskOnly(true, at.URL).Get(at.URL); err == nil {
		resp.Body.Close()
		t.Errorf("a redirect is followed, to %s", resp.Request.URL)
	}
	reached.Store(false)
	near := load(t, "servers: {a: {url: \"http://127.0.0.1:"+port+"/mcp\", auth: oauth}}\n")
	for i, c := range append(app.LoginClients(near), app.IssuerClient(config.Issuer{URL: at.URL})) {
		for _, host := range []string{"10.0.0.1", "192.168.0.1", "172.16.0.1", "100.64.0.1", "[fd00::1]", "169.254.169.254", "[::ffff:169.254.169.254]", "[fe80::1]"} {
			c.Timeout = 5 * time.Second
			resp, err := c.Get("http://" + host + ":" + port + "/")
			if err == nil {
				resp.Body.Close()
			}
			if err == nil || !strings.Contains(err.Error(), "if that is meant") {
				t.Errorf("the client %d of a server on this machine goes on to %s: %v", i, host, err)
			}
		}
		if resp, err := c.Get("http://localhost:" + port + "/elsewhere"); err != nil {
			t.Errorf("the client %d of a server on this machine does not reach it: %v", i, err)
		} else {
			resp.Body.Close()
		}
	}
	reached.Store(false)
	elsewhere := load(t, "servers: {a: {url: \"https://a.example.com/mcp\", auth: oauth}, b: {url: \"https://b.example.com/mcp\", auth: {mode: oauth, issuer: \"https://login.example.com\"}}}\n")
	for i, c := range append(app.LoginClients(elsewhere), app.IssuerClient(config.Issuer{URL: "https://login.example.com"})) {
		c.Timeout = 5 * time.Second
		resp, err := c.Get(at.URL)
		if err == nil {
			resp.Body.Close()
		}
		if reached.Swap(false) {
			t.Errorf("the client %d of somebody elsewhere reaches this machine: %v", i, err)
		}
	}
}
