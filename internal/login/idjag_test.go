package login

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/auth/authtest"
)

// A corpRig is a rig of a company: its servers take the word of an identity provider.
type corpRig struct {
	*rig
	idp  *authtest.OAuth
	wiki *Server
}

func newCorpRig(t testing.TB) *corpRig {
	t.Helper()
	as, idp := authtest.NewOAuth(t), authtest.NewOAuth(t)
	secret := rand.Text()
	as.Client("gw-there", secret)
	idp.Client("gw", secret, redirect)
	idp.Vouches(as, "gw-there")
	c := &corpRig{idp: idp}
	c.rig = newRig(t, as, "", func(s *Server) {
		s.Mode, s.Issuer, s.ClientID, s.ClientSecret = IDJAG, as.URL, "gw-there", secret
		s.IDP = IdentityProvider(Server{Issuer: idp.URL, ClientID: "gw", ClientSecret: secret, Client: s.Client})
	})
	var at *httptest.Server
	at = httptest.NewServer(as.Protect(func() string { return at.URL }, "/mcp", "", func(w http.ResponseWriter, _ *http.Request, user string) { fmt.Fprint(w, user) }))
	t.Cleanup(at.Close)
	wiki := *c.server
	wiki.ID, wiki.URL = "wiki", at.URL+"/mcp"
	wiki.IDP = IdentityProvider(*wiki.IDP)
	c.wiki = &wiki
	c.restart(t)
	return c
}

func (c *corpRig) restart(t testing.TB) {
	c.rig.restart(t, "")
	c.Set([]*Server{c.server, c.wiki})
}

// signIn has somebody log in at the identity provider, by way of a server.
func (c *corpRig) signIn(t testing.TB, server string, who gate.Owner) {
	t.Helper()
	begun, err := c.Begin(t.Context(), Start{Server: server, Owner: who, Redirect: redirect})
	if err != nil {
		t.Fatal(err)
	}
	c.idp.Person(who.ID)
	if _, err = c.Finish(t.Context(), who, authtest.Browse(t, begun.URL, redirect).Query()); err != nil {
		t.Fatal(err)
	}
}

// answer returns what a server answers to a call.
func (c *corpRig) answer(t testing.TB, s *Server, who gate.Owner, need Need) (string, error) {
	t.Helper()
	value, _, err := c.Authorize(t.Context(), s.ID, principal(who), need, nil)
	if err != nil {
		return "", err
	}
	user, _, _, ok := c.as.Whose(strings.TrimPrefix(value, "Bearer "), s.URL)
	if !ok {
		t.Errorf("%s refuses the token of %s", s.ID, who.ID)
	}
	return user, nil
}

// end ends the tokens of servers, and of logins if so.
func (c *corpRig) end(logins bool) {
	for _, r := range c.rows.byKey {
		r.mu.Lock()
		if r.grant != nil && (logins || r.key.Kind == IDJAG) {
			ended := *r.grant
			ended.Expires = time.Now().Add(-time.Second)
			r.grant = &ended
		}
		r.mu.Unlock()
	}
}

// TestSingleSignOn: one login at the identity provider opens all its servers for one principal. It
// outlives a restart, and its end is the end of all that came of it.
func TestSingleSignOn(t *testing.T) {
	c := newCorpRig(t)
	for _, s := range []*Server{c.server, c.wiki} {
		_, err := c.answer(t, s, alice, Need{})
		n, ok := errors.AsType[*Needed](err)
		if !ok || !strings.Contains(n.Public(), "needs a login at "+c.idp.URL) || !strings.Contains(n.Public(), "wasmgate login "+s.ID+" --as alice") {
			t.Fatalf("without a login: %v", err)
		}
		if id, helps := n.Login(); id != s.ID || !helps {
			t.Errorf("a login at %q helps: %v", id, helps)
		}
	}
	c.signIn(t, "jira", alice)
	c.signIn(t, "wiki", bob)
	check := func() {
		t.Helper()
		for _, s := range []*Server{c.server, c.wiki} {
			for _, who := range []gate.Owner{alice, bob} {
				if got, err := c.answer(t, s, who, Need{}); got != who.ID || err != nil {
					t.Errorf("%s calls %s as %q: %v", who.ID, s.ID, got, err)
				}
			}
		}
	}
	check()
	c.restart(t)
	check()
	if n := c.as.Count(jwtBearer); n != 4 {
		t.Errorf("%d tokens of two servers for two principals; a restart keeps them", n)
	}
	if value, _, err := c.Authorize(t.Context(), "wiki", nil, Need{}, nil); err != nil || value == "" {
		t.Errorf("the gateway does not list with the oldest login: %v", err)
	}
	all, err := c.List()
	if err != nil || len(all) != 2 || all[0].Server != c.idp.URL+" as gw" || all[0].Principal != "alice" || all[0].Problem != "" {
		t.Errorf("the logins are %+v, %v", all, err)
	}

	token, _, err := c.Authorize(t.Context(), "jira", principal(alice), Need{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Logout(t.Context(), "wiki", alice); err != nil {
		t.Fatal(err)
	}
	if _, _, _, ok := c.as.Whose(strings.TrimPrefix(token, "Bearer "), c.server.URL); ok {
		t.Error("a token outlives the logout at its authorization server")
	}
	for _, s := range []*Server{c.server, c.wiki} {
		if _, err := c.answer(t, s, alice, Need{}); err == nil {
			t.Errorf("%s is open after the logout", s.ID)
		}
		if got, err := c.answer(t, s, bob, Need{}); got != "bob" || err != nil {
			t.Errorf("bob's login has ended with alice's: %v", err)
		}
	}
	kept, err := os.ReadDir(filepath.Join(c.state, "vault"))
	if err != nil || len(kept) != 3 {
		t.Errorf("the vault has %d rows, %v; want bob's login and his two tokens", len(kept), err)
	}
}

// TestAssertedOnce: however many calls meet the end of a token, both servers are asked once; the
// login is renewed once if the ID token has ended, too.
func TestAssertedOnce(t *testing.T) {
	c := newCorpRig(t)
	c.signIn(t, "jira", alice)
	for turn := 1; turn <= 4; turn++ {
		_, _ = c.List() // which reads the vault
		if turn > 1 {
			if _, err := c.answer(t, c.server, alice, Need{}); err != nil {
				t.Fatal(err)
			}
			c.end(turn%2 == 0)
		}
		var calls sync.WaitGroup
		for range 50 {
			calls.Go(func() {
				if got, err := c.answer(t, c.server, alice, Need{}); got != "alice" || err != nil {
					t.Errorf("a call when the token has ended: %q, %v", got, err)
				}
			})
		}
		calls.Wait()
		if jags, tokens, logins := c.idp.Count("urn:ietf:params:oauth:token-type:id-jag"), c.as.Count(jwtBearer), c.idp.Count("refresh_token"); jags != turn || tokens != turn || logins != turn/2 {
			t.Fatalf("after %d ends: %d ID-JAGs, %d tokens, %d renewed logins", turn, jags, tokens, logins)
		}
		c.restart(t)
	}
}

// TestAnotherLogin: tokens of a login, a server or a client that is not the one of now are not used.
func TestAnotherLogin(t *testing.T) {
	for name, change := range map[string]func(c *corpRig){
		"login": func(c *corpRig) { c.signIn(t, "jira", alice) },
		"scope": func(c *corpRig) { c.server.Scopes = []string{"read"} },
		"client": func(c *corpRig) {
			c.as.Client("other", c.server.ClientSecret)
			c.idp.Vouches(c.as, "other")
			c.server.ClientID = "other"
		},
	} {
		c := newCorpRig(t)
		c.signIn(t, "jira", alice)
		for want := 1; want <= 2; want++ {
			if _, err := c.answer(t, c.server, alice, Need{}); err != nil {
				t.Fatal(name, err)
			}
			if n := c.as.Count(jwtBearer); n != want {
				t.Errorf("another %s: %d tokens, want %d", name, n, want)
			}
			other := *c.server
			c.server = &other
			if want == 1 {
				change(c)
			}
			c.restart(t)
		}
	}
	c := newCorpRig(t)
	c.signIn(t, "jira", alice)
	c.wiki.IDP.ID = "another client's"
	if _, err := c.answer(t, c.wiki, alice, Need{}); err == nil {
		t.Error("the login of one client opens a server of another")
	}
}

// TestWrongAssertions: an ID-JAG that is not for this server, or not an ID-JAG, goes nowhere. The
// table has each claim once missing, once of another kind, and once of somebody else.
func TestWrongAssertions(t *testing.T) {
	type change struct {
		claims func(header, claims map[string]any)
		answer func(answer map[string]any)
	}
	wrong := map[string]change{
		"another type":          {answer: func(a map[string]any) { a["issued_token_type"] = accessToken }},
		"no type":               {answer: func(a map[string]any) { delete(a, "issued_token_type") }},
		"a bearer token":        {answer: func(a map[string]any) { a["token_type"] = "Bearer" }},
		"no token_type":         {answer: func(a map[string]any) { delete(a, "token_type") }},
		"opaque":                {answer: func(a map[string]any) { a["access_token"] = rand.Text() }},
		"nothing":               {answer: func(a map[string]any) { a["access_token"] = "" }},
		"unsigned":              {answer: func(a map[string]any) { a["access_token"] = "eyJhbGciOiJub25lIn0.e30." }},
		"of typ JWT":            {claims: func(h, _ map[string]any) { h["typ"] = "JWT" }},
		"without typ":           {claims: func(h, _ map[string]any) { delete(h, "typ") }},
		"with two audiences":    {claims: func(_, c map[string]any) { c["aud"] = []any{c["aud"], "https://other.example"} }},
		"with two resources":    {claims: func(_, c map[string]any) { c["resource"] = []any{c["resource"], "https://other.example"} }},
		"with a longer path":    {claims: func(_, c map[string]any) { c["resource"] = fmt.Sprint(c["resource"], "/x") }},
		"with a slash":          {claims: func(_, c map[string]any) { c["aud"] = fmt.Sprint(c["aud"], "/") }},
		"expired":               {claims: func(_, c map[string]any) { c["exp"] = time.Now().Add(-time.Second).Unix() }},
		"the person's ID token": {answer: func(a map[string]any) { a["access_token"] = "" }},
	}
	for _, name := range []string{"iss", "sub", "aud", "client_id", "jti", "exp"} {
		wrong["without "+name] = change{claims: func(_, c map[string]any) { delete(c, name) }}
		wrong["with an object as "+name] = change{claims: func(_, c map[string]any) { c[name] = map[string]any{"a": 1} }}
		if name != "sub" && name != "jti" && name != "exp" {
			wrong["with another "+name] = change{claims: func(_, c map[string]any) { c[name] = "https://other.example" }}
		}
	}
	for name, w := range wrong {
		t.Run(name, func(t *testing.T) {
			c := newCorpRig(t)
			c.idp.ChangeAssertion, c.idp.ChangeExchange = w.claims, w.answer
			if name == "the person's ID token" {
				own := c.idp.IDToken("alice", "gw")
				c.idp.ChangeExchange = func(a map[string]any) { a["access_token"] = own }
			}
			c.signIn(t, "jira", alice)
			_, err := c.answer(t, c.server, alice, Need{})
			n, ok := errors.AsType[*Needed](err)
			if !ok || !strings.Contains(n.Public(), "the identity provider "+c.idp.URL) {
				t.Errorf("the error is %v", err)
			}
			if len(c.as.Asked()) > 0 {
				t.Error("the authorization server was asked")
			}
			c.silent(t, err)
		})
	}
}

// silent fails if a secret is in an error, an event or a file.
func (c *corpRig) silent(t *testing.T, more ...error) {
	t.Helper()
	said := fmt.Sprintf("%+v %v", c.events, more)
	for _, err := range more {
		if n, ok := errors.AsType[*Needed](err); ok {
			said += fmt.Sprintf("%s %+v", n.Public(), n.Unwrap())
		}
	}
	err := filepath.WalkDir(c.state, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && d.Name() != "vault.key" {
			raw, _ := os.ReadFile(path)
			said += string(raw)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	secrets := slices.Concat(c.idp.Secrets(), c.as.Secrets(), []string{c.server.ClientSecret})
	if len(secrets) < 4 {
		t.Fatalf("%d secrets to look for", len(secrets))
	}
	for _, secret := range secrets {
		if secret != "" && strings.Contains(said, secret) {
			t.Errorf("a secret is in %s", strings.ReplaceAll(said, secret, "<HERE>"))
		}
	}
}

// TestRefusedAssertions: the error says which of the two servers refused, and what to do. A server
// that refuses is left alone for a while; a new login asks it at once.
func TestRefusedAssertions(t *testing.T) {
	c := newCorpRig(t)
	c.signIn(t, "jira", alice)
	for code, want := range map[string]string{
		"access_denied": "does not let this principal use server jira by client gw: ask its administrator", "invalid_target": "does not let this principal",
		"invalid_scope": "does not let this principal", "unsupported_grant_type": "does not let this principal", "invalid_client": "check servers.jira.auth.idp_client",
		"invalid_grant": "wants a new login for server jira: have `wasmgate login jira --as alice`", "insufficient_user_authentication": "wants a new login",
		"login_required": "wants a new login", "Not a code: <b>": "does not let this principal",
	} {
		c.idp.Denies(code)
		before := len(c.idp.Asked())
		for range 3 {
			_, err := c.answer(t, c.server, alice, Need{})
			n, ok := errors.AsType[*Needed](err)
			if !ok || !strings.HasPrefix(n.Public(), "the identity provider "+c.idp.URL) || !strings.Contains(n.Public(), want) {
				t.Errorf("%s: %v", code, err)
			} else if _, helps := n.Login(); helps != strings.Contains(want, "wants a new login") {
				t.Errorf("%s: a login helps: %v", code, helps)
			}
			c.silent(t, err)
		}
		if n := len(c.idp.Asked()) - before; n != 1 {
			t.Errorf("%s: asked %d times", code, n)
		}
		// The gateway itself lists by any login: no one else learns what keeps one person out.
		_, _, err := c.Authorize(t.Context(), "jira", nil, Need{}, nil)
		n, _ := errors.AsType[*Needed](err)
		if strings.HasPrefix(want, "does not let") && (n == nil || !strings.HasPrefix(n.Public(), "server jira needs a login at "+c.idp.URL+" of a person who may use it")) {
			t.Errorf("%s, to the gateway: %v", code, err)
		}
		c.silent(t, err)
		c.signIn(t, "jira", alice)
	}
	c.idp.Denies("")
	for name, want := range map[string]struct {
		idp  bool
		with roundTrip
		text string
	}{
		"a client that is unknown":     {false, answers(401, `{"error":"invalid_client"}`), "does not accept the gateway's client: check servers.jira.auth.client_id"},
		"a provider that is unknown":   {false, answers(400, `{"error":"invalid_grant"}`), "does not accept the grant of " + c.idp.URL},
		"a grant type that is none":    {false, answers(400, `{"error":"unsupported_grant_type"}`), "does not accept the grant of " + c.idp.URL},
		"a server that is away":        {false, answers(503, ""), "gives no token; try again later"},
		"a token that is not a bearer": {false, answers(200, `{"access_token":"x","token_type":"mac"}`), "gives no token; try again later"},
		"a redirect":                   {false, moved("https://other.example/token"), "gives no token; try again later"},
		"a provider that is away":      {true, answers(502, ""), "gives no valid grant for server jira; try again later"},
		"a redirect of the provider":   {true, moved("https://other.example/token"), "gives no valid grant"},
		"a provider's page":            {true, answers(200, "<html>"), "gives no valid grant"},
		"a provider's endless answer":  {true, answers(200, strings.Repeat(" ", maxDocument+2)), "gives no valid grant"},
	} {
		c.set(func(q *http.Request) (*http.Response, error) {
			if (q.URL.Host == strings.TrimPrefix(c.idp.URL, "http://")) == want.idp {
				return want.with(q)
			}
			return http.DefaultTransport.RoundTrip(q)
		})
		_, err := c.answer(t, c.server, alice, Need{})
		n, ok := errors.AsType[*Needed](err)
		begins := map[bool]string{false: "the authorization server " + c.as.URL + " of server jira", true: "the identity provider " + c.idp.URL}[want.idp]
		if !ok || !strings.HasPrefix(n.Public(), begins) || !strings.Contains(n.Public(), want.text) {
			t.Errorf("%s: %v", name, err)
		}
		c.silent(t, err)
		c.set(nil)
		c.signIn(t, "jira", alice)
		if got, err := c.answer(t, c.server, alice, Need{}); got != "alice" || err != nil {
			t.Errorf("after %s and a new login: %q, %v", name, got, err)
		}
		c.signIn(t, "jira", alice)
	}
}

func (c *corpRig) set(tokens roundTrip) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tokens = tokens
}

// moved answers with a redirect that keeps the method and the body.
func moved(to string) roundTrip {
	return func(r *http.Request) (*http.Response, error) {
		if r.URL.String() == to {
			panic("a redirect is followed")
		}
		return &http.Response{StatusCode: http.StatusTemporaryRedirect, Header: http.Header{"Location": {to}}, Body: http.NoBody, Request: r}, nil
	}
}

// TestWrongIdentities: an ID token of another person, client or issuer makes no login, and none
// renews one.
func TestWrongIdentities(t *testing.T) {
	now := time.Now()
	wrong := map[string]map[string]any{
		"issuer": {"iss": "https://other.example"}, "client": {"aud": "other"}, "party": {"azp": "other"}, "end": {"exp": now.Add(-time.Minute).Unix()}, "person": {"sub": ""},
	}
	for name, claims := range wrong {
		c := newCorpRig(t)
		c.idp.ChangeIdentity = func(to map[string]any) { maps.Copy(to, claims) }
		begun, err := c.Begin(t.Context(), Start{Server: "jira", Owner: alice, Redirect: redirect})
		if err != nil {
			t.Fatal(err)
		}
		c.idp.Person("alice")
		if _, err = c.Finish(t.Context(), alice, authtest.Browse(t, begun.URL, redirect).Query()); err == nil {
			t.Errorf("another %s: a login", name)
		}
		if _, err = c.Give("jira", alice, c.idp.IDToken("alice", "gw")); err == nil {
			t.Errorf("another %s: a login that is given", name)
		}
		c.silent(t, err)
	}
	for _, token := range []string{"", rand.Text(), "a.b.c"} {
		if _, err := newCorpRig(t).Give("jira", alice, token); err == nil {
			t.Errorf("%q is an ID token", token)
		}
	}

	c := newCorpRig(t)
	as := "alice"
	c.idp.ChangeIdentity = func(to map[string]any) { to["sub"] = as }
	c.signIn(t, "jira", alice)
	as = "mallory"
	c.end(true)
	if got, err := c.answer(t, c.server, alice, Need{}); err == nil {
		t.Errorf("a renewed login is of %q", got)
	}

	c = newCorpRig(t)
	if _, err := c.Give("jira", alice, c.idp.IDToken("alice", "gw")); err != nil {
		t.Fatal(err)
	}
	if got, err := c.answer(t, c.wiki, alice, Need{}); got != "alice" || err != nil {
		t.Errorf("with an ID token that was given: %q, %v", got, err)
	}
}

// TestForeignProvider: metadata of another issuer, or with endpoints that can be overheard, gets
// no ID token and no ID-JAG, and a server that has moved no token.
func TestForeignProvider(t *testing.T) {
	for name, change := range map[string]func(m map[string]any){
		"another issuer":          func(m map[string]any) { m["issuer"] = "https://other.example" },
		"the issuer with a slash": func(m map[string]any) { m["issuer"] = fmt.Sprint(m["issuer"], "/") },
		"no issuer":               func(m map[string]any) { delete(m, "issuer") },
		"an endpoint over http":   func(m map[string]any) { m["token_endpoint"] = "http://other.example/token" },
		"no endpoint":             func(m map[string]any) { delete(m, "token_endpoint") },
		"an endpoint with a user": func(m map[string]any) { m["token_endpoint"] = "https://a@other.example/token" },
	} {
		for _, whose := range []string{"provider", "server"} {
			c := newCorpRig(t)
			if _, err := c.Give("jira", alice, c.idp.IDToken("alice", "gw")); err != nil {
				t.Fatal(err)
			}
			map[string]*authtest.OAuth{"provider": c.idp, "server": c.as}[whose].Change = change
			if got, err := c.answer(t, c.server, alice, Need{}); err == nil {
				t.Errorf("%s of the %s: called as %q", name, whose, got)
			}
			if n := len(c.as.Asked()) + len(c.idp.Asked()); n > 0 {
				t.Errorf("%s of the %s: %d token requests", name, whose, n)
			}
		}
	}
	c := newCorpRig(t)
	c.signIn(t, "jira", alice)
	if _, err := c.answer(t, c.server, alice, Need{}); err != nil {
		t.Fatal(err)
	}
	moved := *c.server
	moved.URL = strings.Replace(moved.URL, "127.0.0.1", "localhost", 1)
	c.Set([]*Server{&moved})
	if value, _, err := c.Authorize(t.Context(), "jira", principal(alice), Need{}, nil); err == nil {
		t.Errorf("a server that has moved gets %d bytes of token", len(value))
	}
}

// TestNarrowedAssertion: a call that a policy narrows has an ID-JAG for those scopes alone.
func TestNarrowedAssertion(t *testing.T) {
	c := newCorpRig(t)
	c.server.Scopes = []string{"read", "write"}
	c.signIn(t, "jira", alice)
	value, used, err := c.Authorize(t.Context(), "jira", principal(alice), Need{Scopes: []string{"read"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, scope, _, _ := c.as.Whose(strings.TrimPrefix(value, "Bearer "), c.server.URL); scope != "read" || !used.Narrow || used.Mode != IDJAG {
		t.Errorf("the token is for %q: %+v", scope, used)
	}
	if _, _, err = c.Authorize(t.Context(), "jira", principal(alice), Need{Scopes: []string{"admin"}}, nil); err == nil {
		t.Error("a token for what was not granted")
	}
}

// TestEndlessAssertedToken: a token without an end is used for an hour.
func TestEndlessAssertedToken(t *testing.T) {
	c := newCorpRig(t)
	c.idp.IdentityLife(3 * time.Hour)
	c.idp.ChangeAssertion = func(_, claims map[string]any) { claims["exp"] = time.Now().Add(3 * time.Hour).Unix() }
	c.signIn(t, "jira", alice)
	n := 0
	c.set(func(q *http.Request) (*http.Response, error) {
		if q.URL.Host == strings.TrimPrefix(c.idp.URL, "http://") {
			return http.DefaultTransport.RoundTrip(q)
		}
		n++
		return answers(200, `{"access_token":"t","token_type":"Bearer","refresh_token":"r"}`)(q)
	})
	for turn, past := range []time.Duration{0, 30 * time.Minute, 61 * time.Minute} {
		c.mu.Lock()
		c.past = past
		c.mu.Unlock()
		if _, _, err := c.Authorize(t.Context(), "jira", principal(alice), Need{}, nil); err != nil {
			t.Fatal(err)
		}
		if want := []int{1, 1, 2}[turn]; n != want {
			t.Errorf("after %v: %d tokens, want %d", past, n, want)
		}
	}
}
