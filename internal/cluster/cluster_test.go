package cluster

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/internal/auth"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// A registry is the table of gateways.
type registry struct {
	mu  sync.Mutex
	at  map[string]string
	err error
}

func (g *registry) Find(_ context.Context, node string, _ bool) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.at[node], g.err
}

func (g *registry) set(node, url string, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.at[node], g.err = url, err
}

func newKey() []byte {
	key := make([]byte, 32)
	rand.Read(key)
	return key
}

// peers returns those of a gateway, and what they report.
func (g *registry) peers(t *testing.T, node string, key []byte) (*Peers, *bytes.Buffer) {
	t.Helper()
	var reports bytes.Buffer
	p, err := New(Options{Node: node, Listen: "127.0.0.1:0", Key: key, Find: g.Find, Log: slog.New(slog.NewTextHandler(&reports, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Shutdown(context.Background()) })
	return p, &reports
}

// serve has a gateway answer what others forward, and returns its URL.
func serve(t *testing.T, p *Peers, next http.Handler) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { served <- p.serve(ctx, ln, next) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return "https://" + ln.Addr().String()
}

// forward is a request that a gateway forwards to another one.
func forward(p *Peers, to string, r *http.Request, body string) (w *httptest.ResponseRecorder, gone bool, err error) {
	w = httptest.NewRecorder()
	w.Header().Set("Vary", "Origin")
	gone, err = p.Forward(w, r, to, []byte(body))
	return w, gone, err
}

func post() *http.Request {
	r := httptest.NewRequest(http.MethodPost, "http://gate.example:7420/mcp/group", strings.NewReader("was read"))
	r.RemoteAddr = "192.0.2.7:1234"
	r.Header.Set("Authorization", "Bearer of the client")
	r.Header.Set("X-Forwarded-For", "198.51.100.1")
	r.Header.Set("X-Forwarded-User", "alice")
	return r
}

func TestForward(t *testing.T) {
	g, key := &registry{at: map[string]string{}}, newKey()
	one, _ := g.peers(t, "one", key)
	two, _ := g.peers(t, "two", key)
	var got *http.Request
	var body []byte
	url := serve(t, two, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		w.Header().Set("Vary", "Origin")
		w.WriteHeader(http.StatusTeapot)
		io.WriteString(w, "answer")
	}))
	g.set("two", url, nil)
	r := post()
	r = r.WithContext(auth.WithPeer(r.Context(), auth.Peer{Unix: true, UID: -1, Proxy: true}))
	w, gone, err := forward(one, "two", r, "message")
	if gone || err != nil || w.Code != http.StatusTeapot || w.Body.String() != "answer" || len(w.Header()["Vary"]) != 1 {
		t.Fatalf("answer %v %v %d %q %v", gone, err, w.Code, w.Body, w.Header())
	}
	if string(body) != "message" || got.Host != r.Host || got.URL.Path != "/mcp/group" || got.RemoteAddr != r.RemoteAddr || got.TLS != nil || auth.PeerOf(got.Context()) != auth.PeerOf(r.Context()) {
		t.Errorf("the other gateway gets %q %+v", body, got)
	}
	for name, values := range r.Header {
		if !slices.Equal(got.Header[name], values) {
			t.Errorf("header %s is %q", name, got.Header[name])
		}
	}
	if got.Header[header] != nil {
		t.Error("the mark of the forwarding goes on")
	}
	// It is not forwarded again.
	if gone, err := two.Forward(httptest.NewRecorder(), got, "one", nil); !gone || err != nil {
		t.Errorf("forwarded twice: %v %v", gone, err)
	}
}

// What the client's connection proves is what the other gateway sees of it: never the certificate of
// the gateway between.
func TestForwardCertificate(t *testing.T) {
	g, key := &registry{at: map[string]string{}}, newKey()
	one, _ := g.peers(t, "one", key)
	two, _ := g.peers(t, "two", key)
	var got *tls.ConnectionState
	g.set("two", serve(t, two, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.TLS })), nil)
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1)}
	if c.Raw, err = x509.CreateCertificate(rand.Reader, c, c, own.Public(), own); err != nil {
		t.Fatal(err)
	}
	for name, state := range map[string]*tls.ConnectionState{
		"none": nil, "no certificate": {}, "one that is not verified": {PeerCertificates: []*x509.Certificate{c}},
		"a verified one": {PeerCertificates: []*x509.Certificate{c}, VerifiedChains: [][]*x509.Certificate{{c}}},
	} {
		r := post()
		r.TLS = state
		if _, gone, err := forward(one, "two", r, ""); gone || err != nil {
			t.Fatal(name, gone, err)
		}
		if state == nil != (got == nil) {
			t.Errorf("%s: TLS is %v", name, got)
			continue
		}
		if state != nil && (len(got.PeerCertificates) != len(state.PeerCertificates) || len(got.VerifiedChains) != len(state.VerifiedChains)) {
			t.Errorf("%s: %d certificates, %d chains", name, len(got.PeerCertificates), len(got.VerifiedChains))
		}
		if state != nil && len(got.PeerCertificates) > 0 && !bytes.Equal(got.PeerCertificates[0].Raw, c.Raw) {
			t.Errorf("%s: another certificate", name)
		}
	}
}

// Events pass one by one, and the end of either side is the end of the other.
func TestForwardStream(t *testing.T) {
	g, key := &registry{at: map[string]string{}}, newKey()
	one, _ := g.peers(t, "one", key)
	two, _ := g.peers(t, "two", key)
	next, ended := make(chan string), make(chan struct{})
	g.set("two", serve(t, two, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for {
			select {
			case event := <-next:
				io.WriteString(w, event)
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				close(ended)
				return
			}
		}
	})), nil)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if gone, err := one.Forward(w, r, "two", nil); gone || err != nil {
			t.Errorf("forwarded: %v %v", gone, err)
		}
	}))
	defer s.Close()
	var resp *http.Response
	opened := make(chan error, 1)
	go func() {
		var err error
		resp, err = http.Get(s.URL)
		opened <- err
	}()
	next <- "first"
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
	for _, event := range []string{"first", "second"} {
		if event != "first" {
			next <- event
		}
		got := make([]byte, len(event))
		if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != event {
			t.Fatalf("event %q, %v", got, err)
		}
	}
	resp.Body.Close()
	<-ended
}

// Only what proves the secret, and is the gateway that is meant, gets a request.
func TestNotBelieved(t *testing.T) {
	key := newKey()
	answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "forged") })
	raw := func(t *testing.T, say string) string {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ln.Close() })
		go func() {
			for {
				c, err := ln.Accept()
				if err != nil {
					return
				}
				t.Cleanup(func() { c.Close() })
				io.WriteString(c, say)
			}
		}()
		return "https://" + ln.Addr().String()
	}
	for name, tt := range map[string]struct {
		at     func(t *testing.T, g *registry) string
		report string
	}{
		"another secret": {func(t *testing.T, g *registry) string {
			p, _ := g.peers(t, "two", newKey())
			return serve(t, p, answer)
		}, "does not prove the secret of the database: give all gateways the same store.secret"},
		"another gateway": {func(t *testing.T, g *registry) string {
			p, _ := g.peers(t, "three", key)
			return serve(t, p, answer)
		}, "set cluster.url of two to an address of that gateway only"},
		"itself": {func(t *testing.T, g *registry) string {
			p, _ := g.peers(t, "one", key)
			return serve(t, p, answer)
		}, "set cluster.url of two to an address of that gateway only"},
		"a web server": {func(t *testing.T, _ *registry) string {
			s := httptest.NewTLSServer(answer)
			t.Cleanup(s.Close)
			return s.URL
		}, "the cluster.url of two"},
		"no TLS":         {func(t *testing.T, _ *registry) string { return raw(t, "HTTP/1.1 200 OK\r\n\r\nforged") }, "is not a gateway: see that cluster.url leads to cluster.listen of two"},
		"silence":        {func(t *testing.T, _ *registry) string { return raw(t, "") }, "deadline exceeded"},
		"nothing":        {func(*testing.T, *registry) string { return "https://127.0.0.1:1" }, "refused"},
		"garbage in TLS": {func(t *testing.T, g *registry) string { return garbage(t, g, key) }, "not answered"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := &registry{at: map[string]string{}}
			one, reports := g.peers(t, "one", key)
			g.set("two", tt.at(t, g), nil)
			w, gone, err := forward(one, "two", post(), "message")
			if gone || err == nil || w.Body.Len() > 0 || !strings.Contains(reports.String(), tt.report) {
				t.Errorf("answer %v %v %q, report %s", gone, err, w.Body, reports)
			}
			if sent := name == "garbage in TLS"; sent != errors.Is(err, errCut) {
				t.Errorf("the client reads %v", err)
			}
			// Its lease ends: then it is gone, and the client can begin anew.
			g.set("two", "", nil)
			if _, gone, err := forward(one, "two", post(), "message"); !gone || err != nil {
				t.Errorf("a gateway that has ended: %v %v", gone, err)
			}
		})
	}
}

// garbage is a gateway that answers something that is no HTTP.
func garbage(t *testing.T, g *registry, key []byte) string {
	p, _ := g.peers(t, "two", key)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	over := tls.NewListener(ln, p.tls)
	go func() {
		for {
			c, err := over.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				fmt.Fprint(c, strings.Repeat("garbage ", 100))
				_, _ = io.Copy(io.Discard, c)
			}()
		}
	}()
	return "https://" + ln.Addr().String()
}

// A stranger without the secret cannot ask a gateway, whatever it says.
func TestStranger(t *testing.T) {
	g := &registry{at: map[string]string{}}
	one, _ := g.peers(t, "one", newKey())
	url := serve(t, one, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a stranger is served") }))
	stranger, err := identity("two", newKey())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]*tls.Config{"no certificate": {}, "that of another secret": {Certificates: stranger.Certificates}} {
		c.InsecureSkipVerify = true
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: c, ForceAttemptHTTP2: true}}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(header, facts{Addr: "127.0.0.1:1"}.encode())
		if resp, err := client.Do(r); err == nil {
			resp.Body.Close()
			t.Errorf("%s: answered %d", name, resp.StatusCode)
		}
	}
	// Nor does a member without the facts of the request.
	member := &http.Client{Transport: &http.Transport{TLSClientConfig: one.tls, ForceAttemptHTTP2: true}}
	resp, err := member.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusBadRequest || !strings.Contains(string(text), "run the same version everywhere") {
		t.Errorf("answer %d %s", resp.StatusCode, text)
	}
}

// A gateway that stops while it answers is noticed, by its connection alone.
func TestStopped(t *testing.T) {
	g, key := &registry{at: map[string]string{}}, newKey()
	one, reports := g.peers(t, "one", key)
	two, _ := g.peers(t, "two", key)
	began := make(chan struct{}, 1)
	url := serve(t, two, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		began <- struct{}{}
		<-r.Context().Done()
	}))
	var stopped atomic.Bool
	g.set("two", network(t, url, func(to net.Conn, b []byte) {
		if !stopped.Load() {
			to.Write(b)
		}
	}), nil)
	done := make(chan error, 1)
	go func() {
		_, gone, err := forward(one, "two", post(), "message")
		if gone {
			err = errors.New("it is gone")
		}
		done <- err
	}()
	<-began
	stopped.Store(true)
	select {
	case err := <-done:
		if !errors.Is(err, errCut) {
			t.Errorf("the client reads %v", err)
		}
	case <-time.After(timelimit.Patience(t)):
		t.Fatal("a gateway that has stopped is waited for")
	}
	if !strings.Contains(reports.String(), "node=two") {
		t.Errorf("reports: %s", reports)
	}
}

// A gateway on a machine that is too busy is waited for, although it is silent for longer than the least
// Timeout, if the Timeout is longer.
func TestBusy(t *testing.T) {
	unraced.Long(t)
	g, key := &registry{at: map[string]string{}}, newKey()
	patient, err := New(Options{Node: "one", Listen: "127.0.0.1:0", Key: key, Find: g.Find, Timeout: time.Hour, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer patient.Shutdown(context.Background())
	two, _ := g.peers(t, "two", key)
	var busy sync.RWMutex // while it is locked, nothing passes
	url := serve(t, two, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		busy.Lock()
		time.AfterFunc(leastTimeout+pongMore+silence+200*time.Millisecond, busy.Unlock)
		_, _ = io.WriteString(w, "answer")
	}))
	g.set("two", network(t, url, func(to net.Conn, b []byte) {
		busy.RLock()
		defer busy.RUnlock()
		to.Write(b)
	}), nil)
	for range 9 { // this machine may be too busy itself
		var w *httptest.ResponseRecorder
		var gone bool
		if w, gone, err = forward(patient, "two", post(), "message"); !gone && err == nil && w.Body.String() == "answer" {
			return
		}
		err = fmt.Errorf("gone: %t, %q: %w", gone, w.Body, err)
	}
	t.Error(err)
}

// network is between gateways, and returns the URL at which it passes on to that of one. Write writes what arrives.
func network(t *testing.T, url string, write func(to net.Conn, b []byte)) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	pass := func(to, from net.Conn) {
		buf := make([]byte, 4096)
		for {
			n, err := from.Read(buf)
			if err != nil {
				return
			}
			write(to, buf[:n])
		}
	}
	go func() {
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", strings.TrimPrefix(url, "https://"))
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { in.Close(); out.Close() })
			go pass(in, out)
			go pass(out, in)
		}
	}()
	return "https://" + ln.Addr().String()
}

// While the database is away nothing is known of a gateway that was not seen before.
func TestFindFails(t *testing.T) {
	g := &registry{at: map[string]string{}, err: errors.New("the database is away")}
	one, _ := g.peers(t, "one", newKey())
	if gone, err := one.Forward(httptest.NewRecorder(), post(), "two", nil); gone || err == nil {
		t.Errorf("forwarded: %v %v", gone, err)
	}
	for _, bad := range []string{"", "a b", "a\x00", strings.Repeat("n", 65), "ä"} {
		if gone, err := one.Forward(httptest.NewRecorder(), post(), bad, nil); !gone || err != nil {
			t.Errorf("%q is looked for: %v %v", bad, gone, err)
		}
	}
}
