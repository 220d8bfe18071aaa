package config

import (
	"cmp"
	"strings"

	"github.com/wasmgate/wasmgate/internal/config/check"
	"github.com/wasmgate/wasmgate/internal/config/decode"
	"github.com/wasmgate/wasmgate/internal/config/tree"
)

// A ServerAuth says by which credential a server is called. Nil is by none but its headers.
type ServerAuth struct {
	Mode         string   `key:"mode none|oauth|client_credentials|token_exchange|id_jag"`
	ClientID     string   `key:"client_id"` // the gateway's at the authorization server; empty: see internal/login
	ClientSecret Secret   `key:"client_secret"`
	PrivateKey   string   `key:"private_key path exists"`   // a PEM file, in the place of ClientSecret
	KeyID        string   `key:"key_id"`                    // its name at the authorization server; empty: none
	Issuer       string   `key:"issuer endpoint"`           // the authorization server; empty: as the server says
	Scopes       []string `key:"scopes scope"`              // nil: as the server says
	Actor        bool     `key:"actor"`                     // an exchange names the gateway by a token of its own
	Shared       bool     `key:"identity principal|shared"` // one login is everybody's
	Discovery    Secret   `key:"discovery"`                 // the header Authorization for listing it while no one has logged in; empty: none
	IDP          string   `key:"idp endpoint"`              // the identity provider of id_jag
	IDPClient    Client   `key:"idp_client"`                // the gateway's client there
}

// A Client is an OAuth client that is registered at an authorization server.
type Client struct {
	ID         string `key:"id"`
	Secret     Secret `key:"secret"`
	PrivateKey string `key:"private_key path exists"` // instead of Secret
	KeyID      string `key:"key_id"`
}

// Check implements [decode.Checker].
func (c *Client) Check(v decode.Value) {
	switch {
	case c.ID == "":
		v.Fail("needs id")
	case c.Secret != "" && c.PrivateKey != "":
		v.Fail("secret and private_key exclude each other: keep the one by which the client is registered")
	case c.KeyID != "" && !v.Has("private_key"):
		v.Fail("key_id needs private_key")
	}
}

// vaultEnv begins the key of the vault where an environment variable has it.
const vaultEnv = "env:"

// vaultKeyring is the key of the vault where the keyring of the system has it.
const vaultKeyring = "keyring"

// serverAuth reads the credential of a server: only its mode, or a table.
func serverAuth(to **ServerAuth) decode.Reader {
	return func(v decode.Value) {
		a := new(ServerAuth)
		if v.Text == "passthrough" || v.Has("mode") && v.Get("mode").Text == "passthrough" {
			v.Fail("passthrough is not supported: a client's token is for this gateway, and a server that gets it could use it here and elsewhere; take oauth or token_exchange")
			return
		}
		if v.Kind == tree.Table {
			v.Object(a)
		} else {
			decode.One(&a.Mode, "none", "oauth", "client_credentials", "token_exchange", "id_jag")(v)
		}
		a.Mode = cmp.Or(a.Mode, "oauth")
		switch {
		case a.Mode == "none":
			return
		case a.ClientSecret != "" && a.PrivateKey != "":
			v.Fail("has both client_secret and private_key: write one of them")
		case a.Mode == "id_jag":
			a.checkIDJAG(v)
		case v.Has("idp") || v.Has("idp_client"):
			v.Fail("idp and idp_client are for mode: id_jag")
		case a.Mode != "oauth" && (!v.Has("client_id") || !v.Has("client_secret") && !v.Has("private_key")):
			v.Fail("%s needs client_id, and client_secret or private_key: register the gateway at the authorization server", a.Mode)
		case a.Mode == "token_exchange" && !v.Has("issuer"):
			v.Fail("token_exchange needs issuer, the authorization server that gets the tokens of callers: without it the server could choose who gets them")
		case a.Mode == "token_exchange" && a.Shared:
			v.Fail("token_exchange uses the token of each caller: remove the key identity")
		case a.Actor && a.Mode != "token_exchange":
			v.Fail("actor works only with the mode token_exchange")
		case a.ClientSecret != "" && a.ClientID == "":
			v.Fail("client_secret needs client_id")
		case a.PrivateKey != "" && a.ClientID == "":
			v.Fail("private_key needs client_id")
		case a.KeyID != "" && !v.Has("private_key"):
			v.Fail("key_id needs private_key")
		}
		*to = a
	}
}

// checkIDJAG reports what id_jag lacks, and what it does not take.
func (a *ServerAuth) checkIDJAG(v decode.Value) {
	for _, key := range []string{"idp", "idp_client", "client_id", "issuer"} {
		if !v.Has(key) {
			v.Fail("id_jag needs %s: idp and idp_client are the identity provider and the gateway's client there, issuer and client_id those of the server", key)
			return
		}
	}
	switch {
	case a.Shared:
		v.Fail("id_jag uses the login of each principal: remove the key identity")
	case a.Actor:
		v.Fail("actor is for token_exchange")
	case a.IDP == a.Issuer:
		v.Fail("idp and issuer are the same: an identity provider does not accept its own grants; take oauth")
	case a.KeyID != "" && !v.Has("private_key"):
		v.Fail("key_id needs private_key")
	}
}

// checkAuth reports settings that cannot be combined with a credential.
func (s *Server) checkAuth(v decode.Value) {
	if s.Auth == nil {
		return
	}
	for name := range s.Headers {
		if strings.EqualFold(name, "Authorization") {
			v.Get("auth").Fail("cannot be combined with headers.%s: keep one of them", name)
		}
	}
	if s.Sessions == "shared" && !s.Auth.Shared {
		v.Get("auth").Fail("is of one principal each, and sessions: shared is of all: write identity: shared if all principals use one login")
	}
	if check.Insecure(s.URL) {
		v.Get("url").Fail("is plain http to another machine: others on the network could read the tokens")
	}
}

// A Vault says where the key is with which logins are sealed. The zero Vault is the file
// vault.key in the state folder.
type Vault struct {
	File    string // absolute
	Env     string // an environment variable
	Keyring bool   // that of the system's user
}

// Readers implements [decode.Reading].
func (t *Vault) Readers() map[string]decode.Reader {
	return map[string]decode.Reader{"key": func(v decode.Value) {
		if strings.HasPrefix(v.Text, vaultEnv) {
			t.Env = strings.TrimPrefix(v.Text, vaultEnv)
			if err := check.Variable(t.Env); err != nil {
				v.Fail("%q %v", t.Env, err)
			}
			return
		}
		if t.Keyring = v.Text == vaultKeyring; !t.Keyring {
			decode.Path(&t.File)(v)
		}
	}}
}
