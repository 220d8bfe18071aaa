package config

import (
	"errors"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/internal/config/check"
	"github.com/wasmgate/wasmgate/internal/config/decode"
)

// Auth says whose credentials are taken over HTTP, and which principals they identify. The zero Auth
// takes none.
type Auth struct {
	// Local lets requests without a credential in, as the principal local. It is true
	// unless the file names a way to authenticate, or says otherwise.
	Local   bool           `key:"local deny|allow" default:"allow"`
	Issuers []Issuer       `key:"issuers"`
	Keys    bool           `key:"keys"` // API keys of the gateway's own, in the state folder
	MTLS    *MTLS          `key:"mtls"` // nil: a client certificate identifies no one
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
	Audience   []string      `key:"audience"`                                                         // besides the URL of the resource; nil: none
	Algorithms []string      `key:"algs RS256|RS384|RS512|PS256|PS384|PS512|ES256|ES384|ES512|EdDSA"` // nil: RS256, PS256, ES256, EdDSA. Not symmetric: anyone who verifies could sign
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
	Scopes       []string `key:"scopes scope"` // in addition to those that every token must have
}

// Check implements [decode.Checker].
func (s *SignIn) Check(v decode.Value) {
	if s.ClientSecret != "" && s.ClientID == "" {
		v.Fail("client_secret needs client_id")
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

// A Mapping maps the names that another system uses to names of this configuration. A key that ends in
// * maps all names that begin so.
type Mapping map[string]string

// MTLS says who the holder of a client certificate is.
type MTLS struct {
	ID string `key:"id cn|san_dns|san_uri|san_email" default:"cn"` // which part of the certificate
}

// A Proxy authenticates people and names them in headers. It proves itself by exactly one
// of the first three.
type Proxy struct {
	Unix       string         `key:"unix path" restart:"yes"` // of a socket that only it may open
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

// Readers implements [decode.Reading].
func (a *Auth) Readers() map[string]decode.Reader {
	return map[string]decode.Reader{"unix": func(v decode.Value) { a.unixPeers(v) }}
}

// Check implements [decode.Checker].
func (a *Auth) Check(v decode.Value) {
	if !v.Has("local") {
		a.Local = !a.On()
	}
	for i := range a.Issuers {
		for _, other := range a.Issuers[:i] {
			if one := a.Issuers[i]; other.URL == one.URL && one.URL != "" {
				v.Get("issuers").Get(one.Name).Under("issuer").Fail("is already the value of issuer %s", other.Name)
			}
		}
	}
}

// Named implements [decode.Named].
func (i *Issuer) Named(f decode.Field) {
	if !serverPattern.MatchString(f.Key) {
		f.At.Fail("an issuer is named with lower-case letters, digits and -")
	}
}

// Check implements [decode.Checker].
func (i *Issuer) Check(v decode.Value) {
	if i.URL == "" && !v.Has("issuer") {
		v.Under("issuer").Fail("is missing: the URL of the issuer, as its tokens have it under iss")
	}
	mapped(v, "roles", i.Claims.Roles, i.Roles)
	mapped(v, "groups", i.Claims.Groups, i.Groups)
}

// mapped reports a claim without a mapping, and a mapping without a claim.
func mapped(v decode.Value, what, claim string, mapping Mapping) {
	switch {
	case claim == "" && mapping != nil:
		v.Get(what).Fail("maps the values of a claim that claims.%s does not name", what)
	case claim != "" && mapping == nil:
		v.Get("claims").Under(what).Fail("also needs %s: which of its values stand for which %s here, such as {\"eng-*\": dev}; what is not mapped gives nothing", what, what)
	}
}

var scopePattern = regexp.MustCompile(`^[!#-\[\]-~]+$`) // RFC 6749, 3.3

// keySet reads a URL or a path.
func keySet(to *string) decode.Reader {
	return func(v decode.Value) {
		if strings.Contains(v.Text, "://") {
			decode.Text(to, check.Endpoint)(v)
			return
		}
		decode.Path(to, check.Exists)(v)
	}
}

// mapping reads what stands for which name.
func mapping(names *regexp.Regexp) func(*Mapping) decode.Reader {
	return func(to *Mapping) decode.Reader {
		return func(v decode.Value) {
			*to = Mapping{}
			for f := range v.Entries() {
				var name string
				decode.Text(&name, check.Matches(names, "a name of this configuration"))(f.Value)
				(*to)[f.Key] = name
			}
		}
	}
}

func (a *Auth) unixPeers(v decode.Value) {
	a.Unix = map[int]string{}
	for f := range v.Entries() {
		uid, err := strconv.Atoi(f.Key)
		if err != nil || uid < 0 {
			f.At.Fail("%q is not the number of a user, as `id -u` prints it", f.Key)
		}
		var id string
		decode.Text(&id, checkPrincipal)(f.Value)
		a.Unix[uid] = id
	}
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

// Readers implements [decode.Reading].
func (p *Proxy) Readers() map[string]decode.Reader {
	return map[string]decode.Reader{"secret": func(v decode.Value) {
		v.Table(map[string]decode.Reader{"header": decode.Text(&p.Header, check.HeaderName), "value": func(v decode.Value) {
			s, ok := v.Written()
			if ok && len(s) < 16 && !v.File().Keep {
				v.Fail("is shorter than 16 characters, so it could be guessed")
			}
			p.Secret = Secret(s)
		}})
	}}
}

// Check implements [decode.Checker].
func (p *Proxy) Check(v decode.Value) {
	ways := 0
	for _, way := range []bool{p.Unix != "", p.ClientCert != "", p.From != nil || p.Header != ""} {
		if way {
			ways++
		}
	}
	switch {
	case ways != 1:
		v.Fail("needs one way in which the proxy proves itself: unix, client_cert, or from with secret")
	case p.Unix == "" && p.ClientCert == "" && (p.From == nil || p.Header == "" || !v.Get("secret").Has("value")):
		v.Fail("an address proves nothing alone, least of all loopback, which every program here has: write from: [ADDRESS] and secret: {header: NAME, value: \"${SECRET}\"}")
	}
	if p.User == "" {
		v.Under("user").Fail("is missing: the header in which the proxy names who sends the request, such as X-Forwarded-User")
	}
	if (p.Groups == "") != (p.Roles == nil) {
		v.Fail("groups names the header, and roles which of its values stand for which roles here: write both or none")
	}
}

// prefixes reads addresses and networks.
func prefixes(to *[]netip.Prefix) decode.Reader {
	return func(v decode.Value) {
		var all []string
		decode.Texts(&all)(v)
		for _, s := range all {
			p, err := netip.ParsePrefix(s)
			if a, aerr := netip.ParseAddr(s); aerr == nil {
				p, err = netip.PrefixFrom(a, a.BitLen()), nil
			}
			if err != nil {
				v.Fail("%q is neither an address nor a network such as 10.0.0.0/8", s)
				continue
			}
			*to = append(*to, p)
		}
	}
}

// Check implements [decode.Checker].
func (t *TLS) Check(v decode.Value) {
	switch {
	case (!v.Has("cert")) != (!v.Has("key")):
		v.Fail("cert and key go together")
	case v.Has("client_ca") && !v.Has("cert"):
		v.Fail("client_ca needs cert and key: clients show a certificate only to a server that has one")
	case v.Has("client") && !v.Has("client_ca"):
		v.Get("client").Fail("needs client_ca: the authority that signs the clients' certificates")
	case v.Has("cert") && t.TerminatedBy != nil:
		v.Fail("either the gateway speaks TLS, with cert and key, or a proxy does: keep one")
	}
}
