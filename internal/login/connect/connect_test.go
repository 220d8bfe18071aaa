package connect_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/auth/authtest"
	"github.com/wasmgate/wasmgate/internal/files/state"
	"github.com/wasmgate/wasmgate/internal/login"
	"github.com/wasmgate/wasmgate/internal/login/connect"
	"github.com/wasmgate/wasmgate/internal/vault"
)

// A desk is a gateway's pages, between an identity provider and the authorization server of a
// server named jira.
type desk struct {
	t       *testing.T
	idp, as *authtest.OAuth
	web     *httptest.Server
	logins  *login.Logins
	options connect.Options
	servers []*login.Server
	serve   http.HandlerFunc // nil: connect
	connect *connect.Connect
	past    atomic.Int64 // seconds by which the clock is ahead

	public string // URL of the gateway; that of web unless a test says otherwise

	mu     sync.Mutex
	events []string
	broken error // why nothing can be recorded
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{t: t, idp: authtest.NewOAuth(t), as: authtest.NewOAuth(t)}
	d.web = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d.serve != nil {
			d.serve(w, r)
			return
		}
		d.connect.ServeHTTP(w, r)
	}))
	t.Cleanup(d.web.Close)
	d.public = d.web.URL
	var server *httptest.Server
	server = httptest.NewServer(d.as.Protect(func() string { return server.URL }, "/mcp", "", func(http.ResponseWriter, *http.Request, string) {}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	now := func() time.Time { return time.Now().Add(time.Duration(d.past.Load()) * time.Second) }
	d.logins = login.New(login.Options{
		Vault:  vault.New(filepath.Join(dir, "vault"), func() ([]byte, error) { return vault.KeyFile(filepath.Join(dir, "key")) }),
		Public: func() string { return d.web.URL }, Note: func(login.Event) error { return nil }, Now: now,
	})
	d.servers = []*login.Server{
		{ID: "jira", URL: server.URL + "/mcp", Mode: login.OAuth, Client: http.DefaultClient},
		{ID: "chat", URL: server.URL + "/mcp", Mode: login.OAuth, Client: http.DefaultClient},
		{ID: "wiki", URL: server.URL + "/mcp", Mode: login.OAuth, Shared: true, Client: http.DefaultClient},
	}
	d.logins.Set(d.servers)
	d.options = connect.Options{
		Public: func() string { return d.public }, Logins: d.logins, Now: now, Ready: func(string) {},
		Provider: func(issuer string) *login.Server {
			if issuer != "corp" && issuer != "" {
				return nil
			}
			return &login.Server{ID: "corp", URL: d.web.URL + "/mcp", Mode: login.SignsIn, Issuer: d.idp.URL, Scopes: []string{"mcp"}, Client: http.DefaultClient}
		},
		Proxied: func(r *http.Request) (*gate.Principal, error) {
			if r.Header.Get("X-User") == "" {
				return nil, errors.New("nobody is named")
			}
			return who(r.Header.Get("X-User")), nil
		},
		Identify: func(_ context.Context, token string) (*gate.Principal, error) {
			user, _, _, ok := d.idp.Whose(token, d.web.URL+"/mcp")
			if !ok {
				return nil, errors.New("no token of the identity provider for the gateway")
			}
			return who(user), nil
		},
		Note: func(e connect.Event) error {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.events = append(d.events, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", e.What, e.Who.ID, e.Server, e.Call)))
			return d.broken
		},
	}
	d.connect = connect.New(d.options)
	return d
}

func who(id string) *gate.Principal {
	return &gate.Principal{Owner: gate.Owner{Tenant: "acme", ID: id}, Auth: "bearer", Issuer: "corp", Client: "agent"}
}

// offer returns the link that a caller is offered.
func (d *desk) offer(p *gate.Principal, server, tool string) (string, <-chan struct{}) {
	d.t.Helper()
	_, _, err := d.logins.Authorize(d.t.Context(), server, p, login.Need{}, nil)
	if err == nil {
		d.t.Fatal("there is a login already")
	}
	return d.connect.Offer(&gate.Call{ID: "call-1", Name: tool, Who: p, ClientName: "editor"}, fmt.Errorf("wrapped: %w", err))
}

// unavailable returns why a call of a principal that has logged in has no token.
func (d *desk) unavailable(p *gate.Principal) error {
	d.t.Helper()
	if _, err := d.logins.Give("jira", p.Owner, "a-token"); err != nil {
		d.t.Fatal(err)
	}
	_, _, err := d.logins.Authorize(d.t.Context(), "jira", p, login.Need{Scopes: []string{"read"}}, nil)
	if _, err := d.logins.Logout(d.t.Context(), "jira", p.Owner); err != nil {
		d.t.Fatal(err)
	}
	return err
}

// link returns the link for a call of a principal that may have one.
func (d *desk) link(id string) (string, <-chan struct{}) {
	d.t.Helper()
	link, ended := d.offer(who(id), "jira", "jira__search")
	if !strings.HasPrefix(link, d.web.URL+"/connect/") {
		d.t.Fatalf("the link is %q", link)
	}
	return link, ended
}

// nothing fails if there is any login.
func (d *desk) nothing() {
	d.t.Helper()
	if all, err := d.logins.List(); err != nil || len(all) > 0 || d.as.Count("authorization_code") > 0 {
		d.t.Errorf("logins %+v, %v, and %d codes were taken; want none", all, err, d.as.Count("authorization_code"))
	}
}

func (d *desk) noted(want ...string) {
	d.t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Equal(d.events, want) {
		d.t.Errorf("noted %q, want %q", d.events, want)
	}
}

// count is how many events there were.
func (d *desk) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.events)
}

// A browser keeps cookies, and goes where it is led.
type browser struct {
	*desk
	*http.Client
	who  string // the person at it
	stop string // the beginning of an address that it does not open
	past bool   // it does not come through the proxy
}

func (d *desk) browser(who string) *browser {
	jar, err := cookiejar.New(nil)
	if err != nil {
		d.t.Fatal(err)
	}
	b := &browser{desk: d, who: who}
	b.Client = &http.Client{Jar: jar, Timeout: 3 * time.Minute, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if b.stop != "" && strings.HasPrefix(r.URL.String(), b.stop) || len(via) > 10 {
			return http.ErrUseLastResponse
		}
		b.through(r)
		return nil
	}}
	return b
}

// A seen is a page as a browser has it.
type seen struct {
	status int
	at     *url.URL
	http.Header
	body string
}

// through has the proxy say who sits at a browser.
func (b *browser) through(r *http.Request) {
	if r.Header.Del("X-User"); !b.past && strings.HasPrefix(r.URL.String(), b.web.URL) {
		r.Header.Set("X-User", b.who)
	}
}

func (b *browser) do(r *http.Request) seen {
	b.t.Helper()
	b.through(r)
	b.idp.Person(b.who)
	b.as.Person(b.who)
	resp, err := b.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return seen{resp.StatusCode, resp.Request.URL, resp.Header, string(raw)}
}

func (b *browser) get(at string) seen {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, at, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.do(r)
}

var formField = regexp.MustCompile(`name="form" value="([^"]+)"`)

// consent opens a link, signs in, and returns the page with the button and what that sends.
func (b *browser) consent(link string) (seen, string) {
	b.t.Helper()
	p := b.get(link)
	m := formField.FindStringSubmatch(p.body)
	if p.status != http.StatusOK || m == nil {
		b.t.Fatalf("%s: %d at %s: %s", link, p.status, p.at, p.body)
	}
	return p, m[1]
}

func (b *browser) press(link, form, site string) seen {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, link, strings.NewReader(url.Values{"form": {form}}.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", site)
	return b.do(r)
}

// goOn presses the button, and returns where the browser is sent.
func (b *browser) goOn(link, form string) string {
	b.t.Helper()
	p := b.press(link, form, "same-origin")
	_, to, ok := strings.Cut(p.Get("Refresh"), "url=")
	if p.status != http.StatusOK || !ok || !strings.HasPrefix(to, b.as.URL+"/authorize?") {
		b.t.Fatalf("%d, Refresh %q: %s", p.status, p.Get("Refresh"), p.body)
	}
	return to
}

// back is the address by which the browser comes back from the server's authorization server.
func (b *browser) back(link string) string {
	b.t.Helper()
	_, form := b.consent(link)
	to := b.goOn(link, form)
	b.stop = b.web.URL
	p := b.get(to)
	b.stop = ""
	return p.Get("Location")
}

func is(t *testing.T, p seen, status int, words ...string) {
	t.Helper()
	if p.status != status {
		t.Errorf("%s: %d, want %d: %s", p.at.Path, p.status, status, p.body)
	}
	for _, w := range words {
		if !strings.Contains(p.body, w) {
			t.Errorf("%s: no %q in %s", p.at.Path, w, p.body)
		}
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// The caller signs in, is shown what is granted to whom and for which call, and agrees; then they have
// a login. Everything in this works once.
func TestConnect(t *testing.T) {
	d := newDesk(t)
	link, ended := d.link("alice")
	if again, _ := d.link("alice"); again != link {
		t.Errorf("a second call gets %s, and the link is %s", again, link)
	}
	alice := d.browser("alice")
	p, form := alice.consent(link)
	is(t, p, 200, "jira", d.as.URL, "<strong>acme/alice</strong>", "jira__search", "call-1", "editor (agent)", "read")
	to := alice.goOn(link, form)
	d.nothing()
	if closed(ended) {
		t.Error("the call goes on before there is a login")
	}
	is(t, alice.get(to), 200, "You are logged in to jira")
	select {
	case <-ended:
	case <-time.After(3 * time.Minute):
		t.Error("the call is never told")
	}
	all, err := d.logins.List()
	if err != nil || len(all) != 1 || all[0].Whose() != "acme/alice" || all[0].Server != "jira" {
		t.Errorf("logins %+v, %v", all, err)
	}
	is(t, alice.get(link), 404, "not good")
	is(t, alice.press(link, form, "same-origin"), 404)
	d.noted("asked alice jira call-1", "done alice jira call-1")
}

// Another person who gets hold of a link gets nothing by it, and ends it: otherwise they would give the
// caller their own access.
func TestOtherPerson(t *testing.T) {
	d := newDesk(t)
	link, ended := d.link("alice")
	bob := d.browser("bob")
	p := bob.get(link)
	is(t, p, 403, "This is for somebody else", "acme/bob")
	for _, word := range []string{"alice", "jira"} {
		if strings.Contains(p.body, word) {
			t.Errorf("bob is told of %s: %s", word, p.body)
		}
	}
	if !closed(ended) {
		t.Error("the call waits on")
	}
	is(t, d.browser("alice").get(link), 404)
	d.nothing()
	d.noted("asked alice jira call-1", "refused alice jira call-1")
}

// A caller that comes through a proxy that signs people in is recognized in the browser by the name
// that the same proxy gives there.
func TestProxied(t *testing.T) {
	d := newDesk(t)
	offer := func() (string, <-chan struct{}) {
		p := who("alice")
		p.Auth, p.Issuer = "proxy", ""
		return d.offer(p, "jira", "jira__search")
	}
	link, ended := offer()
	alice, bob, past := d.browser("alice"), d.browser("bob"), d.browser("alice")
	past.past = true
	is(t, past.get(link), 502, "does not say who you are")
	_, form := alice.consent(link)
	for name, b := range map[string]*browser{"past the proxy": past, "bob": bob} {
		if p := b.press(link, form, "same-origin"); p.status != 403 {
			t.Errorf("%s presses the button: %d", name, p.status)
		}
	}
	is(t, alice.get(alice.goOn(link, form)), 200, "You are logged in to jira")
	<-ended
	if all, err := d.logins.List(); err != nil || len(all) != 1 || all[0].Whose() != "acme/alice" {
		t.Errorf("logins %+v, %v", all, err)
	}
	if _, err := d.logins.Logout(t.Context(), "jira", who("alice").Owner); err != nil {
		t.Fatal(err)
	}
	link, ended = offer()
	is(t, bob.get(link), 403, "This is for somebody else", "acme/bob")
	if !closed(ended) {
		t.Error("the call waits on")
	}
	is(t, alice.get(link), 404)
	if d.idp.Count("authorization_code") != 0 {
		t.Error("somebody had to sign in")
	}
}

// A caller that uses a key, and is a person of the only issuer, signs in there.
func TestByKey(t *testing.T) {
	d := newDesk(t)
	p := who("alice")
	p.Auth, p.Issuer = "apikey", ""
	link, ended := d.offer(p, "jira", "jira__search")
	is(t, d.browser("bob").get(link), 403, "This is for somebody else")
	<-ended
	link, _ = d.offer(p, "jira", "jira__search")
	alice := d.browser("alice")
	_, form := alice.consent(link)
	is(t, alice.get(alice.goOn(link, form)), 200, "You are logged in to jira")
	if all, err := d.logins.List(); err != nil || len(all) != 1 || all[0].Whose() != "acme/alice" {
		t.Errorf("logins %+v, %v", all, err)
	}
}

// A link gives no rights: before a person has signed in, it shows nothing, and its button and the ways
// back do nothing.
func TestBareLink(t *testing.T) {
	d := newDesk(t)
	link, _ := d.link("alice")
	stranger := d.browser("alice")
	stranger.stop = d.idp.URL
	p := stranger.get(link)
	if p.status != http.StatusSeeOther || !strings.HasPrefix(p.Get("Location"), d.idp.URL+"/authorize?") || strings.Contains(p.body+p.Get("Location"), "jira") {
		t.Errorf("%d to %q: %s", p.status, p.Get("Location"), p.body)
	}
	is(t, stranger.press(link, "", "same-origin"), 403)
	is(t, stranger.press(link, "guessed", "same-origin"), 403)
	_, form := d.browser("alice").consent(link)
	is(t, stranger.press(link, form, "same-origin"), 403) // also with what the button sends
	is(t, stranger.get(d.web.URL+"/connect/unknown"), 404)
	d.nothing()
}

// A browser that is signed in for a link of one person is not signed in for another person's link.
func TestOtherLinkInOneBrowser(t *testing.T) {
	d := newDesk(t)
	hers, _ := d.link("alice")
	his, _ := d.link("bob")
	alice := d.browser("alice")
	_, form := alice.consent(hers)
	is(t, alice.press(his, form, "same-origin"), 403)
	is(t, alice.get(his), 403, "This is for somebody else")
	d.nothing()
}

// The way back from the server's authorization server is of the browser that has gone there, once.
func TestForeignAnswer(t *testing.T) {
	d := newDesk(t)
	hers, _ := d.link("alice")
	his, _ := d.link("bob")
	alice, bob := d.browser("alice"), d.browser("bob")
	back, foreign := alice.back(hers), bob.back(his)
	is(t, bob.get(back), 403)      // hers, at his
	is(t, alice.get(foreign), 403) // his, at hers: she would call with his access
	is(t, d.browser("alice").get(back), 403)
	is(t, alice.get(d.web.URL+"/connect/callback?code=x&state="), 404)
	is(t, alice.get(d.web.URL+"/connect/callback?code=x&state=unknown"), 404)
	d.nothing()
	var got [4]int
	var all sync.WaitGroup
	d.as.Person("alice")
	for i := range got {
		all.Go(func() {
			if resp, err := alice.Get(back); err == nil {
				got[i] = resp.StatusCode
				resp.Body.Close()
			}
		})
	}
	all.Wait()
	slices.Sort(got[:])
	if got != [4]int{200, 404, 404, 404} || d.as.Count("authorization_code") != 1 {
		t.Errorf("the same answer four times: %v, %d codes taken", got, d.as.Count("authorization_code"))
	}
}

// An issuer's answer signs in only the browser that asked for it, and only once.
func TestForeignSignIn(t *testing.T) {
	d := newDesk(t)
	link, _ := d.link("alice")
	alice := d.browser("alice")
	alice.stop = d.web.URL + login.SignInPath
	back := alice.get(link).Get("Location")
	alice.stop = ""
	mallory := d.browser("mallory")
	mallory.stop = d.idp.URL
	mallory.get(link) // has a cookie of the link, too
	is(t, mallory.get(back), 403)
	is(t, d.browser("mallory").get(back), 403)
	is(t, alice.get(back), 200, "acme/alice")
	is(t, alice.get(back), 403)
	is(t, alice.get(d.web.URL+login.SignInPath+"?code=x&state="), 403)
	d.nothing()
}

// An answer that names another issuer is of another authorization server, and its code goes
// nowhere (RFC 9207).
func TestMixUp(t *testing.T) {
	d := newDesk(t)
	link, _ := d.link("alice")
	alice := d.browser("alice")
	d.idp.Says("https://evil.example.com")
	is(t, alice.get(link), 502, "You are not signed in")
	if d.idp.Count("authorization_code") != 0 {
		t.Error("a code is sent to the identity provider that may be another's")
	}
	d.idp.Says("")
	d.as.Says(d.idp.URL)
	is(t, alice.get(alice.back(link)), 502, "does not come from the authorization server that was asked")
	d.nothing()
	is(t, alice.get(link), 404)
}

// An answer without an issuer, of an authorization server that says that it names itself, may be another's, too.
func TestNoIssuer(t *testing.T) {
	d := newDesk(t)
	link, _ := d.link("alice")
	alice := d.browser("alice")
	d.idp.Says("-")
	is(t, alice.get(link), 502, "You are not signed in")
	d.idp.Says("")
	d.as.Says("-")
	is(t, alice.get(alice.back(link)), 502, "does not come from the authorization server that was asked")
	d.nothing()
}

// A hostile authorization server that leads browsers on to an honest one gets no code of that one:
// the answer names the honest one.
func TestMixUpByMetadata(t *testing.T) {
	d := newDesk(t)
	honest := authtest.NewOAuth(t)
	d.as.Change = func(m map[string]any) {
		m["authorization_endpoint"], m["registration_endpoint"] = honest.URL+"/authorize", honest.URL+"/register"
	}
	link, _ := d.link("alice")
	alice := d.browser("alice")
	_, form := alice.consent(link)
	_, to, _ := strings.Cut(alice.press(link, form, "same-origin").Get("Refresh"), "url=")
	if !strings.HasPrefix(to, honest.URL+"/authorize?") {
		t.Fatalf("the browser is led to %q", to)
	}
	is(t, alice.get(to), 502, "does not come from the authorization server that was asked")
	if n := len(d.as.Asked()) + len(honest.Asked()); n != 0 {
		t.Errorf("a code is sent, in %d requests", n)
	}
	d.nothing()
}

// The button works only on its own page, and once.
func TestForgedButton(t *testing.T) {
	d := newDesk(t)
	link, _ := d.link("alice")
	alice := d.browser("alice")
	_, form := alice.consent(link)
	for name, p := range map[string]seen{
		"without what the page has": alice.press(link, "", "same-origin"), "guessed": alice.press(link, "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "same-origin"),
		"from another site": alice.press(link, form, "cross-site"), "from below the same domain": alice.press(link, form, "same-site"),
	} {
		if p.status != http.StatusForbidden || p.Get("Refresh") != "" {
			t.Errorf("%s: %d to %q", name, p.status, p.Get("Refresh"))
		}
	}
	is(t, alice.get(d.web.URL+login.ConnectPath+"?code=x&state="), 404) // no state is none of a link whose button was not pressed
	alice.goOn(link, form)
	for _, again := range []string{form, ""} {
		is(t, alice.press(link, again, "same-origin"), 403)
	}
	d.nothing()
}

// The cookie from before a sign-in is worth nothing after it, even for someone who knew it or planted
// it.
func TestFixation(t *testing.T) {
	d := newDesk(t)
	link, _ := d.link("alice")
	mallory, alice := d.browser("mallory"), d.browser("alice")
	mallory.stop = d.idp.URL
	to := mallory.get(link).Get("Location")
	at, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	planted := mallory.Jar.Cookies(at)
	for _, cookie := range planted {
		cookie.Path = "/"
	}
	alice.Jar.SetCookies(at, planted)
	is(t, alice.get(to), 200, "acme/alice") // led to sign in for the state of mallory
	if p := mallory.get(link); p.status != http.StatusSeeOther || !strings.HasPrefix(p.Get("Location"), d.idp.URL) {
		t.Errorf("mallory has the page of alice: %d %s", p.status, p.body)
	}
}

// No page is framed, kept or told to others, and none leads where a parameter says.
func TestPages(t *testing.T) {
	d := newDesk(t)
	link, _ := d.link("alice")
	alice := d.browser("alice")
	p, _ := alice.consent(link)
	for name, want := range map[string]string{
		"Content-Security-Policy": "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'", "X-Frame-Options": "DENY", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
	} {
		if !strings.Contains(p.Get(name), want) {
			t.Errorf("%s: %q, want %q", name, p.Get(name), want)
		}
	}
	if strings.Contains(p.body, "<script") || strings.Contains(p.Get("Content-Security-Policy"), "unsafe") {
		t.Errorf("the page needs more than it should: %s", p.body)
	}
	const evil = "https://evil.example.com/"
	for _, name := range []string{"redirect_uri", "next", "return", "return_to", "url", "iss", "state", "code", "error"} {
		for _, path := range []string{strings.TrimPrefix(link, d.web.URL), "/connect/" + url.PathEscape(evil), login.SignInPath, login.ConnectPath, "//evil.example.com/connect/x", "/connect/..%2f..%2f%2fevil.example.com"} {
			b := d.browser("alice")
			b.stop = "http" // anywhere
			p := b.get(d.web.URL + path + "?" + url.Values{name: {evil}}.Encode())
			if to := p.Get("Location"); strings.Contains(to, "evil.example.com") && !strings.HasPrefix(to, "/") && !strings.HasPrefix(to, d.web.URL) || strings.HasPrefix(to, "//") {
				t.Errorf("%s with %s leads to %s", path, name, to)
			}
		}
	}
}

// After ten minutes a link is none, wherever its person has got to.
func TestExpired(t *testing.T) {
	d := newDesk(t)
	link, _ := d.link("alice")
	alice := d.browser("alice")
	back := alice.back(link)
	d.past.Store(601)
	is(t, alice.get(back), 404)
	is(t, alice.get(link), 404)
	d.nothing()
	if next, _ := d.link("alice"); next == link {
		t.Error("an expired link is offered again")
	}
}

// A link is offered only to a principal that can prove to be the caller, only for a login of their own,
// and is recorded.
func TestOffer(t *testing.T) {
	d := newDesk(t)
	for name, p := range map[string]*gate.Principal{
		"nobody knows how": {Owner: who("alice").Owner, Issuer: "corp"},
		"local":            gate.Local(),
		"another issuer":   {Owner: who("alice").Owner, Auth: "bearer", Issuer: "other"},
	} {
		if link, _ := d.offer(p, "jira", "jira__search"); link != "" {
			t.Errorf("%s is offered %s", name, link)
		}
	}
	if link, _ := d.offer(who("alice"), "wiki", "wiki__read"); link != "" {
		t.Error("a login of everybody is offered to one person")
	}
	if link, _ := d.connect.Offer(&gate.Call{ID: "c", Who: who("alice")}, errors.New("something else")); link != "" {
		t.Error("a link for what no login mends")
	}
	if link, _ := d.connect.Offer(&gate.Call{ID: "c", Who: who("alice")}, d.unavailable(who("alice"))); link != "" {
		t.Error("a link for who has logged in")
	}
	other := who("alice")
	other.Client = "another agent"
	mine, _ := d.offer(who("alice"), "jira", "jira__search")
	for name, next := range map[string]func() (string, <-chan struct{}){
		"another client's": func() (string, <-chan struct{}) { return d.offer(other, "jira", "jira__search") },
		"another tool's":   func() (string, <-chan struct{}) { return d.offer(who("alice"), "jira", "jira__read") },
		"another server's": func() (string, <-chan struct{}) { return d.offer(who("alice"), "chat", "jira__search") },
	} {
		if link, _ := next(); link == mine || link == "" {
			t.Errorf("%s link is %q", name, link)
		}
	}
	first, ended := d.offer(who("alice"), "jira", "jira__0")
	for i := range 40 {
		if link, _ := d.offer(who("alice"), "jira", fmt.Sprintf("jira__%d", i)); link == "" {
			t.Fatal("no link")
		}
	}
	if !closed(ended) {
		t.Errorf("%s is one of more than sixteen that one principal has", first)
	}
	d.mu.Lock()
	d.broken = errors.New("the disk is full")
	d.mu.Unlock()
	if link, _ := d.offer(who("bob"), "jira", "jira__search"); link != "" {
		t.Error("a link that nobody could record")
	}
}

// Over https a link's cookie is one that no other host can set, and no script reads.
func TestCookie(t *testing.T) {
	d := newDesk(t)
	d.public = "https://gw.example.com"
	link, _ := d.offer(who("alice"), "jira", "jira__search")
	w := httptest.NewRecorder()
	d.connect.ServeHTTP(w, httptest.NewRequest(http.MethodGet, link, nil))
	cookies := w.Result().Cookies()
	if len(cookies) != 1 {
		t.Fatalf("%d %s, with cookies %v", w.Code, w.Body, cookies)
	}
	if c := cookies[0]; !strings.HasPrefix(c.Name, "__Host-") || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" {
		t.Errorf("the cookie is %s", c)
	}
	d.public = ""
	if link, _ := d.offer(who("alice"), "jira", "jira__other"); link != "" {
		t.Errorf("without a public URL there is a link: %s", link)
	}
}

// Other people who open a link, however often, take nothing away from the caller, and cost the issuer
// and the log little. The caller can begin only a few logins by one link.
func TestOpenedOften(t *testing.T) {
	d := newDesk(t)
	link, _ := d.link("alice")
	asked := 0
	for i := range 200 { // previews and scanners, each a browser of its own
		b := d.browser("alice")
		b.stop = d.idp.URL
		if p := b.get(link); p.status != http.StatusSeeOther {
			t.Fatalf("%d: %d", i, p.status)
		}
		if i == 0 {
			asked = d.idp.Requests()
		}
	}
	if n := d.idp.Requests() - asked; n > 0 {
		t.Errorf("the issuer was asked %d times more", n)
	}
	d.noted("asked alice jira call-1")
	alice := d.browser("alice")
	p, form := alice.consent(link)
	is(t, p, 200, "jira")
	is(t, alice.get(alice.goOn(link, form)), 200, "You are logged in to jira")

	link, ended := d.link("bob")
	bob := d.browser("bob")
	begun := 0
	for p := bob.get(link); p.status == http.StatusOK && begun < 20; p = bob.get(link) {
		begun++
		bob.goOn(link, formField.FindStringSubmatch(p.body)[1])
		if again, _ := d.link("bob"); (again == link) != (begun < 10) {
			t.Errorf("after %d logins the next call gets the same link: %t", begun, again == link)
		}
	}
	if begun != 10 || !closed(ended) {
		t.Errorf("%d logins were begun by one link, which has ended: %t", begun, closed(ended))
	}
	c := who("carol")
	c.Auth, c.Issuer = "proxy", ""
	link, _ = d.offer(c, "jira", "jira__search")
	nobody := d.browser("carol")
	nobody.past = true
	before := d.count()
	for i := range 40 {
		if p := nobody.get(link); p.status != http.StatusBadGateway {
			t.Errorf("past the proxy, %d: %d", i, p.status)
		}
	}
	if n := d.count() - before; n != 10 {
		t.Errorf("%d visits past the proxy are recorded", n)
	}
	_, form = d.browser("carol").consent(link)
	if form == "" {
		t.Error("the caller cannot open the link any more")
	}
}

// Behind a load balancer each request for a page finds the gateway that has the link, and a sign-in ends at
// any.
func TestConnectAnywhere(t *testing.T) {
	d := newDesk(t)
	dir, secret := t.TempDir(), make([]byte, 32)
	document := func(name string) state.Document { return state.File(filepath.Join(dir, url.PathEscape(name))) }
	nodes := map[string]*connect.Connect{}
	names := []string{"n0", "n1", "n2"}
	for _, name := range names {
		o := d.options
		o.Logins = login.New(login.Options{
			Vault: vault.Shared(document, func(context.Context, string) ([]string, error) { return nil, nil }, secret), Seal: secret, Node: name,
			Public: d.options.Public, Note: func(login.Event) error { return nil },
		})
		o.Logins.Set(d.servers)
		o.Node = name
		nodes[name] = connect.New(o)
		if name == "n1" {
			d.logins, d.connect = o.Logins, nodes[name]
		}
	}
	var turn atomic.Int64
	forwarded := 0
	d.serve = func(w http.ResponseWriter, r *http.Request) {
		at := names[turn.Add(1)%3]
		if node := connect.Node(r); node != "" && node != at {
			at = node
			forwarded++
		}
		nodes[at].ServeHTTP(w, r)
	}
	for i := range 3 {
		who := fmt.Sprint("alice", i)
		link, _ := d.link(who)
		b := d.browser(who)
		_, form := b.consent(link)
		is(t, b.get(b.goOn(link, form)), 200, "You are logged in to jira")
	}
	if forwarded == 0 {
		t.Error("nothing was forwarded")
	}
}
