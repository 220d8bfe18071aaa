package login

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/auth/authtest"
	"github.com/wasmgate/wasmgate/internal/vault"
)

var (
	alice = gate.Owner{ID: "alice"}
	bob   = gate.Owner{ID: "bob"}
)

// A rig is a server that wants tokens, its authorization server, and the gateway's logins.
type rig struct {
	*Logins
	as     *authtest.OAuth
	server *Server
	state  string

	past   time.Duration // by which the gateway's clock is ahead
	tokens roundTrip     // nil: what is asked of the token endpoint goes there

	mu     sync.Mutex
	events []Event
	broken error // of recording
}

// A roundTrip is between the gateway and an authorization server.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// answers has the token endpoint answer with this, and nothing else.
func answers(status int, body string) roundTrip {
	return func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	}
}

func newRig(t testing.TB, as *authtest.OAuth, scope string, change func(*Server)) *rig {
	t.Helper()
	r := &rig{as: as, state: t.TempDir()}
	var at *httptest.Server
	at = httptest.NewServer(as.Protect(func() string { return at.URL }, "/mcp", scope, func(w http.ResponseWriter, _ *http.Request, user string) {
		fmt.Fprint(w, user)
	}))
	t.Cleanup(at.Close)
	r.server = &Server{ID: "jira", URL: at.URL + "/mcp", Mode: OAuth, Client: &http.Client{
		Timeout: 3 * time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("no redirects") },
		Transport: roundTrip(func(q *http.Request) (*http.Response, error) {
			r.mu.Lock()
			tokens := r.tokens
			r.mu.Unlock()
			if tokens != nil && q.URL.Path == "/token" {
				return tokens(q)
			}
			return http.DefaultTransport.RoundTrip(q)
		}),
	}}
	if change != nil {
		change(r.server)
	}
	r.restart(t, "")
	return r
}

// restart begins with what is kept in the state folder.
func (r *rig) restart(t testing.TB, public string) {
	t.Helper()
	v := vault.New(filepath.Join(r.state, "vault"), func() ([]byte, error) { return vault.KeyFile(filepath.Join(r.state, "vault.key")) })
	now := func() time.Time {
		r.mu.Lock()
		defer r.mu.Unlock()
		return time.Now().Add(r.past)
	}
	r.Logins = New(Options{Vault: v, Public: func() string { return public }, Now: now, Note: func(e Event) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.events = append(r.events, e)
		return r.broken
	}})
	r.Set([]*Server{r.server})
}

const redirect = "http://127.0.0.1:1/callback"

// logIn logs a principal in, whose browser uses the same name.
func (r *rig) logIn(t testing.TB, who gate.Owner) error {
	t.Helper()
	begun, err := r.Begin(t.Context(), Start{Server: "jira", Owner: who, Redirect: redirect})
	if err != nil {
		return err
	}
	r.as.Person(who.ID)
	_, err = r.Finish(t.Context(), who, authtest.Browse(t, begun.URL, redirect).Query())
	return err
}

// call does what the gateway does for a call: a token, and another where it is refused.
func (r *rig) call(t *testing.T, who *gate.Principal, need Need) (answer string, err error) {
	t.Helper()
	var refused *http.Response
	for range 2 {
		value, _, err := r.Authorize(t.Context(), "jira", who, need, refused)
		if err != nil || value == "" {
			return "", err
		}
		q, err := http.NewRequest(http.MethodPost, r.server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Authorization", value)
		resp, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			b := make([]byte, 100)
			n, _ := resp.Body.Read(b)
			return string(b[:n]), nil
		}
		refused = resp
	}
	return "", errors.New("refused twice")
}

func principal(o gate.Owner) *gate.Principal { return &gate.Principal{Owner: o} }

func (r *rig) calls(t *testing.T, o gate.Owner, want string) {
	t.Helper()
	got, err := r.call(t, principal(o), Need{})
	if n, needed := errors.AsType[*Needed](err); want == "" && needed && !strings.Contains(n.Public(), "wasmgate login jira") {
		t.Errorf("%s is not told what to do: %q", o.ID, n.Public())
	} else if want == "" && !needed {
		t.Errorf("%s: %q, %v; want no login", o.ID, got, err)
	}
	if want != "" && (got != want || err != nil) {
		t.Errorf("%s calls as %q, %v; want %s", o.ID, got, err, want)
	}
}

// Each principal has a token of their own, no one gets another's, and both are there after a restart.
func TestTwoPrincipals(t *testing.T) {
	r := newRig(t, authtest.NewOAuth(t), "", nil)
	r.calls(t, alice, "")
	if err := r.logIn(t, alice); err != nil {
		t.Fatal(err)
	}
	r.calls(t, alice, "alice")
	r.calls(t, bob, "")
	r.calls(t, gate.Owner{Tenant: "acme", ID: "alice"}, "")
	if err := r.logIn(t, bob); err != nil {
		t.Fatal(err)
	}
	r.restart(t, "")
	r.calls(t, bob, "bob")
	r.calls(t, alice, "alice")
	if _, err := r.Logout(t.Context(), "jira", alice); err != nil {
		t.Error(err)
	}
	r.calls(t, alice, "")
	r.calls(t, bob, "bob")
	if all, err := r.List(); err != nil || len(all) != 1 || all[0].Principal != "bob" {
		t.Errorf("logins: %+v, %v", all, err)
	}
}

// Rows that were swapped in the vault cannot be opened.
func TestSwappedRows(t *testing.T) {
	r := newRig(t, authtest.NewOAuth(t), "", nil)
	if err := errors.Join(r.logIn(t, alice), r.logIn(t, bob)); err != nil {
		t.Fatal(err)
	}
	entries, _ := filepath.Glob(filepath.Join(r.state, "vault", "*.json"))
	if len(entries) != 2 {
		t.Fatalf("rows: %v", entries)
	}
	for i := range 2 {
		if err := os.Rename(entries[i], entries[i]+"x"); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Rename(entries[0]+"x", entries[1]), os.Rename(entries[1]+"x", entries[0])); err != nil {
		t.Fatal(err)
	}
	r.restart(t, "")
	r.calls(t, alice, "")
	r.calls(t, bob, "")
	all, err := r.List()
	if err != nil || len(all) != 0 {
		t.Errorf("swapped rows are listed: %+v, %v", all, err)
	}
	if kept, _ := filepath.Glob(filepath.Join(r.state, "vault", "*.json")); len(kept) != 2 {
		t.Errorf("%d rows are kept", len(kept))
	}
}

// A row whose key is lost is as no login, says so, and stays: the key may come back.
func TestLostKey(t *testing.T) {
	r := newRig(t, authtest.NewOAuth(t), "", nil)
	if err := r.logIn(t, alice); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(r.state, "vault.key")
	if err := os.Rename(file, file+".away"); err != nil {
		t.Fatal(err)
	}
	r.restart(t, "")
	r.calls(t, alice, "")
	if all, err := r.List(); err != nil || len(all) != 1 || all[0].Problem == "" {
		t.Errorf("logins: %+v, %v", all, err)
	}
	if err := os.Rename(file+".away", file); err != nil {
		t.Fatal(err)
	}
	r.restart(t, "")
	r.calls(t, alice, "alice")
}

// TestKeyOfVaultLater: while the key of the vault cannot be read, no one with a login is asked to log
// in again, and no login can begin that could not be kept. Once the key can be read, the logins are
// back, without a restart.
func TestKeyOfVaultLater(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no modes")
	}
	r := newRig(t, authtest.NewOAuth(t), "", nil)
	if err := r.logIn(t, alice); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(r.state, "vault.key")
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	r.restart(t, "")
	for name, who := range map[string]*gate.Principal{"a call": principal(alice), "listing": nil} {
		_, _, err := r.Authorize(t.Context(), "jira", who, Need{}, nil)
		n, ok := errors.AsType[*Needed](err)
		if !ok || !strings.Contains(err.Error(), "chmod 600") || strings.Contains(n.Public(), "wasmgate login ") {
			t.Errorf("%s: %v", name, err)
		} else if _, helps := n.Login(); helps {
			t.Errorf("%s: another login is said to help", name)
		}
	}
	if all, err := r.List(); err != nil || len(all) != 1 || !strings.Contains(all[0].Problem, "chmod 600") {
		t.Errorf("logins: %+v, %v", all, err)
	}
	if _, err := r.Begin(t.Context(), Start{Server: "jira", Owner: bob, Redirect: redirect}); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a login begins that cannot be kept: %v", err)
	}
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.o.Vault.Ready(); err != nil {
		t.Fatal(err)
	}
	r.calls(t, alice, "alice")
	if all, err := r.List(); err != nil || len(all) != 1 || all[0].Problem != "" {
		t.Errorf("logins: %+v, %v", all, err)
	}
}

// A server with the name of another gets none of its tokens.
func TestMovedServer(t *testing.T) {
	r := newRig(t, authtest.NewOAuth(t), "", nil)
	if err := r.logIn(t, alice); err != nil {
		t.Fatal(err)
	}
	r.server.URL = strings.Replace(r.server.URL, "127.0.0.1", "localhost", 1)
	if value, _, err := r.Authorize(t.Context(), "jira", principal(alice), Need{}, nil); err == nil {
		t.Errorf("another server gets %d bytes of token", len(value))
	}
}

// Nor one that has the name after the configuration was read again, where the gateway itself is
// the client.
func TestMovedServerOfGateway(t *testing.T) {
	as := authtest.NewOAuth(t)
	as.Client("gw", "its secret")
	r := newRig(t, as, "", func(s *Server) { s.Mode, s.ClientID, s.ClientSecret = ClientCreds, "gw", "its secret" })
	r.calls(t, alice, "gw")
	moved := *r.server
	moved.URL = strings.Replace(moved.URL, "127.0.0.1", "localhost", 1)
	r.Set([]*Server{&moved})
	if value, _, err := r.Authorize(t.Context(), "jira", principal(alice), Need{}, nil); err == nil {
		t.Errorf("another server gets %d bytes of token", len(value))
	}
	r.Set([]*Server{r.server})
	r.calls(t, alice, "gw")
}

// However many calls meet the end of a token, it is refreshed once, and a server whose refresh
// tokens are good once loses no grant; also not when the gateway begins anew after each.
func TestRefreshOnce(t *testing.T) {
	as := authtest.NewOAuth(t)
	r := newRig(t, as, "", nil)
	as.Life(30 * time.Second) // which is within early
	if err := r.logIn(t, alice); err != nil {
		t.Fatal(err)
	}
	for turn := 1; turn <= 3; turn++ {
		as.Life(time.Hour)
		if _, err := r.List(); err != nil { // which reads the vault
			t.Fatal(err)
		}
		if turn > 1 {
			as.Expire("alice")
		}
		for _, l := range r.rows.byKey {
			l.mu.Lock()
			if l.grant != nil {
				l.grant.Expires = time.Now().Add(-time.Second)
			}
			l.mu.Unlock()
		}
		var calls sync.WaitGroup
		for range 50 {
			calls.Go(func() { r.calls(t, alice, "alice") })
		}
		calls.Wait()
		if n := as.Count("refresh_token"); n != turn {
			t.Fatalf("%d refreshes after %d ends", n, turn)
		}
		r.restart(t, "")
	}
	for _, form := range as.Asked() {
		if form.Get("resource") != r.server.URL {
			t.Errorf("a token request for resource %q", form.Get("resource"))
		}
	}
}

// A token that the server refuses is refreshed once. If the grant has ended, another login is needed.
func TestRefused(t *testing.T) {
	as := authtest.NewOAuth(t)
	r := newRig(t, as, "", nil)
	if err := r.logIn(t, alice); err != nil {
		t.Fatal(err)
	}
	age := func() {
		for _, l := range r.rows.byKey {
			l.mu.Lock()
			l.forced = time.Time{}
			l.mu.Unlock()
		}
	}
	as.Expire("alice")
	age()
	r.calls(t, alice, "alice")
	as.End("alice")
	age()
	r.calls(t, alice, "")
	r.calls(t, alice, "")
	if n := as.Count("refresh_token"); n != 1 {
		t.Errorf("%d refreshes", n)
	}
	if all, err := r.List(); err != nil || len(all) != 0 {
		t.Errorf("logins: %+v, %v", all, err)
	}
}

// An answer is accepted once, from the browser that has begun the login, in time, and from the issuer
// that was asked.
func TestAnswers(t *testing.T) {
	as := authtest.NewOAuth(t)
	r := newRig(t, as, "", nil)
	begin := func() url.Values {
		begun, err := r.Begin(t.Context(), Start{Server: "jira", Owner: alice, Redirect: redirect})
		if err != nil {
			t.Fatal(err)
		}
		return authtest.Browse(t, begun.URL, redirect).Query()
	}
	good := begin()
	if _, err := r.Finish(t.Context(), bob, good); !errors.Is(err, ErrState) {
		t.Errorf("another's answer: %v", err)
	}
	if _, err := r.Finish(t.Context(), alice, good); err != nil {
		t.Error(err)
	}
	if _, err := r.Finish(t.Context(), alice, good); !errors.Is(err, ErrState) {
		t.Errorf("the answer again: %v", err)
	}
	late := begin()
	for _, f := range r.flows {
		f.until = time.Now().Add(-time.Second)
	}
	if _, err := r.Finish(t.Context(), alice, late); !errors.Is(err, ErrState) {
		t.Errorf("an answer that is late: %v", err)
	}
	corp := &Server{ID: "corp", URL: r.server.URL, Mode: SignsIn, Issuer: as.URL, Client: r.server.Client}
	begun, ticket, err := r.SignIn(t.Context(), corp, redirect, "mine")
	if err != nil {
		t.Fatal(err)
	}
	signedIn := authtest.Browse(t, begun.URL, redirect).Query()
	if _, err := r.Finish(t.Context(), gate.Owner{}, signedIn); !errors.Is(err, ErrState) {
		t.Errorf("a sign-in as a login: %v", err)
	}
	if _, err := r.SignedIn(t.Context(), corp, ticket, begin()); !errors.Is(err, ErrState) {
		t.Errorf("a login as a sign-in: %v", err)
	}
	other := New(r.o) // another process, and another key
	for name, kept := range map[string]string{"no ticket": "", "a changed one": ticket[:20] + "A" + ticket[21:], "half of one": ticket[:len(ticket)/2], "one of another state": secondTicket(t, r, corp)} {
		if _, ok := r.Purpose(kept, signedIn); ok && kept != ticket {
			t.Errorf("%s is taken", name)
		}
	}
	if _, ok := other.Purpose(ticket, signedIn); ok {
		t.Error("the ticket of another gateway is taken")
	}
	r.between(nil, flowTime+time.Second)
	if _, err := r.SignedIn(t.Context(), corp, ticket, signedIn); !errors.Is(err, ErrState) {
		t.Errorf("a sign-in that is late: %v", err)
	}
	r.between(nil, 0)
	if purpose, ok := r.Purpose(ticket, signedIn); purpose != "mine" || !ok {
		t.Errorf("the sign-in is for %q, %t", purpose, ok)
	}
	if _, err := r.SignedIn(t.Context(), corp, ticket, signedIn); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(url.Values){
		"another state": func(q url.Values) { q.Set("state", "x") }, "no state": func(q url.Values) { q.Del("state") },
		"another issuer": func(q url.Values) { q.Set("iss", "https://evil.example") }, "no issuer": func(q url.Values) { q.Del("iss") },
		"an issuer with a slash": func(q url.Values) { q.Set("iss", as.URL+"/") }, "two codes": func(q url.Values) { q.Add("code", "x") },
		"an error": func(q url.Values) { q.Set("error", "access_denied") }, "no code": func(q url.Values) { q.Del("code") },
	} {
		q := begin()
		change(q)
		before := len(as.Asked())
		if _, err := r.Finish(t.Context(), alice, q); err == nil {
			t.Errorf("%s: taken", name)
		}
		if len(as.Asked()) != before {
			t.Errorf("%s: the code was sent", name)
		}
	}
}

func secondTicket(t *testing.T, r *rig, corp *Server) string {
	t.Helper()
	_, ticket, err := r.SignIn(t.Context(), corp, redirect, "other")
	if err != nil {
		t.Fatal(err)
	}
	return ticket
}

// Metadata that would lead tokens elsewhere, or codes into other hands, is refused.
func TestHostileMetadata(t *testing.T) {
	for name, change := range map[string]func(m map[string]any){
		"no PKCE":          func(m map[string]any) { delete(m, "code_challenge_methods_supported") },
		"plain PKCE":       func(m map[string]any) { m["code_challenge_methods_supported"] = []string{"plain"} },
		"another issuer":   func(m map[string]any) { m["issuer"] = "https://good.example" },
		"a slash more":     func(m map[string]any) { m["issuer"] = m["issuer"].(string) + "/" },
		"http elsewhere":   func(m map[string]any) { m["token_endpoint"] = "http://evil.example/token" },
		"a script":         func(m map[string]any) { m["authorization_endpoint"] = "javascript:alert(1)" },
		"no token":         func(m map[string]any) { delete(m, "token_endpoint") },
		"no registration":  func(m map[string]any) { delete(m, "registration_endpoint") },
		"a file":           func(m map[string]any) { m["token_endpoint"] = "file:///etc/passwd" },
		"a user and a URL": func(m map[string]any) { m["token_endpoint"] = "https://a:b@evil.example/" },
		"no page":          func(m map[string]any) { delete(m, "authorization_endpoint") },
		"no host":          func(m map[string]any) { m["token_endpoint"] = "https:///token" },
		"a fragment":       func(m map[string]any) { m["token_endpoint"] = "https://evil.example/token#x" },
		"another scheme":   func(m map[string]any) { m["token_endpoint"] = "ftp://127.0.0.1/token" },
	} {
		as := authtest.NewOAuth(t)
		as.Change = change
		begun, err := newRig(t, as, "", nil).Begin(t.Context(), Start{Server: "jira", Owner: alice, Redirect: redirect})
		if err == nil {
			t.Errorf("%s: taken, and a browser is sent to %s", name, begun.Issuer)
		}
	}
}

// A server's statements about itself lead to no plain http, to no authorization server but the
// configured one, and to no endless document.
func TestHostileResource(t *testing.T) {
	as := authtest.NewOAuth(t)
	for name, tt := range map[string]struct {
		challenge, issuer string
		change            func(*Server)
		want              string
	}{
		"its metadata in the clear": {"http://elsewhere.example/m", as.URL, func(*Server) {}, "is not https"},
		"an issuer in the clear":    {"", "http://elsewhere.example", func(*Server) {}, "is not https"},
		"another issuer":            {"", as.URL, func(s *Server) { s.Issuer = "https://good.example" }, "says that its tokens come from"},
		"a document without end":    {"", as.URL + "\",\"x\":\"" + strings.Repeat("x", maxDocument), func(*Server) {}, "more than"},
	} {
		var at *httptest.Server
		at = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/mcp" {
				fmt.Fprintf(w, `{"resource":"%s/mcp","authorization_servers":["%s"]}`, at.URL, tt.issuer)
				return
			}
			if tt.challenge != "" {
				w.Header().Set("WWW-Authenticate", fmt.Sprintf("Bearer resource_metadata=%q", tt.challenge))
			}
			w.WriteHeader(http.StatusUnauthorized)
		}))
		s := &Server{ID: "jira", URL: at.URL + "/mcp", Mode: OAuth, Client: at.Client()}
		tt.change(s)
		l := New(Options{Vault: vault.New(t.TempDir(), func() ([]byte, error) { return make([]byte, 32), nil })})
		l.Set([]*Server{s})
		_, err := l.Begin(t.Context(), Start{Server: "jira", Owner: alice, Redirect: redirect})
		at.Close()
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v; want %q", name, err, tt.want)
		}
	}
}

// Metadata of another resource is never the server's own, and nothing is asked in its place.
func TestForeignResource(t *testing.T) {
	for resource, want := range map[string]bool{
		"http://h/mcp": true, "http://h": true, "http://h/": true, "http://H/mcp/": true,
		"http://h/mc": false, "http://h/mcp/x": false, "http://evil/mcp": false, "https://h/mcp": false, "http://h/mcp?x": false, "http://u@h/mcp": false, "http://h/mcp#x": false, "": false,
	} {
		if got := covers(resource, &url.URL{Scheme: "http", Host: "h", Path: "/mcp"}); got != want {
			t.Errorf("%q covers: %v", resource, got)
		}
	}
}

// A server whose metadata is that of another server sends no one to log in there, and causes no
// registration of a client.
func TestForeignMetadata(t *testing.T) {
	for _, resource := range []string{"https://evil.example/mcp", "", "/mcp"} {
		var asked atomic.Bool
		var at *httptest.Server
		at = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case strings.HasPrefix(r.URL.Path, "/.well-known/oauth-protected-resource"):
				fmt.Fprintf(w, `{"resource":%q,"authorization_servers":[%q]}`, resource, at.URL)
			case r.URL.Path == "/mcp":
				w.WriteHeader(http.StatusUnauthorized)
			default:
				asked.Store(true)
				http.NotFound(w, r)
			}
		}))
		l := New(Options{Vault: vault.New(t.TempDir(), func() ([]byte, error) { return make([]byte, 32), nil })})
		l.Set([]*Server{{ID: "jira", URL: at.URL + "/mcp", Mode: OAuth, Client: at.Client()}})
		begun, err := l.Begin(t.Context(), Start{Server: "jira", Owner: alice, Redirect: redirect})
		at.Close()
		if err == nil || asked.Load() || !strings.Contains(err.Error(), ", not this server") {
			t.Errorf("%q: %+v, %v; the authorization server was asked: %v", resource, begun, err, asked.Load())
		}
	}
}

// If a server asks for more scopes, that is reported, and the next login asks for them.
func TestMoreScopes(t *testing.T) {
	as := authtest.NewOAuth(t)
	r := newRig(t, as, "write", nil)
	begun, err := r.Begin(t.Context(), Start{Server: "jira", Owner: alice, Redirect: redirect, Scopes: []string{"read", "own"}})
	if err != nil {
		t.Fatal(err)
	}
	as.Person("alice")
	if _, err := r.Finish(t.Context(), alice, authtest.Browse(t, begun.URL, redirect).Query()); err != nil {
		t.Fatal(err)
	}
	r.calls(t, alice, "")
	if begun, err = r.Begin(t.Context(), Start{Server: "jira", Owner: alice, Redirect: redirect}); err != nil || strings.Join(begun.Scopes, " ") != "offline_access own read write" {
		t.Errorf("it is asked for %q, %v", begun.Scopes, err)
	}
	if err := r.logIn(t, alice); err != nil {
		t.Fatal(err)
	}
	r.calls(t, alice, "alice")
}

// A login cannot add scopes if the gateway itself is the client: the configuration lacks them.
func TestMoreScopesOfGateway(t *testing.T) {
	as := authtest.NewOAuth(t)
	as.Client("gw", "its secret")
	r := newRig(t, as, "write", func(s *Server) {
		s.Mode, s.ClientID, s.ClientSecret, s.Scopes = ClientCreds, "gw", "its secret", []string{"read"}
	})
	_, err := r.call(t, principal(alice), Need{})
	if err == nil || strings.Contains(err.Error(), "wasmgate login") || !strings.Contains(err.Error(), `it wants "write": write what is missing to servers.jira.auth.scopes`) {
		t.Errorf("a token without a scope: %v", err)
	}
}

// A server that answers 400 to what it does not know, before it looks for a credential, is
// asked in the words of either revision.
func TestChallengeOfEitherRevision(t *testing.T) {
	for _, revision := range []string{"2026-07-28", ""} {
		at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("MCP-Protocol-Version") != revision {
				http.Error(w, "another revision", http.StatusBadRequest)
				return
			}
			w.Header().Set("WWW-Authenticate", `Bearer scope="basic"`)
			w.WriteHeader(http.StatusUnauthorized)
		}))
		got, err := challenged(t.Context(), &Server{URL: at.URL, Client: at.Client()})
		if err != nil || got["scope"] != "basic" {
			t.Errorf("%q: %v, %v", revision, got, err)
		}
		at.Close()
	}
}

// A policy's obligation has a call use a token that can do no more than it says.
func TestNarrowed(t *testing.T) {
	as := authtest.NewOAuth(t)
	r := newRig(t, as, "", func(s *Server) { s.Scopes = []string{"read", "write"} })
	if err := r.logIn(t, alice); err != nil {
		t.Fatal(err)
	}
	scopes := func(need Need) string {
		t.Helper()
		value, _, err := r.Authorize(t.Context(), "jira", principal(alice), need, nil)
		if err != nil {
			return "refused"
		}
		_, scope, _, _ := as.Whose(strings.TrimPrefix(value, "Bearer "), r.server.URL)
		return scope
	}
	exchanges := func() int { return as.Count("urn:ietf:params:oauth:grant-type:token-exchange") }
	read := Need{Scopes: []string{"read"}, TTL: time.Minute}
	if got := scopes(read); got != "read" || scopes(read) != "read" || exchanges() != 1 {
		t.Errorf("a token for %q, with %d exchanges", got, exchanges())
	}
	if got := scopes(Need{Scopes: []string{"read", "admin"}}); got != "read" {
		t.Errorf("beyond what was granted: a token for %q", got)
	}
	if got := scopes(Need{Scopes: []string{"admin"}}); got != "refused" {
		t.Errorf("nothing of what was granted: a token for %q", got)
	}
	as.Widens("write")
	if got := scopes(Need{Scopes: []string{"read"}, TTL: time.Nanosecond}); got != "refused" {
		t.Errorf("an answer that can do more is used, for %q", got)
	}
}

// Where tokens are not exchanged, the refresh token gets one that can do less, and still holds for
// everything that was granted.
func TestNarrowedByRefresh(t *testing.T) {
	as := authtest.NewOAuth(t)
	as.Plain()
	r := newRig(t, as, "", func(s *Server) { s.Scopes = []string{"read", "write"} })
	if err := r.logIn(t, alice); err != nil {
		t.Fatal(err)
	}
	scopes := func(need Need) string {
		t.Helper()
		value, used, err := r.Authorize(t.Context(), "jira", principal(alice), need, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, scope, _, _ := as.Whose(strings.TrimPrefix(value, "Bearer "), r.server.URL)
		if used.Mode != OAuth || used.Name == "" || strings.Join(used.Scopes, " ") != scope || used.Narrow != (need.Scopes != nil) || used.Expires.IsZero() {
			t.Errorf("a token for %q is recorded as %+v", scope, used)
		}
		return scope
	}
	read := Need{Scopes: []string{"read"}}
	var wait sync.WaitGroup
	for range 10 {
		wait.Go(func() {
			if got := scopes(read); got != "read" {
				t.Errorf("a token for %q", got)
			}
		})
	}
	wait.Wait()
	if got := scopes(Need{}); got != "offline_access read write" {
		t.Errorf("a call that nothing narrows has a token for %q", got)
	}
	r.restart(t, "")
	if got := scopes(read); got != "read" {
		t.Errorf("after a restart: a token for %q", got)
	}
	as.Expire("alice")
	r.calls(t, alice, "alice")
	if got := scopes(Need{}); got != "offline_access read write" {
		t.Errorf("the refresh token has become one for %q", got)
	}
	as.End("alice")
	if _, _, err := r.Authorize(t.Context(), "jira", principal(alice), Need{Scopes: []string{"write"}}, nil); err == nil {
		t.Error("a login that was ended there gives a token")
	}
	if all, err := r.List(); err != nil || len(all) != 0 {
		t.Errorf("logins: %+v, %v", all, err)
	}
}

// A token that was provided cannot be narrowed. If a server refuses a call because of scopes that the
// policy does not leave, that is no reason to log in again.
func TestNotNarrowed(t *testing.T) {
	as := authtest.NewOAuth(t)
	r := newRig(t, as, "write", func(s *Server) { s.Scopes = []string{"read", "write"} })
	if _, err := r.Give("jira", alice, "given"); err != nil {
		t.Fatal(err)
	}
	said := func() string {
		t.Helper()
		_, err := r.call(t, principal(alice), Need{Scopes: []string{"read"}})
		n, ok := errors.AsType[*Needed](err)
		if !ok {
			t.Fatalf("%v; want no credential", err)
		}
		return n.Public()
	}
	if got := said(); !strings.Contains(got, "cannot be narrowed") {
		t.Errorf("a token that was given: %s", got)
	}
	if err := r.logIn(t, alice); err != nil {
		t.Fatal(err)
	}
	if got := said(); !strings.Contains(got, "does not leave") {
		t.Errorf("a token for read alone: %s", got)
	}
	r.calls(t, alice, "alice")
}

// The gateway gets tokens as itself, and on behalf of a caller, whose own token goes to nothing but the
// authorization server.
func TestWithoutLogin(t *testing.T) {
	as := authtest.NewOAuth(t)
	as.Client("gw", "its secret")
	own := func(mode string) *rig {
		return newRig(t, as, "", func(s *Server) {
			s.Mode, s.ClientID, s.ClientSecret, s.Scopes = mode, "gw", "its secret", []string{"read"}
		})
	}
	r := own(ClientCreds)
	r.calls(t, alice, "gw")
	r.calls(t, bob, "gw")
	if n := as.Count("client_credentials"); n != 1 {
		t.Errorf("%d tokens", n)
	}
	r = own(Exchange)
	token := func(sub string) *gate.Principal {
		p := authtest.New(t)
		who := &gate.Principal{Owner: gate.Owner{ID: sub}, Auth: "bearer", Credential: sub}
		r.Saw(who, &http.Request{Header: http.Header{"Authorization": {"Bearer " + p.Sign(t, p.Claims(map[string]any{"sub": sub}), nil)}}})
		return who
	}
	for _, who := range []string{"alice", "bob"} {
		if got, err := r.call(t, token(who), Need{}); got != who || err != nil {
			t.Errorf("%s calls as %q: %v", who, got, err)
		}
	}
	if got, err := r.call(t, principal(alice), Need{}); err == nil {
		t.Errorf("without a token of their own: called as %q", got)
	}
	if _, _, err := r.Authorize(t.Context(), "jira", nil, Need{}, nil); err == nil || !strings.Contains(err.Error(), "servers.jira.auth.discovery") {
		t.Errorf("listed in nobody's name: %v", err)
	}
	for _, mode := range []string{ClientCreds, Exchange} {
		r = own(mode)
		if _, err := r.Begin(t.Context(), Start{Server: "jira", Owner: alice, Redirect: redirect}); err == nil {
			t.Errorf("%s: somebody logs in", mode)
		}
	}
}

// An authorization server may want to know who acts for a caller by a token of theirs. It is got
// once for all callers, and again after it was refused.
func TestActor(t *testing.T) {
	as := authtest.NewOAuth(t)
	as.Client("gw", "its secret")
	as.WantsActors()
	own := func(actor bool) *rig {
		return newRig(t, as, "", func(s *Server) {
			s.Mode, s.ClientID, s.ClientSecret, s.Actor = Exchange, "gw", "its secret", actor
		})
	}
	actorFor := func(r *rig, sub string) (string, error) {
		t.Helper()
		p := authtest.New(t)
		who := &gate.Principal{Owner: gate.Owner{ID: sub}, Auth: "bearer", Credential: sub}
		r.Saw(who, &http.Request{Header: http.Header{"Authorization": {"Bearer " + p.Sign(t, p.Claims(map[string]any{"sub": sub}), nil)}}})
		value, _, err := r.Authorize(t.Context(), "jira", who, Need{}, nil)
		user, _, actor, _ := as.Whose(strings.TrimPrefix(value, "Bearer "), r.server.URL)
		if err == nil && user != sub {
			t.Errorf("%s is %q at the server", sub, user)
		}
		return actor, err
	}
	if _, err := actorFor(own(false), "alice"); err == nil {
		t.Error("a token without an actor")
	}
	r := own(true)
	for _, sub := range []string{"alice", "bob"} {
		if actor, err := actorFor(r, sub); actor != "gw by token" || err != nil {
			t.Errorf("for %s acts %q: %v", sub, actor, err)
		}
	}
	if n := as.Count("client_credentials"); n != 1 {
		t.Errorf("%d tokens of the gateway's own", n)
	}
	as.Expire("gw")
	if _, err := actorFor(r, "carol"); err == nil {
		t.Error("an actor's token that has ended is good")
	}
	if actor, err := actorFor(r, "dora"); actor != "gw by token" || err != nil {
		t.Errorf("after that: %q, %v", actor, err)
	}
	for _, form := range as.Asked() {
		if form.Get("grant_type") == "client_credentials" && form.Get("resource") != "" {
			t.Errorf("the actor's token is also for %s", form.Get("resource"))
		}
	}
}

// A login that cannot be recorded is not kept, and no event, error or file contains a secret.
func TestNoCanary(t *testing.T) {
	as := authtest.NewOAuth(t)
	r := newRig(t, as, "", nil)
	r.broken = errors.New("the disk is full")
	if err := r.logIn(t, alice); err == nil {
		t.Error("a login was kept that was not recorded")
	}
	r.calls(t, alice, "")
	r.broken = nil
	if err := r.logIn(t, alice); err != nil {
		t.Fatal(err)
	}
	as.End("alice")
	_, refused := r.call(t, principal(alice), Need{})
	said := fmt.Sprintf("%+v %v", r.events, refused)
	var canaries []string
	for _, form := range as.Asked() {
		for _, name := range []string{"code", "code_verifier", "refresh_token"} {
			if v := form.Get(name); v != "" {
				canaries = append(canaries, v)
			}
		}
	}
	if len(canaries) < 5 {
		t.Fatalf("%d canaries", len(canaries))
	}
	err := filepath.WalkDir(r.state, func(path string, d fs.DirEntry, err error) error {
		if d.Type().IsRegular() {
			raw, _ := os.ReadFile(path)
			said += string(raw)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range canaries {
		if strings.Contains(said, c) {
			t.Errorf("a secret is in %s", strings.ReplaceAll(said, c, "<HERE>"))
		}
	}
}

// The redirect of a command accepts only the answer to its own login, and goes on waiting after others.
func TestRedirect(t *testing.T) {
	back, err := Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer back.Close()
	status := make(chan int, 6)
	go func() {
		for _, query := range []string{"?state=other&code=a", "?code=a", "?state=mine&code=c", "?state=mine&code=d", "/x?state=mine&code=e", "?state=mine&code=b"} {
			method := http.MethodGet
			if strings.HasSuffix(query, "=d") {
				method = http.MethodPost
			}
			r, err := http.NewRequest(method, back.URL+query, nil)
			if err != nil {
				status <- 0
				continue
			}
			if strings.HasSuffix(query, "=c") {
				r.Host = "evil.example" // a name of the page's own, which leads to this machine
			}
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				status <- 0
				continue
			}
			resp.Body.Close()
			status <- resp.StatusCode
		}
	}()
	got, err := back.Wait(t.Context(), "mine")
	if err != nil || got != "code=b&state=mine" {
		t.Errorf("%q, %v", got, err)
	}
	for i, want := range []int{400, 400, 400, 400, 400, 200} {
		if got := <-status; got != want {
			t.Errorf("answer %d is %d, want %d", i, got, want)
		}
	}
}

// The cost of a call to a server with a login, once there is one.
func BenchmarkAuthorize(b *testing.B) {
	r := newRig(b, authtest.NewOAuth(b), "", nil)
	if err := r.logIn(b, alice); err != nil {
		b.Fatal(err)
	}
	who := principal(alice)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := r.Authorize(b.Context(), "jira", who, Need{}, nil); err != nil {
			b.Fatal(err)
		}
	}
}
