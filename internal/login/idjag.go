package login

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/wasmgate/wasmgate/gate"
)

// idpMode is the mode of an identity provider: people log in to it once, for all servers that
// take its identity assertions. The access token of such a grant is the person's ID token.
const idpMode = "idp"

// jwtBearer is the grant type that takes an identity assertion (RFC 7523, 2.1).
const jwtBearer = "urn:ietf:params:oauth:grant-type:jwt-bearer"

// assertedLife bounds a token whose authorization server does not say for how long it holds: the
// identity provider is asked again after it.
const assertedLife = time.Hour

// IdentityProvider returns where people log in for servers of the mode [IDJAG]. Each client of an
// identity provider has logins of its own, because an ID token is for one client.
func IdentityProvider(s Server) *Server {
	s.ID, s.URL, s.Mode, s.Scopes = s.Issuer+" as "+s.ClientID, s.Issuer, idpMode, []string{"openid"}
	return &s
}

// through returns the servers whose tokens come from logins at an identity provider.
func (l *Logins) through(idp string) (all []*Server) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.servers {
		if s.IDP != nil && s.IDP.ID == idp {
			all = append(all, s)
		}
	}
	return all
}

// forgetAsserted deletes the tokens that came from a login, and revokes them.
func (l *Logins) forgetAsserted(ctx context.Context, idp *Server, o gate.Owner) (err error) {
	for _, s := range l.through(idp.ID) {
		r := l.row(s, o)
		r.mu.Lock()
		r.load()
		g := r.grant
		r.grant, r.narrow = nil, nil
		err = errors.Join(err, l.o.Vault.Delete(r.key))
		r.mu.Unlock()
		if g == nil || g.Access == "" {
			continue
		}
		problem := g.revoke(ctx, s, l.o.Now())
		if refusal, ok := errors.AsType[*statusError](problem); ok && refusal.code == "unsupported_token_type" {
			problem = nil // a signed token holds to its end, which is near (RFC 7009, 2.2.1)
		}
		err = errors.Join(err, problem)
	}
	return err
}

// basis is what a token of a server depends on. If any of it changes, the token is not used any more.
func (s *Server) basis(in *grant) string {
	raw, _ := json.Marshal([]any{in.ID, s.URL, s.Issuer, s.ClientID, s.Scopes})
	return string(raw)
}

// rebase returns the grant of a row of the mode [IDJAG], or an empty one that is due if it does not
// come from the login of now. The caller holds mu.
func (r *row) rebase(s *Server) (*grant, error) {
	idp := r.all.row(s.IDP, r.owner())
	idp.mu.Lock()
	idp.load()
	in, read, problem := idp.grant, idp.read, idp.problem
	idp.mu.Unlock()
	switch {
	case !read:
		return nil, &Needed{s.ID, "the login for server " + s.ID + " cannot be opened now: `wasmgate logins` on the gateway's machine says why", problem, false}
	case in == nil:
		return nil, r.signIn(s, problem)
	}
	if basis := s.basis(in); r.grant == nil || r.grant.Basis != basis {
		r.grant = &grant{ID: in.ID, URL: s.URL, Issuer: s.Issuer, Scopes: s.Scopes, Basis: basis, Expires: time.Unix(0, 0)}
		r.problem, r.after, r.forced, r.narrow = nil, time.Time{}, time.Time{}, nil
	}
	return r.grant, nil
}

func (r *row) owner() gate.Owner { return gate.Owner{Tenant: r.key.Tenant, ID: r.key.Principal} }

// signIn says that a login at the identity provider is what helps.
func (r *row) signIn(s *Server, cause error) *Needed {
	return &Needed{s.ID, "server " + s.ID + " needs a login at " + s.IDP.Issuer + ": " + how(r.key), cause, true}
}

// assert gets a token for a server in two steps (MCP, enterprise-managed authorization): the
// identity provider gives an ID-JAG for the ID token of the login, and the authorization server of
// the server gives a token for that. Its errors are [*Needed], and name the one that refused.
func (r *row) assert(ctx context.Context, s *Server, scopes []string) (*grant, error) {
	in, err := r.all.row(s.IDP, r.owner()).access(ctx, s.IDP, "")
	if n, ok := errors.AsType[*Needed](err); ok && n.login {
		return nil, r.signIn(s, n.cause)
	}
	if err != nil {
		return nil, &Needed{s.ID, "the identity provider " + s.IDP.Issuer + " does not renew the login for server " + s.ID + "; try again later", err, false}
	}
	p, err := discover(ctx, s)
	if err != nil {
		return nil, &Needed{s.ID, "the authorization server of server " + s.ID + " gives no token; try again later", err, false}
	}
	assertion, err := s.assertionFor(ctx, in, p, scopes, r.all.o.Now())
	if err != nil {
		return nil, r.refusedByIDP(s, err)
	}
	form := url.Values{"grant_type": {jwtBearer}, "assertion": {assertion}}
	if len(scopes) > 0 {
		form.Set("scope", strings.Join(scopes, " "))
	}
	g := &grant{
		ID: in.ID, URL: s.URL, Made: in.Made, Issuer: p.Issuer, Resource: p.resource, Token: p.TokenEndpoint, Revocation: p.RevocationEndpoint,
		Client: s.configured(p), Basis: s.basis(in),
	}
	got, err := g.ask(ctx, s, r.all.o.Now(), form)
	if err != nil {
		return nil, refusedByServer(s, err)
	}
	got.Refresh = "" // the next token also needs the identity provider's consent
	if latest := got.Got.Add(assertedLife); got.Expires.IsZero() {
		got.Expires = latest
	}
	return got, nil
}

// refusedByIDP says why there is no ID-JAG, and what to do.
func (r *row) refusedByIDP(s *Server, err error) error {
	idp, text, login := "the identity provider "+s.IDP.Issuer, "", false
	refusal, _ := errors.AsType[*statusError](err)
	switch {
	case refusal == nil || refusal.status >= 500:
		text = idp + " gives no valid grant for server " + s.ID + "; try again later, or ask its administrator"
	case refusal.code == "invalid_client":
		text = idp + " does not accept the gateway's client: check servers." + s.ID + ".auth.idp_client"
	case slices.Contains([]string{"invalid_grant", "login_required", "interaction_required", "insufficient_user_authentication"}, refusal.code):
		text, login = idp+" wants a new login for server "+s.ID+": "+how(r.key)+"; if that does not help, ask its administrator", true
	default:
		text, err = idp+" does not let this principal use server "+s.ID+" by client "+s.IDP.ClientID+": ask its administrator", denied{err}
	}
	return &Needed{s.ID, text, err, login}
}

// denied is why a person may not use a server that others may use.
type denied struct{ error }

func (d denied) Unwrap() error { return d.error }

// refusedByServer says why there is no token for an ID-JAG, and what to do.
func refusedByServer(s *Server, err error) error {
	text := "the authorization server " + s.Issuer + " of server " + s.ID
	refusal, _ := errors.AsType[*statusError](err)
	switch {
	case refusal == nil || refusal.status >= 500:
		text += " gives no token; try again later"
	case refusal.code == "invalid_client":
		text += " does not accept the gateway's client: check servers." + s.ID + ".auth.client_id, and the secret or key"
	default:
		text += " does not accept the grant of " + s.IDP.Issuer + ": ask its administrator to trust this identity provider for client " + s.ClientID
	}
	return &Needed{s.ID, text, err, false}
}

// assertionFor exchanges an ID token for an ID-JAG (RFC 8693;
// draft-ietf-oauth-identity-assertion-authz-grant, 4.3). oauthex.ExchangeToken is not used: its
// errors have the whole answer, and it knows client_secret_post only.
func (s *Server) assertionFor(ctx context.Context, in *grant, p *place, scopes []string, now time.Time) (string, error) {
	meta, err := serverMetadata(ctx, s, s.IDP.Issuer)
	if err != nil {
		return "", err
	}
	idp := &grant{Issuer: meta.Issuer, Client: s.IDP.configured(&place{AuthServerMeta: *meta})}
	form := url.Values{
		"grant_type": {exchangeGrant}, "requested_token_type": {oauthex.TokenTypeIDJAG}, "audience": {p.Issuer}, "resource": {p.resource},
		"subject_token": {in.Access}, "subject_token_type": {oauthex.TokenTypeIDToken},
	}
	if len(scopes) > 0 {
		form.Set("scope", strings.Join(scopes, " "))
	}
	var a struct {
		tokenAnswer
		Issued string `json:"issued_token_type"`
	}
	if err := s.post(ctx, idp, meta.TokenEndpoint, now, form, &a); err != nil {
		return "", err
	}
	switch {
	case a.Issued != oauthex.TokenTypeIDJAG:
		return "", errors.New("the identity provider issued a token whose type is not id-jag")
	case !strings.EqualFold(a.Type, "N_A"):
		return "", errors.New("the identity provider issues an ID-JAG as an access token: its token_type is not N_A")
	case !isToken(a.Access):
		return "", errors.New("the identity provider answers with no token")
	}
	return a.Access, checkAssertion(a.Access, s, p, now)
}

// checkAssertion reports an ID-JAG that is not for this client, server and authorization server.
// Its signature is for the authorization server to verify.
func checkAssertion(text string, s *Server, p *place, now time.Time) error {
	typ, c, err := readJWT(text)
	switch {
	case err != nil:
		return fmt.Errorf("the ID-JAG: %w", err)
	case !strings.EqualFold(strings.TrimPrefix(typ, "application/"), "oauth-id-jag+jwt"):
		return errors.New("the typ of the ID-JAG is not oauth-id-jag+jwt")
	case c.Issuer != s.IDP.Issuer:
		return errors.New("the issuer of the ID-JAG is not the identity provider")
	case len(c.Audience) != 1 || c.Audience[0] != p.Issuer:
		return errors.New("the audience of the ID-JAG is not the server's authorization server")
	case c.Client != s.ClientID:
		return fmt.Errorf("the client of the ID-JAG is not servers.%s.auth.client_id", s.ID)
	case slices.ContainsFunc(c.Resource, func(at string) bool { return at != p.resource }):
		return errors.New("the resource of the ID-JAG is not the server")
	case c.Subject == "" || c.JTI == "":
		return errors.New("the ID-JAG lacks sub or jti")
	case c.ends().Before(now):
		return errors.New("the ID-JAG has expired")
	}
	return nil
}

// identity takes the ID token of a login at an identity provider in the place of the access token
// (OpenID Connect Core, 3.1.3.7). It came from the provider itself over TLS, or from its owner.
func (g *grant) identity(s *Server, text string, now time.Time) error {
	if text == "" {
		return errors.New("the identity provider gives no ID token: allow the scope openid for the gateway's client")
	}
	_, c, err := readJWT(text)
	switch {
	case err != nil:
		return fmt.Errorf("the ID token: %w", err)
	case c.Issuer != s.Issuer:
		return errors.New("the issuer of the ID token is not the identity provider")
	case !slices.Contains(c.Audience, s.ClientID), c.Party != "" && c.Party != s.ClientID:
		return errors.New("the ID token is not for the gateway's client: see idp_client")
	case c.Subject == "" || g.Subject != "" && g.Subject != c.Subject: // OpenID Connect Core, 12.2
		return errors.New("the ID token belongs to a different person than the login")
	case !now.Before(c.ends()):
		return errors.New("the ID token has expired")
	}
	g.Access, g.Subject, g.Expires = text, c.Subject, c.ends()
	return nil
}

// claims are those of ID tokens and of ID-JAGs.
type claims struct {
	Issuer   string  `json:"iss"`
	Subject  string  `json:"sub"`
	Audience several `json:"aud"`
	Party    string  `json:"azp"`
	Client   string  `json:"client_id"`
	Resource several `json:"resource"`
	JTI      string  `json:"jti"`
	Exp      float64 `json:"exp"`
}

func (c *claims) ends() time.Time {
	return time.Unix(int64(min(max(c.Exp, 0), 1<<40)), 0)
}

// several are texts. JSON has a single one also without a list.
type several []string

func (s *several) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		*s = several{one}
		return nil
	}
	return json.Unmarshal(raw, (*[]string)(s))
}

// signatures are the algorithms of tokens that are read here and verified elsewhere.
var signatures = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA, jose.HS256, jose.HS384, jose.HS512,
}

// readJWT reads a signed token without verifying it. Its errors have no word of it.
func readJWT(text string) (typ string, c *claims, err error) {
	signed, err := jose.ParseSignedCompact(text, signatures)
	if err != nil {
		return "", nil, errors.New("not a signed JWT")
	}
	if json.Unmarshal(signed.UnsafePayloadWithoutVerification(), &c) != nil || c == nil {
		return "", nil, errors.New("the claims are not a JSON object")
	}
	typ, _ = signed.Signatures[0].Header.ExtraHeaders[jose.HeaderType].(string)
	return typ, c, nil
}
