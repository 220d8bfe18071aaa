package auth_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/crc32"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/internal/apikey"
	"github.com/wasmgate/wasmgate/internal/auth"
	"github.com/wasmgate/wasmgate/internal/auth/authtest"
	"github.com/wasmgate/wasmgate/internal/files/state"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
)

const resource = authtest.Resource

// newAuth takes the provider's tokens.
func newAuth(t testing.TB, p *authtest.Provider, change func(*auth.Options)) *auth.Authenticator {
	t.Helper()
	o := auth.Options{
		Issuers: []auth.Issuer{{
			Name: "corp", URL: p.URL, Scopes: []string{"mcp"}, Fetch: auth.HTTPFetcher(p.Client()),
			Claims: auth.Claims{Roles: "groups", Keep: []string{"sub"}}, Roles: map[string]string{"eng-*": "dev"},
		}},
	}
	if change != nil {
		change(&o)
	}
	a, err := auth.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func ask(token string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return r
}

// status returns what a request is answered with, 200 for one that is let in.
func status(a *auth.Authenticator, r *http.Request) (int, *auth.Refusal) {
	_, err := a.Principal(r, resource)
	var refusal *auth.Refusal
	if errors.As(err, &refusal) {
		return refusal.Status, refusal
	}
	return http.StatusOK, nil
}

func TestBearer(t *testing.T) {
	p := authtest.New(t)
	a := newAuth(t, p, nil)
	who, err := a.Principal(ask(p.Sign(t, p.Claims(nil), nil)), resource)
	if err != nil {
		t.Fatal(err)
	}
	if who.ID != "alice" || who.Auth != auth.Bearer || who.Client != "agent" || !slices.Equal(who.Roles, []string{"dev"}) || who.Claims.Get("sub").Text() != "alice" {
		t.Errorf("%+v", who)
	}
	again, err := a.Principal(ask(p.Sign(t, p.Claims(map[string]any{"jti": "t2"}), nil)), resource)
	if err != nil || again.Owner != who.Owner || again.Credential == who.Credential {
		t.Errorf("another token of the same person: %v, %v", again, err)
	}
	byEC := authtest.SignWith(t, jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: p.EC, KeyID: "ec"}}, p.Claims(nil), nil)
	if code, refusal := status(a, ask(byEC)); code != http.StatusOK {
		t.Errorf("ES256: %d %v", code, refusal)
	}
	if code, refusal := status(a, ask(p.Sign(t, p.Claims(nil), map[string]any{"typ": ""}))); code != http.StatusOK {
		t.Errorf("without a type: %d %v", code, refusal)
	}
	if n := p.Fetched.Load(); n != 1 {
		t.Errorf("the keys were fetched %d times", n)
	}
}

// TestHostileTokens: each is refused with the same message, and none makes the gateway fetch keys
// again, or follow an address that a token names.
func TestHostileTokens(t *testing.T) {
	began := time.Now()
	p := authtest.New(t)
	a := newAuth(t, p, nil)
	good := p.Sign(t, p.Claims(nil), nil)
	if code, refusal := status(a, ask(good)); code != http.StatusOK {
		t.Fatalf("the good token: %d %v", code, refusal)
	}
	signature := good[strings.LastIndexByte(good, '.')+1:]
	for name, token := range authtest.Hostile(t, p, resource) {
		code, refusal := status(a, ask(token))
		if code != http.StatusUnauthorized || refusal.Code != "invalid_token" || refusal.Description != "the token is not valid here" && name != "expired" {
			t.Errorf("%s: %d %+v", name, code, refusal)
		}
		if refusal != nil && (strings.Contains(refusal.Reason, signature[:10]) || len(refusal.Reason) > 300) {
			t.Errorf("%s: the reason holds the token, or too much: %s", name, refusal.Reason)
		}
	}
	if n := p.Fetched.Load(); n != 1 {
		t.Errorf("hostile tokens have made the gateway fetch keys %d times", n)
	}
	for name, token := range authtest.UnknownKeys(t, p, resource) {
		if code, refusal := status(a, ask(token)); code != http.StatusServiceUnavailable && code != http.StatusUnauthorized {
			t.Errorf("kid %s: %d %+v", name, code, refusal)
		}
	}
	if n, most := p.Fetched.Load(), 2+int64(time.Since(began)/(30*time.Second)); n > most { // once for one that is not known, and again after half a minute
		t.Errorf("unknown keys have made the gateway fetch keys %d times", n)
	}
	if code, refusal := status(a, ask(good)); code != http.StatusOK {
		t.Errorf("the good token, after all of them: %d %v", code, refusal)
	}
}

// TestKeyFlood: however many tokens name keys that are not known, an issuer is asked once in
// half a minute, and those whose keys are known go on.
func TestKeyFlood(t *testing.T) {
	p := authtest.New(t)
	a := newAuth(t, p, nil)
	good := p.Sign(t, p.Claims(nil), nil)
	begin := time.Now()
	_, rest, _ := strings.Cut(good, ".")
	for i := range 10_000 {
		header := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"alg":"RS256","kid":"k%d"}`, i))
		if code, refusal := status(a, ask(header+"."+rest)); code != http.StatusUnauthorized && code != http.StatusServiceUnavailable {
			t.Fatalf("key k%d: %d %v", i, code, refusal)
		}
	}
	if n, most := p.Fetched.Load(), 1+int64(time.Since(begin)/(30*time.Second)); n > most {
		t.Errorf("the keys were fetched %d times, which may be %d", n, most)
	}
	if code, refusal := status(a, ask(good)); code != http.StatusOK {
		t.Errorf("the good token, after all of them: %d %v", code, refusal)
	}
}

// TestMutations: of a good token no change of any byte is let in.
// WASMGATE_MUTATIONS says how many are tried.
func TestMutations(t *testing.T) {
	p := authtest.New(t)
	a := newAuth(t, p, nil)
	good := authtest.SignWith(t, jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: p.EC, KeyID: "ec"}}, p.Claims(nil), nil)
	begin := time.Now()
	if code, refusal := status(a, ask(good)); code != http.StatusOK {
		t.Fatalf("the good token: %d %v", code, refusal)
	}
	for bad := range authtest.Mutations(seed.Rand(t), good, authtest.HowMany(t, os.Getenv("WASMGATE_MUTATIONS"), 5000)) {
		if code, _ := status(a, ask(bad)); code == http.StatusOK {
			t.Fatalf("a mutation of a good token is let in: %s, of %s", bad, good)
		}
	}
	if got, most := p.Fetched.Load(), 1+int64(time.Since(begin)/(30*time.Second)); got > most { // mutations name other keys
		t.Errorf("the keys were fetched %d times, which may be %d", got, most)
	}
}

func TestScopesAndStrangers(t *testing.T) {
	p := authtest.New(t)
	a := newAuth(t, p, nil)
	for name, tt := range map[string]struct {
		claims map[string]any
		code   int
	}{
		"lacks a scope":     {map[string]any{"scope": "other"}, http.StatusForbidden},
		"no id":             {map[string]any{"sub": nil}, http.StatusForbidden},
		"id local":          {map[string]any{"sub": "local"}, http.StatusForbidden},
		"id LOCAL":          {map[string]any{"sub": "LOCAL"}, http.StatusForbidden},
		"id a number":       {map[string]any{"sub": 5}, http.StatusForbidden},
		"control character": {map[string]any{"sub": "a\x01"}, http.StatusForbidden},
		"delete character":  {map[string]any{"sub": "a\x7f"}, http.StatusForbidden},
		"id too long":       {map[string]any{"sub": strings.Repeat("a", 129)}, http.StatusForbidden},
		"id written longer": {map[string]any{"sub": strings.Repeat("/", 43)}, http.StatusForbidden},
	} {
		code, refusal := status(a, ask(p.Sign(t, p.Claims(tt.claims), nil)))
		if code != tt.code {
			t.Errorf("%s: %d %+v", name, code, refusal)
		}
	}
	w := httptest.NewRecorder()
	_, refusal := status(a, ask(p.Sign(t, p.Claims(map[string]any{"scope": "other"}), nil)))
	refusal.Write(w, "https://gw.example.com/.well-known/oauth-protected-resource/mcp")
	want := `Bearer error="insufficient_scope", error_description="the token lacks a scope", scope="mcp", resource_metadata="https://gw.example.com/.well-known/oauth-protected-resource/mcp"`
	if got := w.Header().Get("WWW-Authenticate"); got != want {
		t.Errorf("challenge %s", got)
	}
	for odd, want := range map[string]string{
		"*": "%2A", "role:admin": "role%3Aadmin", "corp/alice": "corp%2Falice", "alice\u200d": "alice%E2%80%8D", "a b": "a%20b",
		".a": "%2Ea", "Az9._@+-": "Az9._@+-", "Az9._@+-/": "Az9._@+-%2F", "%2F": "%252F",
	} {
		who, err := a.Principal(ask(p.Sign(t, p.Claims(map[string]any{"sub": odd}), nil)), resource)
		if err != nil || who.ID != want {
			t.Errorf("sub %q becomes %+v, %v; want %s", odd, who, err, want)
		}
	}
}

// A principal of the configuration has its roles and groups; a token can only take some of them away.
func TestConfigurationBounds(t *testing.T) {
	p := authtest.New(t)
	groups := gate.Groups{}
	listed := &gate.Principal{Owner: gate.Owner{ID: "alice"}, Roles: []string{"ops"}, Groups: groups, Identities: provenance.Identities{"alice@corp.example"}}
	a := newAuth(t, p, func(o *auth.Options) {
		o.Principals = map[gate.Owner]*gate.Principal{listed.Owner: listed}
		o.Issuers[0].Roles = map[string]string{"eng-*": "dev", "all": "ops"}
	})
	who, err := a.Principal(ask(p.Sign(t, p.Claims(nil), nil)), resource)
	if err != nil || !slices.Equal(who.Roles, []string{"ops"}) || !slices.Equal(who.Identities, listed.Identities) {
		t.Errorf("%+v, %v", who, err)
	}
	who, err = a.Principal(ask(p.Sign(t, p.Claims(map[string]any{"groups": []string{"eng-x"}}), nil)), resource)
	if err != nil || len(who.Roles) != 0 {
		t.Errorf("a token whose roles the configuration does not give: %+v, %v", who, err)
	}
}

func TestOneCredential(t *testing.T) {
	p := authtest.New(t)
	a := newAuth(t, p, nil)
	good := p.Sign(t, p.Claims(nil), nil)
	two := ask(good)
	two.Header.Add("Authorization", "Bearer "+good)
	key := ask(good)
	key.Header.Set("X-API-Key", "wgk_x")
	query := httptest.NewRequest(http.MethodPost, "/mcp?access_token="+good, nil)
	keyed := httptest.NewRequest(http.MethodPost, "/mcp?API_Key=x", nil)
	basic, nothing, words, bare := ask(""), ask(""), ask(""), ask("")
	basic.Header.Set("Authorization", "Basic eA==")
	nothing.Header.Set("Authorization", "Bearer ")
	words.Header.Set("Authorization", "Bearer "+good+", Bearer "+good)
	bare.Header.Set("Authorization", "Bearer")
	for name, r := range map[string]*http.Request{"two headers": two, "token and key": key, "in the URL": query, "a key in the URL": keyed, "basic": basic, "nothing": nothing, "two words": words, "no scheme": bare} {
		if code, refusal := status(a, r); code != http.StatusBadRequest || refusal.Code != "invalid_request" {
			t.Errorf("%s: %d %+v", name, code, refusal)
		}
	}
	w := httptest.NewRecorder()
	code, refusal := status(a, ask(""))
	if code != http.StatusUnauthorized || refusal.Code != "" {
		t.Errorf("no credential: %d %+v", code, refusal)
	}
	refusal.Write(w, "https://gw.example.com/meta")
	if got := w.Header().Get("WWW-Authenticate"); got != `Bearer scope="mcp", resource_metadata="https://gw.example.com/meta"` {
		t.Errorf("challenge %s", got)
	}
}

// TestManyAtOnce: tokens that were not seen before wait for their turn, they are not refused.
func TestManyAtOnce(t *testing.T) {
	p := authtest.New(t)
	a := newAuth(t, p, nil)
	var all sync.WaitGroup
	begin := make(chan struct{})
	for i := range 64 {
		r := ask(p.Sign(t, p.Claims(map[string]any{"jti": fmt.Sprint(i)}), nil))
		all.Go(func() {
			<-begin
			if code, refusal := status(a, r); code != http.StatusOK {
				t.Errorf("token %d: %d %v", i, code, refusal)
			}
		})
	}
	close(begin)
	all.Wait()
}

// TestIssuerAway: good tokens whose keys are known go on, others are asked to come again:
// a 401 would have their clients throw them away.
func TestIssuerAway(t *testing.T) {
	p := authtest.New(t)
	now := time.Now()
	a := newAuth(t, p, func(o *auth.Options) { o.Now = func() time.Time { return now } })
	p.Down.Store(true)
	token := p.Sign(t, p.Claims(map[string]any{"exp": now.Add(48 * time.Hour).Unix()}), nil)
	if code, refusal := status(a, ask(token)); code != http.StatusServiceUnavailable || refusal.RetryAfter <= 0 {
		t.Errorf("issuer away from the start: %d %+v", code, refusal)
	}
	p.Down.Store(false)
	now = now.Add(time.Minute)
	if code, refusal := status(a, ask(token)); code != http.StatusOK {
		t.Fatalf("issuer back: %d %+v", code, refusal)
	}
	p.Down.Store(true)
	now = now.Add(5 * time.Hour)
	if code, refusal := status(a, ask(token)); code != http.StatusOK {
		t.Errorf("issuer away for hours, known keys: %d %+v", code, refusal)
	}
	now = now.Add(20 * time.Hour)
	if code, refusal := status(a, ask(token)); code != http.StatusServiceUnavailable {
		t.Errorf("issuer away for more than a day: %d %+v", code, refusal)
	}
	p.Down.Store(false)
	now = now.Add(time.Minute)
	before := p.Fetched.Load()
	for range 3 {
		if code, refusal := status(a, ask(token)); code != http.StatusOK {
			t.Errorf("issuer back again: %d %+v", code, refusal)
		}
		now = now.Add(10 * time.Minute) // so that the token is looked at anew
	}
	time.Sleep(100 * time.Millisecond) // they would be fetched behind the requests
	if n := p.Fetched.Load() - before; n != 1 {
		t.Errorf("keys that are fresh were fetched %d times", n)
	}
}

func TestRevoke(t *testing.T) {
	p := authtest.New(t)
	a := newAuth(t, p, nil)
	one, two := p.Sign(t, p.Claims(nil), nil), p.Sign(t, p.Claims(map[string]any{"jti": "t2"}), nil)
	for _, token := range []string{one, two} {
		if code, refusal := status(a, ask(token)); code != http.StatusOK {
			t.Fatalf("%d %v", code, refusal)
		}
	}
	ended, err := a.Revoke(auth.Revocation{TokenID: "t1"})
	if err != nil || len(ended) != 1 || ended[0].ID != "alice" {
		t.Errorf("ended %v, %v", ended, err)
	}
	first, _ := status(a, ask(one))
	second, _ := status(a, ask(two))
	if first != http.StatusUnauthorized || second != http.StatusOK {
		t.Errorf("the revoked token: %d, another: %d", first, second)
	}
	if _, err := a.Revoke(auth.Revocation{Issuer: "corp", Subject: "alice"}); err != nil {
		t.Fatal(err)
	}
	later := p.Sign(t, p.Claims(map[string]any{"jti": "t3", "iat": time.Now().Add(30 * time.Second).Unix()}), nil)
	second, _ = status(a, ask(two))
	third, refusal := status(a, ask(later))
	if second != http.StatusUnauthorized || third != http.StatusOK {
		t.Errorf("a token of the subject: %d, one made later: %d %v", second, third, refusal)
	}
	if _, err := a.Revoke(auth.Revocation{Issuer: "corp"}); !errors.Is(err, auth.ErrNothing) {
		t.Errorf("a revocation of nothing: %v", err)
	}
}

// TestRevokedAlone: a revocation ends what it names, and nothing of other people, tenants or issuers.
func TestRevokedAlone(t *testing.T) {
	p, q := authtest.New(t), authtest.New(t)
	tokens := map[string]string{
		"alice":         p.Sign(t, p.Claims(map[string]any{"name": "alice", "org": "corp"}), nil),
		"alice of acme": p.Sign(t, p.Claims(map[string]any{"name": "alice", "org": "acme", "jti": "t2"}), nil),
		"bob":           p.Sign(t, p.Claims(map[string]any{"name": "bob", "org": "corp", "sub": nil, "jti": nil}), nil),
		"a partner":     q.Sign(t, q.Claims(nil), nil),
	}
	for name, tt := range map[string]struct {
		r    auth.Revocation
		ends []string
	}{
		"a token":                {auth.Revocation{Issuer: "corp", TokenID: "t1"}, []string{"alice"}},
		"a token of any issuer":  {auth.Revocation{TokenID: "t1"}, []string{"a partner", "alice"}},
		"a subject":              {auth.Revocation{Issuer: "corp", Subject: "alice"}, []string{"alice", "alice of acme"}},
		"a principal":            {auth.Revocation{Tenant: "corp", Principal: "corp%2Falice"}, []string{"alice"}},
		"a principal of acme":    {auth.Revocation{Tenant: "acme", Principal: "corp%2Falice"}, []string{"alice of acme"}},
		"tokens of long ago":     {auth.Revocation{Subject: "alice", Before: time.Now().Add(-time.Hour)}, nil},
		"a principal's, as long": {auth.Revocation{Tenant: "corp", Principal: "corp%2Falice", Before: time.Now().Add(-time.Hour)}, nil},
	} {
		a := newAuth(t, p, func(o *auth.Options) {
			o.Issuers[0].Claims.Tenant, o.Issuers[0].Claims.ID = "org", "name"
			o.Issuers = append(o.Issuers, auth.Issuer{Name: "partners", URL: q.URL, Fetch: auth.HTTPFetcher(q.Client())})
		})
		for who, token := range tokens {
			if code, refusal := status(a, ask(token)); code != http.StatusOK {
				t.Fatalf("%s: %d %v", who, code, refusal)
			}
		}
		if ended, err := a.Revoke(tt.r); err != nil || len(ended) != len(tt.ends) {
			t.Errorf("%s: ends %v, %v", name, ended, err)
		}
		var ends []string
		for who, token := range tokens {
			if code, _ := status(a, ask(token)); code != http.StatusOK {
				ends = append(ends, who)
			}
		}
		if slices.Sort(ends); !slices.Equal(ends, tt.ends) {
			t.Errorf("%s: ends those of %q, want %q", name, ends, tt.ends)
		}
	}
}

// TestRevokeAfterReread: a revocation also ends credentials that were let in before the configuration
// was read again, and they keep their handles.
func TestRevokeAfterReread(t *testing.T) {
	p := authtest.New(t)
	token := p.Sign(t, p.Claims(nil), nil)
	a := newAuth(t, p, nil)
	who, err := a.Principal(ask(token), authtest.Resource)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		before := a
		a = newAuth(t, p, func(o *auth.Options) { o.Before = before })
	}
	ended, err := a.Revoke(auth.Revocation{TokenID: "t1"})
	if err != nil || len(ended) != 1 || ended[0].Credential != who.Credential || ended[0].Owner != who.Owner {
		t.Errorf("ended %v, %v; want %v", ended, err, who)
	}
	if code, _ := status(a, ask(token)); code != http.StatusUnauthorized {
		t.Errorf("the revoked token: %d", code)
	}
}

// The id of a key holds neither what parts a key nor what begins a flag.
func TestKeyIDs(t *testing.T) {
	keys, err := auth.OpenKeys(t.Context(), state.File(filepath.Join(t.TempDir(), "keys.json")))
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		if secret, made, err := keys.Create(t.Context(), auth.Key{Name: "x", Principal: "ci"}); err != nil || strings.ContainsAny(made.ID, "-_") || !strings.HasPrefix(secret, apikey.Prefix+made.ID+"_") {
			t.Errorf("the id of a key is %q, %v", made.ID, err)
		}
	}
}

func TestAPIKeys(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state", "keys.json")
	keys, err := auth.OpenKeys(t.Context(), state.File(file))
	if err != nil {
		t.Fatal(err)
	}
	listed := &gate.Principal{Owner: gate.Owner{ID: "ci"}, Roles: []string{"dev", "ops"}}
	a, err := auth.New(auth.Options{Keys: keys, Principals: map[gate.Owner]*gate.Principal{listed.Owner: listed}})
	if err != nil {
		t.Fatal(err)
	}
	secret, key, err := keys.Create(t.Context(), auth.Key{Name: "build", Principal: "ci", Roles: []string{"dev", "admin"}})
	if err != nil {
		t.Fatal(err)
	}
	if code, refusal := status(newAuth(t, authtest.New(t), nil), ask(secret)); code != http.StatusUnauthorized || refusal.Code != "invalid_token" {
		t.Errorf("where no keys are taken: %d %+v", code, refusal)
	}
	raw, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(raw), secret[20:50]) {
		t.Errorf("the file holds the key, or %v", err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	for name, set := range map[string]func(*http.Request){
		"bearer":    func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+secret) },
		"X-API-Key": func(r *http.Request) { r.Header.Set("X-API-Key", secret) },
	} {
		r := ask("")
		set(r)
		who, err := a.Principal(r, resource)
		if err != nil || who.ID != "ci" || who.Auth != auth.APIKey || who.Client != key.ID || !slices.Equal(who.Roles, []string{"dev"}) {
			t.Errorf("%s: %+v, %v", name, who, err)
		}
	}
	flipped := []byte(secret)
	flipped[20] = map[bool]byte{true: 'B', false: 'A'}[flipped[20] == 'A']
	long := ask("")
	long.Header.Set("X-API-Key", secret+"x")
	if code, refusal := status(a, long); code != http.StatusUnauthorized || refusal.Code != "invalid_token" {
		t.Errorf("a longer one in X-API-Key: %d %+v", code, refusal)
	}
	for name, bad := range map[string]string{"changed": string(flipped), "cut": secret[:len(secret)-1], "its hash": key.Hash, "prefix alone": apikey.Prefix} {
		if code, _ := status(a, ask(bad)); code != http.StatusUnauthorized {
			t.Errorf("%s: %d", name, code)
		}
	}
	// Of another key's secret, with a checksum that is right.
	second, _, err := keys.Create(t.Context(), auth.Key{Principal: "ci", Expires: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	if code, refusal := status(a, ask(second)); code != http.StatusOK {
		t.Errorf("a key that has not ended: %d %v", code, refusal)
	}
	body := secret[:len(apikey.Prefix)+12] + second[len(apikey.Prefix)+12:len(second)-9]
	if code, _ := status(a, ask(fmt.Sprintf("%s_%08x", body, crc32.ChecksumIEEE([]byte(body))))); code != http.StatusUnauthorized {
		t.Errorf("one key's id with another's secret: %d", code)
	}
	if _, _, err := keys.Create(t.Context(), auth.Key{}); err == nil {
		t.Error("a key of nobody")
	}
	// Another process revokes it.
	other, err := auth.OpenKeys(t.Context(), state.File(file))
	if err == nil {
		err = other.Revoke(t.Context(), key.ID)
	}
	if err == nil {
		_, err = keys.Reread(t.Context())
	}
	if code, refusal := status(a, ask(secret)); err != nil || code != http.StatusUnauthorized {
		t.Errorf("revoked: %d %v, %v", code, refusal, err)
	}
	if err := keys.Revoke(t.Context(), "nobody"); !errors.Is(err, auth.ErrNoKey) {
		t.Errorf("a key that is not there: %v", err)
	}
	gone, _, err := keys.Create(t.Context(), auth.Key{Principal: "ci", Expires: time.Now().Add(-time.Second)})
	if code, refusal := status(a, ask(gone)); err != nil || code != http.StatusUnauthorized || refusal.Description != "the token has expired" {
		t.Errorf("expired: %d %+v, %v", code, refusal, err)
	}
	stray, _, err := keys.Create(t.Context(), auth.Key{Principal: "nobody"})
	if code, _ := status(a, ask(stray)); err != nil || code != http.StatusForbidden {
		t.Errorf("of nobody: %d, %v", code, err)
	}
	for name, text := range map[string]string{"no digest": `{"keys":[{"id":"x","sha256":"","principal":"ci"}]}`, "half a digest": `{"keys":[{"id":"x","sha256":"00","principal":"ci"}]}`, "no JSON": "{"} {
		bad := filepath.Join(t.TempDir(), "keys.json")
		if err := os.WriteFile(bad, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := auth.OpenKeys(t.Context(), state.File(bad)); err == nil {
			t.Errorf("%s: the file is taken", name)
		}
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := auth.OpenKeys(t.Context(), state.File(file)); err == nil {
		t.Error("a file that others may read is taken")
	}
}

// TestNamesOfIssuers: with several issuers, a proxy cannot name a principal that belongs to one of the
// issuers.
func TestNamesOfIssuers(t *testing.T) {
	p, q := authtest.New(t), authtest.New(t)
	a := newAuth(t, p, func(o *auth.Options) {
		o.Issuers = append(o.Issuers, auth.Issuer{Name: "partners", URL: q.URL, Fetch: auth.HTTPFetcher(q.Client())})
		o.Proxy = &auth.Proxy{Socket: true, User: "X-User"}
	})
	for name, want := range map[string]int{"alice": 200, "sales/alice": 200, "corp": 200, "corp/alice": 403, "partners/alice": 403, strings.Repeat("a", 129): 403} {
		r := ask("")
		r = r.WithContext(auth.WithPeer(r.Context(), auth.Peer{Unix: true, Proxy: true}))
		r.Header.Set("X-User", name)
		if code, refusal := status(a, r); code != want {
			t.Errorf("%s: %d %v, want %d", name, code, refusal, want)
		}
	}
}

// TestEmptyID: a token with an empty id identifies no one, both with one issuer and with several, whose
// names are put before the id.
func TestEmptyID(t *testing.T) {
	p, q := authtest.New(t), authtest.New(t)
	for name, more := range map[string]func(*auth.Options){
		"one issuer": func(*auth.Options) {},
		"several": func(o *auth.Options) {
			o.Issuers = append(o.Issuers, auth.Issuer{Name: "partners", URL: q.URL, Fetch: auth.HTTPFetcher(q.Client())})
		},
	} {
		a := newAuth(t, p, more)
		for sub, want := range map[string]int{"": 403, "alice": 200} {
			if code, refusal := status(a, ask(p.Sign(t, p.Claims(map[string]any{"sub": sub}), nil))); code != want {
				t.Errorf("%s, sub %q: %d %v, want %d", name, sub, code, refusal, want)
			}
		}
	}
}

func TestBadOptions(t *testing.T) {
	fetch := func(*http.Client) auth.Fetcher { return auth.HTTPFetcher(http.DefaultClient) }(nil)
	for name, issuers := range map[string][]auth.Issuer{
		"HS256":        {{Name: "a", URL: "https://a.example", Fetch: fetch, Algorithms: []string{"HS256"}}},
		"none":         {{Name: "a", URL: "https://a.example", Fetch: fetch, Algorithms: []string{"none"}}},
		"http":         {{Name: "a", URL: "http://a.example", Fetch: fetch}},
		"with a query": {{Name: "a", URL: "https://a.example/?x", Fetch: fetch}},
		"no host":      {{Name: "a", URL: "https:///a", Fetch: fetch}},
		"a fragment":   {{Name: "a", URL: "https://a.example/#x", Fetch: fetch}},
		"a user":       {{Name: "a", URL: "https://u@a.example", Fetch: fetch}},
		"ftp":          {{Name: "a", URL: "ftp://127.0.0.1", Fetch: fetch}},
		"keys by http": {{Name: "a", URL: "https://a.example", KeysURL: "http://a.example/keys", Fetch: fetch}},
		"twice":        {{Name: "a", URL: "https://a.example", Fetch: fetch}, {Name: "b", URL: "https://a.example", Fetch: fetch}},
		"a name twice": {{Name: "a", URL: "https://a.example", Fetch: fetch}, {Name: "a", URL: "https://b.example", Fetch: fetch}},
		"no keys":      {{Name: "a", URL: "https://a.example"}},
		"broken keys":  {{Name: "a", URL: "https://a.example", Keys: []byte(`{"keys":[]}`)}},
	} {
		if _, err := auth.New(auth.Options{Issuers: issuers}); err == nil {
			t.Errorf("%s: taken", name)
		} else if !strings.Contains(err.Error(), "issuer") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func BenchmarkPrincipal(b *testing.B) {
	p := authtest.New(b)
	keys, err := auth.OpenKeys(b.Context(), state.File(filepath.Join(b.TempDir(), "keys.json")))
	if err != nil {
		b.Fatal(err)
	}
	secret, _, err := keys.Create(b.Context(), auth.Key{Principal: "ci"})
	if err != nil {
		b.Fatal(err)
	}
	listed := &gate.Principal{Owner: gate.Owner{ID: "ci"}}
	a := newAuth(b, p, func(o *auth.Options) {
		o.Keys, o.Principals = keys, map[gate.Owner]*gate.Principal{listed.Owner: listed}
	})
	for name, text := range map[string]string{"bearer": p.Sign(b, p.Claims(nil), nil), "apikey": secret} {
		b.Run(fmt.Sprintf("%s/bytes=%d", name, len(text)), func(b *testing.B) {
			r := ask(text)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := a.Principal(r, resource); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestRevokedByAFastIssuer: a token that has been let in was made before the revocation, also if the clock of its issuer is ahead
// of ours.
func TestRevokedByAFastIssuer(t *testing.T) {
	p := authtest.New(t)
	a := newAuth(t, p, nil)
	ahead := time.Now().Add(40 * time.Second)
	token := p.Sign(t, p.Claims(map[string]any{"iat": ahead.Unix()}), nil)
	if code, refusal := status(a, ask(token)); code != http.StatusOK {
		t.Fatalf("%d %v", code, refusal)
	}
	if _, err := a.Revoke(auth.Revocation{Subject: "alice", Before: time.Now().Add(-time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if code, refusal := status(a, ask(token)); code != http.StatusOK {
		t.Fatalf("a revocation of what was made long ago: %d %v", code, refusal)
	}
	ended, err := a.Revoke(auth.Revocation{Subject: "alice"})
	if err != nil || len(ended) != 1 {
		t.Errorf("ended %v, %v", ended, err)
	}
	if code, _ := status(a, ask(token)); code != http.StatusUnauthorized {
		t.Errorf("the revoked token: %d", code)
	}
	later := p.Sign(t, p.Claims(map[string]any{"jti": "t2", "iat": ahead.Add(2 * time.Second).Unix()}), nil)
	if code, refusal := status(a, ask(later)); code != http.StatusOK {
		t.Errorf("a token that was made later: %d %v", code, refusal)
	}
}

// TestStrangersForgetNobody: however many bad tokens strangers send, callers that were let in are
// remembered, and what they have under way ends when their token is revoked.
func TestStrangersForgetNobody(t *testing.T) {
	p := authtest.New(t)
	a := newAuth(t, p, nil)
	for n := range 100 {
		if code, refusal := status(a, ask(p.Sign(t, p.Claims(map[string]any{"jti": fmt.Sprint("t", n)}), nil))); code != http.StatusOK {
			t.Fatalf("%d %v", code, refusal)
		}
	}
	for n := range 12_000 {
		if code, _ := status(a, ask(fmt.Sprint("x", n))); code != http.StatusUnauthorized {
			t.Fatal(code)
		}
	}
	if ended, err := a.Revoke(auth.Revocation{Subject: "alice"}); err != nil || len(ended) != 100 {
		t.Errorf("ends %d of 100, %v", len(ended), err)
	}
}

// TestNoTurn: a token whose signature has to be verified waits for a turn, and is refused for a second when there is none. A caller
// that is known, or has a key, needs no turn.
func TestNoTurn(t *testing.T) {
	p := authtest.New(t)
	keys, err := auth.OpenKeys(t.Context(), state.File(filepath.Join(t.TempDir(), "keys.json")))
	if err != nil {
		t.Fatal(err)
	}
	ci := &gate.Principal{Owner: gate.Owner{ID: "ci"}, Roles: []string{"dev"}}
	secret, _, err := keys.Create(t.Context(), auth.Key{Name: "build", Principal: "ci"})
	if err != nil {
		t.Fatal(err)
	}
	a := newAuth(t, p, func(o *auth.Options) { o.Keys, o.Principals = keys, map[gate.Owner]*gate.Principal{ci.Owner: ci} })
	known := p.Sign(t, p.Claims(nil), nil)
	if code, refusal := status(a, ask(known)); code != http.StatusOK {
		t.Fatalf("%d %v", code, refusal)
	}
	a.TakeTurns()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	unknown := p.Sign(t, p.Claims(map[string]any{"jti": "another"}), nil)
	if code, _ := status(a, ask(unknown).WithContext(ctx)); code != http.StatusServiceUnavailable {
		t.Errorf("an unknown token: %d", code)
	}
	for name, token := range map[string]string{"known": known, "key": secret} {
		if code, refusal := status(a, ask(token)); code != http.StatusOK {
			t.Errorf("%s: %d %v", name, code, refusal)
		}
	}
}

// TestTokensWithoutID: two tokens of one person and client that have no id are two credentials.
func TestTokensWithoutID(t *testing.T) {
	p := authtest.New(t)
	a := newAuth(t, p, nil)
	names := map[string]bool{}
	for n := range 3 {
		who, err := a.Principal(ask(p.Sign(t, p.Claims(map[string]any{"jti": nil, "iat": time.Now().Add(-time.Duration(n) * time.Minute).Unix()}), nil)), resource)
		if err != nil {
			t.Fatal(err)
		}
		names[who.Credential] = true
	}
	if len(names) != 3 {
		t.Errorf("three tokens have %d names", len(names))
	}
}

// TestRevokedAfterTheEnd: a revocation also ends what was begun with a token that has ended since, as jobs are.
func TestRevokedAfterTheEnd(t *testing.T) {
	p := authtest.New(t)
	now := time.Now()
	a := newAuth(t, p, func(o *auth.Options) { o.Now = func() time.Time { return now } })
	token := p.Sign(t, p.Claims(nil), nil)
	for _, want := range []int{http.StatusOK, http.StatusUnauthorized} {
		if code, refusal := status(a, ask(token)); code != want {
			t.Fatalf("%d %v", code, refusal)
		}
		now = now.Add(2 * time.Hour)
	}
	if ended, err := a.Revoke(auth.Revocation{TokenID: "t1"}); err != nil || len(ended) != 1 {
		t.Errorf("ended %v, %v", ended, err)
	}
	now = now.Add(24 * time.Hour)
	if ended, err := a.Revoke(auth.Revocation{TokenID: "t1"}); err != nil || len(ended) != 0 {
		t.Errorf("a day later ended %v, %v", ended, err)
	}
}
