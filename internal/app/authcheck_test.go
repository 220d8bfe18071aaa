package app_test

import (
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/internal/app/callers"
	"github.com/wasmgate/wasmgate/internal/app/unknown"
	"github.com/wasmgate/wasmgate/internal/auth"
	"github.com/wasmgate/wasmgate/internal/auth/authtest"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/config/policydata"
	"github.com/wasmgate/wasmgate/internal/files/state"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// found checks that a check finds a problem, by its name's beginning, and says what to do.
func found(t *testing.T, all []callers.Finding, check, problem, fix string) {
	t.Helper()
	for _, f := range all {
		if f.Problem != "" && strings.HasPrefix(f.Check, check) && strings.Contains(f.Problem, problem) && strings.Contains(f.Fix, fix) {
			return
		}
	}
	t.Errorf("no problem at %s with %q, to be fixed by %q, in\n%+v", check, problem, fix, all)
}

// TestAuthCheck: the check finds each of the mistakes that are made most often, and nothing in a
// configuration without one.
func TestAuthCheck(t *testing.T) {
	unraced.Long(t)
	slash, algs, down, plain := authtest.New(t), authtest.New(t), authtest.New(t), authtest.New(t)
	down.Down.Store(true)
	s := newSite(t, fmt.Sprintf(`version: 1
listen: %%ADDR%%
public_url: http://127.0.0.1:1
principals: {builder: {}}
auth:
  local: allow
  keys: true
  issuers:
    slash: {issuer: %s/}
    algs: {issuer: %s, algs: [EdDSA], claims: {roles: groups}, roles: {x: ghost}}
    down: {issuer: %s}
    plain: {issuer: %s}
`, slash.URL, algs.URL, down.URL, plain.URL))
	write(t, s.cfg.Policy.Grants, "- {to: [alice], tools: [files__read]}\n")
	if _, err := s.Callers.CreateKey(t.Context(), callers.KeyRequest{Name: "soon", As: "builder", Expires: time.Hour}); err != nil {
		t.Fatal(err)
	}
	other, err := auth.OpenKeys(t.Context(), state.File(filepath.Join(s.cfg.State, "keys.json"))) // as another process has it
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := other.Create(t.Context(), auth.Key{Name: "old", Principal: "gone"}); err != nil {
		t.Fatal(err)
	}
	timelimit.Wait(t, "the other key", func() bool { all, err := s.Callers.Keys(t.Context()); return err == nil && len(all) == 2 })
	all, err := s.Callers.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found(t, all, "auth.local", "without a credential", "remove auth.local")
	found(t, all, "auth.issuers.slash", "calls itself "+slash.URL, "write issuer: "+slash.URL+", byte for byte")
	found(t, all, "auth.issuers.algs", "none of its keys (ec, rsa)", "auth.issuers.algs.algs")
	found(t, all, "auth.issuers.down", "502", "private: true")
	found(t, all, "auth.issuers.plain roles", "no roles", "map a claim")
	found(t, all, "auth.issuers.algs.roles", "role ghost is granted nothing", "--to role:ghost")
	found(t, all, "public_url", "connect", "has to lead here")
	found(t, all, "key ", "soon ends at", "wasmgate key create")
	found(t, all, "key ", "old is of gone", "wasmgate key revoke")

	ca := newAuthority(t)
	cert, _ := ca.issue("gateway", nil)
	s = newSite(t, fmt.Sprintf(`version: 1
listen: %%ADDR%%
public_url: https://gw.example.com
tls: {%s}
principals: {alice: {roles: [dev]}}
auth:
  issuers: {one: {issuer: %s}, two: {issuer: %s}}
`, ca.files(t.TempDir(), cert), slash.URL, plain.URL))
	if all, err = s.Callers.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	found(t, all, "tls.cert", "not for gw.example.com", "correct public_url")
	found(t, all, "principals.alice", "begin with the issuer's name", "one%2Falice")

	late := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat))
		if strings.HasPrefix(r.URL.Path, "/.well-known/oauth-protected-resource") {
			fmt.Fprint(w, `{"resource":"http://another.example.com/mcp"}`)
			return
		}
		plain.Config.Handler.ServeHTTP(w, r)
	}))
	t.Cleanup(late.Close)
	ends, _ := ca.issue("gw.example.com", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(24 * time.Hour) })
	s = newSite(t, fmt.Sprintf("version: 1\nlisten: %%ADDR%%\npublic_url: %s\ntls: {%s}\nauth: {issuers: {late: {issuer: %s, jwks: %s/keys}}}\n", late.URL, ca.files(t.TempDir(), ends), plain.URL, late.URL))
	if all, err = s.Callers.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	found(t, all, "auth.issuers.late clock", "differ by 1h", "NTP")
	found(t, all, "public_url", "it is not this gateway", "oauth-protected-resource")
	found(t, all, "tls.cert", "it ends at", "replace the files")
	write(t, s.cfg.TLS.Cert, "no PEM")
	if all, err = s.Callers.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	found(t, all, "tls.cert", "cannot be read as PEM", "path of the certificate")

	s = newSite(t, "version: 1\nlisten: %ADDR%\n")
	if all, err = s.Callers.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	found(t, all, "auth", "no way to authenticate", "docs/reference/identity.md")

	a := start(t, load(t, `version: 1
auth: {keys: true}
servers:
  told: {url: "http://127.0.0.1:1/mcp", private: true, auth: {client_id: gw, client_secret: "its secret"}}
  named: {url: "http://127.0.0.1:1/mcp", private: true, auth: {client_id: gw, client_secret: "its secret", issuer: "https://login.example.com"}}
`))
	if all, err = a.Callers.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	found(t, all, "servers.told.auth", "which authorization server gets client_secret", "write issuer")
	if slices.ContainsFunc(all, func(f callers.Finding) bool {
		return f.Check == "servers.named.auth" && strings.Contains(f.Problem, "client_secret")
	}) {
		t.Errorf("a secret for a named authorization server: %+v", all)
	}
	found(t, all, "servers.named.auth", "connect", "correct the server's url")

	s = newSite(t, fmt.Sprintf("version: 1\nlisten: %%ADDR%%\npublic_url: http://127.0.0.1:1\nauth: {issuers: {one: {issuer: %s, jwks: %s/keys}}}\n", slash.URL, plain.URL))
	if all, err = s.Callers.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	found(t, all, "auth.issuers.one", "none of the keys of jwks", "remove auth.issuers.one.jwks")

	s, _ = newTeam(t)
	if all, err = s.Callers.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if !f.OK {
			t.Errorf("where all is right: %+v", f)
		}
	}
}

// TestAuthCheckOfServers: a secret that the authorization server does not know is found, as are a key that others can read and a
// vault without a key.
func TestAuthCheckOfServers(t *testing.T) {
	as := authtest.NewOAuth(t)
	as.Client("gw", "its secret")
	var at *httptest.Server
	at = httptest.NewServer(as.Protect(func() string { return at.URL }, "/mcp", "", func(http.ResponseWriter, *http.Request, string) {}))
	t.Cleanup(at.Close)
	dir := t.TempDir()
	cert, _ := newAuthority(t).issue("gw", nil)
	newAuthority(t).files(dir, cert)
	key := filepath.Join(dir, "gw.key")
	if err := os.Chmod(key, 0o644); err != nil {
		t.Fatal(err)
	}
	a := start(t, load(t, strings.NewReplacer("ADDR", at.URL+"/mcp", "ISSUER", as.URL, "PEM", key).Replace(`version: 1
vault: {key: "env:WASMGATE_TEST_NONE"}
servers:
  good: {url: "ADDR", private: true, auth: {mode: client_credentials, client_id: gw, client_secret: "its secret", issuer: "ISSUER"}}
  bad: {url: "ADDR", private: true, auth: {mode: client_credentials, client_id: gw, client_secret: "another secret", issuer: "ISSUER"}}
  open: {url: "ADDR", private: true, auth: {mode: client_credentials, client_id: gw, private_key: "PEM", issuer: "ISSUER"}}
  unset: {url: "ADDR", private: true, auth: {mode: client_credentials, client_id: gw, client_secret: "${WASMGATE_TEST_NONE}", issuer: "ISSUER"}}
  people: {url: "ADDR", private: true, auth: oauth}
`)))
	all, err := a.Callers.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(all, callers.Finding{Check: "servers.good.auth", OK: true}) {
		t.Errorf("where all is right: %+v", all)
	}
	found(t, all, "servers.bad.auth", "not by this secret or key", "servers.bad.auth")
	found(t, all, "servers.unset.auth", "WASMGATE_TEST_NONE is not set", "where the gateway is started")
	found(t, all, "vault", "no variable WASMGATE_TEST_NONE", "no one can log in")
	if runtime.GOOS != "windows" {
		found(t, all, "servers.open.auth.private_key", "can read "+key, "chmod")
	}
}

// TestWhoCanCome: a grant to a role or an id that no caller can have is distinguished from a grant to
// one that credentials name.
func TestWhoCanCome(t *testing.T) {
	p := authtest.New(t)
	listed := load(t, "version: 1\nprincipals: {ann: {roles: [lead]}}\n")
	mapped := load(t, "version: 1\npublic_url: http://127.0.0.1:1\nauth: {issuers: {corp: {issuer: "+p.URL+", claims: {roles: groups}, roles: {x: dev}}}}\n")
	proxied := load(t, "version: 1\nauth: {proxy: {unix: run/p.sock, user: X-User, groups: X-Groups, roles: {x: ops}}}\nlisten: [\"unix:run/p.sock\"]\n")
	for to, want := range map[string][3]bool{
		"ann": {true, true, true}, "bob": {false, true, true}, "*": {true, true, true},
		"role:lead": {true, false, false}, "role:dev": {false, true, false}, "role:ops": {false, false, true},
	} {
		var got [3]bool
		for i, cfg := range []*config.Config{listed, mapped, proxied} {
			got[i] = unknown.In(t.Context(), cfg, policydata.Grant{To: []string{to}}) == nil
		}
		if got != want {
			t.Errorf("%s: %v", to, got)
		}
	}
}

// TestGrantsThatWereMeant: what no grant can name is answered with what it was meant to be.
func TestGrantsThatWereMeant(t *testing.T) {
	cfg := load(t, "version: 1\nprincipals: {ann: {roles: [dev]}}\nservers: {files: {command: x}}\n")
	for want, g := range map[string]policydata.Grant{
		`the configuration has no server flies; did you mean "files"?`: {To: []string{"ann"}, Tools: []string{"flies__read_*"}},
		`no principal is named rol:dev; did you mean "role:dev"?`:      {To: []string{"rol:dev"}},
		`no principal is named anm; did you mean "ann"?`:               {To: []string{"anm"}},
		`no principal has the role devs; did you mean "role:dev"?`:     {To: []string{"role:devs"}},
	} {
		if got := unknown.In(t.Context(), cfg, g); len(got) != 1 || !strings.HasPrefix(got[0], want) {
			t.Errorf("%v: %q, want %q", g, got, want)
		}
	}
}
