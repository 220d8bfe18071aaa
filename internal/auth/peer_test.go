package auth_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/internal/auth"
	"github.com/wasmgate/wasmgate/internal/auth/authtest"
)

// TestProxyProof: a proxy is one that comes from its address and sends the secret that only it knows.
// The headers of the proxy are removed from all other requests.
func TestProxyProof(t *testing.T) {
	from := []netip.Prefix{netip.MustParsePrefix("10.1.2.3/32"), netip.MustParsePrefix("192.0.2.0/24")}
	for name, tt := range map[string]struct {
		addr, says, secret string
		want               int
	}{
		"it":                     {"10.1.2.3:5", "s3", "s3", 200},
		"its other address":      {"192.0.2.9:5", "s3", "s3", 200},
		"written as IPv6":        {"[::ffff:10.1.2.3]:5", "s3", "s3", 200},
		"another address":        {"10.1.2.4:5", "s3", "s3", 401},
		"no address":             {"@", "s3", "s3", 401},
		"another secret":         {"10.1.2.3:5", "s4", "s3", 401},
		"nothing, where none is": {"10.1.2.3:5", "", "", 401},
	} {
		a, err := auth.New(auth.Options{Proxy: &auth.Proxy{From: from, Header: "X-Secret", Secret: tt.secret, User: "X-User", Email: "X-Email"}})
		if err != nil {
			t.Fatal(err)
		}
		r := ask("")
		r.RemoteAddr = tt.addr
		r.Header = http.Header{"X-Secret": {tt.says}, "X-User": {"ann"}, "X-Email": {"ann@example.com"}}
		if code, refusal := status(a, r); code != tt.want {
			t.Errorf("%s: %d %v, want %d", name, code, refusal, tt.want)
		}
		if tt.want != 200 && len(r.Header) != 0 {
			t.Errorf("%s: whoever comes behind reads %v", name, r.Header)
		}
	}
}

// TestCertificateNames: a certificate is its holder's if it was verified, has not ended, and has one name of the kind that counts.
func TestCertificateNames(t *testing.T) {
	uri := &url.URL{Scheme: "spiffe", Host: "example.com", Path: "/ann"}
	whole := x509.Certificate{
		Raw: []byte("x"), NotAfter: time.Now().Add(time.Hour), Subject: pkix.Name{CommonName: "ann"},
		DNSNames: []string{"ann.example.com"}, EmailAddresses: []string{"ann@example.com"}, URIs: []*url.URL{uri},
	}
	for name, tt := range map[string]struct {
		by     string
		change func(*x509.Certificate)
		id     string
		want   int
	}{
		"common name":       {auth.CommonName, nil, "ann", 200},
		"DNS name":          {auth.DNSName, nil, "ann.example.com", 200},
		"e-mail":            {auth.Email, nil, "ann@example.com", 200},
		"URI":               {auth.URI, nil, "spiffe%3A%2F%2Fexample.com%2Fann", 200},
		"no name":           {auth.DNSName, func(c *x509.Certificate) { c.DNSNames = nil }, "", 403},
		"two names":         {auth.DNSName, func(c *x509.Certificate) { c.DNSNames = []string{"ann", "bob"} }, "", 403},
		"an empty name":     {auth.CommonName, func(c *x509.Certificate) { c.Subject.CommonName = "" }, "", 403},
		"a name too long":   {auth.CommonName, func(c *x509.Certificate) { c.Subject.CommonName = strings.Repeat("a", 129) }, "", 403},
		"the id of nobody":  {auth.CommonName, func(c *x509.Certificate) { c.Subject.CommonName = "local" }, "", 403},
		"ended, on a stand": {auth.CommonName, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Second) }, "", 401},
	} {
		a, err := auth.New(auth.Options{MTLS: tt.by})
		if err != nil {
			t.Fatal(err)
		}
		c := whole
		if tt.change != nil {
			tt.change(&c)
		}
		r := ask("")
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{&c}, VerifiedChains: [][]*x509.Certificate{{&c}}}
		who, err := a.Principal(r, resource)
		if code, refusal := status(a, r); code != tt.want || err == nil && who.ID != tt.id {
			t.Errorf("%s: %d %v, %+v; want %d %s", name, code, refusal, who, tt.want, tt.id)
		}
		r.TLS.VerifiedChains = nil
		if code, _ := status(a, r); code != 401 {
			t.Errorf("%s, not verified: %d", name, code)
		}
	}
}

// TestKinds: records say in one of seven words why a caller was refused.
func TestKinds(t *testing.T) {
	p, away := authtest.New(t), authtest.New(t)
	away.Down.Store(true)
	a, none := newAuth(t, p, nil), newAuth(t, away, nil)
	two := ask("x")
	two.Header.Set("X-API-Key", "x")
	for want, tt := range map[string]struct {
		a *auth.Authenticator
		r *http.Request
	}{
		"missing":     {a, ask("")},
		"malformed":   {a, two},
		"invalid":     {a, ask("x")},
		"expired":     {a, ask(p.Sign(t, p.Claims(map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}), nil))},
		"scope":       {a, ask(p.Sign(t, p.Claims(map[string]any{"scope": ""}), nil))},
		"stranger":    {a, ask(p.Sign(t, p.Claims(map[string]any{"sub": nil}), nil))},
		"unavailable": {none, ask(away.Sign(t, away.Claims(nil), nil))},
	} {
		_, err := tt.a.Principal(tt.r, resource)
		refusal, ok := errors.AsType[*auth.Refusal](err)
		if !ok || refusal.Kind() != want {
			t.Errorf("%v is recorded as another than %s", err, want)
		}
	}
}

// TestProxyCertificate: the proxy proves itself by an unexpired certificate with exactly its name; a
// wildcard certificate does not count.
func TestProxyCertificate(t *testing.T) {
	soon := time.Now().Add(time.Hour)
	for name, tt := range map[string]struct {
		cert x509.Certificate
		want int
	}{
		"its common name":          {x509.Certificate{NotAfter: soon, Subject: pkix.Name{CommonName: "proxy.example.com"}}, 200},
		"its name":                 {x509.Certificate{NotAfter: soon, DNSNames: []string{"a.example.com", "Proxy.example.com"}}, 200},
		"one of all names":         {x509.Certificate{NotAfter: soon, DNSNames: []string{"*.example.com"}}, 401},
		"another name":             {x509.Certificate{NotAfter: soon, DNSNames: []string{"a.example.com"}}, 401},
		"its name, which is over":  {x509.Certificate{NotAfter: time.Now().Add(-time.Second), DNSNames: []string{"proxy.example.com"}}, 401},
		"no name":                  {x509.Certificate{NotAfter: soon}, 401},
		"its name as an e-mail is": {x509.Certificate{NotAfter: soon, EmailAddresses: []string{"proxy.example.com"}}, 401},
	} {
		a, err := auth.New(auth.Options{Proxy: &auth.Proxy{Cert: "proxy.example.com", User: "X-User"}})
		if err != nil {
			t.Fatal(err)
		}
		r := ask("")
		r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{&tt.cert}}}
		r.Header.Set("X-User", "ann")
		if code, refusal := status(a, r); code != tt.want {
			t.Errorf("%s: %d %v, want %d", name, code, refusal, tt.want)
		}
	}
}
