package callers

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/app/naming"
	"github.com/wasmgate/wasmgate/internal/app/translation"
	"github.com/wasmgate/wasmgate/internal/auth"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/config/policydata"
	"github.com/wasmgate/wasmgate/internal/match"
	"github.com/wasmgate/wasmgate/internal/vault"
)

// A Finding is one thing that [Callers.Check] has looked at.
type Finding struct {
	Check   string `json:"check"`
	OK      bool   `json:"ok"` // with a Problem: a warning
	Problem string `json:"problem,omitempty"`
	Fix     string `json:"fix,omitempty"`
}

// checks collects findings.
type checks struct {
	of  *Callers
	cfg *config.Config
	all []Finding
}

func (c *checks) ok(check string) { c.all = append(c.all, Finding{Check: check, OK: true}) }

func (c *checks) bad(check, problem, fix string) {
	c.all = append(c.all, Finding{check, false, problem, fix})
}

func (c *checks) warn(check, problem, fix string) {
	c.all = append(c.all, Finding{check, true, problem, fix})
}

// Check looks for the mistakes that are made most often about who is let in.
func (s *Callers) Check(ctx context.Context) ([]Finding, error) {
	c := &checks{of: s, cfg: s.Config()}
	c.servers(ctx)
	if !c.cfg.Auth.On() {
		c.bad("auth", "no way to authenticate is configured: every user of this machine is the principal local", "name one under auth, see docs/reference/identity.md; for one person on their own machine this is as it should be")
		return c.all, nil
	}
	c.open()
	for _, i := range c.cfg.Auth.Issuers {
		c.issuer(ctx, i)
	}
	c.public(ctx)
	c.certificate()
	c.keys()
	if err := c.granted(); err != nil {
		return nil, err
	}
	return c.all, nil
}

// servers looks at where tokens for servers come from, and for secrets of the gateway that go where a server says.
func (c *checks) servers(ctx context.Context) {
	locked := false
	for _, s := range translation.Enabled(c.cfg.Servers) {
		if s.Auth == nil {
			continue
		}
		at := "servers." + s.ID + ".auth"
		if s.Fault != "" {
			c.bad(at, s.Fault, "set it where the gateway is started")
			continue
		}
		c.readable(at+".private_key", s.Auth.PrivateKey)
		c.readable(at+".idp_client.private_key", s.Auth.IDPClient.PrivateKey)
		chosen := s.Auth.ClientSecret != "" && s.Auth.Issuer == ""
		if chosen {
			c.bad(at, "the server says which authorization server gets client_secret", "write issuer: URL of the one that the client is registered at under "+at)
		}
		switch err := c.of.Logins.Check(ctx, s.ID); {
		case errors.Is(err, vault.ErrKey):
			if locked {
				continue
			}
			locked = true
			c.bad("vault", err.Error(), "until this is fixed, no one can log in to a server and no login is used")
		case err != nil:
			c.bad(at, err.Error(), "correct the server's url, and what is under "+at+"; a server with a private address needs private: true")
		case !chosen:
			c.ok(at)
		}
	}
}

// readable looks whether others can read a file with a key.
func (c *checks) readable(at, path string) {
	if info, err := os.Stat(path); path != "" && err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o004 != 0 {
		c.bad(at, "every user of this machine can read "+path, "run `chmod o-rwx "+path+"`; if it was so for a long time, make a new key")
	}
}

// open looks whether someone comes in without a credential.
func (c *checks) open() {
	if c.cfg.Auth.Local {
		c.bad("auth.local", "callers without a credential are let in, as the principal local", "remove auth.local: allow, unless programs of this machine need it")
		return
	}
	c.ok("auth.local")
}

// issuer asks an issuer for its metadata and its keys, and looks at the clock.
func (c *checks) issuer(ctx context.Context, i config.Issuer) {
	at := "auth.issuers." + i.Name
	one, err := issuer(i)
	if err != nil {
		c.bad(at, err.Error(), "correct auth.issuers."+i.Name+".jwks")
		return
	}
	seen, err := auth.Look(ctx, one)
	switch {
	case err != nil && seen.Said != "" && seen.Said != i.URL:
		c.bad(at, fmt.Sprintf("the issuer calls itself %s, and its tokens will", seen.Said), fmt.Sprintf("write issuer: %s, byte for byte", seen.Said))
	case err != nil:
		c.bad(at, err.Error(), "check that the URL is right and can be reached from here; an issuer with a private address needs private: true")
	case seen.Foreign:
		c.bad(at, "none of the keys of jwks is one that the issuer's metadata names", "remove "+at+".jwks, or write the issuer's own")
	case len(seen.Fitting) == 0:
		c.bad(at, fmt.Sprintf("none of its keys (%s) is for an algorithm of algs", strings.Join(seen.Keys, ", ")), "name the issuer's algorithm under "+at+".algs")
	default:
		c.ok(at)
	}
	if off := seen.Clock.Abs(); err == nil && off > 30*time.Second {
		c.bad(at+" clock", fmt.Sprintf("the clocks differ by %s: new tokens are not valid yet, or end early", off.Round(time.Second)), "set this machine's clock by NTP")
	}
	if i.Claims.Roles == "" && i.Claims.Groups == "" && !c.named(i) {
		c.bad(at+" roles", "its tokens give no roles, and no principal of it is listed: they are offered what every principal is offered", "map a claim: claims: {roles: groups} and roles: {\"eng-*\": dev}")
	}
	if several := len(c.cfg.Auth.Issuers) > 1; several {
		c.prefixes(i)
	}
}

// named reports whether a principal of an issuer is listed.
func (c *checks) named(i config.Issuer) bool {
	several := len(c.cfg.Auth.Issuers) > 1
	return slices.ContainsFunc(c.cfg.Principals, func(p config.Principal) bool {
		return p.ID != gate.Local().ID && (!several || strings.HasPrefix(p.ID, i.Name+"%2F"))
	})
}

// prefixes looks for principals that can never come: with several issuers their ids begin
// with the issuer's name.
func (c *checks) prefixes(i config.Issuer) {
	for _, p := range c.cfg.Principals {
		from := slices.ContainsFunc(c.cfg.Auth.Issuers, func(i config.Issuer) bool { return strings.HasPrefix(p.ID, i.Name+"%2F") })
		if !from && p.ID != gate.Local().ID && i.Name == c.cfg.Auth.Issuers[0].Name && !c.cfg.Auth.Keys && c.cfg.Auth.MTLS == nil && c.cfg.Auth.Unix == nil && c.cfg.Auth.Proxy == nil {
			c.bad("principals."+p.ID, "with several issuers ids begin with the issuer's name, so that this id matches no principal", fmt.Sprintf("write %s%%2F%s, or the name of another issuer", i.Name, p.ID))
		}
	}
}

// public asks the gateway by the URL that clients get.
func (c *checks) public(ctx context.Context) {
	if len(c.cfg.Auth.Issuers) == 0 {
		return
	}
	at, url := "public_url", c.cfg.PublicURL+WellKnown+"/mcp"
	ctx, cancel := context.WithTimeout(ctx, issuerTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		c.bad(at, err.Error(), "write the URL by which clients reach the gateway")
		return
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		c.bad(at, err.Error(), "clients get tokens for this URL: it has to lead here, to the gateway that `wasmgate serve` runs. If this machine cannot reach it, try from another one")
		return
	}
	defer resp.Body.Close()
	var said struct {
		Resource string `json:"resource"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(nil, resp.Body, 1<<16)).Decode(&said); err != nil || said.Resource != c.of.Resource("") {
		c.bad(at, fmt.Sprintf("%s answers with %s, so that it is not this gateway", url, resp.Status), "have the proxy in front pass "+WellKnown+" on, or correct public_url")
		return
	}
	c.ok(at)
}

// certificate looks at the certificate that clients are shown.
func (c *checks) certificate() {
	t := c.cfg.TLS
	if t.Cert == "" {
		return
	}
	c.readable("tls.key", t.Key)
	raw, err := os.ReadFile(t.Cert)
	block, _ := pem.Decode(raw)
	if err != nil || block == nil {
		c.bad("tls.cert", "it cannot be read as PEM", "write the path of the certificate, with its chain")
		return
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		c.bad("tls.cert", err.Error(), "write the path of the certificate, with its chain")
		return
	}
	if left := time.Until(cert.NotAfter); left < 7*24*time.Hour {
		c.all = append(c.all, Finding{"tls.cert", left > 0, "it ends at " + cert.NotAfter.UTC().Format(time.RFC3339), "replace the files: they are read again when they change"})
		return
	}
	if u, err := url.Parse(c.cfg.PublicURL); err == nil && u.Hostname() != "" && cert.VerifyHostname(u.Hostname()) != nil {
		c.bad("tls.cert", "it is not for "+u.Hostname()+", the host of public_url", "take a certificate for that host, or correct public_url")
		return
	}
	c.ok("tls.cert")
}

// keys looks for API keys that end soon, or belong to no one.
func (c *checks) keys() {
	if !c.cfg.Auth.Keys {
		return
	}
	good := true
	for _, k := range c.of.keys.List() {
		shown := c.of.showKey(k)
		switch {
		case shown.State == "orphaned":
			good = false
			c.bad("key "+k.ID, fmt.Sprintf("%s is of %s, a principal that the configuration does not list", k.Name, match.Name(k.Tenant, k.Principal)), "list the principal, or run `wasmgate key revoke "+k.ID+"`")
		case shown.State == "active" && !k.Expires.IsZero() && time.Until(k.Expires) < 7*24*time.Hour:
			good = false
			c.warn("key "+k.ID, fmt.Sprintf("%s ends at %s", k.Name, k.Expires.UTC().Format(time.RFC3339)), "make another with `wasmgate key create` and give it out before")
		}
	}
	if good {
		c.ok("auth.keys")
	}
}

// granted looks for roles that credentials give and that are granted nothing.
func (c *checks) granted() error {
	grants, err := policydata.ReadGrants(c.cfg.Policy.Grants)
	if err != nil || !slices.Contains(c.cfg.Policy.Packs, "grants") || len(c.cfg.Policy.Paths) > 0 || len(c.cfg.Policy.Bundles) > 0 {
		return err // rules of others may say what roles may do
	}
	to := make(map[string]bool)
	for _, g := range grants {
		for _, who := range g.To {
			to[who] = true
		}
	}
	roles := naming.MappedRoles(c.cfg)
	good := true
	for role, at := range roles {
		if !to["role:"+role] && !to["*"] {
			good = false
			c.warn(at, fmt.Sprintf("role %s is granted nothing", role), fmt.Sprintf("run `wasmgate grant 'SERVER__*' --to role:%s`", role))
		}
	}
	if len(roles) > 0 && good {
		c.ok("roles")
	}
	return nil
}
