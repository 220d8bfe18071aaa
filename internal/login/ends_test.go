package login

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/auth/authtest"
)

// between puts f in front of the token endpoint, and puts the gateway's clock ahead.
func (r *rig) between(f roundTrip, past time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tokens, r.past = f, past
}

// token is what a call of alice carries; "" for none.
func (r *rig) token(t *testing.T, need Need) (string, error) {
	t.Helper()
	value, _, err := r.Authorize(t.Context(), "jira", principal(alice), need, nil)
	return strings.TrimPrefix(value, "Bearer "), err
}

// held has what is asked of the token endpoint wait, from the time that asked has something until
// free is closed.
func (r *rig) held() (asked, free chan struct{}) {
	asked, free = make(chan struct{}, 10), make(chan struct{})
	r.between(func(q *http.Request) (*http.Response, error) {
		asked <- struct{}{}
		<-free
		return http.DefaultTransport.RoundTrip(q)
	}, 2*time.Hour)
	return asked, free
}

// A token from a token endpoint must be a bearer token of printable characters. Of the endpoint's
// errors only a plain word is repeated.
func TestHostileTokenAnswers(t *testing.T) {
	long := strings.Repeat("x", maxDocument)
	for name, tt := range map[string]struct {
		status int
		body   string
	}{
		"another type":     {200, `{"access_token":"canary","token_type":"mac"}`},
		"no type":          {200, `{"access_token":"canary"}`},
		"no token":         {200, `{"token_type":"Bearer"}`},
		"a header more":    {200, `{"access_token":"canary\r\nX: y","token_type":"Bearer"}`},
		"two words":        {200, `{"access_token":"canary canary","token_type":"Bearer"}`},
		"not ASCII":        {200, `{"access_token":"canary\u00e9","token_type":"Bearer"}`},
		"no JSON":          {200, `canary`},
		"without end":      {200, `{"access_token":"canary","token_type":"Bearer","x":"` + long + `"}`},
		"a redirect":       {302, `{"access_token":"canary","token_type":"Bearer"}`},
		"an error in HTML": {400, `{"error":"<b>canary"}`},
		"a long error":     {400, `{"error":"` + strings.Repeat("canary", 10) + `"}`},
		"a shouted error":  {400, `{"error":"CANARY","error_description":"canary"}`},
		"an error's curve": {400, `{"error":"canary{}"}`},
	} {
		r := newRig(t, authtest.NewOAuth(t), "", nil)
		r.between(answers(tt.status, tt.body), 0)
		if err := r.logIn(t, alice); err == nil {
			t.Errorf("%s: there is a login", name)
		} else if strings.Contains(strings.ToLower(err.Error()), "canary") {
			t.Errorf("%s: the error repeats it: %v", name, err)
		}
	}
}

// A token that a person provides is one word, of limited size.
func TestGive(t *testing.T) {
	r := newRig(t, authtest.NewOAuth(t), "", nil)
	for _, bad := range []string{"", "two words", "a\r\nX: y", "\x7f", "\u00e9", strings.Repeat("x", 16<<10+1)} {
		if _, err := r.Give("jira", alice, bad); err == nil {
			t.Errorf("%.20q is taken", bad)
		}
	}
	if _, err := r.Give("jira", alice, strings.Repeat("x", 16<<10)); err != nil {
		t.Error(err)
	}
}

// A token without a refresh token is used until its end, and then, or when its server refuses it,
// another login is needed.
func TestWithoutRefresh(t *testing.T) {
	r := newRig(t, authtest.NewOAuth(t), "", nil)
	r.between(answers(200, `{"access_token":"one","token_type":"Bearer","expires_in":100}`), 0)
	if err := r.logIn(t, alice); err != nil {
		t.Fatal(err)
	}
	r.between(nil, 90*time.Second)
	if got, err := r.token(t, Need{}); got != "one" {
		t.Errorf("shortly before its end: %q, %v", got, err)
	}
	refused := &http.Response{StatusCode: 401, Request: &http.Request{Header: http.Header{"Authorization": {"Bearer one"}}}}
	if value, _, err := r.Authorize(t.Context(), "jira", principal(alice), Need{}, refused); value != "" || !needsLogin(err) {
		t.Errorf("refused: %q, %v", value, err)
	}
	r.between(nil, 101*time.Second)
	if got, err := r.token(t, Need{}); got != "" || !needsLogin(err) {
		t.Errorf("after its end: %q, %v", got, err)
	}
}

func needsLogin(err error) bool {
	n, ok := errors.AsType[*Needed](err)
	if !ok {
		return false
	}
	_, helps := n.Login()
	return helps
}

// An authorization server that gives no token is not asked again for a while. The previous token is
// used until it ends; then calls fail, and their errors do not ask for another login.
func TestAuthorizationServerAway(t *testing.T) {
	as := authtest.NewOAuth(t)
	r := newRig(t, as, "", nil)
	if err := r.logIn(t, alice); err != nil {
		t.Fatal(err)
	}
	first, err := r.token(t, Need{})
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	away := func(q *http.Request) (*http.Response, error) {
		asked.Add(1)
		return answers(503, "")(q)
	}
	r.between(away, time.Hour-30*time.Second)
	for range 20 {
		if got, err := r.token(t, Need{}); got != first {
			t.Errorf("while the token holds: %q, %v", got, err)
		}
		time.Sleep(time.Millisecond)
	}
	for begin := time.Now(); asked.Load() == 0 && time.Since(begin) < time.Minute; {
		time.Sleep(time.Millisecond)
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("it was asked %d times", n)
	}
	r.between(away, 2*time.Hour)
	for range 20 {
		if got, err := r.token(t, Need{}); got != "" || err == nil || needsLogin(err) {
			t.Errorf("after its end: %q, %v", got, err)
		}
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("it was asked %d times", n)
	}
	r.between(nil, 2*time.Hour+pause)
	if got, err := r.token(t, Need{}); got == first || err != nil {
		t.Errorf("it is back: %v", err)
	}
}

// An authorization server that has forgotten the client that the gateway registered there gives no
// further tokens: another login registers a new one. If the configuration names the client, another
// login cannot fix that.
func TestForgottenClient(t *testing.T) {
	as := authtest.NewOAuth(t)
	as.Client("gw", "its secret", redirect)
	for client, want := range map[string]bool{"": true, "gw": false} {
		r := newRig(t, as, "", func(s *Server) {
			if client != "" {
				s.ClientID, s.ClientSecret = client, "its secret"
			}
		})
		if err := r.logIn(t, alice); err != nil {
			t.Fatal(err)
		}
		r.between(answers(http.StatusUnauthorized, `{"error":"invalid_client"}`), 2*time.Hour)
		if _, err := r.token(t, Need{}); err == nil || needsLogin(err) != want {
			t.Errorf("client %q: %v", client, err)
		}
	}
}

// A refresh does not keep calls waiting while the previous token is valid.
func TestRefreshBehindCalls(t *testing.T) {
	r := newRig(t, authtest.NewOAuth(t), "", nil)
	if err := r.logIn(t, alice); err != nil {
		t.Fatal(err)
	}
	before, err := r.token(t, Need{})
	if err != nil {
		t.Fatal(err)
	}
	asked, free := r.held()
	r.mu.Lock()
	r.past = time.Hour - 30*time.Second
	r.mu.Unlock()
	if got, err := r.token(t, Need{}); got != before || err != nil {
		t.Errorf("while the next one is on its way: %v", err)
	}
	<-asked
	r.mu.Lock()
	r.past = 2 * time.Hour
	r.mu.Unlock()
	close(free)
	if got, err := r.token(t, Need{}); got == before || err != nil {
		t.Errorf("after its end: the token of before, or %v", err)
	}
}

// A server that refuses also the token that has just come makes the gateway ask for no other.
func TestRefusedTwice(t *testing.T) {
	as := authtest.NewOAuth(t)
	r := newRig(t, as, "", nil)
	if err := r.logIn(t, alice); err != nil {
		t.Fatal(err)
	}
	as.Expire("alice")
	r.calls(t, alice, "alice")
	for range 3 {
		as.Expire("alice")
		r.calls(t, alice, "")
	}
	if n := as.Count("refresh_token"); n != 1 {
		t.Errorf("%d refreshes", n)
	}
}

// A principal that logs out during a refresh stays logged out.
func TestLogoutDuringRefresh(t *testing.T) {
	for name, tt := range map[string]struct {
		need  Need
		plain bool
	}{"refresh": {Need{}, false}, "narrowed by refresh": {Need{Scopes: []string{"read"}}, true}} {
		as := authtest.NewOAuth(t)
		r := newRig(t, as, "", func(s *Server) { s.Scopes = []string{"read"} })
		if err := r.logIn(t, alice); err != nil {
			t.Fatal(err)
		}
		if tt.plain { // it is known that no token is exchanged
			as.Plain()
			if _, err := r.token(t, tt.need); err != nil {
				t.Fatal(err)
			}
			for _, l := range r.rows.byKey {
				l.narrow = nil
			}
		}
		asked, free := r.held()
		if tt.plain {
			r.mu.Lock()
			r.past = 0
			r.mu.Unlock()
		}
		got := make(chan string)
		go func() {
			token, _ := r.token(t, tt.need)
			got <- token
		}()
		<-asked
		r.server.Client = nil // it is forgotten only here: the authorization server still answers
		_, _ = r.Logout(t.Context(), "jira", alice)
		close(free)
		if token := <-got; token != "" {
			t.Errorf("%s: a call of who has logged out has a token", name)
		}
		if _, err := r.token(t, Need{}); !needsLogin(err) {
			t.Errorf("%s: afterwards: %v", name, err)
		}
		if all, err := r.List(); len(all) != 0 {
			t.Errorf("%s: logins %+v, %v", name, all, err)
		}
		if _, err := r.Logout(t.Context(), "jira", alice); !errors.Is(err, ErrNoLogin) {
			t.Errorf("%s: logged out again: %v", name, err)
		}
	}
}

// A token that was asked for with one login is not used for the next one.
func TestNarrowedForAnotherLogin(t *testing.T) {
	as := authtest.NewOAuth(t)
	r := newRig(t, as, "", func(s *Server) { s.Scopes = []string{"read", "write"} })
	if err := r.logIn(t, alice); err != nil {
		t.Fatal(err)
	}
	read := Need{Scopes: []string{"read"}}
	asked, free := r.held()
	r.mu.Lock()
	r.past = 0
	r.mu.Unlock()
	first := make(chan string)
	go func() {
		token, _ := r.token(t, read)
		first <- token
	}()
	<-asked
	r.between(nil, 0)
	if err := r.logIn(t, alice); err != nil { // with another account, perhaps
		t.Fatal(err)
	}
	close(free)
	before := <-first
	if after, err := r.token(t, read); before == "" || after == before || err != nil {
		t.Errorf("the next login's call has the token of the one before, or none: %v", err)
	}
}

// Nor is one that the gateway got as itself used for a server that is configured anew.
func TestOwnTokenOfAnotherConfiguration(t *testing.T) {
	as := authtest.NewOAuth(t)
	as.Client("gw", "its secret")
	r := newRig(t, as, "", func(s *Server) { s.Mode, s.ClientID, s.ClientSecret = ClientCreds, "gw", "its secret" })
	asked, free := r.held()
	first := make(chan string)
	go func() {
		token, _ := r.token(t, Need{})
		first <- token
	}()
	<-asked
	r.between(nil, 2*time.Hour)
	anew := *r.server
	r.Set([]*Server{&anew})
	second, err := r.token(t, Need{})
	if err != nil {
		t.Fatal(err)
	}
	close(free)
	if before := <-first; before == "" || before == second {
		t.Fatalf("tokens %.3q and %.3q", before, second)
	}
	if third, err := r.token(t, Need{}); third != second || err != nil {
		t.Errorf("the next call has the token of the configuration before: %v", err)
	}
}

// A narrowed token is used until shortly before its end; one that its server refuses is not asked for at once again.
func TestNarrowedEnds(t *testing.T) {
	as := authtest.NewOAuth(t)
	r := newRig(t, as, "", func(s *Server) { s.Scopes = []string{"read"} })
	if err := r.logIn(t, alice); err != nil {
		t.Fatal(err)
	}
	read := Need{Scopes: []string{"read"}}
	as.Life(10 * time.Minute)
	first, err := r.token(t, read)
	if err != nil {
		t.Fatal(err)
	}
	refused := &http.Response{StatusCode: 401, Request: &http.Request{Header: http.Header{"Authorization": {"Bearer " + first}}}}
	if value, _, err := r.Authorize(t.Context(), "jira", principal(alice), read, refused); value != "" || err == nil {
		t.Errorf("refused at once: %q, %v", value, err)
	}
	r.between(nil, time.Minute)
	if value, _, err := r.Authorize(t.Context(), "jira", principal(alice), read, refused); value == "Bearer "+first || err != nil {
		t.Errorf("refused later: %v", err)
	}
	second, err := r.token(t, read)
	if err != nil || second == first {
		t.Fatalf("the refused token again, or %v", err)
	}
	r.between(nil, 10*time.Minute+30*time.Second)
	if third, err := r.token(t, read); third == second || err != nil {
		t.Errorf("at its end: the token of before, or %v", err)
	}
}

// Everything that others say, ask for and begin is kept within limits.
func TestBoundsOfLogins(t *testing.T) {
	as := authtest.NewOAuth(t)
	r := newRig(t, as, "", nil)
	if err := r.logIn(t, alice); err != nil {
		t.Fatal(err)
	}
	challenge := func(params string) (string, error) {
		refused := &http.Response{StatusCode: 403, Header: http.Header{"Www-Authenticate": {"Bearer " + params}}, Request: &http.Request{Header: http.Header{}}}
		value, _, err := r.Authorize(t.Context(), "jira", principal(alice), Need{}, refused)
		return value, err
	}
	if value, err := challenge(`error="access_denied", scope="admin"`); value != "" || err != nil {
		t.Errorf("a 403 for another reason: %q, %v", value, err)
	}
	scopes := []string{strings.Repeat("x", 129), "s0", "s0"}
	for i := range 100 {
		scopes = append(scopes, fmt.Sprint("s", i))
	}
	if _, err := challenge(`error="insufficient_scope", scope="` + strings.Join(scopes, " ") + `"`); !needsLogin(err) {
		t.Errorf("for want of scopes: %v", err)
	}
	begun, err := r.Begin(t.Context(), Start{Server: "jira", Owner: alice, Redirect: redirect})
	if err != nil || len(begun.Scopes) != maxLacked+2 || slices.Contains(begun.Scopes, "admin") || slices.Contains(begun.Scopes, scopes[0]) { // and those of before
		t.Errorf("%d scopes are asked for: %q, %v", len(begun.Scopes), begun.Scopes, err)
	}

	bobs := r.begin(&flow{server: r.server, owner: bob, place: new(place)})
	for range 2 * maxFlows {
		r.begin(&flow{server: r.server, owner: alice, place: new(place)})
	}
	if len(r.flows) != maxFlows || r.flows[bobs.State] == nil {
		t.Errorf("%d logins are under way, and bob's is one of them: %t", len(r.flows), r.flows[bobs.State] != nil)
	}
	r.between(nil, flowTime+time.Second)
	if r.begin(&flow{server: r.server, place: new(place)}); len(r.flows) != 1 {
		t.Errorf("after their time %d logins are under way", len(r.flows))
	}

	for _, l := range r.rows.byKey {
		l.narrow = make(map[string]*grant)
		for i := range maxNarrow {
			l.narrow[fmt.Sprint(i)] = new(grant)
		}
	}
	r.between(nil, 0)
	if _, err := r.token(t, Need{Scopes: []string{"read"}}); err != nil {
		t.Fatal(err)
	}
	for _, l := range r.rows.byKey {
		if len(l.narrow) > maxNarrow {
			t.Errorf("%d narrowed tokens are kept", len(l.narrow))
		}
	}
}

// Callers' tokens are kept only if a server takes them, only if they are tokens, and only up to a
// limit: an API key is passed on to no one.
func TestTokensOfCallers(t *testing.T) {
	as := authtest.NewOAuth(t)
	as.Client("gw", "its secret")
	r := newRig(t, as, "", func(s *Server) { s.Mode, s.ClientID, s.ClientSecret = Exchange, "gw", "its secret" })
	see := func(l *Logins, how, header string) {
		l.Saw(&gate.Principal{Owner: alice, Auth: how, Credential: "c"}, &http.Request{Header: http.Header{"Authorization": {header}}})
	}
	see(r.Logins, "apikey", "Bearer wgk_x")
	see(r.Logins, "bearer", "Basic x")
	see(r.Logins, "bearer", "Bearer")
	r.Saw(nil, &http.Request{Header: http.Header{"Authorization": {"Bearer x"}}})
	if len(r.Logins.subjects.tokens) != 0 {
		t.Errorf("%d are kept", len(r.Logins.subjects.tokens))
	}
	see(r.Logins, "bearer", "bearer x") // names of schemes have no case (RFC 9110, 11.1)
	if got := r.subjects.token(&gate.Principal{Owner: alice, Credential: "c"}); got != "x" {
		t.Errorf("%q is kept", got)
	}
	for i := range maxTokens + 10 {
		r.Saw(&gate.Principal{Owner: alice, Auth: "bearer", Credential: fmt.Sprint(i)}, &http.Request{Header: http.Header{"Authorization": {"Bearer x"}}})
	}
	if n := len(r.Logins.subjects.tokens); n != maxTokens {
		t.Errorf("%d are kept", n)
	}
	none := *r.server
	none.Mode = OAuth
	r.Set([]*Server{&none})
	see(r.Logins, "bearer", "Bearer x")
	if n := len(r.Logins.subjects.tokens); n != 0 {
		t.Errorf("%d are kept for no server", n)
	}
}

// A login that its server has outgrown is listed with what is wrong.
func TestOutgrownLogins(t *testing.T) {
	r := newRig(t, authtest.NewOAuth(t), "", nil)
	if err := r.logIn(t, alice); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Server){
		"shared":  func(s *Server) { s.Shared = true },
		"moved":   func(s *Server) { s.URL += "/v2" },
		"renamed": func(s *Server) { s.ID = "tickets" },
	} {
		s := *r.server
		change(&s)
		r.Set([]*Server{&s})
		if all, err := r.List(); err != nil || len(all) != 1 || all[0].Problem == "" {
			t.Errorf("%s: %+v, %v", name, all, err)
		}
	}
}
