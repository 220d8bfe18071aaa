package login

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"golang.org/x/oauth2"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/evict"
)

// A Start asks for a login.
type Start struct {
	Server   string
	Owner    gate.Owner
	Redirect string   // where the browser comes back to
	Scopes   []string // in addition to those of the configuration
}

// people returns where people log in for a server: at itself, or at its identity provider.
func (l *Logins) people(id string) (*Server, error) {
	s, err := l.server(id)
	if err == nil && s.Mode == IDJAG {
		s = s.IDP
	}
	if err == nil && !s.asksPeople() {
		err = fmt.Errorf("server %s needs no login: the gateway gets its tokens by itself (auth.mode: %s)", s.ID, s.Mode)
	}
	return s, err
}

// Personal reports whether each logs in to a server for themselves.
func (l *Logins) Personal(server string) bool {
	s, err := l.people(server)
	return err == nil && !s.Shared
}

// Begin begins the login of a principal at a server.
func (l *Logins) Begin(ctx context.Context, b Start) (*Begun, error) {
	s, err := l.people(b.Server)
	if err == nil {
		err = l.o.Vault.Ready() // a login that could not be kept must not begin
	}
	if err != nil {
		return nil, err
	}
	p, err := discover(ctx, s)
	if err != nil {
		return nil, err
	}
	c, err := s.client(ctx, p, b.Redirect, l.o.Public())
	if err != nil {
		return nil, err
	}
	return l.begin(&flow{server: s, owner: s.owner(b.Owner), redirect: b.Redirect, place: p, client: c, scopes: l.asksFor(s, s.owner(b.Owner), p, b.Scopes)}), nil
}

// begin has a flow wait for its answer. In a full table it replaces one of the owner that has the
// most.
func (l *Logins) begin(f *flow) *Begun {
	f.verifier, f.until = oauth2.GenerateVerifier(), l.o.Now().Add(flowTime)
	state := Named(l.o.Node, rand.Text())
	l.mu.Lock()
	defer l.mu.Unlock()
	for old, of := range l.flows {
		if of.until.Before(l.o.Now()) {
			delete(l.flows, old)
		}
	}
	if len(l.flows) >= maxFlows {
		delete(l.flows, evict.Next(l.flows, func(f *flow) (gate.Owner, time.Time) { return f.owner, f.until }))
	}
	l.flows[state] = f
	return &Begun{f.url(state), f.place.Issuer, state, f.scopes, f.place.resource}
}

// asksFor chooses scopes: those that are configured or asked for, or else those that the
// server names; those that it lacked before; and offline_access where the authorization server
// has it, for without a refresh token people would have to come again each hour.
func (l *Logins) asksFor(s *Server, o gate.Owner, p *place, more []string) []string {
	all := slices.Concat(s.Scopes, more)
	if len(all) == 0 {
		all = slices.Clone(p.scopes)
	}
	all = append(all, l.rows.row(s, o).lacked()...)
	if slices.Contains(p.ScopesSupported, "offline_access") {
		all = append(all, "offline_access")
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Finish ends a login with what the browser brought back: the query of its redirect. It is
// taken once, and only from the owner that has begun it.
func (l *Logins) Finish(ctx context.Context, owner gate.Owner, query url.Values) (*Login, error) {
	state := query.Get("state")
	l.mu.Lock()
	f := l.flows[state]
	if f == nil || f.owner != f.server.owner(owner) || f.until.Before(l.o.Now()) {
		l.mu.Unlock()
		return nil, ErrState
	}
	delete(l.flows, state)
	l.mu.Unlock()
	g, err := f.exchange(ctx, l.o.Now(), query)
	if err != nil {
		return nil, err
	}
	if g.Scopes == nil {
		g.Scopes = f.scopes // RFC 6749, 5.1: what was asked for
	}
	return l.keep(f.server, f.owner, g)
}

// Give keeps a token that a person provides, such as a personal access token. It is not refreshed.
func (l *Logins) Give(server string, owner gate.Owner, token string) (*Login, error) {
	s, err := l.people(server)
	if err != nil {
		return nil, err
	}
	if !isToken(token) || len(token) > 16<<10 {
		return nil, errors.New("this is not a token: a token is one word of printable characters")
	}
	now := l.o.Now()
	g := &grant{ID: newID(), URL: s.URL, Made: now, Got: now, Access: token}
	if s.Mode == idpMode {
		if err := g.identity(s, token, now); err != nil {
			return nil, err
		}
	}
	return l.keep(s, s.owner(owner), g)
}

// keep takes a grant into the vault, once it is recorded.
func (l *Logins) keep(s *Server, o gate.Owner, g *grant) (*Login, error) {
	r := l.rows.row(s, o)
	end, err := r.turn(s)
	defer end()
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.load()
	err = l.o.Note(r.event(LoggedIn, g, nil))
	if err == nil {
		err = r.put(g)
	}
	if err == nil {
		r.lacks = nil
	}
	r.mu.Unlock()
	if err != nil {
		return nil, err
	}
	l.changed(s.ID)
	return r.shown(g), nil
}

// ErrNoLogin says that there is no login there.
var ErrNoLogin = errors.New("there is no such login")

// Logout forgets a login, and has the authorization server end it. It returns the login even if that
// fails, which the error then says.
func (l *Logins) Logout(ctx context.Context, server string, o gate.Owner) (*Login, error) {
	s, err := l.server(server)
	if err != nil { // its name may be all that is left of it
		s = &Server{ID: server, Mode: OAuth}
	}
	if s.Mode == IDJAG {
		s = s.IDP
	}
	r := l.rows.row(s, o)
	end, err := r.turn(s)
	defer end()
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.load()
	g, problem := r.grant, r.problem
	if g == nil && problem == nil {
		r.mu.Unlock()
		return nil, ErrNoLogin
	}
	if err := l.o.Vault.Delete(r.key); err != nil {
		r.mu.Unlock()
		return nil, err
	}
	r.grant, r.problem, r.narrow = nil, nil, nil
	r.mu.Unlock()
	if g == nil {
		g = new(grant)
	}
	if err = l.forgetAsserted(ctx, s, o); s.Client != nil {
		err = errors.Join(err, g.revoke(ctx, s, l.o.Now()))
	}
	noted := l.o.Note(r.event(LoggedOut, g, err))
	l.changed(server)
	return r.shown(g), errors.Join(err, noted)
}

// forgetAsserted deletes the tokens that came from a login, and revokes them.
func (l *Logins) forgetAsserted(ctx context.Context, idp *Server, o gate.Owner) (err error) {
	for _, s := range l.through(idp.ID) {
		r := l.rows.row(s, o)
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
