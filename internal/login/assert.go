package login

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/go-jose/go-jose/v4"
)

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

// readKey reads a private key, and says with which algorithm it signs (RFC 7518, 3.1; RFC 8037).
func readKey(path string) (key any, alg jose.SignatureAlgorithm, err error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, "", err
	}
	block, _ := pem.Decode(raw)
	if block == nil {
		return nil, "", errors.New("the file has no PEM")
	}
	switch block.Type {
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	default:
		err = fmt.Errorf("the file has %q, and no private key that is not encrypted", block.Type)
	}
	if err != nil {
		return nil, "", err
	}
	switch k := key.(type) {
	case *rsa.PrivateKey:
		if k.N.BitLen() >= 2048 {
			return k, jose.RS256, nil
		}
	case *ecdsa.PrivateKey:
		switch k.Curve {
		case elliptic.P256():
			return k, jose.ES256, nil
		case elliptic.P384():
			return k, jose.ES384, nil
		}
	case ed25519.PrivateKey:
		return k, jose.EdDSA, nil
	}
	return nil, "", errors.New("it cannot be used to sign: it must be RSA of 2048 bits or more, P-256, P-384 or Ed25519")
}
