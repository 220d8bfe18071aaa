package modules

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/config/manifest"
	"github.com/wasmgate/wasmgate/internal/files"
	"github.com/wasmgate/wasmgate/internal/modules/artifact"
	"github.com/wasmgate/wasmgate/internal/modules/signature"
	"github.com/wasmgate/wasmgate/sandbox"
)

// signer returns the id of the key that has signed a module, "" if no signature is required. The bytes
// are those that are run.
func (r Reader) signer(ctx context.Context, m config.Module, wasm []byte) (string, error) {
	if m.Embedded() {
		return "", nil
	}
	if m.Verify == nil {
		return "", unsigned(m)
	}
	key, err := publicKey(m.Verify)
	if err != nil {
		return "", err
	}
	if err := r.verify(ctx, key, m, wasm); err != nil {
		return "", fmt.Errorf("%s is not signed by %s (%s): %w", m.Path+m.Ref, m.Verify.Key, key.ID(), err)
	}
	return key.ID(), nil
}

func publicKey(v *config.SignedBy) (*signature.Key, error) {
	text, err := os.ReadFile(v.Key)
	if err != nil {
		return nil, fmt.Errorf("verify.key: %w", err)
	}
	key, err := signature.ParseKey(text)
	if err != nil {
		return nil, fmt.Errorf("verify.key %s: %w", v.Key, err)
	}
	return key, nil
}

// manifest returns the manifest next to a module, nil if there is none, or the module carries
// the same. If the module has to be signed, so has the manifest: it decides what the module
// runs.
func (r Reader) manifest(m config.Module, wasm []byte) (*sandbox.Manifest, error) {
	file, err := manifest.Read(m.Path)
	if err != nil || file == nil {
		return nil, err
	}
	manifest, err := parsed(file)
	if err != nil || sandbox.Carries(wasm, *manifest) {
		return nil, err
	}
	if m.Verify != nil {
		key, err := publicKey(m.Verify)
		if err != nil {
			return nil, err
		}
		bundle, err := os.ReadFile(manifestBundle(m))
		if err == nil {
			err = key.CheckBundle(bundle, subjectOf(file.Source))
		}
		if err != nil {
			return nil, fmt.Errorf("the manifest %s is not signed by %s (%s), and the module's signature does not cover it: %w; put it into the module with `wasmgate sandbox manifest --embed %s` and sign that, or sign the manifest, too: `cosign sign-blob --key cosign.key --bundle %s %s`",
				file.File, m.Verify.Key, key.ID(), err, m.Path, manifestBundle(m), file.File)
		}
	}
	return manifest, nil
}

// manifestBundle is where the bundle of the manifest next to a module is looked for.
func manifestBundle(m config.Module) string { return manifest.File(m.Path) + ".sigstore.json" }

// subjectOf is a file, as something that is signed.
func subjectOf(file []byte) signature.Subject {
	sum := sha256.Sum256(file)
	return signature.Subject{File: file, Digest: hex.EncodeToString(sum[:])}
}

// unsigned refuses a module that names no signature if all modules have to be signed.
func unsigned(m config.Module) error {
	switch {
	case !m.MustSign:
		return nil
	case m.Dev:
		return errors.New("tools_verify: required lets no module in development be run: develop it under another configuration")
	}
	return errors.New("tools_verify: required lets only signed modules be run: sign it with `cosign sign-blob --key cosign.key --bundle FILE.sigstore.json FILE`, or in a registry `cosign sign --key cosign.key`, and name the public key with verify: {key: cosign.pub}")
}

// verify returns nil if a module is signed by a key.
func (r Reader) verify(ctx context.Context, key *signature.Key, m config.Module, wasm []byte) error {
	if m.Ref == "" || m.Verify.Bundle != "" {
		bundle, err := os.ReadFile(bundleFile(m))
		if err != nil {
			return fmt.Errorf("its signature bundle: %w; `cosign sign-blob --key cosign.key --bundle` writes one, and verify.bundle names another file", err)
		}
		return key.CheckBundle(bundle, subjectOf(wasm))
	}
	return r.verifyArtifact(ctx, key, m)
}

// verifyArtifact returns nil if the registry has a signature of an artifact by a key. There may be
// signatures by others as well.
func (r Reader) verifyArtifact(ctx context.Context, key *signature.Key, m config.Module) error {
	ref, err := artifact.Parse(m.Ref)
	if err != nil {
		return err
	}
	subject := signature.Subject{Digest: strings.TrimPrefix(ref.Digest, "sha256:"), Reference: ref.Registry + "/" + ref.Repository}
	if m.Verify.SignedAs != "" {
		subject.Reference = m.Verify.SignedAs
	}
	known := filepath.Join(r.Dir, "artifacts", "signature-"+subject.Digest)
	if s, err := readSignature(known); err == nil && check(key, s, subject) == nil {
		return nil
	}
	store, err := r.artifacts()
	if err != nil {
		return err
	}
	all, err := store.Signatures(ctx, m.Ref)
	if err != nil {
		return err
	}
	var errs []error
	for _, s := range all {
		err := check(key, s, subject)
		if err == nil {
			r.keepSignature(known, s)
			return nil
		}
		errs = append(errs, err)
	}
	if len(errs) == 0 {
		return errors.New("the registry has no signature of it; add one with `cosign sign --key cosign.key`, or name a file with one in verify.bundle")
	}
	return errors.Join(errs...)
}

func check(key *signature.Key, s artifact.Signature, of signature.Subject) error {
	if s.Bundle != nil {
		return key.CheckBundle(s.Bundle, of)
	}
	return key.CheckPayload(s.Payload, s.Sig, of)
}

// keepSignature keeps a signature that was found, so that the next start needs no registry.
// It is checked again then.
func (r Reader) keepSignature(path string, s artifact.Signature) {
	b, err := json.Marshal(s)
	if err == nil {
		err = files.Replace(path, b, 0o600)
	}
	if err != nil {
		r.Log.Warn("signature not kept", "path", path, "error", err)
	}
}

func readSignature(path string) (s artifact.Signature, err error) {
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	return s, err
}

// bundleFile is where the bundle of a module's file is looked for.
func bundleFile(m config.Module) string {
	if m.Verify.Bundle != "" {
		return m.Verify.Bundle
	}
	return m.Path + ".sigstore.json"
}
