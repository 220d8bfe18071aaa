package artifact

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
)

const (
	// simpleSigning is a payload that cosign signs, and signatureAnnotation where its
	// signature is, in base64 (cosign, specs/SIGNATURE_SPEC.md).
	simpleSigning       = "application/vnd.dev.cosign.simplesigning.v1+json"
	signatureAnnotation = "dev.cosignproject.cosign/signature"
	// bundleType is what bundles of Sigstore begin with.
	bundleType = "application/vnd.dev.sigstore.bundle"

	maxSignatures = 32      // of an artifact, of each kind
	maxPayload    = 1 << 20 // bytes of a payload or a bundle
)

// A Signature is attached to an artifact. Nothing of it is verified: anyone who can write to the
// repository can attach what they like.
type Signature struct {
	// Payload is what Sig is a signature of; both are empty if there is a Bundle.
	Payload, Sig []byte
	// Bundle is a bundle of Sigstore.
	Bundle []byte
}

// Signatures returns the signatures that are attached to the artifact of ref, where cosign puts them:
// under the tag sha256-DIGEST.sig, and as referrers with bundles. None is no error. They are not kept:
// each call asks the registry again.
func (s *Store) Signatures(ctx context.Context, ref string) (all []Signature, err error) {
	r, err := Parse(ref)
	if err != nil {
		return nil, err
	}
	if r.Digest == "" {
		return nil, fmt.Errorf("artifact: %s is a file; signatures can be looked up only for artifacts in a registry", r)
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	defer s.closeIdle()
	p := &puller{r, s.repository(r), cache{log: s.cfg.Log}, s.keys, s.cfg.Progress}
	tagged, err := p.tagged(ctx)
	if err == nil {
		var referring []Signature
		referring, err = p.referring(ctx)
		all = append(tagged, referring...)
	}
	if err != nil {
		return nil, fmt.Errorf("artifact: look for signatures of %s: %w", r, p.explain(ctx, err))
	}
	return all, nil
}

// tagged returns the signatures in the image under the tag of the artifact's digest.
func (p *puller) tagged(ctx context.Context) (all []Signature, err error) {
	desc, body, err := p.repo.Manifests().FetchReference(ctx, strings.Replace(p.ref.Digest, ":", "-", 1)+".sig")
	if errors.Is(err, errdef.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer body.Close()
	b, err := io.ReadAll(io.LimitReader(body, maxManifest+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > maxManifest || digest.FromBytes(b) != desc.Digest {
		return nil, errors.New("the manifest of the signatures is too large, or its digest is not the one that the registry gives")
	}
	m, err := parseManifest(b)
	if err != nil {
		return nil, err
	}
	for _, layer := range m.Layers[:min(len(m.Layers), maxSignatures)] {
		if layer.MediaType != simpleSigning {
			continue
		}
		sig, err := base64.StdEncoding.DecodeString(layer.Annotations[signatureAnnotation])
		if err != nil {
			continue // it cannot be used
		}
		payload, err := p.small(ctx, layer)
		if err != nil {
			return nil, err
		}
		all = append(all, Signature{Payload: payload, Sig: sig})
	}
	return all, nil
}

// referring returns the bundles in artifacts that refer to this one.
func (p *puller) referring(ctx context.Context) (all []Signature, err error) {
	subject, err := p.repo.Manifests().Resolve(ctx, p.ref.Digest)
	if err != nil {
		return nil, err
	}
	var found []ocispec.Descriptor
	err = p.repo.Referrers(ctx, subject, "", func(page []ocispec.Descriptor) error {
		for _, d := range page {
			if strings.HasPrefix(d.ArtifactType, bundleType) && len(found) < maxSignatures {
				found = append(found, d)
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, errdef.ErrNotFound) {
		return nil, err
	}
	for _, d := range found {
		m, err := p.manifest(ctx, d.Digest)
		if err != nil {
			return nil, err
		}
		for _, layer := range m.Layers {
			if !strings.HasPrefix(layer.MediaType, bundleType) || len(all) == maxSignatures {
				continue
			}
			b, err := p.small(ctx, layer)
			if err != nil {
				return nil, err
			}
			all = append(all, Signature{Bundle: b})
		}
	}
	return all, nil
}

// small returns the bytes of a payload or a bundle.
func (p *puller) small(ctx context.Context, desc ocispec.Descriptor) ([]byte, error) {
	if err := checkDigest(desc.Digest); err != nil {
		return nil, err
	}
	if desc.Size < 0 || desc.Size > maxPayload {
		return nil, fmt.Errorf("signature %s has %d bytes according to the manifest; at most %d are allowed", desc.Digest, desc.Size, maxPayload)
	}
	body, err := p.repo.Blobs().Fetch(ctx, desc)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return content.ReadAll(body, desc)
}
