package config

import (
	"errors"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/internal/config/tree"
	"github.com/wasmgate/wasmgate/internal/web/loopback"
)

// Auth says whose credentials are taken over HTTP, and who somebody is by them. The zero
// Auth takes none.
type Auth struct {
	// Local lets requests without a credential in, as the principal local. It is true
	// unless the file names a way to authenticate, or says otherwise.
	Local   bool           `key:"local deny|allow" default:"allow"`
	Issuers []Issuer       `key:"issuers"`
	Keys    bool           `key:"keys"` // API keys of the gateway's own, in the state folder
	MTLS    *MTLS          `key:"mtls"` // nil: a client certificate identifies nobody
	Unix    map[int]string // users of a Unix socket, by their number
	Proxy   *Proxy         `key:"proxy"` // nil: no proxy is believed
}

// On reports whether there is a way to authenticate.
func (a Auth) On() bool {
	return len(a.Issuers) > 0 || a.Keys || a.MTLS != nil || len(a.Unix) > 0 || a.Proxy != nil
}

// An Issuer is an authorization server whose tokens (JWT, RFC 9068) are taken.
type Issuer struct {
	Name       string        `key:"*"`
	URL        string        `key:"issuer endpoint"`                                                  // iss, byte for byte
	JWKS       string        `key:"jwks keyset"`                                                      // a URL or an absolute path; empty: what the issuer's metadata says
	Audience   []string      `key:"audience"`                                                         // beside the URL of the resource; nil: none
	Algorithms []string      `key:"algs RS256|RS384|RS512|PS256|PS384|PS512|ES256|ES384|ES512|EdDSA"` // nil: RS256, PS256, ES256, EdDSA. Of symmetric ones whoever verifies could sign
	Types      []string      `key:"typ"`                                                              // nil: at+jwt, JWT
	Skew       time.Duration `key:"skew 1s..5m"`
	MaxAge     time.Duration `key:"max_age 1m..1000h"`
	Scopes     []string      `key:"scopes scope"` // that every token must have
	Private    bool          `key:"private"`      // the issuer's hosts may have loopback and private addresses
	SignIn     SignIn        `key:"sign_in"`
	Claims     Claims        `key:"claims"`
	Roles      Mapping       `key:"roles roles"`   // of the values of Claims.Roles
	Groups     Mapping       `key:"groups groups"` // of those of Claims.Groups, to groups of tools
}

// A SignIn says who the gateway is at an issuer, when it has people sign in with a browser.
// The zero SignIn names its own document, or registers itself.
type SignIn struct {
	ClientID     string   `key:"client_id"`
	ClientSecret Secret   `key:"client_secret"`
	Scopes       []string `key:"scopes scope"` // beside those that every token must have
}

func (s *SignIn) check(d *decoder, n *tree.Node, path string) {
	if s.ClientSecret != "" && s.ClientID == "" {
		d.fail(n, path, "client_secret needs client_id")
	}
}

// Claims are the names of claims, or JSON Pointers to them.
type Claims struct {
	ID     string   `key:"id"`
	Tenant string   `key:"tenant"`
	Roles  string   `key:"roles"`
	Groups string   `key:"groups"`
	Client string   `key:"client"`
	Keep   []string `key:"keep"` // that policies see
}

// A Mapping is from what somebody else says to names of this configuration. A key that
// ends in * stands for all that begin so.
type Mapping map[string]string

// MTLS says who the holder of a client certificate is.
type MTLS struct {
	ID string `key:"id cn|san_dns|san_uri|san_email" default:"cn"` // which part of the certificate
}

// A Proxy authenticates people and names them in headers. It proves itself by exactly one
// of the first three.
type Proxy struct {
	Unix       string         `key:"unix path" restart:"yes"` // of a socket that it alone may open
	ClientCert string         `key:"client_cert"`             // the name in its client certificate, as MTLS.ID would read it: cn, or a DNS name
	From       []netip.Prefix `key:"from addresses"`          // its addresses, with
	Header     string         // the header that has
	Secret     Secret
	// The headers that name who sends a request; Email and Groups may be empty.
	User   string  `key:"user header"`
	Email  string  `key:"email header"`
	Groups string  `key:"groups header"`
	Roles  Mapping `key:"roles roles"` // of the values of Groups
}

// TLS says with what certificate clients over TCP are served. The zero TLS is none.
type TLS struct {
	Cert     string `key:"cert path exists"`         // of a PEM file, read again when it changes
	Key      string `key:"key path exists"`          // likewise
	ClientCA string `key:"client_ca path exists"`    // the certificates that client certificates are issued by
	Required bool   `key:"client optional|required"` // a connection without a client certificate is refused
	// TerminatedBy are the addresses of proxies that speak TLS with clients.
	TerminatedBy []netip.Prefix `key:"terminated_by addresses"`
}

const idHelp = "letters, digits and . _ @ + -, other bytes as %XX, with TENANT/ in front of one of a tenant"

func (a *Auth) readers(d *decoder) map[string]reader {
	return map[string]reader{"unix": func(n *tree.Node, path string) { d.unixPeers(a, n, path) }}
}

func (a *Auth) check(d *decoder, n *tree.Node, path string) {
	if n.Get("local") == nil {
		a.Local = !a.On()
	}
	for i := range a.Issuers {
		for _, other := range a.Issuers[:i] {
			if one := a.Issuers[i]; other.URL == one.URL && one.URL != "" {
				d.fail(n.Get("issuers").Get(one.Name), "auth.issuers."+one.Name+".issuer", "is already the value of issuer %s", other.Name)
			}
		}
	}
}

func (i *Issuer) named(d *decoder, f tree.Field, path string) {
	if !serverPattern.MatchString(f.Key) {
		d.fail(&tree.Node{Line: f.Line}, path, "an issuer is named with lower-case letters, digits and -")
	}
}

func (i *Issuer) check(d *decoder, n *tree.Node, path string) {
	if i.URL == "" && n.Get("issuer") == nil {
		d.fail(n, tree.Join(path, "issuer"), "is missing: the URL of the issuer, as its tokens have it under iss")
	}
	d.mapped(n, path, "roles", i.Claims.Roles, i.Roles)
	d.mapped(n, path, "groups", i.Claims.Groups, i.Groups)
}

// mapped reports a claim without a mapping, and a mapping without a claim.
func (d *decoder) mapped(n *tree.Node, path, what, claim string, mapping Mapping) {
	switch {
	case claim == "" && mapping != nil:
		d.fail(n.Get(what), tree.Join(path, what), "maps the values of a claim that claims.%s does not name", what)
	case claim != "" && mapping == nil:
		d.fail(n.Get("claims"), tree.Join(tree.Join(path, "claims"), what), "also needs %s: which of its values stand for which %s here, such as {\"eng-*\": dev}; what is not mapped gives nothing", what, what)
	}
}

var scopePattern = regexp.MustCompile(`^[!#-\[\]-~]+$`) // RFC 6749, 3.3

// keySet reads a URL or a path.
func (d *decoder) keySet(to *string) reader {
	return func(n *tree.Node, path string) {
		if strings.Contains(n.Text, "://") {
			d.text(to, checkEndpoint)(n, path)
			return
		}
		d.path(to, exists)(n, path)
	}
}

// checkEndpoint checks the URL of an issuer, or of its keys.
func checkEndpoint(s string) error {
	if err := checkURL(s); err != nil {
		return err
	}
	u, _ := url.Parse(s)
	switch {
	case u.RawQuery != "":
		return errors.New("holds a query")
	case u.Scheme == "http" && !loopback.Host(u.Hostname()):
		return errors.New("must be https: otherwise other machines on the network could sign in as anyone")
	}
	return nil
}

// mapping reads what stands for which name.
func (d *decoder) mapping(to *Mapping, name *regexp.Regexp) reader {
	return func(n *tree.Node, path string) {
		*to = Mapping{}
		d.each(n, path, func(f tree.Field, path string) {
			var v string
			d.text(&v, matches(name, "a name of this configuration"))(f.Value, path)
			(*to)[f.Key] = v
		})
	}
}

func (d *decoder) unixPeers(to *Auth, n *tree.Node, path string) {
	to.Unix = map[int]string{}
	d.each(n, path, func(f tree.Field, path string) {
		uid, err := strconv.Atoi(f.Key)
		if err != nil || uid < 0 {
			d.fail(&tree.Node{Line: f.Line}, path, "%q is not the number of a user, as `id -u` prints it", f.Key)
		}
		var id string
		d.text(&id, checkPrincipal)(f.Value, path)
		to.Unix[uid] = id
	})
}

func checkPrincipal(s string) error {
	if _, id := SplitPrincipal(s); !principalPattern.MatchString(s) || len(id) > maxPrincipal || id == "local" {
		return errors.New("is not the id of a principal: " + idHelp + "; the id local is reserved")
	}
	return nil
}

// maxPrincipal is how long the id of a principal may be.
const maxPrincipal = 128

// SplitPrincipal returns the tenant, "" for none, and the id of a principal as files name it.
func SplitPrincipal(s string) (tenant, id string) {
	if tenant, id, ok := strings.Cut(s, "/"); ok {
		return tenant, id
	}
	return "", s
}

func (p *Proxy) readers(d *decoder) map[string]reader {
	return map[string]reader{"secret": func(n *tree.Node, path string) {
		d.table(n, path, map[string]reader{"header": d.text(&p.Header, checks["header"]), "value": func(n *tree.Node, path string) {
			s, ok := d.written(n, path)
			if ok && len(s) < 16 && !d.keep {
				d.fail(n, path, "is shorter than 16 characters, so it could be guessed")
			}
			p.Secret = Secret(s)
		}})
	}}
}

func (p *Proxy) check(d *decoder, n *tree.Node, path string) {
	ways := 0
	for _, way := range []bool{p.Unix != "", p.ClientCert != "", p.From != nil || p.Header != ""} {
		if way {
			ways++
		}
	}
	switch {
	case ways != 1:
		d.fail(n, path, "needs one way in which the proxy proves itself: unix, client_cert, or from with secret")
	case p.Unix == "" && p.ClientCert == "" && (p.From == nil || p.Header == "" || n.Get("secret").Get("value") == nil):
		d.fail(n, path, "an address proves nothing alone, least of all loopback, which every program here has: write from: [ADDRESS] and secret: {header: NAME, value: \"${SECRET}\"}")
	}
	if p.User == "" {
		d.fail(n, tree.Join(path, "user"), "is missing: the header in which the proxy names who sends the request, such as X-Forwarded-User")
	}
	if (p.Groups == "") != (p.Roles == nil) {
		d.fail(n, path, "groups names the header, and roles which of its values stand for which roles here: write both or none")
	}
}

// prefixes reads addresses and networks.
func (d *decoder) prefixes(to *[]netip.Prefix) reader {
	return func(n *tree.Node, path string) {
		var all []string
		d.texts(&all)(n, path)
		for _, s := range all {
			p, err := netip.ParsePrefix(s)
			if a, aerr := netip.ParseAddr(s); aerr == nil {
				p, err = netip.PrefixFrom(a, a.BitLen()), nil
			}
			if err != nil {
				d.fail(n, path, "%q is neither an address nor a network such as 10.0.0.0/8", s)
				continue
			}
			*to = append(*to, p)
		}
	}
}

func (t *TLS) check(d *decoder, n *tree.Node, path string) {
	switch {
	case (n.Get("cert") == nil) != (n.Get("key") == nil):
		d.fail(n, path, "cert and key go together")
	case n.Get("client_ca") != nil && n.Get("cert") == nil:
		d.fail(n, path, "client_ca needs cert and key: clients show a certificate only to a server that has one")
	case n.Get("client") != nil && n.Get("client_ca") == nil:
		d.fail(n.Get("client"), tree.Join(path, "client"), "needs client_ca: the authority that signs the clients' certificates")
	case n.Get("cert") != nil && t.TerminatedBy != nil:
		d.fail(n, path, "either the gateway speaks TLS, with cert and key, or a proxy does: keep one")
	}
}

// checkPublicURL checks the URL by which clients reach the gateway.
func checkPublicURL(s string) error {
	if err := checkEndpoint(s); err != nil {
		return err
	}
	u, _ := url.Parse(s)
	switch {
	case u.Path != "" && u.Path != "/":
		return errors.New("holds a path: the gateway serves /mcp itself")
	case strings.ToLower(s) != s:
		return errors.New("has capital letters: clients compare it byte by byte")
	}
	return nil
}

// checkAuth reports what of the ways to authenticate, and of the addresses, does not fit
// together.
func (d *decoder) checkAuth(root *tree.Node, c *Config) {
	at := func(keys ...string) *tree.Node {
		n := root
		for _, k := range keys {
			next := n.Get(k)
			if next == nil {
				break
			}
			n = next
		}
		return n
	}
	c.PublicURL = strings.TrimSuffix(c.PublicURL, "/")
	a := c.Auth
	if len(a.Issuers) > 0 && root.Get("public_url") == nil {
		d.fail(at("auth", "issuers"), "auth.issuers", "needs public_url: tokens are for the URL by which clients reach the gateway, such as https://gw.example.com, or http://127.0.0.1:7420 on this machine")
	}
	certs := c.TLS.ClientCA != ""
	if a.MTLS != nil && !certs {
		d.fail(at("auth", "mtls"), "auth.mtls", "needs tls.client_ca: the authority that signs the clients' certificates")
	}
	if a.Proxy != nil && a.Proxy.ClientCert != "" && !certs {
		d.fail(at("auth", "proxy", "client_cert"), "auth.proxy.client_cert", "needs tls.client_ca: the authority that signs the clients' certificates")
	}
	if len(a.Unix) > 0 && !slices.ContainsFunc(c.Listen, isUnix) {
		d.fail(at("auth", "unix"), "auth.unix", "needs a Unix socket under listen, such as unix:run/gateway.sock")
	}
	for _, i := range a.Issuers {
		for value, group := range i.Groups {
			if _, ok := c.AllGroups()[group]; !ok {
				d.fail(at("auth", "issuers", i.Name, "groups"), "auth.issuers."+i.Name+".groups."+value, "no group is named %q", group)
			}
		}
	}
	n := at("listen")
	for _, addr := range c.Listen {
		for _, missing := range c.lacks(addr) {
			d.fail(n, "listen", "%q is reachable from other machines: %s", addr, missing)
		}
	}
}
