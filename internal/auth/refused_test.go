package auth_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/wasmgate/wasmgate/internal/auth"
	"github.com/wasmgate/wasmgate/internal/auth/authtest"
)

// TestKeySets: of a set of keys those verify that are public, large enough, meant for signatures, and the only ones of their
// name; a set that is ambiguous or too large is none.
func TestKeySets(t *testing.T) {
	t.Setenv("GODEBUG", "rsa1024min=0") // weak keys are made, to be refused
	p := authtest.New(t)
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	key := func(key any, id string, more string) string {
		raw, err := jose.JSONWebKey{Key: key, KeyID: id}.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSuffix(string(raw), "}") + more + "}"
	}
	good, ec := key(p.RSA.Public(), "rsa", ""), key(p.EC.Public(), "ec", "")
	many := []string{good}
	for i := range 64 {
		many = append(many, key(p.EC.Public(), fmt.Sprint(i), ""))
	}
	nameless := authtest.SignWith(t, jose.SigningKey{Algorithm: jose.RS256, Key: p.RSA}, p.Claims(nil), nil)
	named := p.Sign(t, p.Claims(nil), nil)
	huge := &rsa.PublicKey{N: new(big.Int).SetBit(big.NewInt(1), 8200, 1), E: 65537}
	hugely := authtest.SignWith(t, jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: p.RSA, KeyID: "huge"}}, p.Claims(nil), nil)
	weakly := authtest.SignWith(t, jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: weak, KeyID: "weak"}}, p.Claims(nil), nil)
	for name, tt := range map[string]struct {
		keys  []string
		token string
		want  int
	}{
		"a good key":                      {[]string{good, ec}, named, 200},
		"for verifying":                   {[]string{key(p.RSA.Public(), "rsa", `,"key_ops":["verify"]`)}, named, 200},
		"the only one, without a name":    {[]string{good, ec}, nameless, 200},
		"one of two, without a name":      {[]string{good, key(other.Public(), "other", "")}, nameless, 503},
		"a weak key":                      {[]string{good, key(weak.Public(), "weak", "")}, weakly, 503},
		"a key that is work":              {[]string{good, key(huge, "huge", "")}, hugely, 503},
		"a secret key":                    {[]string{key(p.RSA, "rsa", ""), ec}, named, 503},
		"for encryption":                  {[]string{key(p.RSA.Public(), "rsa", `,"use":"enc"`), ec}, named, 503},
		"for wrapping keys":               {[]string{key(p.RSA.Public(), "rsa", `,"key_ops":["wrapKey"]`), ec}, named, 503},
		"for another algorithm":           {[]string{key(p.RSA.Public(), "rsa", `,"alg":"PS256"`), ec}, named, 401},
		"two of one name":                 {[]string{good, key(other.Public(), "rsa", "")}, named, 503},
		"a symmetric key":                 {[]string{`{"kty":"oct","k":"AAAA","kid":"rsa"}`}, named, 503},
		"more than 64 keys":               {many, named, 503},
		"a member twice":                  {[]string{strings.Replace(good, "{", `{"kid":"x",`, 1)}, named, 503},
		"of half a megabyte and a little": {[]string{good, `{"kty":"x","n":"` + strings.Repeat("A", 512<<10) + `"}`}, named, 503},
	} {
		set := `{"keys":[` + strings.Join(tt.keys, ",") + `]}`
		a := newAuth(t, p, func(o *auth.Options) {
			o.Issuers[0].KeysURL, o.Issuers[0].Fetch = p.URL+"/keys", func(context.Context, string) (io.ReadCloser, error) {
				return io.NopCloser(strings.NewReader(set)), nil
			}
		})
		if code, refusal := status(a, ask(tt.token)); code != tt.want {
			t.Errorf("%s: %d %v, want %d", name, code, refusal, tt.want)
		}
	}
}

// TestForeignIssuerMetadata: keys come only from the issuer that was asked.
func TestForeignIssuerMetadata(t *testing.T) {
	p := authtest.New(t)
	a := newAuth(t, p, func(o *auth.Options) {
		fetch := o.Issuers[0].Fetch
		o.Issuers[0].Fetch = func(ctx context.Context, url string) (io.ReadCloser, error) {
			if strings.HasSuffix(url, "/keys") {
				return fetch(ctx, url)
			}
			raw, err := json.Marshal(map[string]string{"issuer": "https://evil.example", "jwks_uri": p.URL + "/keys"})
			return io.NopCloser(strings.NewReader(string(raw))), err
		}
	})
	if code, refusal := status(a, ask(p.Sign(t, p.Claims(nil), nil))); code != http.StatusServiceUnavailable || p.Fetched.Load() != 0 {
		t.Errorf("%d %v, and %d keys were fetched", code, refusal, p.Fetched.Load())
	}
}

// TestClaims: a token must have the claims that the configuration asks for, or it is not let in.
func TestClaims(t *testing.T) {
	p := authtest.New(t)
	for name, tt := range map[string]struct {
		claims map[string]any
		change func(*auth.Issuer)
		want   int
	}{
		"a verified e-mail":      {map[string]any{"email": "a@b.example", "email_verified": true}, func(i *auth.Issuer) { i.Claims.ID = "email" }, 200},
		"an e-mail":              {map[string]any{"email": "a@b.example"}, func(i *auth.Issuer) { i.Claims.ID = "email" }, 403},
		"an e-mail, by pointer":  {map[string]any{"email": "a@b.example"}, func(i *auth.Issuer) { i.Claims.ID = "/email" }, 403},
		"an unverified e-mail":   {map[string]any{"email": "a@b.example", "email_verified": "true"}, func(i *auth.Issuer) { i.Claims.ID = "email" }, 403},
		"a tenant":               {map[string]any{"org": "acme"}, func(i *auth.Issuer) { i.Claims.Tenant = "org" }, 200},
		"no tenant":              {nil, func(i *auth.Issuer) { i.Claims.Tenant = "org" }, 403},
		"an empty tenant":        {map[string]any{"org": ""}, func(i *auth.Issuer) { i.Claims.Tenant = "org" }, 403},
		"a group":                {nil, func(i *auth.Issuer) { i.Claims.Groups, i.Groups = "groups", map[string]string{"all": "docs"} }, 200},
		"no group":               {map[string]any{"groups": []string{"x"}}, func(i *auth.Issuer) { i.Claims.Groups, i.Groups = "groups", map[string]string{"all": "docs"} }, 403},
		"young enough":           {nil, func(i *auth.Issuer) { i.MaxAge = time.Hour }, 200},
		"too old":                {map[string]any{"iat": time.Now().Add(-2 * time.Hour).Unix()}, func(i *auth.Issuer) { i.MaxAge = time.Hour }, 401},
		"of no age":              {map[string]any{"iat": nil}, func(i *auth.Issuer) { i.MaxAge = time.Hour }, 401},
		"bound by an unknown":    {map[string]any{"cnf": map[string]any{"jkt": "x", "x5t#S256": "y"}}, func(*auth.Issuer) {}, 401},
		"bound to nothing":       {map[string]any{"cnf": map[string]any{}}, func(*auth.Issuer) {}, 401},
		"of another audience":    {map[string]any{"aud": "api://gw"}, func(i *auth.Issuer) { i.Audience = []string{"api://gw"} }, 200},
		"of an audience unlike":  {map[string]any{"aud": "api://gw/x"}, func(i *auth.Issuer) { i.Audience = []string{"api://gw"} }, 401},
		"of several audiences":   {map[string]any{"aud": []any{"x", 5, resource}}, func(*auth.Issuer) {}, 200},
		"of several others":      {map[string]any{"aud": []any{"x", 5, []string{resource}}}, func(*auth.Issuer) {}, 401},
		"of no audience":         {map[string]any{"aud": nil}, func(*auth.Issuer) {}, 401},
		"bound to a certificate": {map[string]any{"cnf": map[string]any{"x5t#S256": "y"}}, func(*auth.Issuer) {}, 401},
	} {
		a := newAuth(t, p, func(o *auth.Options) { tt.change(&o.Issuers[0]) })
		if code, refusal := status(a, ask(p.Sign(t, p.Claims(tt.claims), nil))); code != tt.want {
			t.Errorf("%s: %d %v, want %d", name, code, refusal, tt.want)
		}
	}
}

// TestBound: a token that is bound to a certificate is taken only with that certificate. One that is
// bound to more is never taken.
func TestBound(t *testing.T) {
	p := authtest.New(t)
	a := newAuth(t, p, nil)
	shown := &x509.Certificate{Raw: []byte("shown")}
	sum := sha256.Sum256(shown.Raw)
	thumbprint := base64.RawURLEncoding.EncodeToString(sum[:])
	for name, tt := range map[string]struct {
		cnf  map[string]any
		tls  *tls.ConnectionState
		want int
	}{
		"shown":            {map[string]any{"x5t#S256": thumbprint}, &tls.ConnectionState{PeerCertificates: []*x509.Certificate{shown}}, 200},
		"another":          {map[string]any{"x5t#S256": thumbprint}, &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{Raw: []byte("another")}}}, 401},
		"the second":       {map[string]any{"x5t#S256": thumbprint}, &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{Raw: []byte("another")}, shown}}, 401},
		"none":             {map[string]any{"x5t#S256": thumbprint}, &tls.ConnectionState{}, 401},
		"no TLS":           {map[string]any{"x5t#S256": thumbprint}, nil, 401},
		"shown, and a key": {map[string]any{"x5t#S256": thumbprint, "jkt": "x"}, &tls.ConnectionState{PeerCertificates: []*x509.Certificate{shown}}, 401},
	} {
		r := ask(p.Sign(t, p.Claims(map[string]any{"cnf": tt.cnf}), nil))
		r.TLS = tt.tls
		if code, refusal := status(a, r); code != tt.want {
			t.Errorf("%s: %d %v, want %d", name, code, refusal, tt.want)
		}
	}
}

// TestMapped: of the values of a claim those are roles that the configuration maps, whole or by their beginning; the claim may lie deeper.
func TestMapped(t *testing.T) {
	p := authtest.New(t)
	a := newAuth(t, p, func(o *auth.Options) {
		o.Issuers[0].Claims.Roles = "/realm/roles"
		o.Issuers[0].Roles = map[string]string{"admin": "root", "eng-*": "dev", "eng": "other", "*x": "none"}
	})
	for said, want := range map[string]string{
		"admin": "root", "administrators": "", "Admin": "", "eng-a": "dev", "eng-": "dev", "eng": "other", "my-eng-a": "", "ax": "", "*x": "none", "eng-* admin": "dev root", "": "",
	} {
		who, err := a.Principal(ask(p.Sign(t, p.Claims(map[string]any{"realm": map[string]any{"roles": strings.Fields(said)}}), nil)), resource)
		if err != nil || strings.Join(who.Roles, " ") != want {
			t.Errorf("%q is mapped to %q, %v; want %q", said, who.Roles, err, want)
		}
	}
	if who, err := a.Principal(ask(p.Sign(t, p.Claims(nil), nil)), resource); err != nil || len(who.Roles) != 0 {
		t.Errorf("without the claim: %+v, %v", who, err)
	}
}

// TestTwoIssuers: the same subject of two issuers is two principals.
func TestTwoIssuers(t *testing.T) {
	p, q := authtest.New(t), authtest.New(t)
	a := newAuth(t, p, func(o *auth.Options) {
		o.Issuers = append(o.Issuers, auth.Issuer{Name: "partners", URL: q.URL, Fetch: auth.HTTPFetcher(q.Client())})
	})
	for want, from := range map[string]*authtest.Provider{"corp%2Falice": p, "partners%2Falice": q} {
		if who, err := a.Principal(ask(from.Sign(t, from.Claims(nil), nil)), resource); err != nil || who.ID != want {
			t.Errorf("%+v, %v; want %s", who, err, want)
		}
	}
}

// TestRemembered: a token is not good for longer than it says, and no more than so many are remembered, for one resource each.
func TestRemembered(t *testing.T) {
	p := authtest.New(t)
	now := time.Now()
	a := newAuth(t, p, func(o *auth.Options) { o.Now = func() time.Time { return now } })
	token := p.Sign(t, p.Claims(map[string]any{"exp": now.Add(time.Second).Unix()}), nil)
	if code, refusal := status(a, ask(token)); code != 200 {
		t.Fatalf("%d %v", code, refusal)
	}
	if _, err := a.Principal(ask(token), resource+"/other"); err == nil {
		t.Error("what was let in at one resource is let in at another")
	}
	now = now.Add(2 * time.Minute)
	if code, _ := status(a, ask(token)); code != http.StatusUnauthorized {
		t.Errorf("after its end: %d", code)
	}
}

// TestBounds: however many strangers come, and however many people are named, the memory for them is
// bounded.
func TestBounds(t *testing.T) {
	p := authtest.New(t)
	a := newAuth(t, p, func(o *auth.Options) { o.Proxy = &auth.Proxy{Socket: true, User: "X-User"} })
	for i := range 20_050 {
		r := ask("")
		r = r.WithContext(auth.WithPeer(r.Context(), auth.Peer{Unix: true, Proxy: true}))
		r.Header.Set("X-User", fmt.Sprint("u", i))
		if code, refusal := status(a, r); code != 200 {
			t.Fatalf("%d %v", code, refusal)
		}
		if code, _ := status(a, ask(fmt.Sprint("x", i))); code != 401 {
			t.Fatalf("%d", code)
		}
	}
	if tokens, people := a.Remembers(); tokens < 1000 || tokens > 10_000 || people < 1 || people > 20_000 {
		t.Errorf("%d tokens and %d people are remembered", tokens, people)
	}
}
