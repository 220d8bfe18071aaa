package authtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const (
	idJAG     = "urn:ietf:params:oauth:token-type:id-jag"
	jwtBearer = "urn:ietf:params:oauth:grant-type:jwt-bearer"
)

// An idJAGs holds what an OAuth needs to be an identity provider, or to accept the word of one.
type idJAGs struct {
	key     *ecdsa.PrivateKey
	clients map[string]string // ids of clients at the authorization servers they may use, by issuer
	trusted []*OAuth
	denial  string // error code of each exchange
	life    time.Duration

	// ChangeAssertion and ChangeExchange change an ID-JAG before it is signed, and the answer that
	// has it. They are set before the first request.
	ChangeAssertion func(header, claims map[string]any)
	ChangeExchange  func(answer map[string]any)
	// ChangeIdentity changes the claims of ID tokens.
	ChangeIdentity func(claims map[string]any)
}

func newIDJAGs() idJAGs {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err) // rand never fails
	}
	return idJAGs{key: key, clients: map[string]string{}, life: time.Hour}
}

// Vouches has o give ID-JAGs for an authorization server, to a client by this id there.
func (o *OAuth) Vouches(to *OAuth, client string) {
	o.set(func() { o.clients[to.URL] = client })
	to.set(func() { to.trusted = append(to.trusted, o) })
}

// Denies has each exchange for an ID-JAG fail with an error code; "" ends that.
func (o *OAuth) Denies(code string) { o.set(func() { o.denial = code }) }

// IdentityLife is how long the next ID tokens hold.
func (o *OAuth) IdentityLife(d time.Duration) { o.set(func() { o.idJAGs.life = d }) }

// IDToken returns an ID token of a person for a client.
func (o *OAuth) IDToken(user, client string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.idToken(user, client)
}

func (o *OAuth) idToken(user, client string) string {
	now := time.Now()
	claims := map[string]any{"iss": o.URL, "sub": user, "aud": client, "iat": now.Unix(), "exp": now.Add(o.idJAGs.life).Unix()}
	if o.ChangeIdentity != nil {
		o.ChangeIdentity(claims)
	}
	return o.sign(map[string]any{"typ": "JWT"}, claims)
}

func (o *OAuth) sign(header, claims map[string]any) string {
	options := &jose.SignerOptions{}
	for name, v := range header {
		options.WithHeader(jose.HeaderKey(name), v)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: o.key}, options)
	if err != nil {
		panic(err)
	}
	raw, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	signed, err := signer.Sign(raw)
	if err != nil {
		panic(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		panic(err)
	}
	return text
}

type vouched struct {
	Iss, Sub, Aud, Jti, Resource, Scope string
	Client                              string `json:"client_id"`
	Exp                                 int64
}

// verified reads a token of o's own.
func (o *OAuth) verified(text, typ string) (c vouched, ok bool) {
	signed, err := jose.ParseSignedCompact(text, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil || signed.Signatures[0].Header.ExtraHeaders[jose.HeaderType] != typ {
		return c, false
	}
	raw, err := signed.Verify(&o.key.PublicKey)
	ok = err == nil && json.Unmarshal(raw, &c) == nil && c.Iss == o.URL && c.Exp > time.Now().Unix()
	return c, ok
}

// vouch answers an exchange of an ID token for an ID-JAG.
func (o *OAuth) vouch(w http.ResponseWriter, client string, form url.Values) {
	in, ok := o.verified(form.Get("subject_token"), "JWT")
	known := o.clients[form.Get("audience")]
	switch {
	case o.denial != "":
		fail(w, o.denial)
		return
	case !ok || in.Aud != client || form.Get("subject_token_type") != "urn:ietf:params:oauth:token-type:id_token":
		fail(w, "invalid_grant")
		return
	case known == "":
		fail(w, "invalid_target")
		return
	}
	now := time.Now()
	header := map[string]any{"typ": "oauth-id-jag+jwt"}
	claims := map[string]any{
		"iss": o.URL, "sub": in.Sub, "aud": form.Get("audience"), "client_id": known, "resource": form.Get("resource"), "scope": form.Get("scope"),
		"jti": rand.Text(), "iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix(),
	}
	if o.ChangeAssertion != nil {
		o.ChangeAssertion(header, claims)
	}
	answer := map[string]any{"issued_token_type": idJAG, "access_token": o.sign(header, claims), "token_type": "N_A", "expires_in": 300, "scope": form.Get("scope")}
	if o.ChangeExchange != nil {
		o.ChangeExchange(answer)
	}
	o.vouchedFor = append(o.vouchedFor, answer["access_token"].(string))
	o.count[idJAG]++
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// believe reads an ID-JAG of an identity provider that is trusted, once.
func (o *OAuth) believe(client string, form url.Values, g *granted) bool {
	for _, idp := range o.trusted {
		c, ok := idp.verified(form.Get("assertion"), "oauth-id-jag+jwt")
		if !ok || c.Aud != o.URL || c.Client != client || c.Jti == "" || o.jtis[c.Jti] || form.Get("resource") != "" && form.Get("resource") != c.Resource {
			continue
		}
		o.jtis[c.Jti] = true
		g.user, g.resource = c.Sub, c.Resource
		g.scope = strings.Join(slices.DeleteFunc(strings.Fields(g.scope), func(s string) bool { return !slices.Contains(strings.Fields(c.Scope), s) }), " ")
		return true
	}
	return false
}
