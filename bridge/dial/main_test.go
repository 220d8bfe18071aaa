package dial_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/wasmgate/wasmgate/bridge/dial"
)

// proxied counts what reaches the proxy that the environment of all tests names.
var proxied atomic.Int64

// The proxy is set for the whole binary: net/http reads these variables once.
func TestMain(m *testing.M) {
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { proxied.Add(1) }))
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		os.Setenv(name, proxy.URL)
	}
	os.Unsetenv("NO_PROXY")
	os.Unsetenv("no_proxy")
	code := m.Run()
	proxy.Close()
	os.Exit(code)
}

// world is a network: names, and servers that stand at any address by their port.
type world struct {
	t     *testing.T
	names map[string][]string // addresses, by host

	mu       sync.Mutex
	resolved []string
	dialled  []string // address and port
}

func newWorld(t *testing.T) *world { return &world{t: t, names: map[string][]string{}} }

func (w *world) client() *dial.Client {
	return dial.New(dial.Options{Resolve: w.resolve, Connect: w.connect})
}

func (w *world) resolve(_ context.Context, host string) ([]netip.Addr, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.resolved = append(w.resolved, host)
	var all []netip.Addr
	for _, s := range w.names[strings.TrimSuffix(host, ".")] {
		all = append(all, netip.MustParseAddr(s))
	}
	if all == nil {
		return nil, errors.New("no such host")
	}
	return all, nil
}

// connect makes the connection to this machine, whatever the address.
func (w *world) connect(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	w.mu.Lock()
	w.dialled = append(w.dialled, to.String())
	w.mu.Unlock()
	return new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(to.Port()))))
}

// serve starts a server and gives it a host name with a public address. It
// returns the origin.
func (w *world) serve(host string, h http.HandlerFunc) string {
	s := httptest.NewServer(h)
	w.t.Cleanup(s.Close)
	w.names[host] = []string{"93.184.215.14"}
	return "http://" + host + ":" + portOf(s.URL)
}

func portOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		panic(err)
	}
	return u.Port()
}

func yes(context.Context, dial.Target) error               { return nil }
func yesSecret(context.Context, string, dial.Target) error { return nil }
func anyMethod(origin string) dial.Rule                    { return dial.Rule{Origin: origin, Methods: methods} }
func says(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, body) }
}
func get(url string) dial.Request { return dial.Request{URL: url} }
func with(url, name, value string) dial.Request {
	return dial.Request{URL: url, Header: fields(name, value)}
}
func fields(name string, value ...string) map[string][]string {
	return map[string][]string{name: value}
}

var methods = []string{"GET", "HEAD", "POST", "PUT", "DELETE"}

func compile(t testing.TB, rules ...dial.Rule) dial.Rules {
	t.Helper()
	c, err := dial.Compile(rules)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// open is a scope that allows every method at the origins.
func open(t testing.TB, origins ...string) dial.Scope {
	t.Helper()
	var rules []dial.Rule
	for _, o := range origins {
		rules = append(rules, anyMethod(o))
	}
	return dial.Scope{Rules: compile(t, rules...), Ask: yes, AskSecret: yesSecret}
}

// randomText returns n characters, different ones each time.
func randomText(n int) string {
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(rand.Text())
	}
	return b.String()[:n]
}

func newSecret(t testing.TB, name, value, origin string) dial.Secret {
	t.Helper()
	s, err := dial.NewSecret(name, value, origin)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustDo(t testing.TB, e *dial.Egress, r dial.Request) dial.Response {
	t.Helper()
	res, err := e.Do(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func wantDenied(t testing.TB, err error, reason string) *dial.Denied {
	t.Helper()
	var d *dial.Denied
	if !errors.As(err, &d) {
		t.Fatalf("err = %v, want a Denied: %s", err, reason)
	}
	if !strings.Contains(d.Error(), reason) {
		t.Errorf("err = %v, want it to say %q", err, reason)
	}
	return d
}

func wantFailed(t testing.TB, err error, limit dial.Limit) *dial.Failed {
	t.Helper()
	var f *dial.Failed
	if !errors.As(err, &f) {
		t.Fatalf("err = %v, want a Failed", err)
	}
	if f.Limit != limit {
		t.Errorf("limit = %q (%v), want %q", f.Limit, err, limit)
	}
	return f
}

// counted counts what a handler serves.
func counted(h http.HandlerFunc) (http.HandlerFunc, *atomic.Int64) {
	n := new(atomic.Int64)
	return func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		h(w, r)
	}, n
}

func echoRequest(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	fmt.Fprintf(w, "%s %s %s\n", r.Method, r.RequestURI, body)
	r.Header.Write(w)
}
