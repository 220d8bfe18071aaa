package config_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/config/tree"
)

// TestAuthProblems: what would let somebody in who has proved nothing, or send tokens where others read them, does not load.
func TestAuthProblems(t *testing.T) {
	issuer := func(of string) string {
		return "public_url: https://gw.example.com\nauth: {issuers: {a: {" + of + "}}}\n"
	}
	proxy := func(more string) string { return "auth: {proxy: {user: X-User" + more + "}}\n" }
	server := func(more string) string { return "servers: {s: {url: \"https://h.example/\", " + more + "}}\n" }
	for name, tt := range map[string]struct{ file, want string }{
		"issuers without a public URL":      {"auth: {issuers: {a: {issuer: \"https://a.example\"}}}\n", "wasmgate.yaml:1: auth.issuers: needs public_url"},
		"no issuer":                         {issuer("algs: [RS256]"), "wasmgate.yaml:2: auth.issuers.a.issuer: is missing"},
		"a symmetric algorithm":             {issuer("issuer: \"https://a.example\", algs: [HS256]"), `wasmgate.yaml:2: auth.issuers.a.algs[0]: "HS256" is not one of`},
		"the algorithm none":                {issuer("issuer: \"https://a.example\", algs: [none]"), `wasmgate.yaml:2: auth.issuers.a.algs[0]: "none" is not one of`},
		"an issuer over http":               {issuer("issuer: \"http://a.example\""), `wasmgate.yaml:2: auth.issuers.a.issuer: "http://a.example" must be https`},
		"its keys over http":                {issuer("issuer: \"https://a.example\", jwks: \"http://a.example/k\""), `wasmgate.yaml:2: auth.issuers.a.jwks: "http://a.example/k" must be https`},
		"an issuer twice":                   {issuer("issuer: \"https://a.example\"}, b: {issuer: \"https://a.example\""), "wasmgate.yaml:2: auth.issuers.b.issuer: is already the value of issuer a"},
		"roles of no claim":                 {issuer("issuer: \"https://a.example\", roles: {x: y}"), "auth.issuers.a.roles: maps the values of a claim"},
		"roles that nothing maps":           {issuer("issuer: \"https://a.example\", claims: {roles: groups}"), "auth.issuers.a.claims.roles: also needs roles"},
		"a public URL over http":            {"public_url: http://gw.example.com\n", "wasmgate.yaml:1: public_url: "},
		"a proxy by its address":            {proxy(", from: [127.0.0.1]"), "wasmgate.yaml:1: auth.proxy: an address proves nothing alone"},
		"a proxy by nothing":                {proxy(""), "wasmgate.yaml:1: auth.proxy: needs one way in which the proxy proves itself"},
		"a proxy by two ways":               {proxy(", unix: s, client_cert: p"), "wasmgate.yaml:1: auth.proxy: needs one way in which the proxy proves itself"},
		"a proxy with a short secret":       {proxy(", from: [10.0.0.1], secret: {header: X-S, value: short}"), "wasmgate.yaml:1: auth.proxy.secret.value: is shorter than 16 characters"},
		"a proxy by a certificate":          {proxy(", client_cert: p"), "wasmgate.yaml:1: auth.proxy.client_cert: needs tls.client_ca"},
		"certificates of nobody":            {"auth: {mtls: {id: cn}}\n", "wasmgate.yaml:1: auth.mtls: needs tls.client_ca"},
		"a user who is local":               {"listen: \"unix:s\"\nauth: {unix: {1000: local}}\n", "wasmgate.yaml:2: auth.unix.1000: \"local\" is not the id of a principal"},
		"users of no socket":                {"auth: {unix: {1000: ann}}\n", "wasmgate.yaml:1: auth.unix: needs a Unix socket under listen"},
		"everybody, from elsewhere":         {"listen: 0.0.0.0:1\npublic_url: https://gw.example.com\ntls: {terminated_by: [10.0.0.1]}\nauth: {keys: true, local: allow}\n", "auth.local: allow lets everyone in"},
		"passthrough":                       {server("auth: passthrough"), "wasmgate.yaml:1: servers.s.auth: passthrough is not supported"},
		"passthrough as a mode":             {server("auth: {mode: passthrough}"), "wasmgate.yaml:1: servers.s.auth: passthrough is not supported"},
		"a header beside a login":           {server("auth: oauth, headers: {authorization: x}"), "wasmgate.yaml:1: servers.s.auth: cannot be combined with headers.authorization"},
		"one session of all logins":         {server("auth: oauth, sessions: shared"), "wasmgate.yaml:1: servers.s.auth: is of one principal each"},
		"tokens over http":                  {"servers: {s: {url: \"http://h.example/\", auth: oauth}}\n", "wasmgate.yaml:1: servers.s.url: is plain http to another machine: others on the network"},
		"exchange wherever the server says": {server("auth: {mode: token_exchange, client_id: gw, client_secret: s3}"), "wasmgate.yaml:1: servers.s.auth: token_exchange needs issuer"},
		"an actor without an exchange":      {server("auth: {mode: oauth, actor: true}"), "wasmgate.yaml:1: servers.s.auth: actor works only with"},
		"exchange without a client":         {server("auth: token_exchange"), "wasmgate.yaml:1: servers.s.auth: token_exchange needs client_id"},
		"id_jag alone":                      {server("auth: id_jag"), "wasmgate.yaml:1: servers.s.auth: id_jag needs idp"},
		"id_jag wherever the server says":   {server("auth: {mode: id_jag, idp: \"https://i.example\", idp_client: {id: gw}, client_id: gw}"), "wasmgate.yaml:1: servers.s.auth: id_jag needs issuer"},
		"id_jag without a client there":     {server("auth: {mode: id_jag, idp: \"https://i.example\", idp_client: {id: gw}, issuer: \"https://a.example\"}"), "wasmgate.yaml:1: servers.s.auth: id_jag needs client_id"},
		"id_jag of everybody":               {server("auth: {mode: id_jag, idp: \"https://i.example\", idp_client: {id: gw}, client_id: gw, issuer: \"https://a.example\", identity: shared}"), "wasmgate.yaml:1: servers.s.auth: id_jag uses the login of each principal"},
		"id_jag of one issuer":              {server("auth: {mode: id_jag, idp: \"https://a.example\", idp_client: {id: gw}, client_id: gw, issuer: \"https://a.example\"}"), "wasmgate.yaml:1: servers.s.auth: idp and issuer are the same"},
		"an identity provider over http":    {server("auth: {mode: id_jag, idp: \"http://i.example\", idp_client: {id: gw}, client_id: gw, issuer: \"https://a.example\"}"), `wasmgate.yaml:1: servers.s.auth.idp: "http://i.example" must be https`},
		"a client without an id":            {server("auth: {mode: id_jag, idp: \"https://i.example\", idp_client: {secret: s3}, client_id: gw, issuer: \"https://a.example\"}"), "wasmgate.yaml:1: servers.s.auth.idp_client: needs id"},
		"an identity provider of oauth":     {server("auth: {mode: oauth, idp: \"https://i.example\"}"), "wasmgate.yaml:1: servers.s.auth: idp and idp_client are for mode: id_jag"},
		"an authorization server over http": {server("auth: {mode: oauth, issuer: \"http://a.example\"}"), `wasmgate.yaml:1: servers.s.auth.issuer: "http://a.example" must be https`},
	} {
		if _, err := config.Parse("wasmgate.yaml", []byte(tt.file), options(t.TempDir())); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v; want %q", name, err, tt.want)
		}
	}
}

// TestVaultKey: where the key of the vault is, is said in one of three ways.
func TestVaultKey(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]config.Vault{
		"keyring": {Keyring: true}, "./keyring": {File: filepath.Join(dir, "keyring")}, "env:VAULT_KEY": {Env: "VAULT_KEY"}, "k/vault.key": {File: filepath.Join(dir, "k/vault.key")},
	} {
		c, err := config.Parse(filepath.Join(dir, "wasmgate.yaml"), fmt.Appendf(nil, "vault: {key: %q}\n", text), options(dir))
		if err != nil || c.Vault != want {
			t.Errorf("%s: %+v, %v; want %+v", text, c, err, want)
		}
	}
	if _, err := config.Parse("wasmgate.yaml", []byte("vault: {key: \"env:A=B\"}\n"), options(dir)); err == nil {
		t.Error("a variable that is none")
	}
}

// TestUnsetSecret: a secret that the environment lacks is one problem, and says which variable.
func TestUnsetSecret(t *testing.T) {
	file := "auth: {proxy: {user: X-User, from: [10.0.0.1], secret: {header: X-S, value: \"${NONE}\"}}}\n"
	_, err := config.Parse("wasmgate.yaml", []byte(file), options(t.TempDir()))
	if problems, _ := errors.AsType[tree.Problems](err); len(problems) != 1 || !strings.Contains(err.Error(), "auth.proxy.secret.value: the environment variable NONE is not set") {
		t.Errorf("%v", err)
	}
}
