package login

import (
	"net/http"
	"net/url"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/vault"
)

// The modes of a server.
const (
	OAuth       = "oauth"              // a person logs in
	ClientCreds = "client_credentials" // the gateway is itself the client
	Exchange    = "token_exchange"     // the caller's own token is exchanged for one of the server
	IDJAG       = "id_jag"             // an identity provider vouches for the person: see [IdentityProvider]
	// SignsIn is the mode of a server that is the gateway itself: see [Logins.SignIn].
	SignsIn = "sign_in"
	// idpMode is the mode of an identity provider: people log in to it once, for all servers that
	// take its identity assertions. The access token of such a grant is the person's ID token.
	idpMode = "idp"
)

// A Server is one whose requests carry a token.
type Server struct {
	ID, URL, Mode string
	Shared        bool // one login is everybody's
	ClientID      string
	ClientSecret  string
	PrivateKey    string // path of a PEM file, in the place of a secret; it is read for each token
	KeyID         string // by which the authorization server knows the key; "": by no name
	Issuer        string // "": as the server says
	Scopes        []string
	Actor         bool         // an exchange also brings a token of the gateway's own, which acts
	IDP           *Server      // of the mode IDJAG: where people log in
	Client        *http.Client // reaches the server and its authorization server; follows no redirects
}

func (s *Server) host() string {
	if u, err := url.Parse(s.URL); err == nil {
		return u.Scheme + "://" + u.Host
	}
	return s.ID
}

// owner is to whom a login of o belongs.
func (s *Server) owner(o gate.Owner) gate.Owner {
	if s.Shared || s.Mode == ClientCreds {
		return gate.Owner{}
	}
	return o
}

// asksPeople reports whether tokens of a server come by way of a browser.
func (s *Server) asksPeople() bool { return s.Mode == OAuth || s.Mode == SignsIn || s.Mode == idpMode }

// clientKey is where the configuration names the client at a server.
func (s *Server) clientKey() string {
	if s.Mode == SignsIn {
		return "auth.issuers." + s.ID + ".sign_in.client_id"
	}
	return "servers." + s.ID + ".auth.client_id"
}

// IdentityProvider returns where people log in for servers of the mode [IDJAG]. Each client of an
// identity provider has logins of its own, because an ID token is for one client.
func IdentityProvider(s Server) *Server {
	s.ID, s.URL, s.Mode, s.Scopes = s.Issuer+" as "+s.ClientID, s.Issuer, idpMode, []string{"openid"}
	return &s
}

// loginKind is the kind of rows in the vault that hold logins. Tokens by an ID-JAG are of another
// kind, and so is what the gateway gets by itself, which is never kept.
const loginKind = "login"

func key(s *Server, o gate.Owner) vault.Key {
	k := vault.Key{Kind: loginKind, Tenant: o.Tenant, Principal: o.ID, Server: s.ID}
	if s.Mode != OAuth && s.Mode != idpMode {
		k.Kind = s.Mode
	}
	return k
}
