package app_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/internal/auth/authtest"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// An authority issues certificates for tests.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	made int64
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t}
	c, key := a.issue("authority", func(c *x509.Certificate) {
		c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign
	})
	a.cert, a.key = c.Leaf, key
	return a
}

// issue makes a certificate for servers at 127.0.0.1 and for clients; of the authority itself
// while it has none.
func (a *authority) issue(name string, change func(*x509.Certificate)) (tls.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	a.made++
	template := &x509.Certificate{
		SerialNumber: big.NewInt(a.made), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(30 * 24 * time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	if change != nil {
		change(template)
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, key
}

// files writes a certificate and its key, and returns what names them under tls.
func (a *authority) files(dir string, c tls.Certificate) string {
	a.t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		a.t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"gw.crt": {Type: "CERTIFICATE", Bytes: c.Certificate[0]}, "gw.key": {Type: "PRIVATE KEY", Bytes: der}, "clients.pem": {Type: "CERTIFICATE", Bytes: a.cert.Raw},
	} {
		write(a.t, filepath.Join(dir, name), string(pem.EncodeToMemory(block)))
	}
	return fmt.Sprintf("cert: %s/gw.crt, key: %s/gw.key, client_ca: %s/clients.pem", dir, dir, dir)
}

// client returns a client that trusts the authority, and shows a certificate.
func (a *authority) client(shows ...tls.Certificate) *http.Client {
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: shows}}
	a.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func (a *authority) named(name string) *http.Client {
	c, _ := a.issue(name, nil)
	return a.client(c)
}

// TestCertificates: who shows a client certificate is its holder; a token that is bound to one
// is taken with that one alone.
func TestCertificates(t *testing.T) {
	ca, p := newAuthority(t), authtest.New(t)
	cert, _ := ca.issue("gateway", nil)
	s := newSite(t, fmt.Sprintf("version: 1\nlisten: %%ADDR%%\npublic_url: https://%%ADDR%%\ntls: {%s}\nprincipals: {ann: {roles: [dev]}}\n"+
		"auth:\n  mtls: {id: cn}\n  issuers: {corp: {issuer: %q, claims: {roles: groups}, roles: {\"eng-*\": dev}}}\n", ca.files(t.TempDir(), cert), p.URL))
	url := "https://" + strings.TrimPrefix(strings.TrimPrefix(s.url, "http://"), "https://")
	anns, _ := ca.issue("ann", nil)
	sum := sha256.Sum256(anns.Certificate[0])
	bound := "Bearer " + p.Sign(t, p.Claims(map[string]any{"aud": url, "cnf": map[string]string{"x5t#S256": base64.RawURLEncoding.EncodeToString(sum[:])}}), nil)
	for name, tt := range map[string]struct {
		client  *http.Client
		headers []string
		status  int
		tools   string
	}{
		"the holder":                      {ca.client(anns), nil, 200, "read wait write"},
		"another":                         {ca.named("bob"), nil, 200, "read"},
		"the id of nobody":                {ca.named("local"), nil, 403, ""},
		"nobody":                          {ca.client(), nil, 401, ""},
		"a bound token, and its holder":   {ca.client(anns), []string{"Authorization", bound}, 200, "read wait write"},
		"a bound token, and another":      {ca.named("ann"), []string{"Authorization", bound}, 401, ""},
		"a bound token without":           {ca.client(), []string{"Authorization", bound}, 401, ""},
		"a name in the proxy's headers":   {ca.client(), []string{"X-Forwarded-User", "ann"}, 401, ""},
		"a certificate in a header alone": {ca.client(), []string{"X-Forwarded-Client-Cert", "Subject=\"CN=ann\""}, 401, ""},
	} {
		if status, got := s.tools(tt.client, url, tt.headers...); status != tt.status || got != tt.tools {
			t.Errorf("%s: %d %q, want %d %q", name, status, got, tt.status, tt.tools)
		}
	}
	other := newAuthority(t)
	foreign, _ := other.issue("ann", nil)
	if resp, err := ca.client(foreign).Get(url); err == nil {
		resp.Body.Close()
		t.Errorf("a certificate of another authority: %s", resp.Status)
	}
}

// TestCertificateProxy: the headers of a proxy count in requests with its certificate, and in
// no others.
func TestCertificateProxy(t *testing.T) {
	ca := newAuthority(t)
	cert, _ := ca.issue("gateway", nil)
	s := newSite(t, fmt.Sprintf("version: 1\nlisten: %%ADDR%%\npublic_url: https://%%ADDR%%\ntls: {%s}\n"+
		"auth: {mtls: {id: cn}, proxy: {client_cert: proxy.internal, user: X-Forwarded-User, groups: X-Forwarded-Groups, roles: {eng: dev}}}\n", ca.files(t.TempDir(), cert)))
	url := "https://" + strings.TrimPrefix(strings.TrimPrefix(s.url, "http://"), "https://")
	headers := []string{"X-Forwarded-User", "ann", "X-Forwarded-Groups", "eng"}
	for name, tt := range map[string]struct {
		client  *http.Client
		headers []string
		status  int
		tools   string
	}{
		"the proxy":           {ca.named("proxy.internal"), headers, 200, "read wait write"},
		"the proxy, nobody":   {ca.named("proxy.internal"), nil, 401, ""},
		"another certificate": {ca.named("bob"), headers, 200, "read"}, // as bob
		"no certificate":      {ca.client(), headers, 401, ""},
	} {
		if status, got := s.tools(tt.client, url, tt.headers...); status != tt.status || got != tt.tools {
			t.Errorf("%s: %d %q, want %d %q", name, status, got, tt.status, tt.tools)
		}
	}
}

// TestCertificateIsReread: who connects after the files have changed is shown the new
// certificate, and connections that stand go on.
func TestCertificateIsReread(t *testing.T) {
	unraced.Long(t)
	ca, dir := newAuthority(t), t.TempDir()
	first, _ := ca.issue("gateway", nil)
	s := newSite(t, fmt.Sprintf("version: 1\nlisten: %%ADDR%%\npublic_url: https://%%ADDR%%\ntls: {%s}\nauth: {mtls: {id: cn}}\n", ca.files(dir, first)))
	addr := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(s.url, "http://"), "https://"), "/mcp")
	stands := ca.named("ann")
	reused := func() (again bool) {
		trace := &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { again = i.Reused }}
		r, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodGet, "https://"+addr+"/none", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := stands.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body) // or the connection would not be used again
		resp.Body.Close()
		return again
	}
	reused()
	second, _ := ca.issue("gateway", nil)
	ca.files(dir, second)
	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	timelimit.Wait(t, "the new certificate", func() bool {
		c, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: roots})
		if err != nil {
			return false // between the two files
		}
		defer c.Close()
		return c.ConnectionState().PeerCertificates[0].SerialNumber.Cmp(second.Leaf.SerialNumber) == 0
	})
	if !reused() {
		t.Error("the connection that stood was closed")
	}
}

// TestRemovedAuthority: a connection ends whose client certificate is of an authority that was
// taken out of tls.client_ca; others go on.
func TestRemovedAuthority(t *testing.T) {
	unraced.Long(t)
	ca, other, dir := newAuthority(t), newAuthority(t), t.TempDir()
	cert, _ := ca.issue("gateway", nil)
	s := newSite(t, fmt.Sprintf("version: 1\nlisten: %%ADDR%%\npublic_url: https://%%ADDR%%\ntls: {%s}\nprincipals: {ann: {roles: [dev]}}\nauth: {mtls: {id: cn}}\n", ca.files(dir, cert)))
	authorities := func(of ...*authority) {
		t.Helper()
		var all []byte
		for _, a := range of {
			all = append(all, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})...)
		}
		write(t, filepath.Join(dir, "clients.pem"), string(all))
	}
	authorities(ca, other)
	addr := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(s.url, "http://"), "https://"), "/mcp")
	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	shows := func(a *authority) *tls.Conn {
		t.Helper()
		own, _ := a.issue("ann", nil)
		c, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{own}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	answers := func(c *tls.Conn) bool {
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		fmt.Fprintf(c, "GET /none HTTP/1.1\r\nHost: %s\r\n\r\n", addr)
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			return false
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		return true
	}
	timelimit.Wait(t, "the second authority", func() bool { return answers(shows(other)) })
	stays, goes := shows(ca), shows(other)
	if !answers(stays) || !answers(goes) {
		t.Fatal("a certificate of one of two authorities is refused")
	}
	authorities(ca)
	timelimit.Wait(t, "the end of the connection", func() bool { return !answers(goes) })
	if !answers(stays) {
		t.Error("the connection of the authority that stays has ended")
	}
}

// TestReloadsTLS: other files under tls, and another public URL, are used without a restart; a
// connection without a client certificate ends when one is required.
func TestReloadsTLS(t *testing.T) {
	unraced.Long(t)
	ca, dir, other := newAuthority(t), t.TempDir(), t.TempDir()
	first, _ := ca.issue("gateway", nil)
	yaml := "version: 1\nlisten: %%ADDR%%\npublic_url: https://%s\ntls: {%s}\nprincipals: {ann: {roles: [dev]}}\nauth: {mtls: {id: cn}}\n"
	s := newSite(t, fmt.Sprintf(yaml, "one.example", ca.files(dir, first)))
	second, _ := ca.issue("gateway", nil)
	text := fmt.Sprintf(yaml, "two.example", ca.files(other, second)+", client: required")
	addr := strings.TrimSuffix(strings.TrimPrefix(s.url, "https://"), "/mcp")
	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	stands, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: roots})
	if err != nil {
		t.Fatal(err)
	}
	defer stands.Close()
	if got := stands.ConnectionState().PeerCertificates[0].SerialNumber; got.Cmp(first.Leaf.SerialNumber) != 0 {
		t.Fatalf("the certificate %v", got)
	}
	_ = stands.SetDeadline(time.Now().Add(time.Minute))
	fmt.Fprintf(stands, "GET /none HTTP/1.1\r\nHost: %s\r\n\r\n", addr) // now it may be idle for two minutes
	resp, err := http.ReadResponse(bufio.NewReader(stands), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	write(t, s.cfg.File, strings.ReplaceAll(text, "%ADDR%", addr))
	own, _ := ca.issue("ann", nil)
	timelimit.Wait(t, "the other certificate", func() bool {
		c, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{own}})
		if err != nil {
			return false
		}
		defer c.Close()
		return c.ConnectionState().PeerCertificates[0].SerialNumber.Cmp(second.Leaf.SerialNumber) == 0
	})
	_ = stands.SetDeadline(time.Now().Add(time.Minute))
	if _, err := stands.Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
		t.Errorf("a connection without a client certificate stands: %v", err)
	}
	timelimit.Wait(t, "the other URL", func() bool { return s.App.Public() == "https://two.example" })
	if p := strings.Join(s.Overview.Status().Problems, "\n"); strings.Contains(p, "restart") {
		t.Error(p)
	}
}
