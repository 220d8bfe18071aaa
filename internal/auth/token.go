package auth

import (
	"encoding/base64"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

// Bounds of a token, in bytes.
const (
	maxToken  = 8 << 10
	maxHeader = 1 << 10
)

// A token is one that is well formed: three parts in the one base64 that each value
// has, a header without members that change how the token is read, claims without
// duplicates. Nothing of it is verified.
type token struct {
	text           string
	header, claims gate.Doc
	alg, kid, typ  string
}

// Members of a header that would have a verifier fetch keys from elsewhere, or read
// the token in another way (RFC 7515, 4.1; RFC 7797).
var forbiddenHeaders = []string{"jku", "jwk", "x5u", "x5c", "crit", "b64", "zip", "enc", "epk"}

// parseToken reads a JWT in compact form, stricter than RFC 7515 asks: of two spellings
// of one token one is refused, so that none passes by a second reading.
func parseToken(text string) (*token, *Refusal) {
	if len(text) > maxToken {
		return nil, invalid("the token has more than %d bytes", maxToken)
	}
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return nil, invalid("the token has %d parts; a signed token has three", len(parts))
	}
	if len(parts[0]) > maxHeader {
		return nil, invalid("its header has more than %d bytes", maxHeader)
	}
	for _, part := range parts {
		if !strictBase64(part) {
			return nil, invalid("it has a part that is not canonical base64url")
		}
	}
	t := &token{text: text}
	var err error
	if t.header, err = jsonObject(parts[0]); err != nil {
		return nil, invalid("the header: %v", err)
	}
	if t.claims, err = jsonObject(parts[1]); err != nil {
		return nil, invalid("the claims: %v", err)
	}
	for name := range t.header.Members() {
		if slices.Contains(forbiddenHeaders, name) {
			return nil, invalid("its header has %s", name)
		}
	}
	for name, to := range map[string]*string{"alg": &t.alg, "kid": &t.kid, "typ": &t.typ} {
		if v := t.header.Get(name); !v.IsZero() {
			if v.Kind() != doc.String {
				return nil, invalid("its header has a %s that is not a string", name)
			}
			*to = v.Text()
		}
	}
	// A token for a client about a person is none for a resource (OpenID Connect Core, 2).
	for _, name := range []string{"nonce", "at_hash", "c_hash"} {
		if !t.claims.Get(name).IsZero() {
			return nil, invalid("it is an ID token, not an access token: it has %s", name)
		}
	}
	return t, nil
}

var base64url = base64.RawURLEncoding.Strict()

// strictBase64 reports whether the text is the one spelling of its bytes: no padding,
// no line breaks, no bits that are left over.
func strictBase64(text string) bool {
	if text == "" || strings.ContainsAny(text, "\r\n") { // the decoder skips those
		return false
	}
	_, err := base64url.DecodeString(text)
	return err == nil
}

type notObject struct{}

func (notObject) Error() string { return "it is not a JSON object" }

func jsonObject(part string) (gate.Doc, error) {
	raw, err := base64url.DecodeString(part)
	if err != nil {
		return gate.Doc{}, err
	}
	d, err := gate.ParseDoc(raw)
	if err == nil && d.Kind() != doc.Object {
		err = notObject{}
	}
	return d, err
}
