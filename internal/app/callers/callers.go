package callers

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmgate/wasmgate/bridge/dial"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/app/naming"
	"github.com/wasmgate/wasmgate/internal/auth"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/files/state"
	"github.com/wasmgate/wasmgate/internal/login"
)

// Gateway is the one that is called.
type Gateway interface {
	// Note records an event.
	Note(audit.Entry) error
	// Revoked ends what principals have under way.
	Revoked(whose func(*gate.Principal) bool)
	// Tools returns what a principal is offered.
	Tools(ctx context.Context, who *gate.Principal) ([]*gate.Tool, error)
}

// Callers finds out who sends a request over HTTP. Its exported fields are set before the first request.
type Callers struct {
	Gateway Gateway
	Config  func() *config.Config // in use
	Logins  *login.Logins         // at servers
	// LookAgain is after which time who has opened a stream is found out again.
	LookAgain time.Duration
	// Later reports whether someone who was refused may be let in now, because another gateway has made
	// the credential a moment ago.
	Later func(context.Context) bool
	Log   *slog.Logger

	revocations state.Document

	keys    *auth.Keys
	now     atomic.Pointer[auth.Authenticator]
	reached atomic.Pointer[reached]
	denied  auth.Denials
	looks   bell // at who has opened streams

	revoking  sync.Mutex // held while revocations change, and are kept
	revokedAt uint64     // the generation of those in use, with revoking
}

// reached is how clients reach the gateway.
type reached struct {
	public string         // URL, without a path; "" if that is not said
	near   []netip.Prefix // proxies that speak TLS with clients; nil: not asked about
}

// issuerTime bounds a request to an issuer.
const issuerTime = 10 * time.Second

// New lets in the callers of a configuration. It reads the documents that keep keys and revocations.
func New(ctx context.Context, c *config.Config, kept, revocations state.Document) (*Callers, error) {
	keys, err := auth.OpenKeys(ctx, kept)
	if err != nil {
		return nil, err
	}
	revoked, generation, err := auth.LoadRevocations(ctx, revocations, 0)
	if err != nil {
		return nil, err
	}
	s := &Callers{LookAgain: lookAgain, keys: keys, revocations: revocations, revokedAt: generation}
	return s, s.put(c, revoked)
}

// Public is the URL by which clients reach the gateway, without a path; "" if that is not said.
func (s *Callers) Public() string { return s.reached.Load().public }

// Identify says whose a bearer token or an API key for the gateway is.
func (s *Callers) Identify(ctx context.Context, token string) (*gate.Principal, auth.Identity, error) {
	return s.now.Load().Identify(ctx, token, s.Resource(""))
}

// Proxied returns whom the proxy names in a request.
func (s *Callers) Proxied(r *http.Request) (*gate.Principal, error) {
	who, err := s.now.Load().Principal(r)
	if err == nil && who.Auth != auth.ByProxy {
		err = errors.New("the login page was opened directly: open it through the proxy that signs people in")
	}
	return who, err
}

// put takes the credentials of a configuration from now on.
func (s *Callers) put(c *config.Config, revoked []auth.Revocation) error {
	o, err := s.options(c)
	if err != nil {
		return err
	}
	o.Revoked, o.Before = revoked, s.now.Load()
	a, err := auth.New(o)
	if err == nil {
		s.now.Store(a)
		s.reached.Store(&reached{c.PublicURL, c.TLS.TerminatedBy})
	}
	return err
}

func (s *Callers) options(c *config.Config) (auth.Options, error) {
	o := auth.Options{Principals: make(map[gate.Owner]*gate.Principal)}
	for _, p := range c.Principals {
		owner := gate.Owner{Tenant: p.Tenant, ID: p.ID}
		o.Principals[owner] = &gate.Principal{Owner: owner, Roles: p.Roles, Groups: gate.Groups(nil).Within(p.Groups), Identities: p.Identities}
	}
	if c.Auth.Local {
		var err error
		if o.Local, err = naming.Principal(c, ""); err != nil {
			return o, err
		}
	}
	for _, i := range c.Auth.Issuers {
		one, err := issuer(i)
		if err != nil {
			return o, err
		}
		o.Issuers = append(o.Issuers, one)
	}
	if c.Auth.Keys {
		o.Keys = s.keys
	}
	if c.Auth.MTLS != nil {
		o.MTLS = c.Auth.MTLS.ID
	}
	for uid, name := range c.Auth.Unix {
		if o.Unix == nil {
			o.Unix = make(map[int]gate.Owner)
		}
		tenant, id := config.SplitPrincipal(name)
		o.Unix[uid] = gate.Owner{Tenant: tenant, ID: id}
	}
	if p := c.Auth.Proxy; p != nil {
		o.Proxy = &auth.Proxy{
			Socket: p.Unix != "", Cert: p.ClientCert, From: p.From, Header: p.Header, Secret: string(p.Secret),
			User: p.User, Email: p.Email, Groups: p.Groups, Roles: p.Roles,
		}
	}
	return o, nil
}

// issuer puts an issuer into the words of package auth.
func issuer(i config.Issuer) (auth.Issuer, error) {
	to := auth.Issuer{
		Name: i.Name, URL: i.URL, Audience: i.Audience, Algorithms: i.Algorithms, Types: i.Types, Skew: i.Skew, MaxAge: i.MaxAge, Scopes: i.Scopes,
		Claims: auth.Claims{ID: i.Claims.ID, Tenant: i.Claims.Tenant, Roles: i.Claims.Roles, Groups: i.Claims.Groups, Client: i.Claims.Client, Keep: i.Claims.Keep},
		Roles:  i.Roles, Groups: i.Groups, Fetch: auth.HTTPFetcher(IssuerClient(i)),
	}
	if i.JWKS == "" || strings.Contains(i.JWKS, "://") {
		to.KeysURL = i.JWKS
		return to, nil
	}
	var err error
	to.Keys, err = os.ReadFile(i.JWKS)
	return to, err
}

// IssuerClient asks an issuer, and no one to whom it points elsewhere.
func IssuerClient(i config.Issuer) *http.Client {
	return AskOnly(i.Private, i.URL, i.JWKS)
}

// AskOnly returns a client that follows no redirect, and judges addresses. Those of URLs that
// the configuration has are meant. What they point to is public, or on this machine if the first of
// them is; elsewhere in the operator's networks only if private says so.
func AskOnly(private bool, urls ...string) *http.Client {
	most := dial.Public
	switch {
	case private:
		most = dial.Private
	case loopbackURL(urls[0]):
		most = dial.Loopback
	}
	var hosts []string
	for _, raw := range urls {
		if u, err := url.Parse(raw); err == nil {
			hosts = append(hosts, strings.ToLower(u.Hostname()))
		}
	}
	return &http.Client{
		Timeout:   issuerTime,
		Transport: &http.Transport{DialContext: dial.New(dial.Options{}).AskDialer(most, hosts...), MaxIdleConns: 1},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return errors.New("it answers with a redirect, which is not followed")
		},
	}
}

func loopbackURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && config.Loopback(net.JoinHostPort(u.Hostname(), "0"))
}

// ThroughProxy reports whether a request has come in a way in which no one could read it: no
// proxy speaks TLS in the gateway's place, or the request is from one, or from this machine.
func (s *Callers) ThroughProxy(r *http.Request) bool {
	near := s.reached.Load().near
	if near == nil {
		return true
	}
	addr, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return true // a Unix socket
	}
	from := addr.Addr().Unmap()
	return from.IsLoopback() || slices.ContainsFunc(near, func(p netip.Prefix) bool { return p.Contains(from) })
}

// GroupParam is the wildcard in the pattern of the endpoint that says at which group it is.
const GroupParam = "group"

// WellKnown is where metadata of a protected resource is (RFC 9728, 3.1).
const WellKnown = "/.well-known/oauth-protected-resource"

// Resource is the URL of the endpoint, or of that of a group.
func (s *Callers) Resource(group string) string {
	public := s.reached.Load().public
	if public == "" {
		return ""
	}
	if group != "" {
		group = "/" + group
	}
	return public + "/mcp" + group
}

// metadataURL is where clients read who gives tokens for an endpoint; "" if no one does.
func (s *Callers) metadataURL(group string) string {
	if len(s.now.Load().Issuers()) == 0 {
		return ""
	}
	if group != "" {
		group = "/" + group
	}
	return s.reached.Load().public + WellKnown + "/mcp" + group
}
