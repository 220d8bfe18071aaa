package app

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/auth"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/dial"
	"github.com/wasmgate/wasmgate/internal/web"
)

// The files in the state folder that keep API keys and revocations.
const (
	keysFile    = "keys.json"
	revokedFile = "revoked.json"
)

// issuerTime bounds a request to an issuer.
const issuerTime = 10 * time.Second

// senders finds out who sends a request over HTTP.
type senders struct {
	keys   *auth.Keys
	now    atomic.Pointer[auth.Authenticator]
	public string
	near   []netip.Prefix // proxies that speak TLS with clients; nil: not asked about
	denied denials
	looks  bell // at who has opened streams

	revoking sync.Mutex // held while revocations change, and are kept
}

// newSenders reads what is kept of keys and revocations.
func newSenders(c *config.Config) (*senders, error) {
	keys, err := auth.OpenKeys(filepath.Join(c.State, keysFile))
	if err != nil {
		return nil, err
	}
	revoked, err := auth.ReadRevocations(filepath.Join(c.State, revokedFile))
	if err != nil {
		return nil, err
	}
	s := &senders{keys: keys, public: c.PublicURL, near: c.TLS.TerminatedBy}
	return s, s.put(c, revoked)
}

// put takes the credentials of a configuration from now on.
func (s *senders) put(c *config.Config, revoked []auth.Revocation) error {
	o, err := s.options(c)
	if err != nil {
		return err
	}
	o.Revoked, o.Before = revoked, s.now.Load()
	a, err := auth.New(o)
	if err == nil {
		s.now.Store(a)
	}
	return err
}

// putSenders puts in place what differs of who is let in.
func (a *App) putSenders(before, next *config.Config, again bool) error {
	if !again && reflect.DeepEqual(before.Auth, next.Auth) && reflect.DeepEqual(before.Principals, next.Principals) {
		return nil
	}
	for _, addr := range a.listens {
		if err := next.CheckListen(addr); err != nil { // it was given as a flag
			return err
		}
	}
	a.senders.revoking.Lock()
	defer a.senders.revoking.Unlock()
	if err := a.senders.put(next, a.senders.now.Load().Revocations()); err != nil {
		return err
	}
	a.senders.looks.ring()
	return nil
}

func (s *senders) options(c *config.Config) (auth.Options, error) {
	o := auth.Options{Principals: make(map[gate.Owner]*gate.Principal)}
	for _, p := range c.Principals {
		owner := gate.Owner{Tenant: p.Tenant, ID: p.ID}
		o.Principals[owner] = &gate.Principal{Owner: owner, Roles: p.Roles, Groups: gate.Groups(nil).Within(p.Groups), Identities: p.Identities}
	}
	if c.Auth.Local {
		var err error
		if o.Local, err = principal(c, ""); err != nil {
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
		Roles:  i.Roles, Groups: i.Groups, Fetch: auth.HTTPFetcher(issuerClient(i)),
	}
	if i.JWKS == "" || strings.Contains(i.JWKS, "://") {
		to.KeysURL = i.JWKS
		return to, nil
	}
	var err error
	to.Keys, err = os.ReadFile(i.JWKS)
	return to, err
}

// issuerClient asks an issuer, and nobody to whom it points elsewhere.
func issuerClient(i config.Issuer) *http.Client {
	return askOnly(i.Private || loopbackURL(i.URL), i.URL, i.JWKS)
}

// askOnly returns a client that follows no redirect, and judges addresses. Those of URLs that
// the configuration has are meant, also if they are of this machine; what others point to is not.
func askOnly(private bool, urls ...string) *http.Client {
	hosts := []string{}
	for _, raw := range urls {
		if u, err := url.Parse(raw); err == nil {
			hosts = append(hosts, strings.ToLower(u.Hostname()))
		}
	}
	return &http.Client{
		Timeout:   issuerTime,
		Transport: &http.Transport{DialContext: dial.New(dial.Options{}).Dialer(private, hosts...), MaxIdleConns: 1},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return errors.New("it answers with a redirect, which is not followed")
		},
	}
}

func loopbackURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && config.Loopback(net.JoinHostPort(u.Hostname(), "0"))
}

// sender returns who sends a request to the MCP endpoint. The error answers it.
func (a *App) sender(r *http.Request) (*gate.Principal, error) {
	s := a.senders
	if !s.throughProxy(r) {
		return nil, &auth.Refusal{Status: http.StatusForbidden, Description: "this address serves the proxy that speaks TLS", Reason: "a request past tls.terminated_by"}
	}
	own, parent := s.resource(r.PathValue(groupParam)), s.resource("")
	who, err := s.now.Load().Principal(r, own, parent)
	refusal, refused := errors.AsType[*auth.Refusal](err)
	if !refused {
		a.logins.Saw(who, r)
		return who, err
	}
	if s.denied.add(refusal, r) {
		a.log.Warn("authentication refused", "reason", refusal.Reason, "from", r.RemoteAddr)
	}
	return nil, &challenge{refusal, s.metadataURL(r.PathValue(groupParam))}
}

// KeyHolder returns whose API key a request brings. The error is an [*auth.Refusal].
func (a *App) KeyHolder(r *http.Request) (*gate.Principal, error) {
	said := r.Header.Values("Authorization")
	key, bearer := strings.CutPrefix(strings.Join(said, ""), "Bearer ")
	if len(said) != 1 || !bearer || !strings.HasPrefix(key, auth.KeyPrefix) {
		return nil, &auth.Refusal{Status: http.StatusUnauthorized, Description: "programs bring one API key: Authorization: Bearer " + auth.KeyPrefix + "...", Reason: "no API key"}
	}
	who, _, err := a.senders.now.Load().Identify(r.Context(), key)
	if refusal, refused := errors.AsType[*auth.Refusal](err); refused {
		a.senders.denied.add(refusal, r)
	}
	return who, err
}

// groupParam is the wildcard in the pattern of the endpoint that says at which group it is.
const groupParam = "group"

// throughProxy reports whether a request has come in a way in which nobody could read it:
// over TLS, within this machine, or from a proxy that speaks TLS.
func (s *senders) throughProxy(r *http.Request) bool {
	if s.near == nil || r.TLS != nil {
		return true
	}
	addr, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return true // a Unix socket
	}
	from := addr.Addr().Unmap()
	return from.IsLoopback() || slices.ContainsFunc(s.near, func(p netip.Prefix) bool { return p.Contains(from) })
}

// A challenge answers a request that nobody is let in with.
type challenge struct {
	*auth.Refusal
	metadata string
}

// ServeHTTP implements [http.Handler].
func (c *challenge) ServeHTTP(w http.ResponseWriter, _ *http.Request) { c.Write(w, c.metadata) }

// Unwrap gives the refusal itself.
func (c *challenge) Unwrap() error { return c.Refusal }

// wellKnown is where metadata of a protected resource is (RFC 9728, 3.1).
const wellKnown = "/.well-known/oauth-protected-resource"

// resource is the URL of the endpoint, or of that of a group.
func (s *senders) resource(group string) string {
	if s.public == "" {
		return ""
	}
	if group != "" {
		group = "/" + group
	}
	return s.public + "/mcp" + group
}

// metadataURL is where clients read who gives tokens for an endpoint; "" if nobody does.
func (s *senders) metadataURL(group string) string {
	if len(s.now.Load().Issuers()) == 0 {
		return ""
	}
	if group != "" {
		group = "/" + group
	}
	return s.public + wellKnown + "/mcp" + group
}

// metadata tells clients who gives tokens for the endpoint: the same for a group that is
// there and for one that is not.
func (a *App) metadata(w http.ResponseWriter, r *http.Request) {
	s, now := a.senders, a.senders.now.Load()
	if len(now.Issuers()) == 0 {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Access-Control-Allow-Origin", "*") // it is for everybody, also in a browser
	_ = json.NewEncoder(w).Encode(map[string]any{
		"resource": s.resource(r.PathValue(groupParam)), "authorization_servers": now.Issuers(),
		"scopes_supported": append([]string{}, now.Scopes()...), "bearer_methods_supported": []string{"header"},
		"resource_name": "wasmgate",
	})
}

// lacking is the challenge to a request whose token lacks scopes for what it asks, with those
// that every token needs: a client asks for all of them at once.
func (a *App) lacking(r *http.Request, scopes []string) string {
	all := append(slices.Clone(a.senders.now.Load().Scopes()), scopes...)
	slices.Sort(all)
	return auth.Challenge(slices.Compact(all), a.senders.metadataURL(r.PathValue(groupParam)))
}

// handler serves MCP and what clients have to know beforehand.
func (a *App) handler() http.Handler {
	mux := http.NewServeMux()
	for _, path := range []string{wellKnown, wellKnown + "/mcp", wellKnown + "/mcp/{" + groupParam + "}"} {
		mux.HandleFunc("GET "+path, a.metadata)
	}
	a.logins.Handle(mux)
	mux.Handle("/", a.ending(a.gateway))
	return mux
}

// connContext says of each request what its connection proves.
func (a *App) connContext(ctx context.Context, c net.Conn) context.Context {
	if c.LocalAddr().Network() != "unix" {
		return ctx
	}
	p := auth.Peer{Unix: true, UID: -1}
	if uid, ok := web.PeerUID(c); ok {
		p.UID = uid
	}
	if proxy := a.cfg.Auth.Proxy; proxy != nil {
		p.Proxy = proxy.Unix != "" && c.LocalAddr().String() == proxy.Unix
	}
	return auth.WithPeer(ctx, p)
}

// hosts are those that requests may name beside loopback.
func hosts(c *config.Config) []string {
	all := slices.Clone(c.HTTP.Hosts)
	if u, err := url.Parse(c.PublicURL); err == nil && u.Host != "" && !slices.Contains(all, u.Host) {
		all = append(all, u.Host)
	}
	return all
}
