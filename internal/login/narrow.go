package login

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
)

// maxNarrow bounds the narrowed tokens that are kept with a grant.
const maxNarrow = 256

// exchanged returns a token of a grant for what a request needs, and no more. It is kept for
// such requests. An answer that can do more than was asked for is not used.
func (r *row) exchanged(ctx context.Context, s *Server, g *grant, subject string, who *gate.Principal, need Need, refused string) (*grant, error) {
	scopes := narrowed(g.Scopes, need.Scopes)
	if need.Scopes != nil && g.Token == "" {
		return nil, &Needed{s.ID, "server " + s.ID + " is called with a token that was given, which cannot be narrowed as the policy demands: log in without --token", nil, false}
	}
	if need.Scopes != nil && len(scopes) == 0 {
		return nil, &Needed{s.ID, "server " + s.ID + ": nothing that the policy leaves to this call was granted", nil, false}
	}
	name := subject + " " + strings.Join(scopes, " ")
	now := r.all.o.Now()
	var kept *grant
	r.mu.Lock()
	if r.grant.like(g) {
		kept = r.narrow[name]
	}
	r.mu.Unlock()
	if kept != nil && !same(kept.Access, refused) && kept.holds(now) && (need.TTL == 0 || now.Sub(kept.Got) < need.TTL) {
		return kept, nil
	}
	if kept != nil && same(kept.Access, refused) && now.Sub(kept.Got) < youth {
		return nil, &Needed{s.ID, "server " + s.ID + " refuses the token that the gateway got for it", nil, false}
	}
	got, err := r.lesser(ctx, s, g, subject, scopes)
	if err == nil && need.Scopes != nil && slices.ContainsFunc(got.Scopes, func(sc string) bool { return !slices.Contains(scopes, sc) }) {
		err = errors.New("the authorization server gave a token with more scopes than were requested, so it is not used")
	}
	if g.ID == "" || err != nil {
		whose := r.event(Refreshed, g, err)
		if who != nil {
			whose.Owner = who.Owner
		}
		_ = r.all.o.Note(whose)
	}
	if n, ok := errors.AsType[*Needed](err); ok {
		return nil, n
	}
	if err != nil {
		return nil, &Needed{s.ID, "the authorization server of server " + s.ID + " gives no token for this call", err, false}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.narrow == nil || len(r.narrow) >= maxNarrow {
		r.narrow = make(map[string]*grant)
	}
	if !got.Expires.IsZero() && r.grant.like(g) { // else it is of another grant than that of now
		r.narrow[name] = got
	}
	return got, nil
}

// narrowed returns what of granted scopes is needed; nil granted are not known, nil needed are all.
func narrowed(granted, needed []string) []string {
	if needed == nil {
		return granted
	}
	if granted == nil {
		return needed
	}
	return slices.DeleteFunc(slices.Clone(needed), func(s string) bool { return !slices.Contains(granted, s) })
}

// lesser asks for a token with some of a grant's scopes: by token exchange of the subject, or
// without one as the gateway's own (RFC 6749, 4.4); by an ID-JAG for these scopes; or, of a login
// whose authorization server knows no exchange, by its refresh token (RFC 6749, 6).
func (r *row) lesser(ctx context.Context, s *Server, g *grant, subject string, scopes []string) (*grant, error) {
	if s.Mode == IDJAG {
		return r.assert(ctx, s, scopes)
	}
	form := url.Values{"grant_type": {"client_credentials"}}
	if subject != "" {
		form = url.Values{"grant_type": {exchangeGrant}, "subject_token": {subject}, "subject_token_type": {accessToken}, "requested_token_type": {accessToken}}
		if s.Actor {
			own, err := r.all.actors.token(ctx, s, g, r.all.o.Now())
			if err != nil {
				return nil, fmt.Errorf("no token by which the gateway is the actor: %w", err)
			}
			form.Set("actor_token", own)
			form.Set("actor_token_type", accessToken)
		}
	}
	if len(scopes) > 0 {
		form.Set("scope", strings.Join(scopes, " "))
	}
	r.mu.Lock()
	plain := r.plain
	r.mu.Unlock()
	if !plain {
		asking, cancel := context.WithTimeout(ctx, tokenTime)
		defer cancel()
		got, err := g.ask(asking, s, r.all.o.Now(), form)
		if s.Mode != OAuth || g.Refresh == "" || !unknownGrant(err) {
			if err != nil {
				r.all.actors.forget(s)
			}
			return got, err
		}
		r.mu.Lock()
		r.plain = true
		r.mu.Unlock()
	}
	return r.refreshed(ctx, s, scopes)
}

// refreshed asks for a token with these scopes by the refresh token. It is the only refresh at a time.
// A refresh token in the answer holds for everything that was granted, and is kept before the token is
// used.
func (r *row) refreshed(ctx context.Context, s *Server, scopes []string) (*grant, error) {
	r.mu.Lock()
	for r.busy != nil {
		wait := r.busy
		r.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		r.mu.Lock()
	}
	g := r.grant
	if g == nil || g.Refresh == "" {
		r.mu.Unlock()
		return nil, errors.New("the login is no longer valid")
	}
	r.busy = make(chan struct{})
	r.mu.Unlock()

	end, err := r.turn(s)
	defer end()
	r.mu.Lock()
	if g = r.grant; err == nil && (g == nil || g.Refresh == "") {
		err = errors.New("the login is no longer valid")
	}
	if err != nil {
		close(r.busy)
		r.busy = nil
		r.mu.Unlock()
		return nil, err
	}
	r.mu.Unlock()
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), tokenTime) // the answer is kept in any case
	defer cancel()
	got, err := g.ask(asking, s, r.all.o.Now(), url.Values{"grant_type": {"refresh_token"}, "refresh_token": {g.Refresh}, "scope": {strings.Join(scopes, " ")}})
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() { close(r.busy); r.busy = nil }()
	switch {
	case !r.grant.is(g): // logged out meanwhile, or in again
		return nil, errors.New("the login is no longer valid")
	case ended(err):
		r.grant, r.problem = nil, errors.New("the authorization server no longer accepts the login")
		return nil, errors.Join(err, r.all.o.Vault.Delete(r.key))
	case err == nil && got.Refresh != g.Refresh:
		kept, narrow := *g, r.narrow
		kept.Refresh = got.Refresh
		if err := r.put(&kept); err != nil {
			return nil, err
		}
		r.narrow = narrow
	}
	return got, err
}
