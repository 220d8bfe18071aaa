package login

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"time"

	"golang.org/x/oauth2"
)

// A Ticket is a sign-in that has begun. The browser keeps it, sealed, until it comes back: callers
// without any credential can begin sign-ins, and would fill a table.
type ticket struct {
	For      string    `json:"for"` // what the sign-in is for, in the words of the caller of SignIn
	State    string    `json:"state"`
	Verifier string    `json:"verifier"`
	Redirect string    `json:"redirect"`
	Until    time.Time `json:"until"`
	Client   *client   `json:"client,omitempty"` // that was registered
}

// SignIn begins to find out who sits at a browser: at the issuer of a server of the mode
// [SignsIn], whose ID is the issuer's name and whose URL is the gateway's own. The browser keeps
// the ticket as a cookie that no script can read.
func (l *Logins) SignIn(ctx context.Context, s *Server, redirect, purpose string) (begun *Begun, sealed string, err error) {
	p, err := l.provider(ctx, s)
	if err != nil {
		return nil, "", err
	}
	t := ticket{For: purpose, State: Named(l.o.Node, rand.Text()), Verifier: oauth2.GenerateVerifier(), Redirect: redirect, Until: l.o.Now().Add(flowTime)}
	f := &flow{server: s, redirect: redirect, verifier: t.Verifier, place: p, scopes: s.Scopes}
	if f.client, err = l.signInClient(ctx, s, p, redirect); err != nil {
		return nil, "", err
	}
	if s.ClientID == "" {
		t.Client = &f.client
	}
	raw, err := json.Marshal(t)
	if err != nil {
		return nil, "", err
	}
	sealed = base64.RawURLEncoding.EncodeToString(l.seal.Seal(nil, nil, raw, nil))
	return &Begun{f.url(t.State), p.Issuer, t.State, f.scopes, p.resource}, sealed, nil
}

// Purpose returns what the sign-in of a ticket is for, if the browser has come back with its state
// in time.
func (l *Logins) Purpose(sealed string, query url.Values) (purpose string, ok bool) {
	t, ok := l.open(sealed, query)
	return t.For, ok
}

func (l *Logins) open(sealed string, query url.Values) (t ticket, ok bool) {
	raw, err := base64.RawURLEncoding.DecodeString(sealed)
	if err == nil {
		raw, err = l.seal.Open(nil, nil, raw, nil)
	}
	if err != nil || json.Unmarshal(raw, &t) != nil || !same(t.State, query.Get("state")) || t.Until.Before(l.o.Now()) {
		return ticket{}, false
	}
	return t, true
}

// SignedIn returns the access token with which a browser has come back from [Logins.SignIn], at the
// same server. The token was issued by the issuer that was asked, for the gateway. It says who the
// person is by the same claims that identify callers. SignedIn keeps nothing.
func (l *Logins) SignedIn(ctx context.Context, s *Server, sealed string, query url.Values) (token string, err error) {
	t, ok := l.open(sealed, query)
	if !ok {
		return "", ErrState
	}
	p, err := l.provider(ctx, s)
	if err != nil {
		return "", err
	}
	f := &flow{server: s, redirect: t.Redirect, verifier: t.Verifier, place: p}
	if t.Client != nil {
		f.client = *t.Client
	} else {
		f.client = s.configured(p)
	}
	g, err := f.exchange(ctx, l.o.Now(), query)
	if err != nil {
		return "", err
	}
	return g.Access, nil
}

// provider asks an issuer where its endpoints are, once a minute.
func (l *Logins) provider(ctx context.Context, s *Server) (*place, error) {
	k := l.providers.known(s)
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := l.o.Now(); !now.Before(k.until) {
		ask, cancel := context.WithTimeout(context.WithoutCancel(ctx), tokenTime) // others wait for it
		defer cancel()
		k.meta, k.err = serverMetadata(ask, s, s.Issuer)
		k.until = now.Add(providerTime)
		if k.err != nil {
			k.until = now.Add(failedTime)
		}
	}
	if k.err != nil {
		return nil, k.err
	}
	return &place{resource: s.URL, AuthServerMeta: *k.meta}, nil
}

// signInClient is who the gateway is at an issuer: a client that it registers serves many sign-ins.
func (l *Logins) signInClient(ctx context.Context, s *Server, p *place, redirect string) (client, error) {
	k, now := l.providers.known(s), l.o.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	if r, ok := k.registered[redirect]; ok && now.Before(r.until) {
		return r.client, nil
	}
	c, err := s.client(context.WithoutCancel(ctx), p, redirect, l.o.Public())
	if err != nil || s.ClientID != "" {
		return c, err
	}
	if len(k.registered) >= maxRegistered {
		clear(k.registered) // tickets hold theirs
	}
	k.registered[redirect] = registration{c, now.Add(registeredTime)}
	return c, nil
}
