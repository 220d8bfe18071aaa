// Package authtest provides an authorization server for tests: its metadata, its keys, and tokens of
// it, valid ones and others.
package authtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Resource is what tokens are for unless a test says otherwise.
const Resource = "https://gw.example.com/mcp"

// A Provider is an authorization server: its metadata, its keys, and tokens of them.
type Provider struct {
	*httptest.Server
	RSA     *rsa.PrivateKey
	EC      *ecdsa.PrivateKey
	Fetched atomic.Int64 // how often its keys were
	Down    atomic.Bool
}

// New returns a provider that ends with the test.
func New(t testing.TB) *Provider {
	t.Helper()
	p := &Provider{RSA: ownRSA(t)}
	var err error
	if p.EC, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	p.Server = httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(p.Close)
	return p
}

// spare are the RSA keys of providers that have ended: making one takes longer than most tests.
var spare = make(chan *rsa.PrivateKey, 8)

// ownRSA returns a key that no one else uses until the test ends.
func ownRSA(t testing.TB) *rsa.PrivateKey {
	t.Helper()
	var key *rsa.PrivateKey
	select {
	case key = <-spare:
	default:
		var err error
		if key, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		select {
		case spare <- key:
		default:
		}
	})
	return key
}

func (p *Provider) serve(w http.ResponseWriter, r *http.Request) {
	if p.Down.Load() {
		http.Error(w, "down", http.StatusBadGateway)
		return
	}
	switch r.URL.Path {
	case "/.well-known/openid-configuration": // as those do that are no OAuth servers but OpenID providers
		_ = json.NewEncoder(w).Encode(map[string]string{"issuer": p.URL, "jwks_uri": p.URL + "/keys"})
	case "/keys":
		p.Fetched.Add(1)
		_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{
			{Key: p.RSA.Public(), KeyID: "rsa", Use: "sig", Algorithm: "RS256"}, {Key: p.EC.Public(), KeyID: "ec", Use: "sig"},
		}})
	default:
		http.NotFound(w, r)
	}
}

// Claims are those of a good token, with changes; nil takes one away.
func (p *Provider) Claims(changes map[string]any) map[string]any {
	now := time.Now()
	all := map[string]any{
		"iss": p.URL, "sub": "alice", "aud": Resource, "exp": now.Add(time.Hour).Unix(), "iat": now.Unix(),
		"jti": "t1", "client_id": "agent", "scope": "mcp other", "groups": []string{"eng-tools", "all"},
	}
	for name, v := range changes {
		if all[name] = v; v == nil {
			delete(all, name)
		}
	}
	return all
}

// Sign makes a token of the RSA key.
func (p *Provider) Sign(t testing.TB, claims any, header map[string]any) string {
	t.Helper()
	return SignWith(t, jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: p.RSA, KeyID: "rsa"}}, claims, header)
}

// SignWith makes a token of any key.
func SignWith(t testing.TB, key jose.SigningKey, claims any, header map[string]any) string {
	t.Helper()
	o := (&jose.SignerOptions{}).WithType("at+jwt")
	for name, v := range header {
		o.WithHeader(jose.HeaderKey(name), v)
	}
	signer, err := jose.NewSigner(key, o)
	if err != nil {
		t.Fatal(err)
	}
	raw, ok := claims.([]byte)
	if !ok {
		if raw, err = json.Marshal(claims); err != nil {
			t.Fatal(err)
		}
	}
	signed, err := signer.Sign(raw)
	if err != nil {
		t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}
