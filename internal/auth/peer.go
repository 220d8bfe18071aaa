package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/gate"
)

// A Peer is what the connection of a request proves by itself, apart from a client certificate. The
// zero Peer proves nothing.
type Peer struct {
	Unix  bool // it is a Unix socket, and
	UID   int  // the number of the user at the other end
	Proxy bool // it is the socket that only the proxy may open
}

type peerKey struct{}

// WithPeer returns the context of a connection whose peer is known.
func WithPeer(ctx context.Context, p Peer) context.Context {
	return context.WithValue(ctx, peerKey{}, p)
}

// PeerOf returns what WithPeer was given.
func PeerOf(ctx context.Context) Peer {
	p, _ := ctx.Value(peerKey{}).(Peer)
	return p
}

// A Proxy authenticates people itself and names them in headers. It proves itself by one
// way: the socket of a [Peer], the name in its certificate, or an address with a secret.
type Proxy struct {
	Socket bool
	Cert   string // common name, or a DNS name
	From   []netip.Prefix
	Header string // that has Secret
	Secret string
	// The headers that name who sends a request; Email and Groups may be "".
	User, Email, Groups string
	Roles               map[string]string // as [Issuer].Roles, of what is in Groups
}

// proves reports whether a request comes from the proxy. A wildcard certificate, for many names, proves
// none of them.
func (p *Proxy) proves(r *http.Request, now time.Time) bool {
	switch {
	case p.Socket:
		return PeerOf(r.Context()).Proxy
	case p.Cert != "":
		c := certificate(r)
		return c != nil && !now.After(c.NotAfter) && (c.Subject.CommonName == p.Cert || slices.ContainsFunc(c.DNSNames, func(name string) bool { return strings.EqualFold(name, p.Cert) }))
	}
	addr, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || p.Secret == "" {
		return false
	}
	near := false
	for _, from := range p.From {
		near = near || from.Contains(addr.Addr().Unmap())
	}
	given := r.Header.Values(p.Header)
	sum, want := sha256.Sum256([]byte(strings.Join(given, ","))), sha256.Sum256([]byte(p.Secret))
	return near && len(given) == 1 && subtle.ConstantTimeCompare(sum[:], want[:]) == 1
}

// forget removes the headers of the proxy from a request that is not the proxy's: no later handler may
// take the sender from them.
func (p *Proxy) forget(r *http.Request) {
	for _, name := range []string{p.User, p.Email, p.Groups, p.Header} {
		if name != "" {
			r.Header.Del(name)
		}
	}
}

// named returns the id that a proxy or a certificate names. With several issuers it refuses a name that
// begins like the ids of an issuer.
func (a *Authenticator) named(name string) (string, *Refusal) {
	if first, _, in := strings.Cut(name, "/"); in && len(a.issuers) > 1 && slices.ContainsFunc(a.o.Issuers, func(i Issuer) bool { return i.Name == first }) {
		return "", stranger("the id begins like those of issuer %s", first)
	}
	id, ok := escape(name)
	if !ok {
		return "", stranger("the id is empty, is too long or has control characters")
	}
	return id, nil
}

// proxied returns who the proxy says sends a request.
func (a *Authenticator) proxied(h http.Header) (*gate.Principal, *Refusal) {
	p := a.o.Proxy
	user, email := h.Values(p.User), h.Get(p.Email)
	if len(user) != 1 || user[0] == "" {
		return nil, missing(nil, "the proxy names no user in the header "+p.User)
	}
	id, refusal := a.named(user[0])
	if refusal != nil {
		return nil, refusal
	}
	c := claimed{how: ByProxy, owner: gate.Owner{ID: id}}
	if p.Groups != "" {
		var said []string
		for each := range strings.SplitSeq(strings.Join(h.Values(p.Groups), ","), ",") {
			said = append(said, strings.TrimSpace(each))
		}
		c.roles, c.narrows = mapped(p.Roles, said), true
	}
	if raw, err := json.Marshal(email); email != "" && err == nil {
		c.claims = gate.MustDoc(`{}`).With("email", raw)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.principal(c)
}

// certificate returns the client certificate of a request, if one was verified.
func certificate(r *http.Request) *x509.Certificate {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return nil
	}
	return r.TLS.VerifiedChains[0][0]
}

// Which part of a certificate names its holder: [Options].MTLS.
const (
	CommonName = "cn"
	DNSName    = "san_dns"
	URI        = "san_uri"
	Email      = "san_email"
)

// certified returns whose a client certificate is.
func (a *Authenticator) certified(c *x509.Certificate) (*gate.Principal, *Refusal) {
	if a.o.Now().After(c.NotAfter) { // while its connection stands
		return nil, expired("the client certificate ended at %s", c.NotAfter.UTC().Format(time.RFC3339))
	}
	var names []string
	switch a.o.MTLS {
	case CommonName:
		names = []string{c.Subject.CommonName}
	case DNSName:
		names = c.DNSNames
	case Email:
		names = c.EmailAddresses
	case URI:
		for _, u := range c.URIs {
			names = append(names, u.String())
		}
	}
	if len(names) != 1 {
		return nil, stranger("a client certificate with %d names of the kind %s: one is needed", len(names), a.o.MTLS)
	}
	id, refusal := a.named(names[0])
	if refusal != nil {
		return nil, refusal
	}
	sum := sha256.Sum256(c.Raw)
	print := hex.EncodeToString(sum[:8])
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.principal(claimed{how: MTLS, owner: gate.Owner{ID: id}, client: print, credential: print})
}

// local returns whose a Unix socket's peer is.
func (a *Authenticator) local(uid int) (*gate.Principal, *Refusal) {
	owner, ok := a.o.Unix[uid]
	if !ok {
		return nil, stranger("user %d is not listed under auth.unix", uid)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.principal(claimed{how: Unix, owner: owner})
}

// bound reports whether a request shows the certificate that a token is bound to (RFC
// 8705, 3.1).
func bound(r *http.Request, thumbprint string) bool {
	if r == nil || r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return false
	}
	sum := sha256.Sum256(r.TLS.PeerCertificates[0].Raw)
	return base64.RawURLEncoding.EncodeToString(sum[:]) == thumbprint
}
