package login

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	// pause is for how long an authorization server that gave no token is not asked again.
	pause = 10 * time.Second
	// youth is for how long a refusal of the server is no reason to refresh once more: the next
	// token would be refused as well.
	youth = 30 * time.Second
)

// access returns a grant whose token holds, and is not the refused one. It refreshes once,
// however many wait.
func (r *row) access(ctx context.Context, s *Server, refused string) (*grant, error) {
	for {
		g, wait, err := r.look(s, refused)
		if wait == nil {
			return g, err
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// errMoved keeps tokens from a server that has the name of another.
var errMoved = errors.New("the server has another URL than when the login was made")

func (r *row) look(s *Server, refused string) (*grant, chan struct{}, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.load()
	g, now := r.grant, r.all.o.Now()
	if !r.read {
		return nil, nil, &Needed{r.key.Server, "the login at server " + r.key.Server + " cannot be opened now: `wasmgate logins` on the gateway's machine says why", r.problem, false}
	}
	if s.Mode == IDJAG {
		var err error
		if g, err = r.rebase(s); err != nil {
			return nil, nil, err
		}
	}
	if g == nil {
		return nil, nil, r.needed(r.problem)
	}
	if g.URL != s.URL {
		return nil, nil, r.needed(errMoved)
	}
	bad := refused != "" && same(g.Access, refused)
	lives := g.Expires.IsZero() || now.Before(g.Expires)
	renews := g.Refresh != "" || s.Mode == IDJAG
	switch {
	case !bad && (g.Expires.IsZero() || now.Before(g.Expires.Add(-early)) || s.Mode == IDJAG && g.holds(now)):
		return g, nil, nil
	case !renews && lives && !bad:
		return g, nil, nil
	case !renews && bad:
		return nil, nil, r.needed(errors.New("the server refuses the token"))
	case !renews:
		return nil, nil, r.needed(errors.New("the login is no longer valid"))
	case bad && r.busy == nil && now.Sub(r.forced) < youth && s.Mode == IDJAG:
		return nil, nil, &Needed{s.ID, "server " + s.ID + " refuses the token that its authorization server gave", nil, false}
	case bad && r.busy == nil && now.Sub(r.forced) < youth:
		return nil, nil, r.needed(errors.New("the server refuses a new token"))
	case r.busy == nil && now.Before(r.after) && lives && !bad:
		return g, nil, nil
	case r.busy == nil && now.Before(r.after):
		return nil, nil, r.unavailable(s)
	}
	if r.busy == nil {
		r.busy = make(chan struct{})
		if bad {
			r.forced = now
		}
		go r.refresh(s, g)
	}
	if lives && !bad {
		return g, nil, nil
	}
	return nil, r.busy, nil
}

// refresh gets the next token, for all requests that wait; its time limit is its own. It keeps the
// grant before it uses it, because the authorization server may not accept the previous one any more.
func (r *row) refresh(s *Server, g *grant) {
	end, err := r.turn(s)
	defer end()
	var next *grant
	if err == nil && r.still(g) {
		ctx, cancel := context.WithTimeout(context.Background(), tokenTime)
		defer cancel()
		next, err = r.next(ctx, s, g)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() { close(r.busy); r.busy = nil }()
	if !r.grant.is(g) { // logged out meanwhile, in again, or refreshed by another gateway
		return
	}
	switch {
	case err == nil:
		err = r.put(next)
	case s.Mode != IDJAG && ended(err):
		r.grant, r.problem = nil, errors.New("the authorization server no longer accepts the login")
		err = errors.Join(err, r.all.o.Vault.Delete(r.key))
	}
	if err != nil && r.grant != nil {
		r.problem, r.after = err, r.all.o.Now().Add(pause)
	}
	_ = r.all.o.Note(r.event(Refreshed, g, err)) // the token has come, and there is nothing to take back
}

// turnTime is for how long a gateway waits for another that changes a login.
const turnTime = 45 * time.Second

// turn waits until no other gateway changes the login, and reads it again. The caller calls end, whatever
// the error. Tokens by an ID-JAG have no refresh token that could be spent twice.
func (r *row) turn(s *Server) (end func(), err error) {
	if r.all.o.Turn == nil || s.Mode == IDJAG {
		return func() {}, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), turnTime)
	defer cancel()
	if end, err = r.all.o.Turn(ctx, r.key.Name()); err != nil {
		return func() {}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read = false
	if r.load(); !r.read {
		err = r.problem
	}
	return end, err
}

// still reports whether the login is what it was.
func (r *row) still(g *grant) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.grant.is(g)
}

func (r *row) next(ctx context.Context, s *Server, g *grant) (*grant, error) {
	if s.Mode == IDJAG {
		return r.assert(ctx, s, s.Scopes)
	}
	return g.refresh(ctx, s, r.all.o.Now())
}

func (r *row) unavailable(s *Server) error {
	if n, ok := errors.AsType[*Needed](r.problem); ok {
		return n
	}
	if e, ok := errors.AsType[*statusError](r.problem); ok && e.code == "invalid_client" && s.ClientID == "" {
		return r.needed(errors.New("the authorization server does not know the client any more, so the next login registers a new one"))
	}
	return &Needed{r.key.Server, "the authorization server of server " + r.key.Server + " gives no token; try again later", r.problem, false}
}

// own returns where the gateway itself gets tokens from, which is discovered once, and anew when
// the server is configured anew: tokens for one URL are not sent to another.
func (r *row) own(ctx context.Context, s *Server) (*grant, error) {
	r.mu.Lock()
	g, of := r.grant, r.server
	r.mu.Unlock()
	if of == s {
		return g, nil
	}
	p, err := discover(ctx, s)
	if err != nil {
		return nil, &Needed{s.ID, "the authorization server of server " + s.ID + " gives no token; try again later", err, false}
	}
	g = &grant{Issuer: p.Issuer, Resource: p.resource, Token: p.TokenEndpoint, Revocation: p.RevocationEndpoint, Client: s.configured(p), Scopes: s.Scopes}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.grant, r.server, r.read, r.narrow = g, s, true, nil
	return g, nil
}

// maxLacked bounds the scopes that are remembered.
const maxLacked = 32

// forbidden reads why a server refuses a call. If it lacks scopes, another login is needed.
func (r *row) forbidden(resp *http.Response, need Need) error {
	c := bearer(resp.Header)
	if c["error"] != "insufficient_scope" {
		return nil
	}
	if need.Scopes != nil {
		return &Needed{r.key.Server, "server " + r.key.Server + " wants scopes that the policy does not leave to this call", nil, false}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range strings.Fields(c["scope"]) {
		if !slices.Contains(r.lacks, s) && len(r.lacks) < maxLacked && len(s) <= 128 {
			r.lacks = append(r.lacks, s)
		}
	}
	if r.key.Kind != loginKind {
		return &Needed{r.key.Server, "server " + r.key.Server + " asks for more scopes than the gateway's token for it has", fmt.Errorf("it wants %q: write what is missing to servers.%s.auth.scopes", strings.Join(r.lacks, " "), r.key.Server), false}
	}
	return r.needed(errors.New("the server asks for more scopes than were granted"))
}
