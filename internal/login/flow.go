package login

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/evict"
)

const (
	// flowTime is how long a person may take.
	flowTime = 10 * time.Minute
	// maxFlows bounds the logins that are under way.
	maxFlows = 1000
)

// A flow is a login that has begun: what must come back, and to whom it belongs.
type flow struct {
	server   *Server
	owner    gate.Owner
	redirect string
	verifier string
	place    *place
	client   client
	scopes   []string
	until    time.Time
}

// A Start asks for a login.
type Start struct {
	Server   string
	Owner    gate.Owner
	Redirect string   // where the browser comes back to
	Scopes   []string // in addition to those of the configuration
}

// A Begun login goes on in a browser.
type Begun struct {
	URL    string   // of the authorization server, to be opened
	Issuer string   // whose it is
	State  string   // by which [Logins.Finish] finds the login again
	Scopes []string // that are asked for
	For    string   // the resource for which they are
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
	c, err := l.client(ctx, s, p, b.Redirect)
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

// nodeMark follows the node in the state of a login.
const nodeMark = "."

// Named returns an id that names the gateway that has made it, if that shares anything.
func Named(node, id string) string {
	if node == "" {
		return id
	}
	return node + nodeMark + id
}

// NodeOf returns the gateway that an id of [Named] names; "" if it names none.
func NodeOf(id string) string {
	node, _, ok := strings.Cut(id, nodeMark)
	if !ok {
		return ""
	}
	return node
}

// asksFor chooses scopes: those that are configured or asked for, or else those that the
// server names; those that it lacked before; and offline_access where the authorization server
// has it, for without a refresh token people would have to come again each hour.
func (l *Logins) asksFor(s *Server, o gate.Owner, p *place, more []string) []string {
	all := slices.Concat(s.Scopes, more)
	if len(all) == 0 {
		all = slices.Clone(p.scopes)
	}
	all = append(all, l.row(s, o).lacked()...)
	if slices.Contains(p.ScopesSupported, "offline_access") {
		all = append(all, "offline_access")
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// url is the authorization request (OAuth 2.1, 4.1.1).
func (f *flow) url(state string) string {
	u, err := url.Parse(f.place.AuthorizationEndpoint)
	if err != nil {
		return ""
	}
	q := u.Query()
	for name, v := range map[string]string{
		"response_type": "code", "client_id": f.client.ID, "redirect_uri": f.redirect, "state": state, "resource": f.place.resource,
		"code_challenge": oauth2.S256ChallengeFromVerifier(f.verifier), "code_challenge_method": "S256", "scope": strings.Join(f.scopes, " "),
	} {
		if v != "" {
			q.Set(name, v)
		}
	}
	if slices.Contains(f.scopes, "offline_access") { // OpenID Connect Core, 11
		q.Set("prompt", "consent")
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// ErrState says that an answer belongs to no login that is under way.
var ErrState = errors.New("this answer does not belong to a login in progress: it may have come too late, or twice")

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

// exchange gets what was granted for the answer to a flow.
func (f *flow) exchange(ctx context.Context, now time.Time, query url.Values) (*grant, error) {
	if err := f.answered(query); err != nil {
		return nil, err
	}
	g := &grant{
		ID: newID(), URL: f.server.URL, Made: now, Issuer: f.place.Issuer, Resource: f.place.resource,
		Token: f.place.TokenEndpoint, Revocation: f.place.RevocationEndpoint, Client: f.client,
	}
	form := url.Values{"grant_type": {"authorization_code"}, "code": {query.Get("code")}, "redirect_uri": {f.redirect}, "code_verifier": {f.verifier}}
	g, err := g.ask(ctx, f.server, now, form)
	if err != nil {
		return nil, fmt.Errorf("the authorization server gives no token: %w", err)
	}
	return g, nil
}

// answered judges an authorization response. The issuer comes first: before it is known to be
// the right one nothing of the answer means anything (RFC 9207, 2.4).
func (f *flow) answered(query url.Values) error {
	for name, all := range query {
		if len(all) > 1 {
			return fmt.Errorf("the answer has %.20q twice", name)
		}
	}
	iss, said := query.Get("iss"), query.Has("iss")
	switch {
	case said && iss != f.place.Issuer, !said && f.place.AuthorizationResponseIssParameterSupported:
		return errors.New("the answer does not come from the authorization server that was asked")
	case query.Has("error"):
		return fmt.Errorf("the authorization server refuses: %s", word(query.Get("error")))
	case query.Get("code") == "":
		return errors.New("the answer has no code")
	}
	return nil
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

// newID makes the name of a grant in the log.
func newID() string { return strings.ToLower(rand.Text()[:12]) }

// same reports whether two secrets are equal, in a time that reveals nothing.
func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
