package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/gate/codes"
	"github.com/wasmgate/wasmgate/internal/app/translation"
	"github.com/wasmgate/wasmgate/internal/auth"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/login"
	"github.com/wasmgate/wasmgate/internal/login/connect"
	"github.com/wasmgate/wasmgate/internal/reference"
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

// newLogins has what people have logged in to, and the secrets that servers refer to.
func (a *App) newLogins(c *config.Config) error {
	kept := Vault(c)
	a.servers.Reveal, a.servers.Authorize = reference.New(kept).Resolve, a.authorize
	o := login.Options{Vault: kept, Public: a.public, Note: a.noteLogin, Changed: a.loginChanged}
	if err := a.shared.logins(c, &o); err != nil {
		return err
	}
	a.logins = login.New(o)
	a.logins.Set(loginServers(c))
	a.connect = connect.New(connect.Options{
		Public: a.public, Logins: a.logins, Provider: a.signsIn, Proxied: a.proxied, Note: a.noteConnect, Ready: a.listed,
		Identify: a.TokenHolder, Node: o.Node,
	})
	return nil
}

// public is the URL by which clients reach the gateway, without a path; "" if that is not said.
func (a *App) public() string { return a.senders.reached.Load().public }

// TokenHolder says whose an access token for the gateway is, as long as it is good.
func (a *App) TokenHolder(ctx context.Context, token string) (*gate.Principal, error) {
	who, identity, err := a.senders.now.Load().Identify(ctx, token, a.senders.resource(""))
	if err == nil && identity.Bound != "" {
		return nil, errors.New("the token is bound to a client certificate, which a browser does not show here")
	}
	return who, err
}

// SignInIssuers are the names of the issuers at which people sign in with a browser.
func (a *App) SignInIssuers() (names []string) {
	for _, i := range a.config.Load().cfg.Auth.Issuers {
		names = append(names, i.Name)
	}
	return names
}

// BeginSignIn begins to find out who sits at a browser, which comes back to redirect with the ticket.
func (a *App) BeginSignIn(ctx context.Context, issuer, redirect string) (begun *login.Begun, ticket string, err error) {
	to := a.provider(issuer)
	if to == nil {
		return nil, "", keyError("no issuer %q", issuer)
	}
	begun, ticket, err = a.logins.SignIn(ctx, to, redirect, issuer)
	if err != nil {
		a.log.Warn("sign-in is not possible", "issuer", issuer, "error", err)
	}
	return begun, ticket, err
}

// EndSignIn returns the access token with which a browser has come back, and the caller that it
// identifies.
func (a *App) EndSignIn(ctx context.Context, ticket string, query url.Values) (token string, who *gate.Principal, err error) {
	issuer, ok := a.logins.Purpose(ticket, query)
	to := a.provider(issuer)
	if !ok || to == nil {
		return "", nil, login.ErrState
	}
	if token, err = a.logins.SignedIn(ctx, to, ticket, query); err == nil {
		who, err = a.TokenHolder(ctx, token)
	}
	if err != nil {
		a.log.Warn("a sign-in is refused", "issuer", issuer, "error", err)
	}
	return token, who, err
}

// provider is where people of an issuer sign in with a browser; nil without such an issuer.
func (a *App) provider(name string) *login.Server {
	for _, i := range a.config.Load().cfg.Auth.Issuers {
		if i.Name == name {
			return &login.Server{
				ID: i.Name, URL: a.senders.resource(""), Mode: login.SignsIn, Issuer: i.URL, ClientID: i.SignIn.ClientID, ClientSecret: string(i.SignIn.ClientSecret),
				Scopes: slices.Concat(i.Scopes, i.SignIn.Scopes), Client: issuerClient(i),
			}
		}
	}
	return nil
}

// signsIn is where callers of an issuer sign in with a browser. Principals that are of none are
// those of the only one: with several, ids say which issuer they are of.
func (a *App) signsIn(issuer string) *login.Server {
	if all := a.SignInIssuers(); issuer == "" && len(all) == 1 {
		issuer = all[0]
	}
	return a.provider(issuer)
}

// proxied returns whom the proxy names in a request.
func (a *App) proxied(r *http.Request) (*gate.Principal, error) {
	who, err := a.senders.now.Load().Principal(r)
	if err == nil && who.Auth != auth.ByProxy {
		err = errors.New("the login page was opened directly: open it through the proxy that signs people in")
	}
	return who, err
}

// noteConnect records what has happened to a link by which a caller logs in.
func (a *App) noteConnect(e connect.Event) error {
	entry := audit.Entry{
		Event: "connect", Code: codes.OK, Reasons: []string{e.What}, Parent: e.Call, Server: e.Server, Tool: e.Tool,
		Tenant: e.Who.Tenant, Principal: e.Who.ID, Auth: e.Who.Auth, Issuer: e.Who.Issuer, Client: audit.Client{ID: e.Who.Client},
	}
	if e.Err != nil {
		entry.Code, entry.Error = "refused_credential", e.Err.Error()
	}
	return a.gateway.Operator().Note(entry)
}

// loginServers are the servers that take a login, in the words of package login.
func loginServers(c *config.Config) (all []*login.Server) {
	for _, s := range translation.Enabled(c.Servers) {
		if s.Auth == nil {
			continue
		}
		to := &login.Server{
			ID: s.ID, URL: s.URL, Mode: s.Auth.Mode, Shared: s.Auth.Shared, ClientID: s.Auth.ClientID, ClientSecret: string(s.Auth.ClientSecret),
			PrivateKey: s.Auth.PrivateKey, KeyID: s.Auth.KeyID, Issuer: s.Auth.Issuer, Scopes: s.Auth.Scopes, Actor: s.Auth.Actor, Client: askOnly(s.Private, s.URL, s.Auth.Issuer, s.Auth.IDP),
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

// authorize has requests to a server carry what its callers have logged in with.
func (a *App) authorize(s config.Server, to *options.Endpoint) {
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
		value, used, err := a.logins.Authorize(ctx, s.ID, who, need, refused)
		if err == nil && value != "" {
			p.Used(used)
		}
		return value, err
	}
}

// noteLogin records what has happened to a login.
func (a *App) noteLogin(e login.Event) error {
	entry := audit.Entry{
		Event: gate.Event(e.Kind), Code: codes.OK, Server: e.Server, Issuer: e.Issuer, Tenant: e.Owner.Tenant, Principal: e.Owner.ID,
		Credential: e.Credential, Reasons: e.Scopes,
	}
	if e.Err != nil {
		entry.Code, entry.Error = "refused_credential", e.Err.Error()
	}
	return a.gateway.Operator().Note(entry)
}

// loginChanged has a server listed again whose credential has come or gone.
func (a *App) loginChanged(server string) {
	done := make(chan struct{})
	a.listing.Store(server, done)
	go func() { // a server may take long
		defer close(done)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := a.gateway.Fleet().Reload(ctx, server); err != nil {
			a.log.Warn("a server with a new login is not ready", "server", server, "error", err)
		}
	}()
}

// listed waits until a server with a new login is listed again.
func (a *App) listed(server string) {
	if done, ok := a.listing.Load(server); ok {
		<-done.(chan struct{})
	}
}

// A LoginRequest asks for a login, ends one, or brings what it takes.
type LoginRequest struct {
	Server   string   `json:"server"`
	As       string   `json:"as,omitempty"`       // TENANT/ID, or ID; "": local
	Redirect string   `json:"redirect,omitempty"` // where the browser comes back to
	Scopes   []string `json:"scopes,omitempty"`
	Query    string   `json:"query,omitempty"` // that the browser has brought back
	Token    string   `json:"token,omitempty"` // that is given, instead of the rest
}

// owner is whose login it is: a principal of the configuration, or local.
func (a *App) owner(as string) (gate.Owner, error) {
	if as == "" {
		return gate.Local().Owner, nil
	}
	c := a.config.Load().cfg
	var o gate.Owner
	o.Tenant, o.ID = config.SplitPrincipal(as)
	known := slices.ContainsFunc(c.Principals, func(p config.Principal) bool { return gate.Owner{Tenant: p.Tenant, ID: p.ID} == o })
	if !known && len(c.Auth.Issuers) == 0 && c.Auth.Proxy == nil && o != gate.Local().Owner {
		return gate.Owner{}, keyError("no principal %q: list it under principals in the configuration", as)
	}
	return o, nil
}

// BeginLogin begins a login, which goes on in a browser.
func (a *App) BeginLogin(ctx context.Context, r LoginRequest) (*login.Begun, error) {
	o, err := a.owner(r.As)
	if err != nil {
		return nil, err
	}
	return a.logins.Begin(ctx, login.Start{Server: r.Server, Owner: o, Redirect: r.Redirect, Scopes: r.Scopes})
}

// EndLogin keeps what a login has brought, or a token that is given, and gives the server a moment to be listed with it.
func (a *App) EndLogin(ctx context.Context, r LoginRequest) (*login.Login, error) {
	o, err := a.owner(r.As)
	if err != nil {
		return nil, err
	}
	l, err := a.endLogin(ctx, r, o)
	if err != nil {
		return nil, err
	}
	if done, ok := a.listing.Load(cmp.Or(r.Server, l.Server)); ok {
		select {
		case <-done.(chan struct{}):
		case <-time.After(listTime):
		case <-ctx.Done():
		}
	}
	return l, nil
}

// listTime is how long who logs in waits for the server to be listed.
const listTime = 15 * time.Second

func (a *App) endLogin(ctx context.Context, r LoginRequest, o gate.Owner) (*login.Login, error) {
	if r.Token != "" {
		return a.logins.Give(r.Server, o, r.Token)
	}
	query, err := url.ParseQuery(r.Query)
	if err != nil {
		return nil, login.ErrState
	}
	return a.logins.Finish(ctx, o, query)
}

// Logins returns all logins.
func (a *App) Logins(context.Context) ([]login.Login, error) { return a.logins.List() }

// Logout ends a login.
func (a *App) Logout(ctx context.Context, r LoginRequest) (*login.Login, error) {
	o, err := a.owner(r.As)
	if err != nil {
		return nil, err
	}
	l, err := a.logins.Logout(ctx, r.Server, o)
	if errors.Is(err, login.ErrNoLogin) {
		return nil, keyError("there is no such login at %s: see wasmgate logins", r.Server)
	}
	return l, err
}
