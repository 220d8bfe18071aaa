package login

import (
	"context"
	"errors"
	"fmt"
	"net/url"
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

// maxLife bounds for how long a token is taken to hold.
const maxLife = 366 * 24 * time.Hour

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

// isToken reports whether a text is one word of printable characters.
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
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
