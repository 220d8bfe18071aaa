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

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// assertedLife bounds a token whose authorization server does not say for how long it holds: the
// identity provider is asked again after it.
const assertedLife = time.Hour

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
