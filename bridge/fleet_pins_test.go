package bridge_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
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

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/wasmgate/wasmgate/bridge"
	"github.com/wasmgate/wasmgate/gate"
)

// pins approve of the tools whose names they have, and keep what they observe.
type pins struct {
	approved, pinned []string

	mu       sync.Mutex
	observed []bridge.Declaration
}

func (p *pins) Observe(d bridge.Declaration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.observed = append(p.observed, d)
}

func (p *pins) last() bridge.Declaration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.observed) == 0 {
		return bridge.Declaration{}
	}
	return p.observed[len(p.observed)-1]
}

func (p *pins) Check(t *gate.Tool) error {
	if !slices.Contains(p.approved, t.Local) {
		return errors.New("not approved")
	}
	return nil
}

func (p *pins) CheckInstructions(server string, _ gate.Doc) error {
	if !slices.Contains(p.approved, server+" instructions") {
		return errors.New("not approved")
	}
	return nil
}

func (p *pins) Pinned(t *gate.Tool) bool { return slices.Contains(p.pinned, t.Local) }

// Pins see everything that a server declares, before it can be looked up, and again
// when the server says that it has changed.
func TestPinsObserve(t *testing.T) {
	s := newScript(map[string]string{"initialize": strings.Replace(initialized, `"capabilities"`, `"instructions":"be kind","capabilities"`, 1)})
	s.list(echoTool + `,{"name":"more","inputSchema":{"type":"object"},"later":{"x":1}}`)
	p := &pins{}
	local, err := bridge.NewLocal("go", options(), bridge.LocalTool{Definition: gate.MustDoc(echoTool), Call: func(context.Context, *gate.Call, gate.Permit) (gate.Result, error) { return gate.Result{}, nil }})
	if err != nil {
		t.Fatal(err)
	}
	f, err := bridge.NewFleet(bridge.FleetConfig{Locals: []*bridge.Local{local}, Servers: []bridge.EndpointConfig{s.config("s")}, Pins: p})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if d := p.last(); d.Server != "go" || d.Config != nil || len(d.Tools) != 1 || !d.Own[0] {
		t.Errorf("of a local server: %+v", d)
	}
	if err := f.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	d := p.last()
	if d.Server != "s" || d.Config == nil || d.Config.Server != "s" || d.Instructions.Text() != "be kind" || !d.Announced.IsZero() {
		t.Errorf("declaration = %+v", d)
	}
	if len(d.Tools) != 2 || d.Own[0] || d.Own[1] || d.Tools[1].Get("later").IsZero() {
		t.Errorf("tools = %v", d.Tools)
	}
	if tool, err := f.Lookup(t.Context(), gate.CallTool, "s__more"); err != nil || tool.Digest != d.Tools[1].Digest() {
		t.Errorf("the tool is known by %v, not by the digest of its declaration: %v", tool, err)
	}

	s.list(echoTool)
	s.tell(&jsonrpc.Request{Method: "notifications/tools/list_changed"})
	for giveUp := time.Now().Add(10 * time.Second); p.last().Announced.IsZero(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(giveUp) {
			t.Fatal("the announcement is not observed")
		}
	}
	if d := p.last(); len(d.Tools) != 1 {
		t.Errorf("tools = %v", d.Tools)
	}
}

// A call that comes after an announcement is not made of the definition from before
// it, however soon it comes and however often the server announces.
func TestCallsWaitForWhatIsAnnounced(t *testing.T) {
	s := newScript(nil)
	f, err := bridge.NewFleet(bridge.FleetConfig{Servers: []bridge.EndpointConfig{s.config("s")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := f.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		def := fmt.Sprintf(`{"name":"echo","inputSchema":{"type":"object"},"description":"version %d"}`, i)
		s.list(def)
		s.tell(&jsonrpc.Request{Method: "notifications/tools/list_changed"})
		if _, err := do(t.Context(), t, f, "s__echo", "{}"); err != nil { // its answer comes after the announcement
			t.Fatal(err)
		}
		tool, err := f.Lookup(t.Context(), gate.CallTool, "s__echo")
		if err != nil || tool.Digest != gate.MustDoc(def).Digest() {
			t.Errorf("version %d: found %s, %v", i, tool.Definition, err)
		}
	}
}

func TestPinnedToolsSaySo(t *testing.T) {
	s := newScript(nil)
	s.list(echoTool + `,{"name":"reads","inputSchema":{"type":"object"}},{"name":"unknown","inputSchema":{"type":"object"}}`)
	p := &pins{approved: []string{"echo", "reads"}, pinned: []string{"reads", "unknown"}}
	f, err := bridge.NewFleet(bridge.FleetConfig{Servers: []bridge.EndpointConfig{s.config("s")}, Pins: p})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := f.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, tool := range f.Tools(t.Context()) {
		if tool.Pinned {
			got = append(got, tool.Local)
		}
	}
	if !slices.Equal(got, []string{"reads"}) {
		t.Errorf("pinned: %v", got)
	}
	told := 0
	defer f.Watch(func() { told++ })()
	p.pinned = nil
	f.Refresh()
	if told != 1 || f.Known()[1].Pinned {
		t.Errorf("after a refresh: told %d times, %+v", told, f.Known()[1])
	}
}

// certificate returns a new certificate for 127.0.0.1, with the SHA-256 of its key.
func certificate(t *testing.T) (tls.Certificate, *x509.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(parsed.RawSubjectPublicKeyInfo)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, parsed, hex.EncodeToString(sum[:])
}

// The key of a certificate is told, if that is asked for, and while the gateway is
// connected no connection with another key is made: whoever holds one that is
// trusted too gets no request.
func TestTLSKey(t *testing.T) {
	first, firstRoot, want := certificate(t)
	second, secondRoot, _ := certificate(t)
	roots := x509.NewCertPool()
	roots.AddCert(firstRoot)
	roots.AddCert(secondRoot)
	var shown atomic.Pointer[tls.Certificate]
	shown.Store(&first)
	var requests atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	s.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return &tls.Config{Certificates: []tls.Certificate{*shown.Load()}}, nil
	}}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	client, key, err := bridge.NewPinnedClient(bridge.EndpointConfig{Server: "s", URL: s.URL, PinTLS: true}, roots)
	if err != nil {
		t.Fatal(err)
	}
	get := func() error {
		resp, err := client.Get(s.URL)
		if err == nil {
			resp.Body.Close()
		}
		client.CloseIdleConnections()
		return err
	}
	if err := errors.Join(get(), get()); err != nil || key() != want {
		t.Fatalf("key = %q, want %q: %v", key(), want, err)
	}
	before := requests.Load()
	shown.Store(&second)
	if err := get(); err == nil || !strings.Contains(err.Error(), "key of the server's certificate has changed") {
		t.Errorf("err = %v", err)
	}
	if requests.Load() != before || key() != want {
		t.Error("a request went to another key")
	}
}
