package storetest

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/auth/authtest"
	"github.com/wasmgate/wasmgate/internal/login"
)

// A Loginer is a gateway's logins, and how it takes over what others have done to them.
type Loginer struct {
	*login.Logins
	Follow func()
}

// rounds is how often a token is refreshed.
func rounds(t *testing.T) int {
	text := os.Getenv("WASMGATE_CLUSTER")
	if text == "" {
		return 20
	}
	n, err := strconv.Atoi(text)
	must(t, err)
	return n
}

// Logins tests logins that several gateways share. Open returns those of gateways with the options.
func Logins(t *testing.T, open func(*testing.T, login.Options) []Loginer) {
	alice := &gate.Principal{Owner: gate.Owner{Tenant: "acme", ID: "alice"}, Auth: "bearer"}
	as := authtest.NewOAuth(t)
	as.Life(time.Hour)
	as.Person("alice")
	var server *httptest.Server
	server = httptest.NewServer(as.Protect(func() string { return server.URL }, "/mcp", "", func(http.ResponseWriter, *http.Request, string) {}))
	defer server.Close()
	var past atomic.Int64 // by which all clocks are ahead
	var relisted sync.Map // servers, by gateway
	all := open(t, login.Options{
		Now:  func() time.Time { return time.Now().Add(time.Duration(past.Load())) },
		Note: func(login.Event) error { return nil }, Changed: func(s string) { relisted.Store(s, true) },
	})
	for _, l := range all {
		l.Set([]*login.Server{{ID: "jira", URL: server.URL + "/mcp", Mode: login.OAuth, Client: http.DefaultClient}})
	}
	token := func(l Loginer) (string, error) {
		value, _, err := l.Authorize(t.Context(), "jira", alice, login.Need{}, nil)
		return value, err
	}
	for i, l := range all {
		if _, err := token(l); err == nil {
			t.Fatalf("%d has a token before anybody has logged in", i)
		}
	}
	logIn := func(l Loginer) {
		t.Helper()
		begun, err := l.Begin(t.Context(), login.Start{Server: "jira", Owner: alice.Owner, Redirect: "http://127.0.0.1:1/callback"})
		must(t, err)
		c := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		r, err := c.Get(begun.URL)
		must(t, err)
		r.Body.Close()
		back, err := r.Location()
		must(t, err)
		_, err = l.Finish(t.Context(), alice.Owner, back.Query())
		must(t, err)
	}
	logIn(all[0])
	relisted.Clear()
	for i, l := range all {
		l.Follow()
		if got, err := token(l); err != nil || got == "" {
			t.Fatalf("%d has no token of a login elsewhere: %v", i, err)
		}
		if list, err := l.List(); err != nil || len(list) != 1 || list[0].Whose() != "acme/alice" || list[0].Problem != "" {
			t.Errorf("%d lists %+v, %v", i, list, err)
		}
	}
	if _, ok := relisted.Load("jira"); !ok {
		t.Error("no other gateway lists the server again")
	}

	n := rounds(t)
	for round := range n { // of all that need another token at once one asks for it
		past.Add(int64(2 * time.Hour))
		got := make([]string, 2*len(all))
		var wg sync.WaitGroup
		for i := range got {
			wg.Go(func() {
				var err error
				if got[i], err = token(all[i%len(all)]); err != nil {
					t.Errorf("round %d: %v", round, err)
				}
			})
		}
		wg.Wait()
		for i := range got {
			if got[i] != got[0] || got[i] == "" {
				t.Errorf("round %d: a gateway has another token", round)
			}
		}
		if count := as.Count("refresh_token"); count != round+1 {
			t.Fatalf("round %d: %d refreshes", round, count)
		}
	}
	t.Logf("%d refreshes, and the login holds", n)

	last := all[len(all)-1]
	relisted.Clear()
	_, err := last.Logout(t.Context(), "jira", alice.Owner)
	must(t, err)
	for i, l := range all {
		l.Follow()
		if _, err := token(l); err == nil {
			t.Errorf("%d has a token of a login that has ended elsewhere", i)
		}
	}
	logIn(last)
	for i, l := range all {
		l.Follow()
		if _, err := token(l); err != nil {
			t.Errorf("%d has no token of the next login: %v", i, err)
		}
	}
	if _, err := all[0].Give("jira", gate.Owner{ID: "bob"}, "a-token"); err != nil {
		t.Error(err)
	}
	if list, err := all[1].List(); err != nil || len(list) != 2 {
		t.Errorf("%+v, %v", list, err)
	}
}
