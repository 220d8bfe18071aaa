package authtest

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// An OAuth is an authorization server whose people consent at once: code with PKCE, dynamic
// registration, refresh tokens that are good once and whose second use ends the grant,
// revocation, client credentials, token exchange, and ID-JAGs on either side.
type OAuth struct {
	*httptest.Server
	// Change changes the metadata before it is given out. It is set before the first request.
	Change func(metadata map[string]any)
	// Mint makes an access token of a person for a resource; nil makes words that say nothing. It is set before the first request.
	Mint func(user, resource string) string

	idJAGs
	vouchedFor []string // ID-JAGs, and ID tokens

	requests atomic.Int64

	mu     sync.Mutex
	user   string
	life   time.Duration
	iss    string
	keys   map[string]jose.JSONWebKey // of clients that have no secret
	jtis   map[string]bool            // that were used
	secret map[string]string          // of clients, by id; "" of public ones
	uris   map[string][]string
	codes  map[string]issued
	access map[string]*granted
	fresh  map[string]*granted // refresh tokens, used ones too
	asked  []url.Values        // token requests
	count  map[string]int      // of token requests, by grant type
	states []string            // that browsers came with
	wider  string
	plain  bool
	actors bool
}

type issued struct {
	client, redirect, challenge, resource, scope, user string
}

// granted is a token, and the grant that it belongs to.
type granted struct {
	client, resource, scope, user, actor string
	until                                time.Time
	used                                 bool
	gone                                 *bool
}

// NewOAuth returns a server that ends with the test. Its person is alice until another is.
func NewOAuth(t testing.TB) *OAuth {
	t.Helper()
	o := &OAuth{
		idJAGs: newIDJAGs(),
		user:   "alice", life: time.Hour, secret: map[string]string{}, uris: map[string][]string{}, codes: map[string]issued{},
		keys: map[string]jose.JSONWebKey{}, jtis: map[string]bool{}, access: map[string]*granted{}, fresh: map[string]*granted{}, count: map[string]int{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", o.metadata)
	mux.HandleFunc("POST /register", o.register)
	mux.HandleFunc("GET /authorize", o.authorize)
	mux.HandleFunc("POST /token", o.token)
	mux.HandleFunc("POST /revoke", o.revoke)
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.requests.Add(1)
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(o.Close)
	return o
}

// Person has somebody else sit at the browser from now on.
func (o *OAuth) Person(user string) { o.set(func() { o.user = user }) }

// Life is how long the next access tokens hold.
func (o *OAuth) Life(d time.Duration) { o.set(func() { o.life = d }) }

// Says has answers to browsers name another issuer; "-" names none.
func (o *OAuth) Says(iss string) { o.set(func() { o.iss = iss }) }

// Widens has token exchange answer with a scope more than was asked for.
func (o *OAuth) Widens(scope string) { o.set(func() { o.wider = scope }) }

// Plain has no token exchanged from now on.
func (o *OAuth) Plain() { o.set(func() { o.plain = true }) }

// WantsActors exchanges no token from now on without one of who acts.
func (o *OAuth) WantsActors() { o.set(func() { o.actors = true }) }

// Client registers a client by hand; "" is the secret of a public one.
func (o *OAuth) Client(id, secret string, redirects ...string) {
	o.set(func() { o.secret[id], o.uris[id] = secret, redirects })
}

func (o *OAuth) set(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f()
}

// Count is how many token requests of a grant type there were that were granted.
func (o *OAuth) Count(grantType string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.count[grantType]
}

// Requests is how many requests of any kind there were.
func (o *OAuth) Requests() int { return int(o.requests.Load()) }

// Asked are the token requests so far.
func (o *OAuth) Asked() []url.Values {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.asked)
}

// Secrets are all tokens, codes, verifiers and states so far.
func (o *OAuth) Secrets() (all []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	all = slices.Concat(o.states, o.vouchedFor)
	for _, tokens := range []map[string]*granted{o.access, o.fresh} {
		for token := range tokens {
			all = append(all, token)
		}
	}
	for _, form := range o.asked {
		for _, name := range []string{"code", "code_verifier"} {
			if v := form.Get(name); v != "" {
				all = append(all, v)
			}
		}
	}
	return all
}

// End ends all that an access token belongs to, as if its person had revoked it.
func (o *OAuth) End(user string) {
	o.set(func() {
		for _, g := range o.fresh {
			if g.user == user {
				*g.gone = true
			}
		}
		o.expire(user)
	})
}

// Expire ends the access tokens of somebody, and leaves the grant.
func (o *OAuth) Expire(user string) { o.set(func() { o.expire(user) }) }

func (o *OAuth) expire(user string) {
	for _, g := range o.access {
		if g.user == user {
			g.until = time.Time{}
		}
	}
}

// Whose tells of an access token that holds for a resource: its person, scopes, and who acts.
func (o *OAuth) Whose(token, resource string) (user, scope, actor string, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	g := o.access[token]
	if g == nil || *g.gone || time.Now().After(g.until) || g.resource != resource {
		return "", "", "", false
	}
	return g.user, g.scope, g.actor, true
}

func (o *OAuth) metadata(w http.ResponseWriter, _ *http.Request) {
	m := map[string]any{
		"issuer": o.URL, "authorization_endpoint": o.URL + "/authorize", "token_endpoint": o.URL + "/token", "registration_endpoint": o.URL + "/register",
		"revocation_endpoint": o.URL + "/revoke", "code_challenge_methods_supported": []string{"S256"}, "response_types_supported": []string{"code"},
		"token_endpoint_auth_methods_supported": []string{"none", "client_secret_basic", "client_secret_post"}, "scopes_supported": []string{"read", "write", "offline_access"},
		"authorization_response_iss_parameter_supported": true,
	}
	if o.Change != nil {
		o.Change(m)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(m)
}

func (o *OAuth) register(w http.ResponseWriter, r *http.Request) {
	var c struct {
		Redirects []string `json:"redirect_uris"`
		Method    string   `json:"token_endpoint_auth_method"`
		Kind      string   `json:"application_type"`
	}
	if json.NewDecoder(r.Body).Decode(&c) != nil || c.Kind == "" {
		fail(w, "invalid_client_metadata")
		return
	}
	id := rand.Text()
	answer := map[string]any{"client_id": id, "redirect_uris": c.Redirects, "token_endpoint_auth_method": c.Method}
	secret := ""
	if c.Method != "none" {
		secret = rand.Text()
		answer["client_secret"], answer["client_secret_expires_at"] = secret, 0
	}
	o.Client(id, secret, c.Redirects...)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(answer)
}

func (o *OAuth) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	o.mu.Lock()
	defer o.mu.Unlock()
	redirect := q.Get("redirect_uri")
	if !slices.Contains(o.uris[q.Get("client_id")], redirect) || q.Get("code_challenge_method") != "S256" || q.Get("resource") == "" && !strings.Contains(q.Get("scope"), "openid") || q.Get("state") == "" {
		http.Error(w, "a bad request", http.StatusBadRequest)
		return
	}
	o.states = append(o.states, q.Get("state"))
	code := rand.Text()
	o.codes[code] = issued{q.Get("client_id"), redirect, q.Get("code_challenge"), q.Get("resource"), q.Get("scope"), o.user}
	back := url.Values{"code": {code}, "state": {q.Get("state")}}
	switch o.iss {
	case "":
		back.Set("iss", o.URL)
	case "-":
	default:
		back.Set("iss", o.iss)
	}
	http.Redirect(w, r, redirect+"?"+back.Encode(), http.StatusFound)
}

// KeyClient registers a client that proves itself by a key (RFC 7523, 2.2).
func (o *OAuth) KeyClient(id string, key jose.JSONWebKey) {
	o.Client(id, rand.Text())
	o.set(func() { o.keys[id] = key })
}

// asserted returns who an assertion is of, if it is good, of this client's, and new.
func (o *OAuth) asserted(form url.Values) (string, bool) {
	signed, err := jose.ParseSignedCompact(form.Get("client_assertion"), []jose.SignatureAlgorithm{jose.ES256, jose.ES384, jose.RS256, jose.EdDSA})
	if err != nil || form.Get("client_assertion_type") != "urn:ietf:params:oauth:client-assertion-type:jwt-bearer" || form.Has("client_secret") {
		return "", false
	}
	id := form.Get("client_id")
	key, known := o.keys[id]
	raw, err := signed.Verify(key)
	var c struct {
		Iss, Sub, Aud, Jti string
		Exp, Iat           int64
	}
	if !known || err != nil || json.Unmarshal(raw, &c) != nil || signed.Signatures[0].Header.KeyID != key.KeyID {
		return "", false
	}
	now := time.Now().Unix()
	used := o.jtis[c.Jti]
	o.jtis[c.Jti] = true
	return id, c.Iss == id && c.Sub == id && c.Aud == o.URL && c.Jti != "" && !used && c.Exp > now && c.Exp <= now+300 && c.Iat <= now+1
}

// client returns who asks, if that is proved.
func (o *OAuth) client(r *http.Request) (string, bool) {
	if r.PostForm.Has("client_assertion") {
		return o.asserted(r.PostForm)
	}
	id, secret, basic := r.BasicAuth()
	if basic { // RFC 6749, 2.3.1
		id, _ = url.QueryUnescape(id)
		secret, _ = url.QueryUnescape(secret)
	} else {
		id, secret = r.PostForm.Get("client_id"), r.PostForm.Get("client_secret")
	}
	want, known := o.secret[id]
	return id, known && want == secret
}

func (o *OAuth) token(w http.ResponseWriter, r *http.Request) {
	if r.ParseForm() != nil {
		fail(w, "invalid_request")
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	form := r.PostForm
	o.asked = append(o.asked, form)
	client, ok := o.client(r)
	if !ok {
		fail(w, "invalid_client")
		return
	}
	g := &granted{client: client, resource: form.Get("resource"), scope: form.Get("scope"), gone: new(bool)}
	refresh, full := true, ""
	if o.plain && form.Get("grant_type") == "urn:ietf:params:oauth:grant-type:token-exchange" {
		fail(w, "unsupported_grant_type")
		return
	}
	switch form.Get("grant_type") {
	case "authorization_code":
		c, known := o.codes[form.Get("code")]
		delete(o.codes, form.Get("code"))
		sum := sha256.Sum256([]byte(form.Get("code_verifier")))
		if !known || c.client != client || c.redirect != form.Get("redirect_uri") || c.resource != form.Get("resource") || c.challenge != base64.RawURLEncoding.EncodeToString(sum[:]) {
			fail(w, "invalid_grant")
			return
		}
		g.user, g.scope = c.user, c.scope
	case "refresh_token":
		before := o.fresh[form.Get("refresh_token")]
		if before == nil || before.client != client || *before.gone || before.resource != form.Get("resource") {
			fail(w, "invalid_grant")
			return
		}
		if before.used { // somebody has stolen it
			*before.gone = true
			fail(w, "invalid_grant")
			return
		}
		before.used = true
		if g.scope == "" {
			g.scope = before.scope
		}
		g.user, g.gone, full = before.user, before.gone, before.scope
	case "client_credentials":
		g.user, refresh = client, false
		if o.secret[client] == "" {
			fail(w, "unauthorized_client")
			return
		}
	case jwtBearer:
		refresh = false
		if !o.believe(client, form, g) {
			fail(w, "invalid_grant")
			return
		}
	case "urn:ietf:params:oauth:grant-type:token-exchange":
		refresh = false
		if form.Get("requested_token_type") == idJAG {
			o.vouch(w, client, form)
			return
		}
		subject := o.access[form.Get("subject_token")]
		switch {
		case subject != nil && !*subject.gone && time.Now().Before(subject.until):
			g.user, g.gone = subject.user, subject.gone
		case strings.Count(form.Get("subject_token"), ".") == 2: // a JWT of another issuer, which it trusts
			g.user = subjectOf(form.Get("subject_token"))
		default:
			fail(w, "invalid_grant")
			return
		}
		g.actor, g.scope = client, strings.TrimSpace(g.scope+" "+o.wider)
		if acts := form.Get("actor_token"); acts != "" || o.actors {
			actor := o.access[acts]
			if actor == nil || *actor.gone || time.Now().After(actor.until) || form.Get("actor_token_type") != "urn:ietf:params:oauth:token-type:access_token" {
				fail(w, "invalid_request")
				return
			}
			g.actor = actor.user + " by token"
		}
	default:
		fail(w, "unsupported_grant_type")
		return
	}
	o.count[form.Get("grant_type")]++
	g.until = time.Now().Add(o.life)
	token := rand.Text()
	if o.Mint != nil {
		token = o.Mint(g.user, g.resource)
	}
	o.access[token] = g
	answer := map[string]any{"access_token": token, "token_type": "Bearer", "expires_in": int(o.life.Seconds()), "scope": g.scope}
	if slices.Contains(strings.Fields(g.scope), "openid") {
		id := o.idToken(g.user, client)
		o.vouchedFor = append(o.vouchedFor, id)
		answer["id_token"] = id
	}
	if refresh {
		next := rand.Text()
		o.fresh[next] = &granted{client: client, resource: g.resource, scope: cmp.Or(full, g.scope), user: g.user, gone: g.gone}
		answer["refresh_token"] = next
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

func subjectOf(jwt string) string {
	raw, _ := base64.RawURLEncoding.DecodeString(strings.Split(jwt, ".")[1])
	var claims struct {
		Sub string `json:"sub"`
	}
	_ = json.Unmarshal(raw, &claims)
	return claims.Sub
}

func (o *OAuth) revoke(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, ok := o.client(r); !ok {
		fail(w, "invalid_client")
		return
	}
	for _, all := range []map[string]*granted{o.fresh, o.access} {
		if g := all[r.PostForm.Get("token")]; g != nil {
			*g.gone = true
		}
	}
}

func fail(w http.ResponseWriter, code string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": code, "error_description": "told to nobody"})
}

// Protect serves a resource to those with a token for it, at base+path, and says to the others
// where they come from. Scope is what a token needs; "" is nothing.
func (o *OAuth) Protect(base func() string, path string, scope string, next func(w http.ResponseWriter, r *http.Request, user string)) http.Handler {
	mux := http.NewServeMux()
	const wellKnown = "/.well-known/oauth-protected-resource"
	mux.HandleFunc("GET "+wellKnown+path, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"resource": base() + path, "authorization_servers": []string{o.URL}, "scopes_supported": []string{"read"}})
	})
	mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		user, has, _, ok := o.Whose(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), base()+path)
		switch {
		case !ok:
			w.Header().Set("WWW-Authenticate", fmt.Sprintf("Bearer resource_metadata=%q", base()+wellKnown+path))
			http.Error(w, "no", http.StatusUnauthorized)
		case scope != "" && !slices.Contains(strings.Fields(has), scope):
			w.Header().Set("WWW-Authenticate", fmt.Sprintf("Bearer error=\"insufficient_scope\", scope=%q", scope))
			http.Error(w, "no", http.StatusForbidden)
		default:
			next(w, r, user)
		}
	})
	return mux
}

// Browse opens a page as a browser does, and returns the address that it ends at: that of the
// first redirect to the beginning until.
func Browse(t testing.TB, at, until string) *url.URL {
	t.Helper()
	c := &http.Client{Timeout: 3 * time.Minute, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.String(), until) {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	resp, err := c.Get(at)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	to, err := resp.Location()
	if err != nil {
		t.Fatalf("%s answers %s, and leads nowhere", at, resp.Status)
	}
	return to
}
