// Package logins logs people in at servers, and at the console. Requests to servers carry what their callers
// have logged in with.
package logins

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/gate/codes"
	"github.com/wasmgate/wasmgate/internal/app/callers"
	"github.com/wasmgate/wasmgate/internal/app/operation"
	"github.com/wasmgate/wasmgate/internal/app/translation"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/login"
	"github.com/wasmgate/wasmgate/internal/login/connect"
	"github.com/wasmgate/wasmgate/internal/reference/keyring"
	"github.com/wasmgate/wasmgate/internal/vault"
)

// Vault returns the vault of a configuration.
func Vault(c *config.Config) *vault.Vault {
	return vault.New(filepath.Join(c.State, "vault"), func() ([]byte, error) {
		switch {
		case c.Vault.Keyring:
			return keyring.Key(c.State)
		case c.Vault.Env == "":
			return vault.KeyFile(cmp.Or(c.Vault.File, filepath.Join(c.State, "vault.key")))
		}
		secret, ok := os.LookupEnv(c.Vault.Env)
		if !ok {
			return nil, fmt.Errorf("the environment has no variable %s (vault.key)", c.Vault.Env)
		}
		return []byte(secret), nil
	})
}

// The operations of logins.
var (
	Begin = operation.New[Request, *login.Begun]("login-begin")
	End   = operation.New[Request, *login.Login]("login-end")
	All   = operation.New[operation.None, []login.Login]("logins")
	Out   = operation.New[Request, *login.Login]("logout")
)

// Gateway is the one whose servers people log in to.
type Gateway interface {
	Fleet() gateway.Fleet
	// Note records an event.
	Note(audit.Entry) error
}

// Logins are those at the servers of one gateway, and at its console.
type Logins struct {
	Gateway Gateway // set before the first request
	Kept    *login.Logins
	Connect *connect.Connect // pages on which callers log in

	callers *callers.Callers
	config  func() *config.Config // in use
	log     *slog.Logger
	listing sync.Map // of servers with a new login, what is closed when they are listed again
}

// New returns the logins of a configuration. The options say where they are kept.
func New(c *config.Config, o login.Options, who *callers.Callers, now func() *config.Config, log *slog.Logger) *Logins {
	l := &Logins{callers: who, config: now, log: log}
	o.Public, o.Note, o.Changed = who.Public, l.noteLogin, l.changed
	l.Kept = login.New(o)
	l.Kept.Set(Servers(c))
	l.Connect = connect.New(connect.Options{
		Public: who.Public, Logins: l.Kept, Provider: l.signsIn, Proxied: who.Proxied, Note: l.noteConnect, Ready: l.listed,
		Identify: l.TokenHolder, Node: o.Node,
	})
	return l
}

// Operations adds those of logins to a table.
func (l *Logins) Operations(t operation.Table) {
	Begin.Add(t, l.Begin)
	End.Add(t, l.End)
	operation.AddPlain(t, All, func(context.Context) ([]login.Login, error) { return l.Kept.List() })
	Out.Add(t, l.Logout)
}

// TokenHolder says whose an access token for the gateway is, as long as it is good.
func (l *Logins) TokenHolder(ctx context.Context, token string) (*gate.Principal, error) {
	who, identity, err := l.callers.Identify(ctx, token)
	if err == nil && identity.Bound != "" {
		return nil, errors.New("the token is bound to a client certificate, which a browser does not show here")
	}
	return who, err
}

// SignInIssuers are the names of the issuers at which people sign in with a browser.
func (l *Logins) SignInIssuers() (names []string) {
	for _, i := range l.config().Auth.Issuers {
		names = append(names, i.Name)
	}
	return names
}

// BeginSignIn begins to find out who sits at a browser, which comes back to redirect with the ticket.
func (l *Logins) BeginSignIn(ctx context.Context, issuer, redirect string) (begun *login.Begun, ticket string, err error) {
	to := l.provider(issuer)
	if to == nil {
		return nil, "", operation.Misuse("no issuer %q", issuer)
	}
	begun, ticket, err = l.Kept.SignIn(ctx, to, redirect, issuer)
	if err != nil {
		l.log.Warn("sign-in is not possible", "issuer", issuer, "error", err)
	}
	return begun, ticket, err
}

// EndSignIn returns the access token with which a browser has come back, and the caller that it
// identifies.
func (l *Logins) EndSignIn(ctx context.Context, ticket string, query url.Values) (token string, who *gate.Principal, err error) {
	issuer, ok := l.Kept.Purpose(ticket, query)
	to := l.provider(issuer)
	if !ok || to == nil {
		return "", nil, login.ErrState
	}
	if token, err = l.Kept.SignedIn(ctx, to, ticket, query); err == nil {
		who, err = l.TokenHolder(ctx, token)
	}
	if err != nil {
		l.log.Warn("a sign-in is refused", "issuer", issuer, "error", err)
	}
	return token, who, err
}

// provider is where people of an issuer sign in with a browser; nil without such an issuer.
func (l *Logins) provider(name string) *login.Server {
	for _, i := range l.config().Auth.Issuers {
		if i.Name == name {
			return &login.Server{
				ID: i.Name, URL: l.callers.Resource(""), Mode: login.SignsIn, Issuer: i.URL, ClientID: i.SignIn.ClientID, ClientSecret: string(i.SignIn.ClientSecret),
				Scopes: slices.Concat(i.Scopes, i.SignIn.Scopes), Client: callers.IssuerClient(i),
			}
		}
	}
	return nil
}

// signsIn is where callers of an issuer sign in with a browser. Principals that are of none are
// those of the only one: with several, ids say which issuer they are of.
func (l *Logins) signsIn(issuer string) *login.Server {
	if all := l.SignInIssuers(); issuer == "" && len(all) == 1 {
		issuer = all[0]
	}
	return l.provider(issuer)
}

// noteConnect records what has happened to a link by which a caller logs in.
func (l *Logins) noteConnect(e connect.Event) error {
	entry := audit.Entry{
		Event: "connect", Code: codes.OK, Reasons: []string{e.What}, Parent: e.Call, Server: e.Server, Tool: e.Tool,
		Tenant: e.Who.Tenant, Principal: e.Who.ID, Auth: e.Who.Auth, Issuer: e.Who.Issuer, Client: audit.Client{ID: e.Who.Client},
	}
	if e.Err != nil {
		entry.Code, entry.Error = "refused_credential", e.Err.Error()
	}
	return l.Gateway.Note(entry)
}

// Servers are the servers that take a login, in the words of package login.
func Servers(c *config.Config) (all []*login.Server) {
	for _, s := range translation.Enabled(c.Servers) {
		if s.Auth == nil {
			continue
		}
		to := &login.Server{
			ID: s.ID, URL: s.URL, Mode: s.Auth.Mode, Shared: s.Auth.Shared, ClientID: s.Auth.ClientID, ClientSecret: string(s.Auth.ClientSecret),
			PrivateKey: s.Auth.PrivateKey, KeyID: s.Auth.KeyID, Issuer: s.Auth.Issuer, Scopes: s.Auth.Scopes, Actor: s.Auth.Actor, Client: callers.AskOnly(s.Private, s.URL, s.Auth.Issuer, s.Auth.IDP),
		}
		if c := s.Auth.IDPClient; s.Auth.Mode == login.IDJAG {
			to.IDP = login.IdentityProvider(login.Server{
				Issuer: s.Auth.IDP, ClientID: c.ID, ClientSecret: string(c.Secret), PrivateKey: c.PrivateKey, KeyID: c.KeyID, Client: to.Client,
			})
		}
		all = append(all, to)
	}
	return all
}

// Authorize has requests to a server carry what its callers have logged in with.
func (l *Logins) Authorize(s config.Server, to *options.Endpoint) {
	if s.Auth == nil || s.Fault != "" { // nothing is asked of a server that lacks something
		return
	}
	to.Personal = !s.Auth.Shared && s.Auth.Mode != login.ClientCreds
	to.Authorize = func(ctx context.Context, who *gate.Principal, p gate.Permit, refused *http.Response) (string, error) {
		if who == nil && s.Auth.Discovery != "" {
			if refused != nil {
				return "", nil
			}
			return string(s.Auth.Discovery), nil
		}
		need := login.Need{}
		if _, _, ok := p.Open(); ok {
			left := p.Narrowing()
			need = login.Need{Scopes: left.Scopes, TTL: left.TTL}
		}
		value, used, err := l.Kept.Authorize(ctx, s.ID, who, need, refused)
		if err == nil && value != "" {
			p.Used(used)
		}
		return value, err
	}
}

// noteLogin records what has happened to a login.
func (l *Logins) noteLogin(e login.Event) error {
	entry := audit.Entry{
		Event: gate.Event(e.Kind), Code: codes.OK, Server: e.Server, Issuer: e.Issuer, Tenant: e.Owner.Tenant, Principal: e.Owner.ID,
		Credential: e.Credential, Reasons: e.Scopes,
	}
	if e.Err != nil {
		entry.Code, entry.Error = "refused_credential", e.Err.Error()
	}
	return l.Gateway.Note(entry)
}

// changed has a server listed again whose credential has come or gone.
func (l *Logins) changed(server string) {
	done := make(chan struct{})
	l.listing.Store(server, done)
	go func() { // a server may take long
		defer close(done)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := l.Gateway.Fleet().Reload(ctx, server); err != nil {
			l.log.Warn("a server with a new login is not ready", "server", server, "error", err)
		}
	}()
}

// listed waits until a server with a new login is listed again.
func (l *Logins) listed(server string) {
	if done, ok := l.listing.Load(server); ok {
		<-done.(chan struct{})
	}
}

// A Request asks for a login, ends one, or brings what it takes.
type Request struct {
	Server   string   `json:"server"`
	As       string   `json:"as,omitempty"`       // TENANT/ID, or ID; "": local
	Redirect string   `json:"redirect,omitempty"` // where the browser comes back to
	Scopes   []string `json:"scopes,omitempty"`
	Query    string   `json:"query,omitempty"` // that the browser has brought back
	Token    string   `json:"token,omitempty"` // that is given, instead of the rest
}

// owner is whose login it is: a principal of the configuration, or local.
func (l *Logins) owner(as string) (gate.Owner, error) {
	if as == "" {
		return gate.Local().Owner, nil
	}
	c := l.config()
	var o gate.Owner
	o.Tenant, o.ID = config.SplitPrincipal(as)
	known := slices.ContainsFunc(c.Principals, func(p config.Principal) bool { return gate.Owner{Tenant: p.Tenant, ID: p.ID} == o })
	if !known && len(c.Auth.Issuers) == 0 && c.Auth.Proxy == nil && o != gate.Local().Owner {
		return gate.Owner{}, operation.Misuse("no principal %q: list it under principals in the configuration", as)
	}
	return o, nil
}

// Begin begins a login, which goes on in a browser.
func (l *Logins) Begin(ctx context.Context, r Request) (*login.Begun, error) {
	o, err := l.owner(r.As)
	if err != nil {
		return nil, err
	}
	return l.Kept.Begin(ctx, login.Start{Server: r.Server, Owner: o, Redirect: r.Redirect, Scopes: r.Scopes})
}

// End keeps what a login has brought, or a token that is given, and gives the server a moment to be listed with it.
func (l *Logins) End(ctx context.Context, r Request) (*login.Login, error) {
	o, err := l.owner(r.As)
	if err != nil {
		return nil, err
	}
	made, err := l.end(ctx, r, o)
	if err != nil {
		return nil, err
	}
	if done, ok := l.listing.Load(cmp.Or(r.Server, made.Server)); ok {
		select {
		case <-done.(chan struct{}):
		case <-time.After(listTime):
		case <-ctx.Done():
		}
	}
	return made, nil
}

// listTime is how long who logs in waits for the server to be listed.
const listTime = 15 * time.Second

func (l *Logins) end(ctx context.Context, r Request, o gate.Owner) (*login.Login, error) {
	if r.Token != "" {
		return l.Kept.Give(r.Server, o, r.Token)
	}
	query, err := url.ParseQuery(r.Query)
	if err != nil {
		return nil, login.ErrState
	}
	return l.Kept.Finish(ctx, o, query)
}

// Logout ends a login.
func (l *Logins) Logout(ctx context.Context, r Request) (*login.Login, error) {
	o, err := l.owner(r.As)
	if err != nil {
		return nil, err
	}
	ended, err := l.Kept.Logout(ctx, r.Server, o)
	if errors.Is(err, login.ErrNoLogin) {
		return nil, operation.Misuse("there is no such login at %s: see wasmgate logins", r.Server)
	}
	return ended, err
}
