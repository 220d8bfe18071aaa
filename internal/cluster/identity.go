package cluster

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"time"
)

// everyone is the name that all certificates are for. The gateway is in the common name: names of
// gateways are not always names of hosts.
const everyone = "gateway.wasmgate.internal"

// identity returns the TLS configuration of a gateway among those that have its key.
func identity(node string, key []byte) (*tls.Config, error) {
	if len(key) != ed25519.SeedSize {
		return nil, fmt.Errorf("cluster: a key of %d bytes; it needs %d", len(key), ed25519.SeedSize)
	}
	authority := ed25519.NewKeyFromSeed(key)
	// Both certificates last as long as the secret does, so that no clock matters.
	from, to := time.Unix(0, 0), time.Unix(4e9, 0)
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "wasmgate cluster"}, NotBefore: from, NotAfter: to,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, ca, ca, authority.Public(), authority)
	if err != nil {
		return nil, err
	}
	if ca, err = x509.ParseCertificate(raw); err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	public, own, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: node}, DNSNames: []string{everyone}, NotBefore: from, NotAfter: to,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	if raw, err = x509.CreateCertificate(rand.Reader, leaf, ca, public, authority); err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"}, ServerName: everyone,
		Certificates: []tls.Certificate{{Certificate: [][]byte{raw}, PrivateKey: own}},
		RootCAs:      roots, ClientCAs: roots, ClientAuth: tls.RequireAndVerifyClientCert,
	}, nil
}
