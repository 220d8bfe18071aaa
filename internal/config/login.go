package config

import (
	"cmp"
	"strings"

	"github.com/wasmgate/wasmgate/internal/config/tree"
)

// A ServerAuth says by which credential a server is called. Nil is by none but its headers.
type ServerAuth struct {
	Mode         string   `key:"mode none|oauth|client_credentials|token_exchange|id_jag"`
	ClientID     string   `key:"client_id"` // who the gateway is at the authorization server; empty: see internal/login
	ClientSecret Secret   `key:"client_secret"`
	PrivateKey   string   `key:"private_key path exists"`   // a PEM file, in the place of ClientSecret
	KeyID        string   `key:"key_id"`                    // its name at the authorization server; empty: none
	Issuer       string   `key:"issuer endpoint"`           // the authorization server; empty: as the server says
	Scopes       []string `key:"scopes scope"`              // nil: as the server says
	Actor        bool     `key:"actor"`                     // an exchange names the gateway by a token of its own
	Shared       bool     `key:"identity principal|shared"` // one login is everybody's
	Discovery    Secret   `key:"discovery"`                 // the header Authorization by which it is listed while nobody has logged in; empty: none
	IDP          string   `key:"idp endpoint"`              // the identity provider of id_jag
	IDPClient    Client   `key:"idp_client"`                // who the gateway is there
}

// A Client is an OAuth client that is registered at an authorization server.
type Client struct {
	ID         string `key:"id"`
	Secret     Secret `key:"secret"`
	PrivateKey string `key:"private_key path exists"` // instead of Secret
	KeyID      string `key:"key_id"`
}

func (c *Client) check(d *decoder, n *tree.Node, path string) {
	switch {
	case c.ID == "":
		d.fail(n, path, "needs id")
	case c.Secret != "" && c.PrivateKey != "":
		d.fail(n, path, "secret and private_key exclude each other: keep the one by which the client is registered")
	case c.KeyID != "" && n.Get("private_key") == nil:
		d.fail(n, path, "key_id needs private_key")
	}
}

// vaultEnv begins the key of the vault where an environment variable has it.
const vaultEnv = "env:"

// vaultKeyring is the key of the vault where the keyring of the system has it.
const vaultKeyring = "keyring"

// serverAuth reads the credential of a server: its mode alone, or a table.
func (d *decoder) serverAuth(to **ServerAuth) reader {
	return func(n *tree.Node, path string) {
		a := new(ServerAuth)
		if n.Text == "passthrough" || n.Get("mode") != nil && n.Get("mode").Text == "passthrough" {
			d.fail(n, path, "passthrough is not supported: a client's token is for this gateway, and a server that gets it could use it here and elsewhere; take oauth or token_exchange")
			return
		}
		if n.Kind == tree.Table {
			d.object(a, n, path)
		} else {
			d.one(&a.Mode, "none", "oauth", "client_credentials", "token_exchange", "id_jag")(n, path)
		}
		a.Mode = cmp.Or(a.Mode, "oauth")
		switch {
		case a.Mode == "none":
			return
		case a.ClientSecret != "" && a.PrivateKey != "":
			d.fail(n, path, "has both client_secret and private_key: write one of them")
		case a.Mode == "id_jag":
			d.checkIDJAG(a, n, path)
		case n.Get("idp") != nil || n.Get("idp_client") != nil:
			d.fail(n, path, "idp and idp_client are for mode: id_jag")
		case a.Mode != "oauth" && (n.Get("client_id") == nil || n.Get("client_secret") == nil && n.Get("private_key") == nil):
			d.fail(n, path, "%s needs client_id, and client_secret or private_key: register the gateway at the authorization server", a.Mode)
		case a.Mode == "token_exchange" && n.Get("issuer") == nil:
			d.fail(n, path, "token_exchange needs issuer, the authorization server that gets the tokens of callers: without it the server could choose who gets them")
		case a.Mode == "token_exchange" && a.Shared:
			d.fail(n, path, "token_exchange uses the token of each caller: remove the key identity")
		case a.Actor && a.Mode != "token_exchange":
			d.fail(n, path, "actor works only with the mode token_exchange")
		case a.ClientSecret != "" && a.ClientID == "":
			d.fail(n, path, "client_secret needs client_id")
		case a.PrivateKey != "" && a.ClientID == "":
			d.fail(n, path, "private_key needs client_id")
		case a.KeyID != "" && n.Get("private_key") == nil:
			d.fail(n, path, "key_id needs private_key")
		}
		*to = a
	}
}

// checkIDJAG reports what id_jag lacks, and what it does not take.
func (d *decoder) checkIDJAG(a *ServerAuth, n *tree.Node, path string) {
	for _, key := range []string{"idp", "idp_client", "client_id", "issuer"} {
		if n.Get(key) == nil {
			d.fail(n, path, "id_jag needs %s: idp and idp_client are the identity provider and the gateway's client there, issuer and client_id those of the server", key)
			return
		}
	}
	switch {
	case a.Shared:
		d.fail(n, path, "id_jag uses the login of each principal: remove the key identity")
	case a.Actor:
		d.fail(n, path, "actor is for token_exchange")
	case a.IDP == a.Issuer:
		d.fail(n, path, "idp and issuer are the same: an identity provider does not accept its own grants; take oauth")
	case a.KeyID != "" && n.Get("private_key") == nil:
		d.fail(n, path, "key_id needs private_key")
	}
}

// checkServerAuth reports what cannot stand beside a credential.
func (d *decoder) checkServerAuth(n *tree.Node, path string, s *Server) {
	if s.Auth == nil {
		return
	}
	for name := range s.Headers {
		if strings.EqualFold(name, "Authorization") {
			d.fail(n.Get("auth"), tree.Join(path, "auth"), "cannot be combined with headers.%s: keep one of them", name)
		}
	}
	if s.Sessions == "shared" && !s.Auth.Shared {
		d.fail(n.Get("auth"), tree.Join(path, "auth"), "is of one principal each, and sessions: shared is of all: write identity: shared if all principals use one login")
	}
	if insecure(s.URL) {
		d.fail(n.Get("url"), tree.Join(path, "url"), "is plain http to another machine: others on the network could read the tokens")
	}
}

func (v *Vault) readers(d *decoder) map[string]reader {
	return map[string]reader{"key": func(n *tree.Node, path string) {
		if strings.HasPrefix(n.Text, vaultEnv) {
			v.Env = strings.TrimPrefix(n.Text, vaultEnv)
			if err := checkVariable(v.Env); err != nil {
				d.fail(n, path, "%q %v", v.Env, err)
			}
			return
		}
		if v.Keyring = n.Text == vaultKeyring; !v.Keyring {
			d.path(&v.File)(n, path)
		}
	}}
}

// A Vault says where the key is with which logins are sealed. The zero Vault is the file
// vault.key in the state folder.
type Vault struct {
	File    string // absolute
	Env     string // an environment variable
	Keyring bool   // that of the system's user
}
