package signature

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
)

// A Key is a public key, by which a signer is known. It may be used from several
// goroutines.
type Key struct {
	public any // *ecdsa.PublicKey or ed25519.PublicKey
	id     string
}

// ParseKey reads a public key in PEM, as cosign.pub has it: ECDSA, or Ed25519.
func ParseKey(text []byte) (*Key, error) {
	block, rest := pem.Decode(text)
	switch {
	case block == nil:
		return nil, errors.New("it is not a key in PEM, such as cosign.pub")
	case strings.Contains(block.Type, "PRIVATE"):
		return nil, errors.New("it is a private key, which only the signer should have: name the public key, such as cosign.pub")
	case block.Type != "PUBLIC KEY":
		return nil, fmt.Errorf("it is a %.40q, not a PUBLIC KEY", block.Type)
	case strings.TrimSpace(string(rest)) != "":
		return nil, errors.New("the file has more than one key; write one key for each file")
	}
	public, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("read the key: %w", err)
	}
	switch public.(type) {
	case *ecdsa.PublicKey, ed25519.PublicKey:
	default:
		return nil, errors.New("the key is neither ECDSA nor Ed25519, the kinds that cosign makes")
	}
	sum := sha256.Sum256(block.Bytes)
	return &Key{public, "sha256:" + hex.EncodeToString(sum[:])}, nil
}

// ID names the key: the SHA-256 of its DER form (SubjectPublicKeyInfo), as
// `openssl pkey -pubin -in cosign.pub -outform der | sha256sum` prints it.
func (k *Key) ID() string { return k.id }

// A Subject is what is to be signed.
type Subject struct {
	// File are the bytes of a file; nil if it is none.
	File []byte
	// Digest is the SHA-256 of the file, or of the manifest of an artifact, in hex.
	Digest string
	// Reference is registry/repository, of an artifact.
	Reference string
}

var (
	errKey  = errors.New("the signature was made with another key or over other content")
	errNone = errors.New("the signature is empty or missing")
)

// verify checks a signature over a message. ECDSA is over SHA-256, or the digest that suits
// the curve; Ed25519 is over the message, or over its SHA-512 (Ed25519ph).
func (k *Key) verify(message, sig []byte) error {
	ok := false
	switch public := k.public.(type) {
	case *ecdsa.PublicKey:
		sum := sha256.Sum256(message)
		ok = ecdsa.VerifyASN1(public, sum[:], sig)
		if bits := public.Curve.Params().BitSize; !ok && bits > 256 {
			sum := sha512.Sum512(message)
			if bits == 384 {
				sum384 := sha512.Sum384(message)
				ok = ecdsa.VerifyASN1(public, sum384[:], sig)
			} else {
				ok = ecdsa.VerifyASN1(public, sum[:], sig)
			}
		}
	case ed25519.PublicKey:
		ok = ed25519.Verify(public, message, sig)
		if !ok {
			sum := sha512.Sum512(message)
			ok = ed25519.VerifyWithOptions(public, sum[:], sig, &ed25519.Options{Hash: crypto.SHA512}) == nil
		}
	}
	if !ok {
		return errKey
	}
	return nil
}

// MaxBundle bounds a bundle and a payload, in bytes: those of cosign have some thousand.
const MaxBundle = 1 << 20

// CheckBundle returns nil if the bundle holds one signature, by the key, of the subject.
func (k *Key) CheckBundle(bundle []byte, s Subject) error {
	if len(bundle) > MaxBundle {
		return fmt.Errorf("the signature bundle has %d bytes, more than the %d that are allowed", len(bundle), MaxBundle)
	}
	b, err := gate.ParseDoc(bundle)
	if err != nil {
		return fmt.Errorf("the signature bundle is not acceptable JSON: %w", err)
	}
	if !b.Get("base64Signature").IsZero() {
		return k.checkOld(b, s)
	}
	if kind := b.Get("mediaType").Text(); !strings.HasPrefix(kind, "application/vnd.dev.sigstore.bundle") {
		return fmt.Errorf("it is not a signature bundle of cosign: its mediaType is %.80q", kind)
	}
	material := b.Get("verificationMaterial")
	if !material.Get("certificate").IsZero() || !material.Get("x509CertificateChain").IsZero() {
		return errCertificate
	}
	message, envelope := b.Get("messageSignature"), b.Get("dsseEnvelope")
	switch {
	case !message.IsZero() && !envelope.IsZero():
		return errors.New("the signature bundle has both a messageSignature and a dsseEnvelope: sign again, so that it has one")
	case !message.IsZero():
		return k.checkMessage(message, s)
	case !envelope.IsZero():
		return k.checkEnvelope(envelope, s)
	}
	return errNone
}

var errCertificate = errors.New("it is signed with a certificate (keyless), which is not checked: sign with a key, cosign sign --key, or sign-blob --key")

// checkOld checks a bundle as cosign made it before version 3.
func (k *Key) checkOld(b gate.Doc, s Subject) error {
	if b.Get("cert").Text() != "" {
		return errCertificate
	}
	return k.checkBlob(b.Get("base64Signature"), s)
}

// checkMessage checks a signature of a file.
func (k *Key) checkMessage(m gate.Doc, s Subject) error {
	if digest := m.Get("messageDigest"); !digest.IsZero() {
		sum, err := base64.StdEncoding.DecodeString(digest.Get("digest").Text())
		if err != nil || digest.Get("algorithm").Text() != "SHA2_256" || hex.EncodeToString(sum) != s.Digest {
			return errors.New("it is the signature of another file: its messageDigest does not match this file")
		}
	}
	return k.checkBlob(m.Get("signature"), s)
}

func (k *Key) checkBlob(signature gate.Doc, s Subject) error {
	if s.File == nil {
		return errors.New("it is the signature of a file (cosign sign-blob), not of an artifact in a registry (cosign sign)")
	}
	sig, err := base64.StdEncoding.DecodeString(signature.Text())
	if err != nil || len(sig) == 0 {
		return errNone
	}
	return k.verify(s.File, sig)
}

// What a statement that is a signature is (in-toto/attestation, spec/v1/statement.md, and
// cosign). Another predicate says something about its subject, which may be that it is bad.
const (
	envelopePayload    = "application/vnd.in-toto+json"
	statementType      = "https://in-toto.io/Statement/v1"
	signaturePredicate = "https://sigstore.dev/cosign/sign/v1"
)

// checkEnvelope checks a signed statement (DSSE, protocol.md).
func (k *Key) checkEnvelope(e gate.Doc, s Subject) error {
	var sigs []gate.Doc
	for one := range e.Get("signatures").Elements() {
		sigs = append(sigs, one)
	}
	if len(sigs) == 0 {
		return errNone
	}
	if len(sigs) > 1 {
		return fmt.Errorf("the envelope has %d signatures; exactly one is allowed", len(sigs))
	}
	payload, err := base64.StdEncoding.DecodeString(e.Get("payload").Text())
	if err != nil {
		return fmt.Errorf("the envelope's payload: %w", err)
	}
	sig, err := base64.StdEncoding.DecodeString(sigs[0].Get("sig").Text())
	if err != nil || len(sig) == 0 {
		return errNone
	}
	kind := e.Get("payloadType").Text()
	if err := k.verify(fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(kind), kind, len(payload), payload), sig); err != nil {
		return err
	}
	statement, err := gate.ParseDoc(payload)
	if err != nil || kind != envelopePayload || statement.Get("_type").Text() != statementType {
		return errors.New("the signed content is not an in-toto statement: sign the artifact with cosign sign")
	}
	if p := statement.Get("predicateType").Text(); p != signaturePredicate {
		return fmt.Errorf("the bundle has an attestation (%.80q) and not a signature: sign the artifact with cosign sign", p)
	}
	for one := range statement.Get("subject").Elements() {
		if one.At("/digest/sha256").Text() == s.Digest {
			return nil
		}
	}
	return errOther
}

var errOther = errors.New("it is the signature of another artifact: its digest does not match this artifact")

// CheckPayload returns nil if sig is a signature, by the key, of a payload of "simple
// signing" that names the subject (containers/image, docs/containers-signature.5.md).
func (k *Key) CheckPayload(payload, sig []byte, s Subject) error {
	if len(sig) == 0 {
		return errNone
	}
	if err := k.verify(payload, sig); err != nil {
		return err
	}
	p, err := gate.ParseDoc(payload)
	critical := p.Get("critical")
	if err != nil || critical.Get("type").Text() != "cosign container image signature" {
		return errors.New("the signed content is not a payload of cosign: sign the artifact with cosign sign")
	}
	if critical.At("/image/docker-manifest-digest").Text() != "sha256:"+s.Digest {
		return errOther
	}
	if name := critical.At("/identity/docker-reference").Text(); name != "" && name != s.Reference {
		return fmt.Errorf("it was signed as %.200q, not as %s: if it is a copy, say so with verify.signed_as", name, s.Reference)
	}
	return nil
}
