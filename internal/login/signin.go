package login

import (
	"context"
	"net/url"
)

// SignsIn is the mode of a server that is the gateway itself: see [Logins.SignIn].
const SignsIn = "sign_in"

// asksPeople reports whether tokens of a server come by way of a browser.
func (s *Server) asksPeople() bool { return s.Mode == OAuth || s.Mode == SignsIn }

// clientKey is where the configuration names the client at a server.
func (s *Server) clientKey() string {
	if s.Mode == SignsIn {
		return "auth.issuers." + s.ID + ".sign_in.client_id"
	}
	return "servers." + s.ID + ".auth.client_id"
}

// SignIn begins to find out who sits at a browser: at the issuer of a server of the mode
// [SignsIn], whose ID is the issuer's name and whose URL is the gateway's own. Nothing of it is
// kept.
func (l *Logins) SignIn(ctx context.Context, s *Server, redirect string) (*Begun, error) {
	m, err := serverMetadata(ctx, s, s.Issuer)
	if err != nil {
		return nil, err
	}
	p := &place{resource: s.URL, AuthServerMeta: *m}
	c, err := l.client(ctx, s, p, redirect)
	if err != nil {
		return nil, err
	}
	return l.begin(&flow{server: s, redirect: redirect, place: p, client: c, scopes: s.Scopes, signIn: true})
}

// SignedIn returns the access token with which a browser has come back from [Logins.SignIn],
// once. It is of the issuer that was asked, for the gateway, and says who the person is: by the
// very claims by which callers are told apart.
func (l *Logins) SignedIn(ctx context.Context, query url.Values) (token string, err error) {
	_, g, err := l.finish(ctx, query, func(f *flow) bool { return f.signIn })
	if err != nil {
		return "", err
	}
	return g.Access, nil
}
