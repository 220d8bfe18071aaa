package login

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"

	"github.com/go-jose/go-jose/v4"
)

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
