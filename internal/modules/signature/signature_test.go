package signature_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/modules/signature"
)

// A signer signs as cosign does.
type signer struct {
	crypto.Signer
	t testing.TB
}

func newSigner(t testing.TB, curve elliptic.Curve) signer {
	var key crypto.Signer
	var err error
	if curve == nil {
		_, key, err = ed25519.GenerateKey(rand.Reader)
	} else {
		key, err = ecdsa.GenerateKey(curve, rand.Reader)
	}
	if err != nil {
		t.Fatal(err)
	}
	return signer{key, t}
}

func (s signer) pem() []byte {
	der, err := x509.MarshalPKIXPublicKey(s.Public())
	if err != nil {
		s.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

func (s signer) key() *signature.Key {
	k, err := signature.ParseKey(s.pem())
	if err != nil {
		s.t.Fatal(err)
	}
	return k
}

func (s signer) sign(message []byte) []byte {
	sum, hash := sha256.Sum256(message), crypto.Hash(0)
	if _, ok := s.Signer.(*ecdsa.PrivateKey); ok {
		message, hash = sum[:], crypto.SHA256
	}
	sig, err := s.Sign(rand.Reader, message, hash)
	if err != nil {
		s.t.Fatal(err)
	}
	return sig
}

func b64(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

type object = map[string]any

func text(o object) []byte {
	b, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return b
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

const bundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"

// blob is a bundle of sign-blob.
func (s signer) blob(file []byte) object {
	sum := sha256.Sum256(file)
	return object{
		"mediaType":            bundleType,
		"verificationMaterial": object{"publicKey": object{"hint": "x"}},
		"messageSignature":     object{"messageDigest": object{"algorithm": "SHA2_256", "digest": b64(sum[:])}, "signature": b64(s.sign(file))},
	}
}

// statement is a bundle with a statement about a digest.
func (s signer) statement(about, predicate string) object {
	payload := text(object{"_type": "https://in-toto.io/Statement/v1", "subject": []object{{"digest": object{"sha256": about}}}, "predicateType": predicate})
	return s.envelope("application/vnd.in-toto+json", payload)
}

func (s signer) envelope(kind string, payload []byte) object {
	pae := fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(kind), kind, len(payload), payload)
	return object{
		"mediaType":            bundleType,
		"verificationMaterial": object{"publicKey": object{"hint": "x"}},
		"dsseEnvelope":         object{"payload": b64(payload), "payloadType": kind, "signatures": []object{{"sig": b64(s.sign(pae))}}},
	}
}

const signs = "https://sigstore.dev/cosign/sign/v1"

var module = []byte("\x00asm\x01\x00\x00\x00")

func subject(file []byte) signature.Subject {
	return signature.Subject{File: file, Digest: digest(file), Reference: "example.com/a/b"}
}

func TestBundles(t *testing.T) {
	for name, curve := range map[string]elliptic.Curve{"P-256": elliptic.P256(), "P-384": elliptic.P384(), "P-521": elliptic.P521(), "Ed25519": nil} {
		s := newSigner(t, curve)
		for kind, bundle := range map[string]object{
			"sign-blob":              s.blob(module),
			"sign-blob, before":      {"base64Signature": b64(s.sign(module)), "cert": "", "rekorBundle": object{}},
			"sign, with a statement": s.statement(digest(module), signs),
		} {
			if err := s.key().CheckBundle(text(bundle), subject(module)); err != nil {
				t.Errorf("%s, %s: %v", name, kind, err)
			}
		}
	}
}

// With returns an object with another member, which may be absent, at a path of names.
func with(o object, v any, path ...string) object {
	out := object{}
	for k, v := range o {
		out[k] = v
	}
	switch {
	case len(path) > 1:
		out[path[0]] = with(out[path[0]].(object), v, path[1:]...)
	case v == nil:
		delete(out, path[0])
	default:
		out[path[0]] = v
	}
	return out
}

func TestHostileBundles(t *testing.T) {
	s, other := newSigner(t, elliptic.P256()), newSigner(t, elliptic.P256())
	blob, about := s.blob(module), s.statement(digest(module), signs)
	foreign := []byte("another file")
	swapped := with(blob, s.blob(foreign)["messageSignature"].(object)["signature"], "messageSignature", "signature")
	envelope := about["dsseEnvelope"].(object)
	two := append(envelope["signatures"].([]object), other.statement(digest(module), signs)["dsseEnvelope"].(object)["signatures"].([]object)...)
	for name, tt := range map[string]struct {
		bundle []byte
		want   string
	}{
		"of another key":                      {text(other.blob(module)), "with another key or"},
		"of another key, a statement":         {text(other.statement(digest(module), signs)), "with another key or"},
		"of another key, before":              {text(object{"base64Signature": b64(other.sign(module))}), "with another key or"},
		"of another file":                     {text(s.blob(foreign)), "another file"},
		"of another file, under this digest":  {text(swapped), "with another key or over other content"},
		"of another file, before":             {text(object{"base64Signature": b64(s.sign(foreign))}), "over other content"},
		"about another digest":                {text(s.statement(digest(foreign), signs)), "another artifact"},
		"an attestation":                      {text(s.statement(digest(module), "https://slsa.dev/provenance/v1")), "an attestation"},
		"a payload of another type":           {text(s.envelope("text/plain", module)), "not an in-toto statement"},
		"the type is not what was signed":     {text(with(about, "text/plain", "dsseEnvelope", "payloadType")), "over other content"},
		"another payload under the signature": {text(with(about, b64([]byte(`{"_type":"x"}`)), "dsseEnvelope", "payload")), "over other content"},
		"two signatures":                      {text(with(about, two, "dsseEnvelope", "signatures")), "has 2 signatures"},
		"no signatures":                       {text(with(about, []object{}, "dsseEnvelope", "signatures")), "signature is empty or missing"},
		"a message and an envelope":           {text(with(blob, envelope, "dsseEnvelope")), "both a messageSignature and a dsseEnvelope"},
		"a certificate":                       {text(with(blob, object{"rawBytes": "AA=="}, "verificationMaterial", "certificate")), "keyless"},
		"a chain of certificates":             {text(with(blob, object{}, "verificationMaterial", "x509CertificateChain")), "keyless"},
		"a certificate, before":               {text(object{"base64Signature": b64(s.sign(module)), "cert": "AA=="}), "keyless"},
		"nothing":                             {nil, "not acceptable JSON"},
		"an empty object":                     {[]byte("{}"), "not a signature bundle of cosign"},
		"a bundle of nothing":                 {text(with(blob, nil, "messageSignature")), "signature is empty or missing"},
		"an empty signature":                  {text(with(blob, "", "messageSignature", "signature")), "signature is empty or missing"},
		"an empty signature, before":          {text(object{"base64Signature": ""}), "signature is empty or missing"},
		"names that stand twice":              {append([]byte(`{"mediaType":"x",`), text(blob)[1:]...), "not acceptable JSON"},
		"a bundle without an end":             {text(blob)[:40], "not acceptable JSON"},
		"too large":                           {append(text(blob), strings.Repeat(" ", signature.MaxBundle)...), "that are allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			err := s.key().CheckBundle(tt.bundle, subject(module))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
	of := subject(module)
	of.File = nil // an artifact of this digest
	if err := s.key().CheckBundle(text(blob), of); err == nil {
		t.Error("the signature of a file was taken for that of an artifact")
	}
}

// payload is what cosign signs for an artifact.
func payload(digest, reference, kind string) []byte {
	return text(object{"critical": object{"identity": object{"docker-reference": reference}, "image": object{"docker-manifest-digest": "sha256:" + digest}, "type": kind}, "optional": nil})
}

func TestPayloads(t *testing.T) {
	const kind = "cosign container image signature"
	s, other := newSigner(t, elliptic.P256()), newSigner(t, elliptic.P256())
	of := signature.Subject{Digest: digest(module), Reference: "example.com/a/b"}
	good := payload(of.Digest, of.Reference, kind)
	for name, tt := range map[string]struct {
		payload, sig []byte
		want         string // "" is a signature
	}{
		"a signature":              {good, s.sign(good), ""},
		"without a reference":      {payload(of.Digest, "", kind), s.sign(payload(of.Digest, "", kind)), ""},
		"of another key":           {good, other.sign(good), "with another key or"},
		"of another digest":        {payload(digest(nil), of.Reference, kind), s.sign(payload(digest(nil), of.Reference, kind)), "another artifact"},
		"of another reference":     {payload(of.Digest, "example.com/other", kind), s.sign(payload(of.Digest, "example.com/other", kind)), "signed_as"},
		"of another type":          {payload(of.Digest, of.Reference, "x"), s.sign(payload(of.Digest, of.Reference, "x")), "not a payload of cosign"},
		"of another payload":       {good, s.sign([]byte("x")), "over other content"},
		"without a signature":      {good, nil, "signature is empty or missing"},
		"of what is not JSON":      {[]byte("x"), s.sign([]byte("x")), "not a payload of cosign"},
		"of the artifact's digest": {[]byte(of.Digest), s.sign([]byte(of.Digest)), "not a payload of cosign"},
	} {
		t.Run(name, func(t *testing.T) {
			err := s.key().CheckPayload(tt.payload, tt.sig, of)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
}

func TestKeys(t *testing.T) {
	s := newSigner(t, elliptic.P256())
	der, err := x509.MarshalPKIXPublicKey(s.Public())
	if err != nil {
		t.Fatal(err)
	}
	if id := s.key().ID(); id != "sha256:"+digest(der) {
		t.Errorf("it is %s", id)
	}
	private, err := x509.MarshalPKCS8PrivateKey(s.Signer)
	if err != nil {
		t.Fatal(err)
	}
	old, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ofRSA, err := x509.MarshalPKIXPublicKey(old.Public())
	if err != nil {
		t.Fatal(err)
	}
	for want, text := range map[string][]byte{
		"not a key in PEM":          []byte("x"),
		"private":                   pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED SIGSTORE PRIVATE KEY", Bytes: private}),
		"not a PUBLIC KEY":          pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		"more than one key":         append(s.pem(), s.pem()...),
		"read the key":              pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: []byte("x")}),
		"neither ECDSA nor Ed25519": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: ofRSA}),
	} {
		if _, err := signature.ParseKey(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
