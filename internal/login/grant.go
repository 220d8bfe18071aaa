package login

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// A grant is what somebody, or the gateway itself, may do at a server.
type grant struct {
	ID         string    `json:"id"`  // its name in the log
	URL        string    `json:"url"` // of the server that its tokens are sent to, and no other
	Made       time.Time `json:"made"`
	Issuer     string    `json:"issuer"` // "" of a token that was given
	Resource   string    `json:"resource"`
	Token      string    `json:"token_endpoint"`
	Revocation string    `json:"revocation_endpoint,omitempty"`
	Client     client    `json:"client"`

	Basis   string    `json:"basis,omitempty"`   // of a token by an ID-JAG: see [Server.basis]
	Subject string    `json:"subject,omitempty"` // of a login at an identity provider: its person there
	Access  string    `json:"access_token"`
	Refresh string    `json:"refresh_token,omitempty"`
	Scopes  []string  `json:"scopes,omitempty"` // nil: not said
	Expires time.Time `json:"expires,omitzero"`
	Got     time.Time `json:"got"` // when Access came
}

// tokenAnswer is that of a token endpoint (RFC 6749, 5.1; RFC 8693, 2.2.1).
type tokenAnswer struct {
	Access  string  `json:"access_token"`
	Type    string  `json:"token_type"`
	Expires float64 `json:"expires_in"` // seconds
	Refresh string  `json:"refresh_token"`
	Scope   *string `json:"scope"`
	ID      string  `json:"id_token"` // of an identity provider
}

// The parameters of a token exchange (RFC 8693, 2.1 and 3).
const (
	exchangeGrant = "urn:ietf:params:oauth:grant-type:token-exchange"
	accessToken   = "urn:ietf:params:oauth:token-type:access_token"
)

// jwtBearer is the grant type that takes an identity assertion (RFC 7523, 2.1).
const jwtBearer = "urn:ietf:params:oauth:grant-type:jwt-bearer"

const (
	// maxLife bounds for how long a token is taken to hold.
	maxLife = 366 * 24 * time.Hour
	// early is how long before its end a token is refreshed, so that it holds on its way.
	early = time.Minute
	// tokenTime bounds a request to an authorization server.
	tokenTime = 30 * time.Second
)

// ask asks the token endpoint of a grant, and returns the grant with what was answered. The
// answer keeps to the scopes that were asked for, if any were.
func (g *grant) ask(ctx context.Context, s *Server, now time.Time, form url.Values) (*grant, error) {
	if g.Resource != "" {
		form.Set("resource", g.Resource)
	}
	var a tokenAnswer
	if err := s.post(ctx, g, g.Token, now, form, &a); err != nil {
		return nil, err
	}
	if !isToken(a.Access) || !strings.EqualFold(a.Type, "bearer") {
		return nil, errors.New("the token endpoint answers with no bearer token")
	}
	next := *g
	next.Access, next.Got, next.Expires = a.Access, now, time.Time{}
	if a.Expires > 0 {
		next.Expires = now.Add(time.Duration(min(a.Expires, maxLife.Seconds())) * time.Second)
	}
	if a.Refresh != "" {
		next.Refresh = a.Refresh
	}
	switch {
	case a.Scope != nil:
		next.Scopes = strings.Fields(*a.Scope)
	case form.Get("scope") != "":
		next.Scopes = strings.Fields(form.Get("scope"))
	}
	if s.Mode == idpMode {
		return &next, next.identity(s, a.ID, now)
	}
	return &next, nil
}

// post sends a form to an endpoint of the authorization server, as a client.
func (s *Server) post(ctx context.Context, g *grant, at string, now time.Time, form url.Values, to any) error {
	h := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Accept": {"application/json"}}
	if err := g.Client.proves(g.Issuer, now, form, h); err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, at, strings.NewReader(form.Encode()))
	if err != nil {
		return plain(err)
	}
	r.Header = h
	return s.read(r, to)
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

// refresh asks for the next access token. Whether a refresh token comes along is the server's
// to say: without one the old one holds (OAuth 2.1, 4.3).
func (g *grant) refresh(ctx context.Context, s *Server, now time.Time) (*grant, error) {
	return g.ask(ctx, s, now, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {g.Refresh}})
}

// revoke ends what was granted, at the authorization server (RFC 7009).
func (g *grant) revoke(ctx context.Context, s *Server, now time.Time) error {
	if g.Revocation == "" || s.Mode == idpMode && g.Refresh == "" {
		return nil
	}
	token, hint := g.Refresh, "refresh_token"
	if token == "" {
		token, hint = g.Access, "access_token"
	}
	form := url.Values{"token": {token}, "token_type_hint": {hint}}
	if err := s.post(ctx, g, g.Revocation, now, form, nil); err != nil {
		return fmt.Errorf("it is forgotten here, and could not be revoked there: %w", err)
	}
	return nil
}

// ended reports whether an error of the token endpoint says that a grant is none any more.
func ended(err error) bool {
	s, ok := errors.AsType[*statusError](err)
	return ok && s.code == "invalid_grant"
}

// unknownGrant reports whether an authorization server does not give tokens in this way.
func unknownGrant(err error) bool {
	e, ok := errors.AsType[*statusError](err)
	return ok && (e.code == "unsupported_grant_type" || e.code == "unauthorized_client")
}

// is reports whether two are the same, token by token.
func (g *grant) is(o *grant) bool {
	return g == o || g != nil && o != nil && g.ID == o.ID && g.Access == o.Access && g.Refresh == o.Refresh && g.Basis == o.Basis
}

// like reports whether two are one grant, whose refresh token may have changed.
func (g *grant) like(o *grant) bool {
	return g == o || g != nil && o != nil && o.ID != "" && g.ID == o.ID && g.Access == o.Access
}

// holds reports whether a token that is kept can be used: long ones end a minute before they do.
func (g *grant) holds(now time.Time) bool {
	return now.Before(g.Expires.Add(-min(early, g.Expires.Sub(g.Got)/4)))
}

// newID makes the name of a grant in the log.
func newID() string { return strings.ToLower(rand.Text()[:12]) }

// isToken reports whether a text is one word of printable characters.
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// same reports whether two secrets are equal, in a time that reveals nothing.
func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
