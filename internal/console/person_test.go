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
	"strings"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/audit"
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

func (p *people) BeginSignIn(ctx context.Context, issuer, redirect string) (*login.Begun, error) {
	return p.SignIn(ctx, &login.Server{ID: issuer, URL: resource, Mode: login.SignsIn, Issuer: p.idp.URL, Client: http.DefaultClient}, redirect)
}

func (p *people) EndSignIn(ctx context.Context, query url.Values) (string, error) {
	return p.SignedIn(ctx, query)
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

// A person who signs in at an issuer is not the operator, and may do what policies say of their
// roles, as long as their token is good. What belongs to the browser of one signs in nobody else.
func TestPersons(t *testing.T) {
	d := open(t, "policy: {paths: [p.rego]}\n", "p.rego", `package wasmgate

allow contains "auditors read" if {
	input.action == "admin/read"
	"alices" in input.principal.roles
	not input.admin.operator
}
`)
	p := newPeople(t)
	d.c.people = p
	web := httptest.NewServer(d.c)
	defer web.Close()

	if leaves := d.ask("GET", "/ui/signin/corp", nil, nil).Result().Cookies(); len(leaves) != 1 || !leaves[0].HttpOnly || leaves[0].Path != login.LoopbackPath {
		t.Errorf("a browser leaves with %v", leaves)
	}
	alice := newBrowser(t, web.URL)
	if got := alice.get("/ui/calls"); got.Request.URL.Path != "/ui/signin" {
		t.Errorf("before she signs in: %s", got.Request.URL)
	}
	named := alice.get(strings.Replace(web.URL, "127.0.0.1", "localhost", 1) + "/ui/signin/corp")
	if named.StatusCode != http.StatusOK || named.Request.URL.Path != login.LoopbackPath || named.Header.Get("Refresh") != "0; url=/ui/" {
		t.Errorf("signing in: %d at %s", named.StatusCode, named.Request.URL)
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
	if pause.StatusCode != http.StatusForbidden || len(d.app.Status().Paused) > 0 {
		t.Errorf("she pauses the gateway: %d", pause.StatusCode)
	}
	if acts := d.records(audit.Admin); len(acts) != 1 || acts[0].Principal != "alice" || acts[0].Code != "refused_authorize" {
		t.Errorf("recorded %+v", acts)
	}

	p.idp.Person("mallory")
	mallory := newBrowser(t, web.URL)
	mallory.get("/ui/signin/corp")
	if got := mallory.get("/ui/calls"); got.StatusCode != http.StatusForbidden {
		t.Errorf("whom no policy knows: %d", got.StatusCode)
	}
	mallory.stop = web.URL + login.LoopbackPath
	eve := newBrowser(t, web.URL)
	eve.stop = mallory.stop
	back := mallory.get("/ui/signin/corp").Header.Get("Location")
	mallory.stop = ""
	for who, b := range map[string]*browser{"a browser that has begun nothing": newBrowser(t, web.URL), "one that is signed in": alice} {
		if got := b.get(back); got.StatusCode != http.StatusForbidden {
			t.Errorf("%s is signed in by another's link: %d", who, got.StatusCode)
		}
	}
	forged := regexp.MustCompile(`code=[^&]*`).ReplaceAllString(eve.get("/ui/signin/corp").Header.Get("Location"), "code=forged")
	eve.stop = ""
	if got := eve.get(forged); got.StatusCode != http.StatusForbidden || len(got.Cookies()) > 0 {
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

// What signs browsers in is bounded in number and time: links and codes, browsers that have signed in, and those on their way to an issuer.
func TestSignInBounds(t *testing.T) {
	now := time.Now()
	s := newSignins(func() time.Time { return now })
	_, oldest, _ := s.offer()
	for range maxOffers {
		s.offer()
	}
	if len(s.offers) != maxOffers || s.take(oldest) != "" {
		t.Errorf("%d links are good, or the oldest of more is", len(s.offers))
	}
	token, code, _ := s.offer()
	for range maxWrong {
		s.take("00000000x")
	}
	if s.take(code) != "" || s.take(token) == "" {
		t.Error("a code outlives guesses, or a link does not")
	}
	back := func(state, cookie string) bool {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.AddCookie(&http.Cookie{Name: cookieName(leavingName, r), Value: cookie})
		return s.back(state, r)
	}
	for i := range 3 * maxLeaving {
		s.come("token")
		s.leave(string(rune('a' + i)))
	}
	if len(s.stays) > maxStays || len(s.leaving) > maxLeaving {
		t.Errorf("%d browsers have signed in, and %d are on their way", len(s.stays), len(s.leaving))
	}
	mine, other := s.leave("mine"), s.leave("other")
	for name, ok := range map[string]bool{"another browser": back("mine", other), "one without a state": back("", mine), "one with another's": back("other", mine)} {
		if ok {
			t.Errorf("%s comes back", name)
		}
	}
	now = now.Add(leaveTime + time.Second)
	if back("mine", mine) {
		t.Error("a browser comes back too late")
	}
	late := s.leave("late")
	if len(s.leaving) != 1 || !back("late", late) || back("late", late) {
		t.Errorf("%d are on their way, of whom one comes back, once", len(s.leaving))
	}
	now = now.Add(stayTime)
	if s.come("token"); len(s.stays) != 1 {
		t.Errorf("%d browsers stay signed in", len(s.stays))
	}
	asks, waits := s.come("a token"), s.come("a token")
	for range 3 { // of which the second alone waits, as a page does that reads events
		now = now.Add(stayTime * 2 / 5)
		for cookie, more := range map[string]bool{asks: true, waits: false} {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.AddCookie(&http.Cookie{Name: cookieName(stayName, r), Value: cookie})
			s.in(r, more)
		}
	}
	if _, ok := s.stays[sum(asks)]; !ok {
		t.Error("a browser that asks is signed out")
	}
	if _, ok := s.stays[sum(waits)]; ok {
		t.Error("a browser that only waits stays signed in")
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
