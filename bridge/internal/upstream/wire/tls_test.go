package wire_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
)

// certificate returns a new certificate for 127.0.0.1, with the SHA-256 of its key.
func certificate(t *testing.T) (tls.Certificate, *x509.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(parsed.RawSubjectPublicKeyInfo)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, parsed, hex.EncodeToString(sum[:])
}

// The key of a certificate is reported if that is asked for. While the gateway is connected, it
// makes no connection with another key: a server with another trusted certificate gets no request.
func TestTLSKey(t *testing.T) {
	first, firstRoot, want := certificate(t)
	second, secondRoot, _ := certificate(t)
	roots := x509.NewCertPool()
	roots.AddCert(firstRoot)
	roots.AddCert(secondRoot)
	var shown atomic.Pointer[tls.Certificate]
	shown.Store(&first)
	var requests atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	s.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return &tls.Config{Certificates: []tls.Certificate{*shown.Load()}}, nil
	}}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	client, key, err := wire.NewPinnedClient(s.URL, roots)
	if err != nil {
		t.Fatal(err)
	}
	get := func() error {
		resp, err := client.Get(s.URL)
		if err == nil {
			resp.Body.Close()
		}
		client.CloseIdleConnections()
		return err
	}
	if err := errors.Join(get(), get()); err != nil || key() != want {
		t.Fatalf("key = %q, want %q: %v", key(), want, err)
	}
	before := requests.Load()
	shown.Store(&second)
	if err := get(); err == nil || !strings.Contains(err.Error(), "key of the server's certificate has changed") {
		t.Errorf("err = %v", err)
	}
	if requests.Load() != before || key() != want {
		t.Error("a request went to another key")
	}
}
