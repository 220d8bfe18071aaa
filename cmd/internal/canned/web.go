package canned

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/bridge/dial"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/config/cases"
	"github.com/wasmgate/wasmgate/internal/config/tree"
)

// A Web answers the requests of a case instead of all origins. The requests go the way of real
// ones, TLS included, on connections within the process.
type Web struct {
	server  *http.Server
	conns   chan net.Conn
	roots   *x509.CertPool
	sign    func(host string) (*tls.Certificate, error)
	answers []cases.CannedHTTP

	mu       sync.Mutex
	asked    []bool // of answers
	problems []tree.Problem
	file     string
}

// New returns the web of a case. It must be closed.
func New(file string, answers []cases.CannedHTTP) (*Web, error) {
	w := &Web{conns: make(chan net.Conn), answers: answers, asked: make([]bool, len(answers)), file: file}
	if err := w.certify(); err != nil {
		return nil, err
	}
	w.server = &http.Server{Handler: w, ReadHeaderTimeout: time.Minute}
	go func() { _ = w.server.Serve(pipes{w.conns, make(chan struct{})}) }() // ends with close
	return w, nil
}

// Close ends it.
func (w *Web) Close() error { return w.server.Close() }

// certify makes the authority that origins are known by.
func (w *Web) certify() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	w.sign = func(host string) (*tls.Certificate, error) {
		leaf := &x509.Certificate{SerialNumber: big.NewInt(2), NotAfter: authority.NotAfter, DNSNames: []string{host}}
		if a, err := netip.ParseAddr(host); err == nil {
			leaf.DNSNames, leaf.IPAddresses = nil, []net.IP{a.AsSlice()}
		}
		der, err := x509.CreateCertificate(rand.Reader, leaf, authority, key.Public(), key)
		return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, authority, authority, key.Public(), key)
	if err != nil {
		return err
	}
	root, err := x509.ParseCertificate(der)
	if err != nil {
		return err
	}
	w.roots = x509.NewCertPool()
	w.roots.AddCert(root)
	return nil
}

// Options lead all connections here.
func (w *Web) Options() dial.Options {
	return dial.Options{
		Roots: w.roots,
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.AddrFrom4([4]byte{1, 1, 1, 1})}, nil // any public one: it is not dialled
		},
		Connect: func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			client, server := net.Pipe()
			select {
			case w.conns <- &perhapsTLS{Conn: server, web: w, host: to.Addr().String()}:
				return client, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
	}
}

// ServeHTTP answers with the first answer that fits and was not given yet.
func (w *Web) ServeHTTP(to http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	scheme := "http"
	if c, ok := r.Context().Value(http.LocalAddrContextKey).(addr); ok && c.tls() {
		scheme = "https"
	}
	url := scheme + "://" + r.Host + r.URL.RequestURI()
	w.mu.Lock()
	defer w.mu.Unlock()
	i := 0
	for i < len(w.answers) && (w.asked[i] || w.answers[i].Method != r.Method || w.answers[i].URL != url && w.answers[i].URL+"/" != url) {
		i++
	}
	if i == len(w.answers) {
		w.problems = append(w.problems, tree.Problem{File: w.file, Message: fmt.Sprintf("it asks for %s %s, and the case has no answer for that", r.Method, url)})
		to.WriteHeader(http.StatusBadGateway)
		return
	}
	a := w.answers[i]
	w.asked[i] = true
	for name, want := range a.SentHeaders {
		if got := r.Header.Get(name); got != want {
			w.problems = append(w.problems, tree.Problem{File: w.file, Line: a.Line, Message: fmt.Sprintf("it sends the header %s: %q, want %q", name, got, want)})
		}
	}
	if a.SentBody != nil && !sameBody(body, *a.SentBody) {
		w.problems = append(w.problems, tree.Problem{File: w.file, Line: a.Line, Message: fmt.Sprintf("it sends the body %.200q, want %.200q", body, *a.SentBody)})
	}
	to.Header()["Date"] = nil // equal answers are equal
	for name, value := range a.Headers {
		to.Header().Set(name, value)
	}
	to.WriteHeader(a.Status)
	_, _ = io.WriteString(to, a.Body)
}

// sameBody reports whether a body is the text, or the same JSON.
func sameBody(got []byte, want string) bool {
	if string(got) == want {
		return true
	}
	x, err := gate.ParseDoc(got)
	if err != nil {
		return false
	}
	y, err := gate.ParseDoc([]byte(want))
	return err == nil && x.Digest() == y.Digest()
}

// Found is what was wrong with the requests of the case, which is over.
func (w *Web) Found() []tree.Problem {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := slices.Clone(w.problems)
	for i, a := range w.answers {
		if !w.asked[i] {
			all = append(all, tree.Problem{File: w.file, Line: a.Line, Message: fmt.Sprintf("it does not ask for %s %s", a.Method, a.URL)})
		}
	}
	return all
}

// pipes is a listener of connections within the process.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

// Accept implements [net.Listener].
func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (p pipes) Close() error {
	close(p.done)
	return nil
}

// Addr implements [net.Listener].
func (pipes) Addr() net.Addr { return &net.UnixAddr{Name: "canned", Net: "unix"} }

// perhapsTLS is the server's end of a connection, whose first byte says whether it is TLS.
type perhapsTLS struct {
	net.Conn
	web    *Web
	host   string // that the client dialled, if it names none
	once   sync.Once
	spoken net.Conn
	err    error
}

// handshake is the first byte of TLS (RFC 8446, 5.1).
const handshake = 0x16

func (c *perhapsTLS) begin() {
	r := bufio.NewReader(c.Conn)
	first, err := r.Peek(1)
	if err != nil {
		c.err = err
		return
	}
	plain := &peeked{c.Conn, io.MultiReader(bytes.NewReader(first), c.Conn)}
	if rest, err := r.Peek(r.Buffered()); err == nil {
		plain.r = io.MultiReader(bytes.NewReader(bytes.Clone(rest)), c.Conn)
	}
	if c.spoken = plain; first[0] == handshake {
		c.spoken = tls.Server(plain, &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if hello.ServerName == "" {
				return c.web.sign(c.host)
			}
			return c.web.sign(hello.ServerName)
		}})
	}
}

// Read implements [net.Conn].
func (c *perhapsTLS) Read(p []byte) (int, error) {
	if c.once.Do(c.begin); c.err != nil {
		return 0, c.err
	}
	return c.spoken.Read(p)
}

// Write implements [net.Conn]. A server writes when it has read.
func (c *perhapsTLS) Write(p []byte) (int, error) {
	if c.once.Do(c.begin); c.err != nil {
		return 0, c.err
	}
	return c.spoken.Write(p)
}

// LocalAddr implements [net.Conn].
func (c *perhapsTLS) LocalAddr() net.Addr { return addr{c} }

type addr struct{ *perhapsTLS }

func (addr) Network() string { return "pipe" }
func (addr) String() string  { return "canned" }

// tls reports whether the connection turned out to be TLS.
func (a addr) tls() bool {
	_, is := a.spoken.(*tls.Conn)
	return is
}

// peeked is a connection whose beginning was read before.
type peeked struct {
	net.Conn
	r io.Reader
}

// Read implements [net.Conn].
func (p *peeked) Read(b []byte) (int, error) { return p.r.Read(b) }
