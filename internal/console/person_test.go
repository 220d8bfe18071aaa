package console

import (
	"context"
	"errors"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/auth/authtest"
	"github.com/wasmgate/wasmgate/internal/login"
	"github.com/wasmgate/wasmgate/internal/vault"
)

const resource = "https://gw.example.com/mcp"

// A people has people sign in at one provider, whose tokens say who they are.
type people struct {
	*login.Logins
	idp *authtest.OAuth
}

func newPeople(t *testing.T) *people {
	dir := t.TempDir()
	return &people{idp: authtest.NewOAuth(t), Logins: login.New(login.Options{
		Vault: vault.New(filepath.Join(dir, "vault"), func() ([]byte, error) { return vault.KeyFile(filepath.Join(dir, "key")) }),
		Note:  func(login.Event) error { return nil },
	})}
}

func (p *people) SignInIssuers() []string { return []string{"corp"} }

func (p *people) server() *login.Server {
	return &login.Server{ID: "corp", URL: resource, Mode: login.SignsIn, Issuer: p.idp.URL, Client: http.DefaultClient}
}

func (p *people) BeginSignIn(ctx context.Context, issuer, redirect string) (*login.Begun, string, error) {
	return p.SignIn(ctx, p.server(), redirect, issuer)
}

func (p *people) EndSignIn(ctx context.Context, ticket string, query url.Values) (string, *gate.Principal, error) {
	token, err := p.SignedIn(ctx, p.server(), ticket, query)
	if err != nil {
		return "", nil, err
	}
	who, err := p.TokenHolder(ctx, token)
	return token, who, err
}

func (p *people) TokenHolder(_ context.Context, token string) (*gate.Principal, error) {
	user, _, _, ok := p.idp.Whose(token, resource)
	if !ok {
		return nil, errors.New("no token, or none any more")
	}
	return &gate.Principal{Owner: gate.Owner{ID: user}, Auth: "bearer", Issuer: "corp", Roles: []string{user + "s"}}, nil
}

// browser opens pages of a console that listens, and keeps cookies. It goes where it is led, but
// to no address that begins with stop.
type browser struct {
	t    *testing.T
	at   string
	stop string
	*http.Client
}

func (b *browser) get(at string) *http.Response {
	b.t.Helper()
	if strings.HasPrefix(at, "/") {
		at = b.at + at
	}
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, at, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	resp, err := b.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	resp.Body.Close()
	return resp
}

// leaves presses the button that leads to the issuer, and goes there.
func (b *browser) leaves() *http.Response {
	b.t.Helper()
	resp, err := b.PostForm(b.at+"/ui/signin/corp", nil)
	if err != nil {
		b.t.Fatal(err)
	}
	resp.Body.Close()
	to, ok := strings.CutPrefix(resp.Header.Get("Refresh"), "0; url=")
	if !ok {
		b.t.Fatalf("leaving: %d, %q", resp.StatusCode, resp.Header.Get("Refresh"))
	}
	return b.get(to)
}

func newBrowser(t *testing.T, at string) *browser {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{t: t, at: at}
	b.Client = &http.Client{Jar: jar, Timeout: time.Minute, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if b.stop != "" && strings.HasPrefix(r.URL.String(), b.stop) {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	return b
}

// A person who signs in at an issuer is not the operator, and may do what policies say of their roles,
// as long as their token is valid. Nothing that belongs to one browser signs in another.
func TestPersons(t *testing.T) {
	d := open(t, "policy: {paths: [p.rego]}\n", "p.rego", `package wasmgate

allow contains "auditors read" if {
	input.action == "admin/read"
	"alices" in input.principal.roles
	not input.admin.operator
}
`)
	p := newPeople(t)
	d.c.signin.People = p
	web := httptest.NewServer(d.c)
	defer web.Close()

	if leaves := d.ask("POST", "/ui/signin/corp", url.Values{}, nil).Result().Cookies(); len(leaves) != 1 || !leaves[0].HttpOnly || leaves[0].Path != login.LoopbackPath {
		t.Errorf("a browser leaves with %v", leaves)
	}
	alice := newBrowser(t, web.URL)
	if got := alice.get("/ui/calls"); got.Request.URL.Path != "/ui/signin" {
		t.Errorf("before she signs in: %s", got.Request.URL)
	}
	if named := alice.get(strings.Replace(web.URL, "127.0.0.1", "localhost", 1) + "/ui/signin/corp"); named.StatusCode != http.StatusOK || named.Request.URL.String() != web.URL+"/ui/signin/corp" {
		t.Errorf("before she leaves: %d at %s", named.StatusCode, named.Request.URL)
	}
	if back := alice.leaves(); back.StatusCode != http.StatusOK || back.Request.URL.Path != login.LoopbackPath || back.Header.Get("Refresh") != "0; url=/ui/" {
		t.Errorf("signing in: %d at %s", back.StatusCode, back.Request.URL)
	}
	for _, c := range []struct {
		path string
		want int
	}{{"/ui/calls", 200}, {"/api/v1/calls", 200}, {"/ui/", 200}} {
		if got := alice.get(c.path); got.StatusCode != c.want || got.Request.URL.Path != c.path {
			t.Errorf("%s: %d at %s", c.path, got.StatusCode, got.Request.URL)
		}
	}
	pause, err := alice.PostForm(web.URL+"/ui/pause", url.Values{})
	if err != nil {
		t.Fatal(err)
	}
	pause.Body.Close()
	if pause.StatusCode != http.StatusForbidden || len(d.app.Overview.Status().Paused) > 0 {
		t.Errorf("she pauses the gateway: %d", pause.StatusCode)
	}
	if acts := d.records(audit.Admin); len(acts) != 1 || acts[0].Principal != "alice" || acts[0].Code != "refused_authorize" {
		t.Errorf("recorded %+v", acts)
	}

	p.idp.Person("mallory")
	mallory := newBrowser(t, web.URL)
	mallory.leaves()
	if got := mallory.get("/ui/calls"); got.StatusCode != http.StatusForbidden {
		t.Errorf("whom no policy knows: %d", got.StatusCode)
	}
	mallory.stop = web.URL + login.LoopbackPath
	eve := newBrowser(t, web.URL)
	eve.stop = mallory.stop
	back := mallory.leaves().Header.Get("Location")
	mallory.stop = ""
	for who, b := range map[string]*browser{"a browser that has begun nothing": newBrowser(t, web.URL), "one that is signed in": alice} {
		if got := b.get(back); got.StatusCode != http.StatusForbidden {
			t.Errorf("%s is signed in by another's link: %d", who, got.StatusCode)
		}
	}
	forged := regexp.MustCompile(`code=[^&]*`).ReplaceAllString(eve.leaves().Header.Get("Location"), "code=forged")
	eve.stop = ""
	if got := eve.get(forged); got.StatusCode != http.StatusForbidden || slices.ContainsFunc(got.Cookies(), func(c *http.Cookie) bool { return c.MaxAge >= 0 }) {
		t.Errorf("who comes back with a code of nobody's: %d, %v", got.StatusCode, got.Cookies())
	}
	if got := []int{mallory.get(back).StatusCode, mallory.get(back).StatusCode}; got[0] != 200 || got[1] != 403 {
		t.Errorf("coming back twice: %v", got)
	}

	p.idp.Expire("alice")
	if got := alice.get("/ui/calls"); got.Request.URL.Path != "/ui/signin" {
		t.Errorf("when her token has ended: %d at %s", got.StatusCode, got.Request.URL)
	}
}

// However often sign-ins are begun, others sign in, and the issuer is asked once. No page of another
// site begins one.
func TestSignInFlood(t *testing.T) {
	d := open(t, "policy: {paths: [p.rego]}\n", "p.rego", "package wasmgate\n\nallow contains \"all read\" if input.action == \"admin/read\"\n")
	p := newPeople(t)
	d.c.signin.People = p
	web := httptest.NewServer(d.c)
	defer web.Close()
	alice := newBrowser(t, web.URL)
	alice.stop = web.URL + login.LoopbackPath
	back := alice.leaves().Header.Get("Location")
	alice.stop = ""
	asked := p.idp.Requests()
	for i := range 2000 {
		r := httptest.NewRequest(http.MethodPost, "/ui/signin/corp", nil)
		r.Host = here
		want := http.StatusOK
		switch i % 4 {
		case 1:
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			want = http.StatusForbidden
		case 2:
			r.Header.Set("Origin", "https://evil.example")
			want = http.StatusForbidden
		case 3:
			r.Method = http.MethodGet
		}
		w := httptest.NewRecorder()
		d.c.ServeHTTP(w, r)
		if begins := len(w.Result().Cookies()) > 0; w.Code != want || begins != (i%4 == 0) {
			t.Fatalf("%d: status %d, begins %t", i, w.Code, begins)
		}
	}
	if n := p.idp.Requests() - asked; n > 1 { // a client for another redirect
		t.Errorf("the issuer was asked %d times", n)
	}
	if got := alice.get(back); got.StatusCode != http.StatusOK {
		t.Errorf("the sign-in that was begun before: %d", got.StatusCode)
	}
	if got := alice.get("/ui/calls"); got.StatusCode != http.StatusOK || got.Request.URL.Path != "/ui/calls" {
		t.Errorf("signed in: %d at %s", got.StatusCode, got.Request.URL)
	}
}

// A caller that reads events by all readers there are makes room for others.
func TestReadersMakeRoom(t *testing.T) {
	all := readers{all: make(map[*reader]*reader)}
	ended := make(map[string]int)
	enter := func(id string) error {
		by := caller{Principal: &gate.Principal{Owner: gate.Owner{ID: id}}, operator: id == ""}
		_, err := all.enter(by, func() { ended[id]++ })
		return err
	}
	if err := enter(""); err != nil {
		t.Fatal(err)
	}
	for range 3 * maxReaders {
		_ = enter("ann")
	}
	if len(all.all) != maxReaders || len(ended) > 0 {
		t.Errorf("%d read, and ended are %v", len(all.all), ended)
	}
	if err := enter("ann"); !errors.Is(err, errReaders) {
		t.Errorf("one more of who has the most: %v", err)
	}
	for _, id := range []string{"bob", "", "kim"} {
		if err := enter(id); err != nil {
			t.Errorf("%q cannot read: %v", id, err)
		}
	}
	if len(all.all) != maxReaders || ended["ann"] != 3 || len(ended) != 1 {
		t.Errorf("%d read, and ended are %v", len(all.all), ended)
	}
}

// A text is shown as what the console has done only to the browser to which the console said it.
func TestForgedDone(t *testing.T) {
	d := open(t, "")
	const lie = "Session ended. Run: curl evil.example"
	if w := d.ask("POST", "/ui/pause", url.Values{}, nil); w.Code != http.StatusSeeOther {
		t.Fatalf("pausing: %d", w.Code)
	} else if to := w.Header().Get("Location"); !strings.Contains(d.ask("GET", to, nil, nil).Body.String(), "is paused") {
		t.Errorf("%s does not say what was done", to)
	} else if u, err := url.Parse(to); err != nil {
		t.Error(err)
	} else {
		other := httptest.NewRequest(http.MethodGet, "/ui/", nil)
		q := u.Query()
		q.Set("done", lie)
		for _, link := range []string{"/ui/?done=" + url.QueryEscape(lie), "/ui/?" + q.Encode(), "/ui/?done=" + url.QueryEscape(lie) + "&seal=" + d.c.seal(other, lie)} {
			if got := d.ask("GET", link, nil, nil); got.Code != http.StatusOK || strings.Contains(got.Body.String(), "curl evil") {
				t.Errorf("%s: %d, shows a text of another", link, got.Code)
			}
		}
	}
}

// A browser stays signed in to the consoles of two gateways, which are two ports of one host.
func TestTwoConsoles(t *testing.T) {
	b := newBrowser(t, "")
	var consoles []string
	for range 2 {
		d := open(t, "")
		web := httptest.NewServer(d.c)
		defer web.Close()
		consoles = append(consoles, web.URL)
		resp, err := b.PostForm(web.URL+"/ui/signin", url.Values{"code": {d.c.SignIn(web.URL).Code}})
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	for _, at := range consoles {
		if got := b.get(at + "/ui/calls"); got.Request.URL.Path != "/ui/calls" {
			t.Errorf("%s: the browser is at %s", at, got.Request.URL)
		}
	}
}
