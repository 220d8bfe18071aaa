package login

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/wasmgate/wasmgate/internal/auth/authtest"
)

// keep writes a private key to a file.
func keep(t *testing.T, path, kind string, raw []byte, err error) {
	t.Helper()
	if err == nil {
		err = os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A client proves itself with a key of any common kind, only to its authorization server, and anew each
// time. No request contains the key, and a new key in the file is used at once.
func TestPrivateKey(t *testing.T) {
	p256, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]crypto.Signer{"P-256": p256, "P-384": p384, "RSA": rsaKey, "Ed25519": ed} {
		t.Run(name, func(t *testing.T) {
			as := authtest.NewOAuth(t)
			as.KeyClient("robot", jose.JSONWebKey{Key: key.Public(), KeyID: "k1"})
			path := filepath.Join(t.TempDir(), "key.pem")
			raw, err := x509.MarshalPKCS8PrivateKey(key)
			keep(t, path, "PRIVATE KEY", raw, err)
			r := newRig(t, as, "", func(s *Server) { s.Mode, s.ClientID, s.PrivateKey, s.KeyID = ClientCreds, "robot", path, "k1" })
			for range 2 {
				if got, err := r.call(t, principal(alice), Need{Scopes: []string{"read"}, TTL: 1}); err != nil || got != "robot" {
					t.Fatalf("%q, %v", got, err)
				}
			}
			seen := map[string]bool{}
			for _, form := range as.Asked() {
				seen[form.Get("client_assertion")] = true
				if form.Has("client_secret") {
					t.Error("a secret is sent")
				}
			}
			if len(seen) != 2 {
				t.Errorf("%d assertions for two tokens", len(seen))
			}
		})
	}
	as := authtest.NewOAuth(t)
	as.KeyClient("robot", jose.JSONWebKey{Key: p256.Public()})
	path := filepath.Join(t.TempDir(), "key.pem")
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Skip("no weak key can be made: ", err)
	}
	r := newRig(t, as, "", func(s *Server) { s.Mode, s.ClientID, s.PrivateKey = ClientCreds, "robot", path })
	refused := func(want string) {
		t.Helper()
		_, err := r.call(t, principal(alice), Need{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	refused("no such file")
	if err := os.WriteFile(path, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused("no PEM")
	keep(t, path, "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(weak), nil)
	refused("2048 bits")
	keep(t, path, "ENCRYPTED PRIVATE KEY", []byte{1}, nil)
	refused("not encrypted")
	raw, err := x509.MarshalECPrivateKey(p384)
	keep(t, path, "EC PRIVATE KEY", raw, err)
	refused("invalid_client")
	raw, err = x509.MarshalECPrivateKey(p256)
	keep(t, path, "EC PRIVATE KEY", raw, err)
	if got, err := r.call(t, principal(alice), Need{}); err != nil || got != "robot" {
		t.Errorf("with the right key in the file: %q, %v", got, err)
	}
}
