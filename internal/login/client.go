package login

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// A client is who the gateway is at an authorization server.
type client struct {
	ID     string `json:"id"`
	Secret string `json:"secret,omitempty"`
	Method string `json:"method"`        // none, client_secret_basic, client_secret_post or private_key_jwt
	Key    string `json:"key,omitempty"` // path of the file that has the private key
	KeyID  string `json:"key_id,omitempty"`
}

// DocumentPath is where the gateway's own client metadata document is, below its public URL.
const DocumentPath = "/oauth/client.json"

// Where browsers come back to below the public URL: from a login at a server, and from signing
// in at the gateway itself.
const (
	ConnectPath = "/connect/callback"
	SignInPath  = "/connect/signin"
	// LoopbackPath is where they come back to at an address of this machine.
	LoopbackPath = "/callback"
)

// client returns who the gateway is at the authorization server of a place: whom the
// configuration names, or its own document, or whom it registers there (MCP 2026-07-28,
// basic/authorization, "Client Registration").
func (s *Server) client(ctx context.Context, p *place, redirect, public string) (client, error) {
	if s.ClientID != "" {
		return s.configured(p), nil
	}
	if strings.HasPrefix(public, "https://") && p.ClientIDMetadataDocumentSupported {
		return client{ID: public + DocumentPath, Method: "none"}, nil
	}
	if p.RegistrationEndpoint == "" {
		return client{}, fmt.Errorf("%s registers no clients by itself: register one there with the redirect URL %s, and write its id to %s", p.Issuer, redirect, s.clientKey())
	}
	return register(ctx, s, p, redirect) // each time: the port of the redirect is another
}

// register makes a client (RFC 7591).
func register(ctx context.Context, s *Server, p *place, redirect string) (client, error) {
	method := "client_secret_basic" // what an absent list means (RFC 8414, 2)
	for _, m := range []string{"none", "client_secret_basic", "client_secret_post"} {
		if slices.Contains(p.TokenEndpointAuthMethodsSupported, m) {
			method = m
			break
		}
	}
	kind := "native"
	if strings.HasPrefix(redirect, "https://") {
		kind = "web"
	}
	got, err := oauthex.RegisterClient(ctx, p.RegistrationEndpoint, &oauthex.ClientRegistrationMetadata{
		ClientName: "wasmgate", RedirectURIs: []string{redirect}, ApplicationType: kind, TokenEndpointAuthMethod: method,
		GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
	}, s.Client)
	if refused, ok := errors.AsType[*oauthex.ClientRegistrationError](err); ok {
		return client{}, fmt.Errorf("%s does not register wasmgate as a client: %s", p.Issuer, word(refused.ErrorCode))
	}
	if err != nil { // whose text may hold all that was answered
		return client{}, fmt.Errorf("%s does not register wasmgate as a client", p.Issuer)
	}
	c := client{ID: got.ClientID, Secret: got.ClientSecret, Method: got.TokenEndpointAuthMethod}
	if c.Method == "" {
		c.Method = method
	}
	if c.Secret == "" {
		c.Method = "none"
	}
	return c, nil
}

// configured is the client that the configuration names.
func (s *Server) configured(p *place) client {
	if s.PrivateKey != "" {
		return client{ID: s.ClientID, Method: "private_key_jwt", Key: s.PrivateKey, KeyID: s.KeyID}
	}
	return client{ID: s.ClientID, Secret: s.ClientSecret, Method: methodOf(s.ClientSecret, p.TokenEndpointAuthMethodsSupported)}
}

// methodOf chooses how a client with a secret proves itself.
func methodOf(secret string, supported []string) string {
	switch {
	case secret == "":
		return "none"
	case !slices.Contains(supported, "client_secret_basic") && slices.Contains(supported, "client_secret_post"):
		return "client_secret_post"
	}
	return "client_secret_basic"
}

// proves puts the client into a request to an endpoint of an issuer (RFC 6749, 2.3; RFC 7523, 2.2).
func (c client) proves(issuer string, now time.Time, form url.Values, h http.Header) error {
	switch c.Method {
	case "private_key_jwt":
		assertion, err := c.assertion(issuer, now)
		if err != nil {
			return err
		}
		form.Set("client_id", c.ID)
		form.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
		form.Set("client_assertion", assertion)
	case "client_secret_basic":
		r := http.Request{Header: h}
		r.SetBasicAuth(url.QueryEscape(c.ID), url.QueryEscape(c.Secret))
	case "client_secret_post":
		form.Set("client_id", c.ID)
		form.Set("client_secret", c.Secret)
	default:
		form.Set("client_id", c.ID)
	}
	return nil
}

// assertTime is how long an assertion holds: it is made for one request.
const assertTime = time.Minute

// assertion proves the client to an issuer, once (RFC 7523, 2.2 and 3). It is for the issuer
// alone: one that named an endpoint could be shown to another who says that it is theirs.
func (c client) assertion(issuer string, now time.Time) (string, error) {
	key, alg, err := readKey(c.Key)
	if err != nil {
		return "", fmt.Errorf("the private key of client %s: %w", c.ID, err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: jose.JSONWebKey{Key: key, KeyID: c.KeyID}}, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return "", err
	}
	claims, err := json.Marshal(map[string]any{"iss": c.ID, "sub": c.ID, "aud": issuer, "iat": now.Unix(), "exp": now.Add(assertTime).Unix(), "jti": rand.Text()})
	if err != nil {
		return "", err
	}
	signed, err := signer.Sign(claims)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}
